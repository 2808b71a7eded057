"""Penalties and selection by the least-squares approximation: limits, exhaustive search, intervals after it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge

from dpregress import GDP, DPLinearRegression, DPLogisticRegression, PublicMoments
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.inference import Approximation, best_subsets, forward_selection, penalty_path
from dpregress.inference.simultaneous import Simultaneous
from dpregress.releases import Estimates
from dpregress.releases.estimates import INTERCEPT

N, D = 400, 5
NAMES = tuple(f"x{i}" for i in range(D))
TERMS = {name: [name] for name in NAMES}


def data(rng: np.random.Generator) -> tuple[Matrix, Vector]:
    x = rng.normal(size=(N, D)) @ (np.eye(D) + 0.4 * rng.normal(size=(D, D))) + 1.0
    return x, x @ [1.0, 0.0, -0.5, 0.0, 0.05] + 2.0 + rng.normal(size=N)


def estimates(x: Matrix, y: Vector, noise: float = 0.0) -> Estimates:
    """Least squares with its covariance, and privacy noise of a multiple of it."""
    full = np.column_stack([np.ones(len(x)), x])
    coef = np.linalg.lstsq(full, y, rcond=None)[0]
    square = float(np.mean((y - full @ coef) ** 2))
    sampling = square * np.linalg.inv(full.T @ full)
    return Estimates(
        (INTERCEPT, *NAMES), coef, sampling, noise * sampling, np.ones(D + 1, dtype=np.bool_), np.zeros(D + 1),
        math.inf, "model", square, np.cov(x.T, bias=True),
    )  # fmt: skip


def test_without_noise_it_is_scikit_learns_elastic_net(seed: int) -> None:
    x, y = data(np.random.default_rng(seed))
    known = Approximation.of(estimates(x, y), N)
    alphas = [0.5, 0.1, 0.01]
    for l1_ratio in (1.0, 0.3):
        found = penalty_path(known, l1_ratio, alphas, standardized=False)
        for alpha, coef, intercept in zip(found.alphas, found.coef, found.intercept, strict=True):
            right = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-12, max_iter=100_000).fit(x, y)
            np.testing.assert_allclose(coef, right.coef_, atol=1e-6)
            np.testing.assert_allclose(intercept, right.intercept_, atol=1e-5)
    ridge = penalty_path(known, 0.0, alphas, standardized=False)
    for alpha, coef in zip(ridge.alphas, ridge.coef, strict=True):
        np.testing.assert_allclose(coef, Ridge(alpha=N * alpha).fit(x, y).coef_, rtol=1e-8)
    scale = x.std(axis=0)
    standard = penalty_path(known, 1.0, alphas)
    right = ElasticNet(alpha=0.1, l1_ratio=1.0, tol=1e-12, max_iter=100_000).fit(x / scale, y)
    np.testing.assert_allclose(standard.coef[1], right.coef_ / scale, atol=1e-6)


def test_a_path_goes_from_nothing_to_the_estimates(seed: int) -> None:
    x, y = data(np.random.default_rng(seed))
    fit = estimates(x, y, noise=3.0)
    for l1_ratio in (1.0, 0.5, 0.0):
        found = penalty_path(Approximation.of(fit, N), l1_ratio, 50)
        slopes = found.coef * x.std(axis=0)
        penalty = l1_ratio * np.abs(slopes).sum(axis=1) + (1 - l1_ratio) / 2 * np.sum(slopes**2, axis=1)
        assert (np.diff(penalty) >= -1e-7).all()
        assert np.linalg.norm(slopes[0]) < 0.02 * np.linalg.norm(fit.estimate[1:] * x.std(axis=0))
        least = penalty_path(Approximation.of(fit, N), l1_ratio, [1e-9])
        np.testing.assert_allclose(least.coef[0], fit.estimate[1:], atol=1e-5)
        assert least.df[0] == pytest.approx(D, abs=1e-5)


def test_noise_weakens_what_it_hides(seed: int) -> None:
    """With four times the variance, a penalty acts as four times that penalty."""
    x, y = data(np.random.default_rng(seed))
    exact, noisy = (Approximation.of(estimates(x, y, noise=noise), N) for noise in (0.0, 3.0))
    np.testing.assert_allclose(penalty_path(noisy, 1.0, [0.05]).coef, penalty_path(exact, 1.0, [0.2]).coef, atol=1e-7)
    assert noisy.rows == pytest.approx(N / 4)


def distance(fit: Estimates, kept: tuple[str, ...]) -> float:
    """What a submodel leaves: ``(b - beta)' V^-1 (b - beta)`` at its best."""
    slopes = [1 + NAMES.index(name) for name in NAMES if name not in kept]
    if not slopes:
        return 0.0
    out = fit.estimate[slopes]
    return float(out @ np.linalg.solve(fit.covariance[np.ix_(slopes, slopes)], out))


def test_best_subsets_are_the_best_of_all(seed: int) -> None:
    fit = estimates(*data(np.random.default_rng(seed)), noise=1.0)
    found = best_subsets(Approximation.of(fit, N), TERMS)
    for size, (terms, bic) in enumerate(zip(found.terms, found.bic, strict=True)):
        right = min(distance(fit, kept) for kept in itertools.combinations(NAMES, size))
        assert distance(fit, terms) == pytest.approx(right)
        assert bic == pytest.approx(right + size * math.log(N / 2), abs=1e-6)
    two = best_subsets(Approximation.of(fit, N), {"pair": ["x0", "x1"], "rest": ["x2", "x3", "x4"]})
    assert two.columns[-1] == NAMES
    assert two.terms[1] in (("pair",), ("rest",))


def test_forward_selection_adds_the_best_term(seed: int) -> None:
    fit = estimates(*data(np.random.default_rng(seed)), noise=1.0)
    found = forward_selection(Approximation.of(fit, N), TERMS)
    for before, after in itertools.pairwise(found.terms):
        added = {name: distance(fit, (*before, name)) for name in NAMES if name not in before}
        assert after == (*before, min(added, key=added.__getitem__))
    assert set(found.terms[-1]) == set(NAMES)


def test_sets_and_paths_print_as_tables(seed: int) -> None:
    known = Approximation.of(estimates(*data(np.random.default_rng(seed)), noise=1.0), N)
    sets = forward_selection(known, TERMS)
    frame = sets.to_frame()
    np.testing.assert_array_equal(frame["bic"], sets.bic)
    np.testing.assert_array_equal(frame[list(NAMES)].sum(axis=1), np.arange(D + 1))
    shown = str(sets).splitlines()
    assert shown[1].startswith("(no term)")
    assert len(shown) == D + 3
    assert shown[-1].endswith(f"BIC is smallest with {', '.join(sets.terms[sets.best()])}.")
    path = penalty_path(known, 1.0)
    best = path.best()
    kept = ", ".join(name for name, slope in zip(NAMES, path.coef[best], strict=True) if slope)
    assert f"{path.alphas[best]:.3g}, with {kept}." in str(path)
    assert len(str(path).splitlines()) in (12, 13)


def test_refits_are_submodels(seed: int) -> None:
    x, y = data(np.random.default_rng(seed))
    known = Approximation.of(estimates(x, y), N)
    chosen = best_subsets(known, TERMS).refit()
    places = [NAMES.index(name) for name in chosen.names]
    right = np.linalg.lstsq(np.column_stack([np.ones(N), x[:, places]]), y, rcond=None)[0][1:]
    np.testing.assert_allclose(chosen.coef, right, rtol=1e-8)
    assert chosen.note.startswith("After selection, 95% intervals hold simultaneously for all submodels of 5 columns")
    assert "P>|z| (adjusted)" in str(chosen)
    assert chosen.left_out == ""
    ends = chosen.conf_int(level=0.9)
    inside = (ends[:, 0] <= 0) & (ends[:, 1] >= 0)
    np.testing.assert_array_equal(chosen.pvalues > 0.1, inside)
    assert (chosen.to_frame()["std err"].to_numpy() == chosen.bse).all()


def test_what_is_not_identified_stays_without_a_penalty(seed: int) -> None:
    """The others are selected given its unknown coefficient, not as if that were 0."""
    fit = estimates(*data(np.random.default_rng(seed)))
    unknown = replace(fit, identified=np.arange(D + 1) != 2)
    known = Approximation.of(unknown, N)
    assert known.names == ("x0", "x2", "x3", "x4")
    found = best_subsets(known, TERMS)
    assert found.refit().unidentified == ("x1",)
    assert str(found.refit()).endswith("because they are not identified (they stay in the model): x1.")
    assert found.columns[-1] == known.names
    places = [1, 3, 4, 5]
    left = fit.estimate[places] @ np.linalg.solve(fit.covariance[np.ix_(places, places)], fit.estimate[places])
    assert found.aic[0] == pytest.approx(left)
    np.testing.assert_allclose(penalty_path(known, 1.0, [1e-9]).coef[0], fit.estimate[places], atol=1e-5)
    with pytest.raises(InvalidInput, match="no slope is identified"):
        Approximation.of(replace(fit, identified=np.zeros(D + 1, dtype=np.bool_)), N)


def test_more_than_twenty_terms_are_refused() -> None:
    names = tuple(f"x{i}" for i in range(21))
    many = Estimates(
        names,
        np.ones(21),
        np.eye(21),
        0 * np.eye(21),
        np.ones(21, dtype=np.bool_),
        np.zeros(21),
        math.inf,
        "model",
        1.0,
    )
    with pytest.raises(InvalidInput, match="at most 20 terms"):
        best_subsets(Approximation.of(many, N), {name: [name] for name in names})
    assert len(forward_selection(Approximation.of(many, N), {name: [name] for name in names}).terms) == 22


# ------------------------------------------------------------------ simultaneous intervals


def test_of_one_column_it_is_the_normal_quantile() -> None:
    assert Simultaneous.of(np.eye(1), math.inf).critical(0.95) == pytest.approx(norm.isf(0.025), rel=1e-6)


def test_of_independent_columns_it_is_the_quantile_of_their_maximum() -> None:
    """Submodels of an orthogonal design have the same coefficients."""
    for d in (2, 5, 10):
        right = norm.ppf((1 + 0.95 ** (1 / d)) / 2)
        assert Simultaneous.of(np.diag(np.arange(1.0, d + 1)), math.inf).critical(0.95) == pytest.approx(
            right, rel=0.01
        )


def test_it_lies_between_one_interval_and_scheffes(seed: int) -> None:
    root = np.random.default_rng(seed).normal(size=(6, 6))
    law = Simultaneous.of(root @ root.T, math.inf)
    assert law.exact
    assert norm.isf(0.025) < law.critical(0.95) < math.sqrt(chi2.isf(0.05, 6))
    assert law.critical(0.95) < Simultaneous.of(root @ root.T, 20.0).critical(0.95)
    assert law.chance(law.critical(0.9)) == pytest.approx(0.9, abs=1e-6)


def test_many_columns_have_scheffes_bound() -> None:
    law = Simultaneous.of(np.eye(15), math.inf)
    assert not law.exact
    assert law.critical(0.95) == pytest.approx(math.sqrt(chi2.isf(0.05, 15)), rel=1e-6)


@pytest.mark.slow
def test_intervals_hold_after_selection(seed: int) -> None:
    """400 draws of pure noise, the best subset by AIC refitted: all 90% intervals hold the submodel's coefficients, 0.

    Counts that a coverage of 85% stays below less than once in 10^9; those of plain intervals fall below it.
    """
    rng = np.random.default_rng(seed)
    fit = estimates(*data(rng))
    root, inside, plain, chosen = np.linalg.cholesky(fit.covariance), 0, 0, 0
    for _ in range(400):
        known = Approximation.of(
            Estimates(
                fit.names, root @ rng.normal(size=D + 1), fit.sampling, fit.privacy, fit.identified, fit.shift,
                math.inf, "model", fit.dispersion, fit.spread,
            ), N,
        )  # fmt: skip
        found = best_subsets(known, TERMS).refit("aic")
        lower, upper = found.conf_int(level=0.9).T
        inside += bool(((lower <= 0) & (upper >= 0)).all())
        if found.names:
            chosen += 1
            plain += bool((np.abs(found.coef) <= norm.isf(0.05) * found.bse).all())
    assert inside >= binom.ppf(1e-9, 400, 0.85), inside
    assert plain < chosen / 2, "plain intervals ignore the choice"


# ------------------------------------------------------------------ of fits


def test_of_a_logistic_fit_it_is_near_the_penalised_likelihood(seed: int) -> None:
    """Almost without noise, the lasso keeps the columns that matter and its coefficients are near scikit-learn's."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20_200, 4))
    y = (rng.random(20_200) < 1 / (1 + np.exp(-x @ [0.8, 0.0, -0.4, 0.0]))).astype(float)
    model = DPLogisticRegression(GDP(30.0), public=PublicMoments.from_rows(x[:200], y[:200])).fit(x[200:], y[200:])
    found = model.path(alphas=[0.02], standardized=False)
    right = LogisticRegression(l1_ratio=1.0, C=1 / (0.02 * 20_000), solver="saga", tol=1e-6).fit(x[200:], y[200:])
    np.testing.assert_allclose(found.coef[0], right.coef_[0], atol=0.05)
    assert model.select().refit().names[:1] == ("x0",)
    assert {"x0", "x2"} <= set(model.select("best").refit().names)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda model: model.path("bridge"), "penalty must be one of"),
        (lambda model: model.path("elastic-net", l1_ratio=2), "between 0"),
        (lambda model: model.path(alphas=[-1.0]), "not negative"),
        (lambda model: model.path(alphas=[]), "not negative"),
        (lambda model: model.select("stepwise"), "method must be one of"),
        (lambda model: model.select().refit("cp"), "criterion must be one of"),
    ],
)
def test_refusals(asked, said: str) -> None:  # type: ignore[no-untyped-def]
    x, y = data(np.random.default_rng(0))
    model = DPLinearRegression(GDP(5.0), public=PublicMoments.from_rows(x, y)).fit(x, y)
    with pytest.raises(InvalidInput, match=said):
        asked(model)

"""Inference from estimates agrees with statsmodels, given its estimates and covariances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpregress.errors import InvalidInput
from dpregress.inference import (
    checked_level,
    explained_share,
    explained_variance,
    intervals,
    linear_hypothesis,
    p_values,
    predicted_intervals,
    standard_errors,
    submodel,
    t_ratios,
    t_tests,
    term_tests,
    wald,
)
from dpregress.models import family_of
from dpregress.releases import Estimates

sm = pytest.importorskip("statsmodels.api")

N = 600
NAMES = ("(intercept)", "x1", "x2", "x3", "plan=full", "plan=gold")
RNG = np.random.default_rng(5)
PLAN = RNG.integers(3, size=N)
X = np.column_stack([RNG.normal(size=(N, 3)) * [1.0, 1e4, 1e-3], PLAN == 1, PLAN == 2]).astype(float)
MEAN = 1 + X @ [1.0, 2e-5, -300.0, 0.5, 0.0]
Y = MEAN + RNG.normal(size=N)
DESIGN = np.column_stack([np.ones(N), X])
#: Written for statsmodels, and as here.
HYPOTHESES = ("x1 = 20000 * x2, x3 = 0", "x1 - 2 * x3 = 5", "const = 1", "x1 = 1, x2 = 0, x3 = 2")


def linear(df: float | None = None) -> tuple[Any, Estimates]:
    fitted = sm.OLS(Y, sm.add_constant(_frame())).fit()
    return fitted, _of(fitted, float(fitted.df_resid) if df is None else df, fitted.scale, np.cov(X.T))


def logistic() -> tuple[Any, Estimates]:
    labels = RNG.random(N) < 1 / (1 + np.exp(-(MEAN - 1)))
    fitted = sm.Logit(labels.astype(float), sm.add_constant(_frame())).fit(disp=False)
    return fitted, _of(fitted, np.inf)


def _frame() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=["x1", "x2", "x3", "full", "gold"])


def _of(fitted: Any, df: float, dispersion: float | None = None, spread: Any = None) -> Estimates:
    covariance = np.asarray(fitted.cov_params())
    known = np.ones(len(NAMES), dtype=bool)
    params = np.asarray(fitted.params)
    return Estimates(
        NAMES, params, 1.0 * covariance, 0.0 * covariance, known, np.zeros(len(NAMES)), df, "robust", dispersion, spread
    )


@pytest.mark.parametrize("made", [linear, logistic])
def test_coefficients_one_by_one(made: Any) -> None:
    fitted, estimates = made()
    np.testing.assert_allclose(standard_errors(estimates), fitted.bse, rtol=1e-10)
    np.testing.assert_allclose(t_ratios(estimates), fitted.tvalues, rtol=1e-10)
    np.testing.assert_allclose(p_values(estimates), fitted.pvalues, rtol=1e-8)
    for alpha in (0.01, 0.05, 0.4):
        found = intervals(estimates, checked_level(alpha=alpha))
        np.testing.assert_allclose(found, fitted.conf_int(alpha=alpha), rtol=1e-10)
        np.testing.assert_array_equal(found, intervals(estimates, checked_level(1 - alpha)))


@pytest.mark.parametrize("spec", HYPOTHESES)
@pytest.mark.parametrize("made", [linear, logistic])
def test_hypotheses_in_text(made: Any, spec: str) -> None:
    fitted, estimates = made()
    own = spec.replace("const", "Intercept")
    joint, expected = wald(estimates, own), fitted.wald_test(spec, scalar=True)
    assert joint.distribution == ("F" if np.isfinite(estimates.df) else "chi2") == expected.distribution
    assert joint.statistic == pytest.approx(float(expected.statistic), rel=1e-7)
    assert joint.pvalue == pytest.approx(float(expected.pvalue), rel=1e-6, abs=1e-300)
    single, wanted = t_tests(estimates, own), fitted.t_test(spec)
    for name in ("effect", "sd", "tvalue", "pvalue"):
        np.testing.assert_allclose(getattr(single, name), np.ravel(getattr(wanted, name)), rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(single.conf_int(alpha=0.1), wanted.conf_int(alpha=0.1), rtol=1e-8)


def test_text_and_matrices_say_the_same() -> None:
    _, estimates = linear()
    matrix = np.array([[0, 1, -20000, 0, 0, 0], [0, 0, 0, 1, 0, 0]])
    expected = wald(estimates, HYPOTHESES[0])
    for spec in (matrix, (matrix, 0.0), (matrix, [0, 0]), matrix.tolist(), HYPOTHESES[0].split(",")):
        assert wald(estimates, spec) == expected
    assert wald(estimates, "`plan=full` = 0, `plan=gold` = 0") == wald(estimates, np.eye(6)[4:])
    assert wald(estimates, "`(intercept)` = 1") == wald(estimates, "Intercept = 1")


@pytest.mark.parametrize(
    ("spec", "row", "value"),
    [
        ("x1 = -0.5", [0, 1, 0, 0], -0.5),
        ("x1 = - A", [0, 1, 0, 1], 0.0),
        ("x1 = -(A - 2)", [0, 1, 0, 1], 2.0),
        ("2 * x1 - 1 = x1 + 1e-3", [0, 1, 0, 0], 1.001),
        ("1.5E2 * x1 = 0", [0, 150, 0, 0], 0.0),
        ("(x1 = A)", [0, 1, 0, -1], 0.0),
        ("`B: (intercept) = 1e5` = -(intercept)", [1, 0, 1, 0], 0.0),
    ],
)
def test_signs_exponents_and_intercepts_of_classes_are_read(spec: str, row: list[float], value: float) -> None:
    found = linear_hypothesis(("(intercept)", "x1", "B: (intercept) = 1e5", "A"), spec)
    np.testing.assert_allclose(found.matrix, [row])
    np.testing.assert_allclose(found.value, [value])


def test_redundant_rows_are_counted_once() -> None:
    _, estimates = linear()
    once = wald(estimates, "x1 = 1, x3 = 2")
    twice = wald(estimates, "x1 = 1, x3 = 2, x1 + x3 = 3")
    assert twice.df_num == once.df_num == 2
    assert twice.statistic == pytest.approx(once.statistic, rel=1e-6)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("x1 = x2 = 0", "several '='"),  # formulaic reads it as x1 - x2 + 0 = 0
        ("x1 = 1, x1 = 2", "contradict"),
        ("x1 * x2 = 0", "not linear"),
        ("x9 = 0", r"no coefficient is called 'x9'; choose from `\(intercept\)`, `x1`"),
        ("x1 = 0,", "empty part"),
        ("", "empty part"),
        ("1 = 1", "leave rows of zeros out"),
        (np.eye(5), "a column for each of the 6"),
        ((np.eye(6), [1, 2]), "one value for each of the 6 rows"),
        ([[0, 1, np.nan, 0, 0, 0]], "must be finite"),
        (object(), "a hypothesis is text"),
        (None, "must be finite"),
        (1e300 * np.eye(6), "between 1e-100 and 1e100"),
        (1e-300 * np.eye(6), "between 1e-100 and 1e100"),
        ((np.eye(6), 1e200), "between 1e-100 and 1e100"),
        (np.full(6, 1 + 1j), "a hypothesis is text"),
        (np.ma.masked_equal(np.arange(6.0), 2.0), "a hypothesis is text"),
        ("x1 =", "empty side"),
        ("= x1", "empty side"),
        ("x1) - (x2 = 0", "not linear"),
        ("__import__('os').getcwd() = 0", "not linear"),
        ("{__import__('os').getcwd()} = 0", "no coefficient is called"),
        ("x1[__import__('os').getcwd()] = 0", "no coefficient is called"),
    ],
)
def test_what_is_no_hypothesis_is_refused_in_one_line(spec: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        linear_hypothesis(NAMES, spec)
    assert "\n" not in str(caught.value)


def test_terms_are_tested_together() -> None:
    fitted, estimates = linear()
    found = term_tests(estimates, {"x1": ["x1"], "plan": ["plan=full", "plan=gold"]})
    expected = fitted.f_test("full = 0, gold = 0")
    assert found.tests[1].statistic == pytest.approx(float(np.squeeze(expected.fvalue)), rel=1e-9)
    assert found.tests[1].pvalue == pytest.approx(float(expected.pvalue), rel=1e-8)
    assert found.to_frame().loc["plan", "df_constraint"] == 2
    assert str(found).splitlines()[2].startswith("plan")


def test_what_is_fixed_by_definition_is_not_tested() -> None:
    """Coefficients of several classes sum to 0: a singular covariance tests contrasts, and refuses the sum."""
    turn = np.eye(3) - 1 / 3
    names = ("a: x", "b: x", "c: x")
    covariance = turn @ np.diag([1.0, 2.0, 3.0]) @ turn
    estimates = Estimates(
        names,
        turn @ [1.0, 2.0, 4.0],
        covariance,
        np.zeros((3, 3)),
        np.ones(3, dtype=bool),
        np.zeros(3),
        np.inf,
        "model",
    )
    joint = wald(estimates, np.eye(3))
    assert joint.df_num == 2
    pair = wald(estimates, "`a: x` = `b: x`, `b: x` = `c: x`")
    assert joint.statistic == pytest.approx(pair.statistic, rel=1e-9)
    with pytest.raises(InvalidInput, match="fixes by definition"):
        wald(estimates, ([[1, 1, 1]], [1.0]))


def test_what_is_not_identified_is_never_small() -> None:
    _, estimates = linear()
    hidden = Estimates(**{**vars(estimates), "identified": np.array([True, True, False, True, True, True])})
    at = [2]
    for values in (standard_errors(hidden), t_ratios(hidden), p_values(hidden), intervals(hidden, 0.9)):
        assert np.isnan(values[at]).all()
        assert np.isfinite(np.delete(values, at, axis=0)).all()
    assert np.isnan(wald(hidden, "x1 = x2").pvalue)
    assert np.isnan(t_tests(hidden, "x2 = 0, x1 = 0").pvalue).tolist() == [True, False]
    tested = str(term_tests(hidden, {"x1": ["x1"], "x2": ["x2"]}))
    assert "nan" not in tested
    assert "Without a test because of coefficients that are not identified: x2." in tested
    assert "Without a test" not in str(term_tests(hidden, {"x1": ["x1"]}))
    assert str(wald(hidden, "x1 = x2")) == "not identified"
    lines = str(t_tests(hidden, "x2 = 0, x1 = 0")).splitlines()
    assert lines[0].split() == ["hypothesis", "effect", "std", "err", "t", "P>|t|", "[0.025", "0.975]"]
    assert ["not identified" in line for line in lines] == [False, True, False]
    assert np.isnan(explained_share(hidden))
    rows = np.array([[1.0, 0, 0, 0, 0], [1.0, 1, 0, 0, 0]])
    family = family_of("gaussian")
    for kind in ("mean", "prediction"):
        found = predicted_intervals(hidden, rows, family, interval=kind, level=0.9)  # type: ignore[arg-type]
        assert np.isnan(found.upper).tolist() == [False, True]


def test_predictions_have_the_intervals_of_statsmodels() -> None:
    fitted, estimates = linear()
    frame = fitted.get_prediction(DESIGN[:20]).summary_frame(alpha=0.1)
    for kind, prefix in (("mean", "mean_ci"), ("prediction", "obs_ci")):
        found = predicted_intervals(estimates, X[:20], family_of("gaussian"), interval=kind, level=0.9)  # type: ignore[arg-type]
        np.testing.assert_allclose(found.lower, frame[f"{prefix}_lower"], rtol=1e-9)
        np.testing.assert_allclose(found.upper, frame[f"{prefix}_upper"], rtol=1e-9)
        assert list(found.to_frame()) == ["mean", f"{prefix}_lower", f"{prefix}_upper"]


def test_intervals_of_chances_follow_the_link() -> None:
    fitted, estimates = logistic()
    family = family_of("binomial")
    found = predicted_intervals(estimates, X[:20], family, interval="mean", level=0.95)
    frame = sm.GLM(fitted.model.endog, DESIGN, family=sm.families.Binomial()).fit().get_prediction(DESIGN[:20])
    np.testing.assert_allclose(found.mean, frame.predicted_mean, rtol=1e-5)
    np.testing.assert_allclose(found.lower, frame.conf_int()[:, 0], rtol=1e-4)
    assert ((found.lower > 0) & (found.upper < 1)).all()
    with pytest.raises(InvalidInput, match="models their mean only"):
        predicted_intervals(estimates, X[:2], family, interval="prediction", level=0.95)


def test_a_decreasing_link_swaps_the_ends() -> None:
    _, estimates = linear()
    found = predicted_intervals(estimates, 0 * X[:1], family_of("gamma", "inverse"), interval="mean", level=0.95)
    assert found.lower[0] < found.mean[0] < found.upper[0]


def test_r_squared_is_that_of_least_squares_without_the_part_of_noise() -> None:
    fitted, estimates = linear()
    spread = np.cov(X.T)
    slopes = np.asarray(fitted.params)[1:]
    noise = float(np.trace(spread @ np.asarray(fitted.cov_params())[1:, 1:]))
    explained = slopes @ spread @ slopes - noise
    assert explained_variance(estimates) == pytest.approx(explained, rel=1e-10)
    assert explained_share(estimates) == pytest.approx(fitted.rsquared_adj, abs=0.01)
    names = (*estimates.names, "plan=rare")
    wider = Estimates(
        names, np.append(estimates.estimate, 3.0), *(np.pad(each, (0, 1)) + 25.0 * np.diag(np.eye(7)[6])
        for each in (estimates.sampling, estimates.privacy)), np.append(estimates.identified, False),
        np.append(estimates.shift, 0.0), estimates.df, estimates.cov_type, estimates.dispersion,
        np.pad(spread, (0, 1)) + 1e-4 * np.diag(np.eye(6)[5]),
    )  # fmt: skip
    assert explained_variance(wider) == pytest.approx(explained, rel=1e-10)  # hardly anybody has this level
    nothing = Estimates(**{**vars(estimates), "estimate": 0 * estimates.estimate})
    assert explained_share(nothing) == 0.0
    for name, words in (("dispersion", "residual variance"), ("spread", "covariance of the features")):
        with pytest.raises(InvalidInput, match=words):
            explained_share(Estimates(**{**vars(estimates), name: None}))


def test_submodels_are_those_of_least_squares() -> None:
    """Without privacy noise the approximation is exact for the coefficients, and nearly so for the criteria."""
    fitted, estimates = linear(np.inf)
    alone = Estimates(**{**vars(estimates), "sampling": estimates.covariance, "privacy": 0 * estimates.privacy})
    found = submodel(alone, N, ["plan=full", "plan=gold"])
    smaller = sm.OLS(Y, DESIGN[:, :4]).fit()
    np.testing.assert_allclose(found.estimates.estimate, smaller.params, rtol=1e-8)
    assert found.n_effective == pytest.approx(N)
    assert found.delta_aic == pytest.approx(smaller.aic - fitted.aic, rel=0.05, abs=0.2)
    assert found.delta_bic == pytest.approx(smaller.bic - fitted.bic, rel=0.05, abs=0.2)
    halved = {"sampling": 0.7 * estimates.covariance, "privacy": 0.3 * estimates.covariance}
    noisy = submodel(Estimates(**{**vars(estimates), **halved}), N, ["x1"])
    assert noisy.n_effective == pytest.approx(0.7 * N)
    with_f = submodel(linear()[1], N, ["x1"])
    assert with_f.delta_aic == pytest.approx(noisy.delta_aic)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"level": 95}, "level= takes"),
        ({"level": 0.0}, "level= takes"),
        ({"level": "x"}, "level= takes"),
        ({"alpha": 1.0}, "alpha= takes"),
        ({"level": 0.9, "alpha": 0.1}, "not both"),
    ],
)
def test_levels_are_shares(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        checked_level(**given)


def test_privacy_noise_of_known_law_adds_degrees_of_freedom() -> None:
    """Only the sampling part of a variance is estimated: with half of it known, df is four times as large."""
    _, estimates = linear(10.0)
    half = estimates.sampling / 2
    known = Estimates(**{**vars(estimates), "sampling": half, "privacy": half})
    np.testing.assert_allclose(known.degrees_of_freedom, 40.0)
    np.testing.assert_allclose(t_tests(known, "x1 = x2").df, 40.0)
    assert wald(known, "x1 = x2, x3 = 0").df_denom == pytest.approx(40.0)
    np.testing.assert_array_less(intervals(estimates, 0.9)[:, 0], intervals(known, 0.9)[:, 0])


def test_a_name_with_an_equality_sign_is_asked_for_in_backticks() -> None:
    with pytest.raises(InvalidInput, match=r"several '=': write `sex=m` = 0, with backticks$"):
        linear_hypothesis(("(intercept)", "sex=m"), "sex=m = 0")

"""Survey weights: no sensitivity grows, the limit is statsmodels', standard errors are those of the design."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.spatial.distance import pdist

from dpregress import (
    ApproxDP,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPSurvival,
    LocalGLM,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.accounting import GDP, MemoryLedger, Relation
from dpregress.coordinates.exact import FINE, Grid
from dpregress.errors import InvalidInput, NotAvailable, UnboundedData
from dpregress.models import family_of
from dpregress.queries import ClippedScore, Counted, MeanResidual, ResponseHistogram, SecondMoment
from dpregress.rows import Encoder, TableSource, WeightedSource
from dpregress.solvers import ScoreSteps
from tests import registry
from tests.laws.spies import Silent
from tests.registry import METRICS, QUERIES, SPACES, QueryEntry, responses
from tests.support import missing, run, statsmodels_family

HUGE = GDP(1e20)
BOUND = 5.0


@pytest.mark.parametrize("space", ["plain", "intercept", "published", "exposure"])
@pytest.mark.parametrize("entry", QUERIES, ids=str)
def test_no_sensitivity_grows(entry: QueryEntry, space: str, seed: int) -> None:
    """Rows with any weights, wild ones among them, move no query further than rows without. Deterministic bounds."""
    rng = np.random.default_rng(seed)
    query = entry.make(SPACES[space](rng), rng)
    rows = registry.joined(registry.wild_rows(rng, 30), entry.extremes(query), registry.tame_rows(rng, query.space, 30))
    m = len(rows.x)
    weights = rng.choice([1e-300, 1e-3, 0.3, 0.99, 1.0, 7.0, 1e300, np.inf, np.nan, -1.0, 0.0], m)
    found = []
    for i in range(m):
        one = replace(registry.taken(rows, slice(i, i + 1)), survey=weights[i : i + 1])
        found.append(query.value(query.row_map(one)))
    values = np.array(found)
    assert np.isfinite(values).all()
    assert query.norm.of(values).max() <= query.sensitivity(Relation.ADD_REMOVE) * (1 + 1e-12)
    assert pdist(values, METRICS[query.norm]).max() <= query.sensitivity(Relation.REPLACE_ONE) * (1 + 1e-12)
    usable = np.isfinite(weights) & (weights > 0)
    if isinstance(query, Counted):
        counts = values[:, -1] / query.unit
        assert (counts[~usable] == 0).all()
        assert (counts <= np.minimum(np.where(usable, weights, 0), 1) * (1 + 1e-9) + 1).all()


@pytest.mark.parametrize("words", [1, FINE])
@pytest.mark.parametrize("space", ["plain", "intercept"])
def test_a_weighted_row_stays_within_its_share(space: str, words: int, seed: int) -> None:
    """In exact arithmetic, on the grid, after all rounding: the condition of `Counted`. No seed can break it."""
    rng = np.random.default_rng(seed)
    known = SPACES[space](rng)
    rows = registry.joined(registry.wild_rows(rng, 40), registry.tame_rows(rng, known, 40))
    share = rng.choice([1e-300, 1e-12, 1e-6, 0.04, 0.3, 1 - 2.0**-40, np.nextafter(1.0, 0.0), 1.0], len(rows.x))
    query = SecondMoment(known)
    bounded = query.row_map(replace(rows, survey=share), words)
    assert bounded.survey is not None
    grid = Grid(known.radius, words)
    assert (np.rint(bounded.x / grid.step) * grid.step == bounded.x).all()
    assert ((bounded.survey >= share) & (bounded.survey <= np.minimum(share + 2.0**-41, 1))).all()
    y = query._response(bounded)[1].tolist()
    for x, answer, exact in zip(bounded.x.tolist(), y, map(Fraction, bounded.survey.tolist()), strict=True):
        assert sum(Fraction(cell) ** 2 for cell in x) <= exact * Fraction(known.radius) ** 2
        assert Fraction(answer) ** 2 <= exact * Fraction(known.response.bound) ** 2
    mean = MeanResidual(known, family_of("gaussian"), np.zeros(known.order), -0.3, 0.7)
    for i, exact in enumerate(map(Fraction, bounded.survey.tolist())):
        one = replace(registry.taken(rows, slice(i, i + 1)), survey=share[i : i + 1])
        total = mean.exact(mean.row_map(one, words))
        value = int(total.whole[0]) * Fraction(float(total.unit))
        assert exact * Fraction(-0.3) <= value <= exact * Fraction(0.7)


def test_queries_whose_values_do_not_shrink_are_not_counted(seed: int) -> None:
    """A clipped score adds up to ``R C sqrt u``: with weights of 1 and 0.04 its count would reveal more than D."""
    space = SPACES["plain"](np.random.default_rng(seed))
    score = ClippedScore(space, family_of("gaussian"), np.zeros(space.order), 1.0)
    for query in (score, ResponseHistogram(space, np.arange(4.0))):
        with pytest.raises(InvalidInput, match="survey weights"):
            Counted(query)


def data(family: str, rng: np.random.Generator, n: int = 3_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, 2))
    mean = family_of(family).mean(0.3 + x @ [0.5, -0.4])
    return x, responses(family_of(family), mean, rng), rng.integers(1, 6, n).astype(float)


def fitted(family: str, x: Any, y: Any, w: Any, **more: Any) -> Any:
    kinds = {"gaussian": DPLinearRegression, "binomial": DPLogisticRegression, "poisson": DPPoissonRegressor}
    kind = kinds.get(family, DPGLMRegressor)
    more = {**({"family": family} if kind is DPGLMRegressor else {}), **more}
    public = PublicMoments.from_rows(np.random.default_rng(0).normal(size=(300, 2)))
    schema = Schema({"weights": Numeric(0, BOUND)})

    def more_steps(facts: Any, family: Any, budget: Any, alpha: float, **options: Any) -> ScoreSteps:
        return ScoreSteps(facts, family, budget, alpha, (1.0,) * 20, **options)

    with (
        patch("dpregress.trust.session.noise_sampler", return_value=Silent()),
        patch("dpregress.estimators.glm.ScoreSteps", more_steps),
    ):
        return kind(HUGE, public=public, schema=schema, **more).fit(x, y, weights=w)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
def test_limit_is_statsmodels(family: str, seed: int) -> None:
    """Coefficients of WLS or the freq-weighted GLM, and sandwich standard errors of the design. Deterministic."""
    try:
        import statsmodels.api as sm
    except ImportError:
        missing("statsmodels")
    rng = np.random.default_rng(seed)
    x, y, w = data(family, rng)
    model = fitted(family, x, y, w)
    design = sm.add_constant(x)
    if family == "gaussian":
        right = sm.WLS(y, design, weights=w).fit(cov_type="HC0")
        errors = right.bse
    else:
        glm = sm.GLM(y, design, family=statsmodels_family(family_of(family)), freq_weights=w)
        right = glm.fit(tol=1e-14, maxiter=100)
        mean, link = right.mu, glm.family.link
        slope, variance = link.inverse_deriv(link(mean)), glm.family.variance(mean)
        bread = np.linalg.inv((design * (w * slope**2 / variance)[:, None]).T @ design)
        score = design * (w * (y - mean) * slope / variance)[:, None]
        errors = np.sqrt(np.diag(bread @ (score.T @ score) @ bread))
    # the intercept of a gamma model follows the mean residual, which its score equations do not make 0
    own = slice(1, None) if family == "gamma" else slice(None)
    tolerance = 1e-5 if family == "gamma" else 1e-6
    np.testing.assert_allclose(model.params[own], right.params[own], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(model.coef_, right.params[1:], rtol=tolerance, atol=tolerance)
    # far scores are clipped, and the information of a curved mean is that of surrogate rows
    np.testing.assert_allclose(model.bse[1:], errors[1:], rtol=0.1 if family == "gaussian" else 0.25)
    unweighted = fitted(family, x, y, np.ones(len(y)))
    assert np.abs(unweighted.coef_ - model.coef_).max() > 1e-3


def test_equal_weights_are_none(seed: int) -> None:
    """Weights at the bound change nothing. Deterministic."""
    rng = np.random.default_rng(seed)
    x, y, _ = data("gaussian", rng)
    full = fitted("gaussian", x, y, np.full(len(y), BOUND))
    plain = fitted("gaussian", x, y, None)
    np.testing.assert_allclose(full.params, plain.params, rtol=1e-9)
    np.testing.assert_allclose(full.bse, plain.bse, rtol=1e-6)


def test_whole_weights_are_repeated_rows(seed: int) -> None:
    """Also in survival: a weight of k gives the coefficients of k copies, and of 0 those without the row."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1_500, 2))
    time, event, w = rng.exponential(size=1_500), rng.random(1_500) < 0.6, rng.integers(0, 4, 1_500)
    public, cuts = PublicMoments.from_rows(x[:300]), (0.5, 1.0, 2.0)
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        schema = Schema({"weights": Numeric(0, 3)})
        model = DPSurvival(HUGE, cuts=cuts, public=public, schema=schema).fit(x, event, time=time, weights=w)
        copies = np.repeat(np.arange(1_500), w)
        right = DPSurvival(HUGE, cuts=cuts, public=public).fit(x[copies], event[copies], time=time[copies])
    np.testing.assert_allclose(model.coef_, right.coef_, atol=1e-4)


def test_weights_beyond_the_bound_and_unusable(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, w = data("gaussian", rng)
    far = np.where(w == BOUND, 1e9, w)
    np.testing.assert_allclose(fitted("gaussian", x, y, far).params, fitted("gaussian", x, y, w).params)
    gaps = np.where(w == 1, rng.choice([np.nan, -2.0, np.inf, 0.0], len(w)), w)
    right = fitted("gaussian", x[w > 1], y[w > 1], w[w > 1])
    np.testing.assert_allclose(fitted("gaussian", x, y, gaps).params, right.params, rtol=1e-6)


def test_tables_formulas_and_the_command(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(seed)
    x, y, w = data("gaussian", rng)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y, "w": w})
    schema = Schema({"w": Numeric(0, BOUND), "a": Numeric(-4, 4), "b": Numeric(-4, 4), "y": Numeric(-10, 10)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    schema.save(tmp_path / "s.toml")
    models = []
    for table in (frame, str(tmp_path / "rows.csv")):
        for formula in (None, "y ~ a + b"):
            model = DPLinearRegression(HUGE, schema=schema, formula=formula)
            with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
                models.append(model.fit_table(table, *([] if formula else ["y"]), weights="w").coef_)
    for found in models[1:]:
        np.testing.assert_allclose(found, models[0], rtol=1e-9)
    done = run(
        capsys, "fit", tmp_path / "rows.csv", "--target", "y", "--weights", "w", "--schema", tmp_path / "s.toml",
        "--epsilon", 5, "--delta", 1e-6, "--out", tmp_path / "m",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "\nw " not in done.out


def test_refusals(seed: int) -> None:
    """Nothing is charged."""
    rng = np.random.default_rng(seed)
    x, y, w = data("gaussian", rng, 400)
    public, ledger = PublicMoments.from_rows(x[:100]), MemoryLedger(GDP(1.0))
    model = DPLinearRegression(GDP(1.0), public=public, ledger=ledger)
    with pytest.raises(UnboundedData, match="Schema"):
        model.fit(x, y, weights=w)
    model.set_params(schema=Schema({"weights": Numeric(0, 5)}))
    for wrong, words in ((w[:5], "400 rows"), ("w", "name")):
        with pytest.raises(InvalidInput, match=words):
            model.fit(x, y, weights=wrong)
    with pytest.raises(NotAvailable, match="weights"):
        model.fit(x, y, weights=w, diagnose=0.1)
    with pytest.raises(InvalidInput, match="weights"):
        LocalGLM(ApproxDP(1.0, 1e-6), public=public, schema=model.schema).fit(x, (y > 0) * 1, weights=w)
    assert not ledger.charges


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([0] * 50, pa.timestamp("us")),
        pa.array([0] * 50, pa.date32()),
        pa.array([0] * 50, pa.duration("s")),
        pa.array([[1.0]] * 50, pa.list_(pa.float64())),
        pa.array([{"w": 1.0}] * 50),
    ],
    ids=lambda cells: str(cells.type),
)
def test_weights_of_a_type_that_is_no_number_are_refused_before_the_charge(cells: pa.Array) -> None:
    table = pa.table({"x": np.linspace(0, 1, 50), "y": np.zeros(50), "w": cells})
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1), "w": Numeric(0, 5)})
    ledger = MemoryLedger(ApproxDP(10, 1e-5))
    with pytest.raises(InvalidInput, match=r"weights 'w' are of type .*cast it"):
        DPLinearRegression(ApproxDP(1, 1e-6), schema=schema, ledger=ledger).fit_table(table, "y", ["x"], weights="w")
    assert not ledger.charges


def test_no_weight_raises_an_error_after_the_charge() -> None:
    """Also where the caller lets NumPy raise: a quotient that underflows would tell of a weight."""
    table = pa.table({"x": np.linspace(0, 1, 50), "y": np.zeros(50)})
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1)})
    rows = TableSource(table, Encoder.of(["x"], "y", schema))
    with np.errstate(under="raise"):
        assert len(list(WeightedSource(rows, np.array([5e-324, *np.ones(49)]), BOUND).pieces(50))) == 1

"""Splines with public knots: the columns of patsy, formulaic and R, and the tightest bounds."""

from __future__ import annotations

from typing import Any

import formulaic
import numpy as np
import pandas as pd
import patsy
import pyarrow as pa
import pytest

from dpregress import GDP, Categorical, DPLinearRegression, Numeric, Schema
from dpregress.coordinates import Matrix
from dpregress.rows import FormulaEncoder
from dpregress.rows.design.expressions import parse_with
from dpregress.rows.design.splines import Spline, spline_of
from tests.support import run

KNOTS = ["[]", "[40]", "[40, 60.5]", "[18.1, 30, 31, 89]"]


def spline(text: str) -> Spline:
    found = parse_with(text, spline_of)
    assert found is not None
    return found


def columns(text: str, x: Any) -> Matrix:
    return spline(text).values({"x": np.asarray(x, dtype=float)})


@pytest.mark.parametrize("knots", KNOTS)
@pytest.mark.parametrize("kind", ["bs", "bs, degree=1", "bs, degree=2", "bs, degree=5", "cr"])
def test_columns_are_those_of_patsy_and_formulaic(kind: str, knots: str, seed: int) -> None:
    x = np.concatenate([np.random.default_rng(seed).uniform(18, 90, 200), [18, 90, 40, 60.5]])
    name, _, more = kind.partition(", ")
    more = f", {more}" if more else ""
    found = columns(f"{name}(x, knots={knots}{more}, lower=18, upper=90)", x)
    text = f"0 + {name}(x, knots={knots}{more}, lower_bound=18, upper_bound=90)"
    if name == "cr" and knots == "[]":  # they cannot: a straight line through two values
        np.testing.assert_allclose(found, np.column_stack([90 - x, x - 18]) / 72, atol=1e-12)
        return
    np.testing.assert_allclose(found, np.asarray(patsy.dmatrix(text, {"x": x})), atol=1e-12)
    theirs = formulaic.model_matrix(text, pd.DataFrame({"x": x}))
    np.testing.assert_allclose(found, np.asarray(theirs, dtype=float), atol=1e-12)


def test_natural_splines_are_those_of_r() -> None:
    """``ns(women$height, df = 5)`` of R 4, whose knots are the quintiles; rows 2 to 5."""
    found = columns("ns(x, knots=[60.8, 63.6, 66.4, 69.2], lower=58, upper=72)", np.arange(58, 73))
    expected = [
        [7.592323e-03, 0.0, -8.670223e-02, 2.601067e-01, -1.734045e-01],
        [6.073858e-02, 0.0, -1.503044e-01, 4.509132e-01, -3.006088e-01],
        [2.047498e-01, 6.073858e-05, -1.677834e-01, 5.033503e-01, -3.355669e-01],
        [4.334305e-01, 1.311953e-02, -1.324404e-01, 3.973211e-01, -2.648807e-01],
    ]
    np.testing.assert_allclose(found[0], 0, atol=1e-12)
    np.testing.assert_allclose(found[1:5], expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("knots", KNOTS)
def test_natural_splines_span_those_by_values(knots: str) -> None:
    """With the constant, ``ns`` spans what ``cr`` does: both hold all natural cubic splines."""
    x = np.linspace(18, 90, 300)
    ours = np.column_stack([np.ones(300), columns(f"ns(x, knots={knots}, lower=18, upper=90)", x)])
    theirs = columns(f"cr(x, knots={knots}, lower=18, upper=90)", x)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours @ np.linalg.lstsq(ours, theirs)[0], theirs, atol=1e-9)


@pytest.mark.parametrize("knots", KNOTS)
@pytest.mark.parametrize("kind", ["bs", "ns", "cr", "bs, degree=1", "bs, degree=4"])
@pytest.mark.parametrize("inside", [(18, 90), (0, 200), (35, 45), (50, 50.5), (90, 95)])
def test_bounds_hold_and_are_reached(kind: str, knots: str, inside: tuple[float, float]) -> None:
    name, _, more = kind.partition(", ")
    found = spline(f"{name}(x, knots={knots}, lower=18, upper=90{', ' if more else ''}{more})")
    lower, upper = np.array(found.intervals({"x": inside})).T
    x = np.sort([*np.linspace(*inside, 20_001), *(knot for knot in found.knots if inside[0] < knot < inside[1])])
    values = found.values({"x": x})
    assert len(lower) == found.width == values.shape[1]
    assert (values >= lower - 1e-12).all()
    assert (values <= upper + 1e-12).all()
    np.testing.assert_allclose(values.min(axis=0), lower, atol=1e-4)
    np.testing.assert_allclose(values.max(axis=0), upper, atol=1e-4)
    np.testing.assert_array_equal(np.array(found.intervals({})), np.array(found.intervals({"x": (18, 90)})))


@pytest.mark.parametrize("kind", ["bs", "ns", "cr"])
def test_every_cell_is_finite_or_missing_and_stands_alone(kind: str, seed: int) -> None:
    found = spline(f"{kind}(x, knots=[40, 60], lower=18, upper=90)")
    x = np.random.default_rng(seed).uniform(0, 100, 37)
    before = found.values({"x": x})
    np.testing.assert_array_equal(found.values({"x": np.clip(x, 18, 90)}), before)  # beyond the bounds: the bounds
    for cell in (np.nan, np.inf, -np.inf, 1e308, -1e-320):
        for place in (0, 17, 36):
            changed = x.copy()
            changed[place] = cell
            after = found.values({"x": changed})
            others = np.arange(37) != place
            np.testing.assert_array_equal(after[others], before[others])
            assert np.isnan(after[place]).all() if not np.isfinite(cell) else np.isfinite(after[place]).all()
    np.testing.assert_array_equal(found.values({"x": x[::-1]}), before[::-1])


def test_levels_beside_columns_that_sum_to_one() -> None:
    schema = Schema({"plan": Categorical(("a", "b")), "age": Numeric(18, 90), "y": Numeric(0, 1)})
    encoder = FormulaEncoder.of("y ~ 0 + factor(plan) + cr(age, knots=[50], lower=18, upper=90)", schema)
    assert encoder.features[0] == "plan=b"
    x = encoder.x(pa.table({"plan": ["a", "b", "b"], "age": [20, 50, None], "y": [0, 0, 0]}))
    assert x.shape == (3, 4)
    np.testing.assert_allclose(x[:2, 1:].sum(axis=1), 1)
    assert np.isnan(x[2, 1:]).all()


def test_a_model_with_splines_is_fitted_saved_and_predicts(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The curve is found to a tenth of its range: its error is below .01 here, of which noise would have to make 10."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, plan = rng.uniform(18, 90, 20_000), rng.choice(["a", "b"], 20_000)
    cost = np.sin(age / 15) + (age > 50) + (plan == "a") + rng.normal(0, 0.1, 20_000)
    rows = pd.DataFrame({"age": age, "plan": plan, "cost": cost})
    rows.to_csv("rows.csv", index=False)
    (tmp_path / "s.toml").write_text(
        '[age]\nlower = 18\nupper = 90\n[plan]\nlevels = ["a", "b"]\n[cost]\nlower = -2\nupper = 4\n'
    )
    text = (
        "cost ~ ns(age, knots=[30, 45, 60, 75], lower=18, upper=90) + I(age > 50) + C(plan, Treatment(reference='b'))"
        " + min(age, 40) + log10(age)"
    )
    done = run(
        capsys, "fit", "rows.csv", "--formula", text, "--schema", "s.toml", "--epsilon", 5, "--delta", "1e-6",
        "--out", "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    done = run(capsys, "predict", "out/model.json", "rows.csv", "--out", "p.csv")
    assert done.code == 0, done.err
    predicted = pd.read_csv("p.csv").iloc[:, -1].to_numpy()
    assert np.sqrt(np.mean((predicted - (np.sin(age / 15) + (age > 50) + (plan == "a"))) ** 2)) < 0.3
    schema = Schema.from_toml("s.toml")
    model = DPLinearRegression.from_formula(text, privacy=GDP(5.0), schema=schema).fit_table("rows.csv")
    assert "plan=a" in model.coefficients_.features
    assert model.privacy_.budget == GDP(5.0)

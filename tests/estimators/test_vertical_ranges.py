"""Ranges of parties' numbers in fits: wide bounds, missing cells, predictions beyond them, two values, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpregress
from dpregress import ApproxDP, Numeric, PublicMoments, Schema, VerticalRegression
from dpregress.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

BUDGET = ApproxDP(3.0, 1e-6)
N = 20_000


def parties(rng: np.random.Generator, unit: float = 1.0) -> tuple[dict[str, pd.DataFrame], np.ndarray]:
    x = rng.normal(size=(N, 2))
    y = 5 + x @ [1.0, -1.0] + 0.3 * rng.normal(size=N)
    tables = {"a": pd.DataFrame({"u": x[:, 0] * unit}), "b": pd.DataFrame({"v": x[:, 1] / unit, "y": y})}
    return tables, y


def bounded(wide: float, unit: float = 1.0) -> Schema:
    return Schema({
        "u": Numeric(-5 * wide * unit, 5 * wide * unit), "v": Numeric(-5 * wide / unit, 5 * wide / unit),
        "y": Numeric(-10 * wide, 10 * wide),
    })  # fmt: skip


@pytest.mark.parametrize(("wide", "unit"), [(1.0, 1.0), (100.0, 1.0), (10.0, 1e9)])
def test_wide_bounds_and_units_cost_little(wide: float, unit: float, seed: int) -> None:
    """With bounds of 500 standard deviations too: more than two thirds of the variance are explained.

    Correlations of 0.7 have noise of about 0.06 between parties and hardly any within one: a failure needs five
    standard deviations of it (10^-6).
    """
    rng = np.random.default_rng(seed)
    tables, y = parties(rng, unit)
    model = VerticalRegression(BUDGET, schema=bounded(wide, unit), random_state=rng).fit_table(tables, "y")
    predicted = model.predict(np.column_stack([tables["a"]["u"], tables["b"]["v"]]))
    assert np.mean((y - predicted) ** 2) < y.var() / 3


def test_values_beyond_ranges_count_as_their_ends(tmp_path: Path, seed: int) -> None:
    """In predictions and their intervals as in the fit, also of a saved model."""
    rng = np.random.default_rng(seed)
    tables, _ = parties(rng)
    model = VerticalRegression(BUDGET, schema=bounded(100.0), random_state=rng).fit_table(tables, "y")
    lower, upper = model.coefficients_.ends
    assert (lower > -100).all()
    assert (upper < 100).all()
    rows = np.array([[1e9, -1e9], [np.nan, np.inf]])
    ends = np.array([[upper[0], lower[1]], model.coefficients_.fill])
    np.testing.assert_array_equal(model.predict(rows), model.predict(ends))
    np.testing.assert_array_equal(
        model.predict(rows, interval="mean").lower, model.predict(ends, interval="mean").lower
    )
    model.save(tmp_path / "model")
    saved = dpregress.load(tmp_path / "model")
    np.testing.assert_array_equal(saved.predict(rows), model.predict(ends))
    assert f"beyond which they count as the ends: u {lower[0]:.4g} to {upper[0]:.4g}, v " in str(
        model.summary()
    ).replace("\n", " ")
    low, high = model.coefficients_.reach
    assert low <= model.predict(rows).min() <= model.predict(rows).max() <= high


def test_missing_cells_stand_at_the_mean(seed: int) -> None:
    """Which the middle of wide bounds is not; what the schema declares is kept."""
    rng = np.random.default_rng(seed)
    tables, _ = parties(rng)
    tables["a"]["u"] += 20.0
    tables["a"].loc[rng.random(N) < 0.3, "u"] = np.nan
    schema = bounded(100.0)
    model = VerticalRegression(BUDGET, schema=schema, random_state=rng).fit_table(tables, "y")
    assert abs(model.coefficients_.fill[0] - 20) < 1
    declared = Schema({**schema.columns, "u": Numeric(-500, 500, fill=7.0)})
    model = VerticalRegression(BUDGET, schema=declared, random_state=rng).fit_table(tables, "y")
    assert model.coefficients_.fill[0] == 7.0


def test_two_values_are_declared_and_kept(seed: int) -> None:
    """A rare class is not taken for the tail of a number."""
    rng = np.random.default_rng(seed)
    tables, _ = parties(rng)
    tables["b"]["y"] = (rng.random(N) < 0.01).astype(float)
    with pytest.raises(InvalidInput, match="the two values of 'y' are not declared"):
        VerticalRegression(BUDGET, family="binomial").fit_table(tables, "y")
    schema = Schema({**bounded(1.0).columns, "y": Numeric(0, 1)})
    model = VerticalRegression(BUDGET, family="binomial", schema=schema, random_state=rng).fit_table(tables, "y")
    shares = model.predict(np.column_stack([tables["a"]["u"], tables["b"]["v"]]))
    assert shares.mean() == pytest.approx(0.01, abs=0.005)
    tables["b"]["y"] = (np.arange(N) < 3).astype(float)
    as_number = VerticalRegression(BUDGET, schema=schema, random_state=rng).fit_table(tables, "y")
    as_number.family = "binomial"
    with pytest.raises(InvalidInput, match="declare it Categorical before the release"):
        as_number.regress("y")


def test_another_target_of_two_classes_is_declared_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables, _ = parties(rng)
    tables["b"]["y"] = (rng.random(N) < 0.3).astype(float)
    tables["a"]["z"] = rng.choice([-1.0, 1.0], N)
    schema = Schema({"y": Numeric(0, 1)})
    model = VerticalRegression(BUDGET, family="binomial", schema=schema, random_state=rng).fit_table(tables, "y")
    with pytest.raises(InvalidInput, match="the two values of 'z' are not declared"):
        model.regress("z")


@pytest.mark.parametrize("values", [(1.0, 10.0), (2.0, 5.0), (0.0, 99.0)])
def test_two_values_at_the_bounds_can_be_explained(values: tuple[float, float], seed: int) -> None:
    """The ends of a range are the declared bounds to the last digit where nothing is cut."""
    rng = np.random.default_rng(seed)
    tables, _ = parties(rng)
    tables["b"]["w"] = rng.choice(values, N)
    schema = Schema({**bounded(1.0).columns, "w": Numeric(*values)})
    model = VerticalRegression(BUDGET, schema=schema, random_state=rng).fit_table(tables, "y")
    assert model.joint_.ends[:, 3].tolist() == list(values)
    model.family = "binomial"
    assert model.regress("w").target == "w"


def test_public_rows_are_taken_for_ranges(seed: int) -> None:
    """A party with public moments looks for none; the other spends its share."""
    rng = np.random.default_rng(seed)
    tables, _ = parties(rng)
    public = {"a": PublicMoments.from_rows(rng.normal(size=(100, 1)), names=("u",))}
    model = VerticalRegression(BUDGET, schema=bounded(10.0), public=public, random_state=rng).fit_table(tables, "y")
    assert np.isinf(model.joint_.ends[:, 0]).all()
    assert np.isfinite(model.joint_.ends[:, 1:]).all()
    assert [len(statement.events.parts) for statement in model.privacy_] == [2, 4]
    assert model.privacy_[0].events.mu == pytest.approx(model.privacy_[1].events.mu)

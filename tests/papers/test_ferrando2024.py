"""The published algorithms: constants, limits without noise, and shapes."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

from dpregress import Schema
from dpregress.errors import InvalidInput
from dpregress.papers.ferrando2024 import (
    aim_synth,
    chebyshev_coefficients,
    ddssp_linear,
    ddssp_logistic,
    objective_perturbation,
    published_adassp,
)

SCHEMA = Schema.from_levels({"a": range(4), "b": range(3), "y": range(7), "s": range(2)}, numeric=["a", "y"])


def table_of(rng: np.random.Generator, rows: int = 4000) -> pa.Table:
    a, b = rng.integers(4, size=rows), rng.integers(3, size=rows)
    y = np.clip(a + b + rng.integers(0, 2, rows), 0, 6)
    return pa.table({"a": a, "b": b, "y": y, "s": (y + rng.integers(0, 4, rows) > 4).astype(int)})


def design(table: pa.Table, *without: str) -> np.ndarray:
    """Written a second time on purpose: the published encoding."""
    a, b, y, s = (table[name].to_numpy() for name in ("a", "b", "y", "s"))
    blocks = {"a": [2 * a / 3 - 1], "b": [b == 1, b == 2], "y": [2 * y / 6 - 1], "s": [s == 1]}
    return np.column_stack([column for name, block in blocks.items() if name not in without for column in block])


def test_chebyshev_nodes() -> None:
    """The polynomial meets ``-log(1 + exp(-s))`` at the Chebyshev nodes, and has the published coefficients."""
    for degree, radius in ((2, 6.0), (5, 3.0)):
        found = chebyshev_coefficients(degree, radius)
        nodes = radius * np.cos((2 * np.arange(degree + 1) + 1) * math.pi / (2 * degree + 2))
        np.testing.assert_allclose(np.polyval(found[::-1], nodes), -np.logaddexp(0, -nodes), atol=1e-12)
    np.testing.assert_allclose(chebyshev_coefficients(2, 6.0), [-0.693147, 0.5, -0.0707575], atol=1e-6)
    with pytest.raises(InvalidInput, match="degree"):
        chebyshev_coefficients(0, 6.0)


def test_linear_at_a_large_budget(seed: int) -> None:
    """With hardly any noise the answer is least squares up to the mixture's fit."""
    rng = np.random.default_rng(seed)
    table = table_of(rng)
    coef = ddssp_linear(table, "y", schema=SCHEMA, epsilon=1e5, delta=1e-5, rng=rng)
    x, y = design(table, "y"), 2 * table["y"].to_numpy() / 6 - 1
    exact = np.linalg.lstsq(x, y, rcond=None)[0]
    assert np.mean((x @ (coef - exact)) ** 2) < 0.01


def test_logistic_is_scaled_least_squares(seed: int) -> None:
    """``-b1/(2 b2)`` times the linear coefficients of the same release."""
    table = table_of(np.random.default_rng(seed))
    found = ddssp_logistic(table, "s", schema=SCHEMA, epsilon=1e5, delta=1e-5, rng=np.random.default_rng(seed))
    x, s = design(table, "s"), 2 * table["s"].to_numpy() - 1
    exact = 0.5 / (2 * 0.0707575) * np.linalg.lstsq(x, s, rcond=None)[0]
    assert np.corrcoef(x @ found, x @ exact)[0, 1] > 0.97


def test_synthetic_rows(seed: int) -> None:
    """Of the right shape, within the domain, in the right proportions at a large budget."""
    rng = np.random.default_rng(seed)
    table = table_of(rng)
    rows = aim_synth(table, schema=SCHEMA, epsilon=1e5, delta=1e-5, rows=5000, rng=rng)
    assert rows.num_rows == 5000
    assert rows.column_names == table.column_names
    for name in table.column_names:
        true, drawn = (np.bincount(t[name].to_numpy(), minlength=7) / t.num_rows for t in (table, rows))
        assert np.abs(true - drawn).max() < 0.08


@pytest.mark.parametrize("calibration", ["published", "exact"])
def test_adassp_without_noise(calibration: str, seed: int) -> None:
    """Least squares as epsilon grows; rows beyond the bounds are cut."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(2000, 3))
    y = x @ [0.2, -0.1, 0.3]
    coef = published_adassp(x, y, x_bound=2.0, y_bound=1.0, epsilon=1e8, delta=1e-5, rng=rng, calibration=calibration)
    np.testing.assert_allclose(coef, [0.2, -0.1, 0.3], atol=1e-3)
    with pytest.raises(InvalidInput):
        published_adassp(x, y, x_bound=2.0, y_bound=1.0, epsilon=0.0, delta=1e-5, rng=rng)


def test_objective_perturbation_is_a_minimum(seed: int) -> None:
    """The slope of the published objective vanishes at the answer, to rounding."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(3000, 4)) / 2
    signs = np.where(rng.random(3000) < expit(x @ [3.0, -2, 1, 0]), 1.0, -1.0)
    coef = objective_perturbation(x, signs, x_bound=1.0, epsilon=1.0, delta=1e-5, rng=np.random.default_rng(seed))
    scale = math.sqrt(8 * math.log(2 / 1e-5) + 4)
    tilt = np.random.default_rng(seed).normal(0.0, scale, size=4)
    slope = -(x * signs[:, None]).T @ expit(-signs * (x @ coef)) + 0.5 * coef + tilt
    assert np.linalg.norm(slope) < 1e-6


def test_unknown_estimator() -> None:
    with pytest.raises(InvalidInput, match="mixture"):
        ddssp_linear(table_of(np.random.default_rng(0)), "y", schema=SCHEMA, epsilon=1.0, delta=1e-5,
                     rng=np.random.default_rng(0), estimator="tree")  # type: ignore[arg-type]  # fmt: skip


def test_targets_are_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read or paid for: a class of several levels, a number where two classes are asked."""
    monkeypatch.setattr("dpregress.papers.ferrando2024.aim_marginals", None)
    rng = np.random.default_rng(0)
    for fit, target, said in (
        (ddssp_linear, "b", "more than two levels"),
        (ddssp_logistic, "y", "a logistic target has two"),
        (ddssp_linear, "z", "no column"),
    ):
        with pytest.raises(InvalidInput, match=said):
            fit(table_of(rng), target, schema=SCHEMA, epsilon=1.0, delta=1e-5, rng=rng)


def test_private_pgm(seed: int) -> None:
    """The published estimator, where it is installed; one clear line where not."""
    rng = np.random.default_rng(seed)
    table = table_of(rng, 1000)
    if find_spec("mbi") is None:
        with pytest.raises(InvalidInput, match="mbi"):
            ddssp_linear(table, "y", schema=SCHEMA, epsilon=1.0, delta=1e-5, rng=rng, estimator="private-pgm")
        pytest.skip("mbi is not installed")
    coef = ddssp_linear(table, "y", schema=SCHEMA, epsilon=10.0, delta=1e-5, rng=rng, estimator="private-pgm")
    assert np.isfinite(coef).all()

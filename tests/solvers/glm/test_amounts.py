"""Amounts between narrow bounds, such as densities and body temperatures."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

from dpregress import GDP, DPGammaRegressor, Numeric, PublicMoments, Schema
from dpregress.models import GammaFamily, PoissonFamily
from dpregress.solvers.glm.amounts import _of_amounts, between

N, MEAN, SPREAD = 4_000, 37.0, 0.1


def test_bins_are_equal_within_an_octave_and_half_octaves_beyond() -> None:
    """Edges are between the bounds, middles between edges. Deterministic."""
    edges, middle, width = _of_amounts(34.0, 42.0)
    assert edges[[0, -1]].tolist() == [34.0, 42.0]
    np.testing.assert_allclose(width, 0.2)
    np.testing.assert_allclose(middle, edges[:-1] + 0.1)
    edges, _, _ = _of_amounts(20.0, 42.0)
    np.testing.assert_allclose(edges[1:] / edges[:-1], np.sqrt(2))


@pytest.mark.parametrize("family", [GammaFamily, PoissonFamily], ids=str)
@pytest.mark.parametrize(("lower", "most"), [(34.0, 2_000), (20.0, 500)])
def test_narrow_amounts_are_looked_for_up_to_a_larger_n_mu(family, lower: float, most: float) -> None:  # type: ignore[no-untyped-def]
    """Counts of more than twenty are as they were. Deterministic."""

    class Facts:
        response_bounds = (lower, 42.0)
        n = 1_000

    most = 500 if family == PoissonFamily else most
    assert between(Facts, family, 0.99 * most / 1_000) == (lower, 42.0)  # type: ignore[arg-type]
    assert between(Facts, family, 1.01 * most / 1_000) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["schema", "unlabelled"])
@pytest.mark.parametrize("mu", [0.03, 0.1])
def test_temperatures_are_predicted_better_than_by_their_mean(way: str, mu: float) -> None:
    """The median error of five fits, over the variance of the response: it was 5 to 11, and 1.1. Seeds are fixed."""
    schema = Schema({"a": Numeric(-5, 5), "b": Numeric(-5, 5), "y": Numeric(34, 42)})
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng([seed, N])
        x = rng.normal(size=(N, 2))
        y = np.clip(MEAN + SPREAD * (x @ [0.8, -0.5] + 0.3 * rng.normal(size=N)), 34, 42)
        public = None if way == "schema" else PublicMoments.from_rows(rng.normal(size=(200, 2)), names=("a", "b"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPGammaRegressor(GDP(mu), public=public, schema=schema, random_state=seed)
            table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y})
            model.fit_table(table, "y")
            predicted = model.predict(table.select(["a", "b"]))
        ratios.append(np.mean((y - predicted) ** 2) / np.var(y))
    assert np.median(ratios) < 0.5

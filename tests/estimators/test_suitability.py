"""Whether public rows suited the private ones, by what was released."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dpregress import DPLinearRegression, DPLogisticRegression, Numeric, PublicMoments, Schema
from dpregress.accounting import GDP, MemoryLedger
from dpregress.inference import Suitability
from tests.laws.spies import Silent


def suited(public: np.ndarray, seed: int, kind: Any = DPLinearRegression, privacy: float = 3.0, **more: Any) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(8_000, 3))
    y = x @ [1.0, 2.0, -1.0] + rng.normal(size=8_000)
    y = (y > 0).astype(int) if kind is DPLogisticRegression else y
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        return kind(GDP(privacy), public=PublicMoments.from_rows(public)).fit(x, y, **more)


@pytest.mark.parametrize("kind", [DPLinearRegression, DPLogisticRegression])
def test_numbers_are_those_of_the_tables(kind: Any, seed: int) -> None:
    """Variances and means of public rows with known factors. Sampling and truncation leave 15%. Deterministic."""
    rng = np.random.default_rng(seed + 1)
    public = rng.normal(size=(4_000, 3)) * [1.0, 1.0, 3.0] + [0.0, 2.0, 0.0]
    found = suited(public, seed, kind, 1e6).suitability_
    assert found.narrower == pytest.approx(1 / 9, rel=0.15)
    assert found.wider == pytest.approx(1.0, rel=0.15)
    assert found.shift == pytest.approx(2.0, rel=0.15)
    assert not found.suits
    assert any("same population" in line for line in found.sentences())


def test_rows_of_the_same_population_suit(seed: int) -> None:
    model = suited(np.random.default_rng(seed + 1).normal(size=(1_000, 3)), seed)
    found = model.suitability_
    assert found.suits
    assert found.condition < 2
    assert "The public rows resemble the private rows well enough." in str(model.summary())
    assert all(len(line) <= 100 for line in found.sentences())


@pytest.mark.parametrize(("wider", "said"), [(0.592, "are\nabout 0.59 times"), (0.7, "are\n0.59 to 0.7 times")])
def test_ratios_that_print_alike_are_one(wider: float, said: str) -> None:
    assert said in "\n".join(Suitability(500, 1, 2.0, wider, 0.588, 0.2, 0.99).sentences())


def test_nothing_is_said_of_rows_of_which_nothing_was_learned(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2_000, 3))
    public, schema = PublicMoments.from_rows(rng.normal(size=(60, 3))), Schema({"y": Numeric(-5, 5)})
    model = DPLinearRegression(GDP(1e-5), public=public, schema=schema).fit(x, x[:, 0])
    assert not model.estimates_.identified.any()
    assert "Too little was learned of the private rows" in str(model.summary())
    assert "too little was learned" in repr(model.suitability_)
    assert "resemble the private rows" not in str(model.summary())


def test_few_rows_and_many_shortened_are_said() -> None:
    """The mend belongs to the fault."""
    few = Suitability(12, 4, 2.0, 6.0, 0.8, 0.2, 0.99)
    assert any("few" in line for line in few.sentences())
    far = Suitability(500, 4, 2.0, 1.1, 0.9, 0.1, 0.6, 0.45)
    assert any("logarithms" in line for line in far.sentences())
    assert any("45%" in line for line in far.sentences())
    assert any("rare values" in line for line in Suitability(500, 4, 80.0, 1.1, 0.9, 0.1, 1.0).sentences())


def test_it_costs_nothing_but_the_count(seed: int) -> None:
    """The events of a fit are the same, and a diagnosis pays for the share of shortened rows."""
    public = np.random.default_rng(seed + 1).normal(size=(500, 3))
    plain, paid = suited(public, seed), suited(public, seed, diagnose=0.05)
    assert plain.suitability_.shortened is None
    assert paid.suitability_.shortened == paid.diagnosis_.shortened[0]
    ledger = MemoryLedger(GDP(1.0))
    schema = Schema({f"x{i}": Numeric(-5, 5) for i in range(3)})
    x = np.random.default_rng(seed).normal(size=(900, 3))
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        model = DPLinearRegression(GDP(1.0), schema=schema, ledger=ledger).fit(x, x.sum(axis=1))
    assert model.suitability_ is None
    assert "Public table" not in str(model.summary())

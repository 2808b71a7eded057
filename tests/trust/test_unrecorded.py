"""Several private fits without a ledger from one line of code: a warning, once in a process."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from dpregress import GDP, DPRidge, MemoryLedger, Numeric, Schema, VerticalRegression
from dpregress.errors import SeededNoiseWarning, UnrecordedSpendingWarning
from dpregress.trust import unrecorded

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(300, 2)), RNG.uniform(size=300)
SCHEMA = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1), "y": Numeric(0, 1)})


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrecorded, "_lines", set())


def model(**parameters: Any) -> DPRidge:
    return DPRidge(GDP(1.0), schema=SCHEMA, **parameters)


def in_a_loop(**parameters: Any) -> None:
    for _ in range(4):
        model(**parameters).fit(X, Y)


def in_a_grid(**parameters: Any) -> None:
    GridSearchCV(model(**parameters), {"alpha": [0.0, 1.0]}, cv=2).fit(X, Y)


def in_cross_validation(**parameters: Any) -> None:
    cross_val_score(model(**parameters), X, Y, cv=3)


def warned(act: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("always", UnrecordedSpendingWarning)
        act()
    return [each for each in caught if each.category is UnrecordedSpendingWarning]


@pytest.mark.parametrize("search", [in_a_loop, in_a_grid, in_cross_validation])
def test_a_loop_without_a_ledger_warns_once(search: Callable[..., None]) -> None:
    (warning,) = warned(search)
    assert "give ledger=" in str(warning.message)
    assert "\n" not in str(warning.message)
    assert "dpregress" not in warning.filename.replace("\\", "/").split("/")[-2:]
    assert not warned(search), "once in a process"


@pytest.mark.parametrize("search", [in_a_loop, in_a_grid, in_cross_validation])
def test_no_warning_with_a_ledger_or_a_seed(search: Callable[..., None]) -> None:
    assert not warned(lambda: search(ledger=MemoryLedger(GDP(9.0))))
    assert not warned(lambda: search(random_state=0))


def test_no_warning_for_single_fits() -> None:
    """Different lines are different analyses; the parties of one fit are one fit."""
    assert not warned(lambda: model().fit(X, Y))
    assert not warned(lambda: model().fit(X, Y))
    parties = {"a": X[:, :1], "b": X[:, 1:]}
    assert not warned(lambda: VerticalRegression(GDP(1.0), bounds=(0.0, 1.0)).fit(parties, Y))

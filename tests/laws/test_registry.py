"""Whatever the package defines is in the registry, so that no law can miss it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import dpregress
import dpregress.estimators
from dpregress.accounting import Event, Ledger
from dpregress.mechanisms import Mechanism
from dpregress.queries import Query
from dpregress.rows import RowMap
from dpregress.solvers import Solver
from dpregress.solvers.marginals.tables import TableSolver
from dpregress.trust import TrustModel
from tests import registry


def concrete(base: type) -> Iterator[type]:
    """Every class of the package that can be made and descends from ``base``."""
    for module in pkgutil.walk_packages(dpregress.__path__, "dpregress."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    open_ = [base]
    while open_:
        cls = open_.pop()
        open_.extend(cls.__subclasses__())
        if not inspect.isabstract(cls) and cls.__module__.startswith("dpregress."):
            yield cls


def registered() -> dict[type, Iterable[Any]]:
    rng = np.random.default_rng(0)
    space, domain = registry.SPACES["plain"](rng), registry.DOMAINS["mixed"]
    return {
        RowMap: (*registry.ROW_MAPS, *registry.CODED_ROW_MAPS),
        Query: [
            *(type(entry.make(space, rng)) for entry in registry.QUERIES),
            *(type(entry.make(domain, rng)) for entry in registry.CODED_QUERIES),
        ],
        Mechanism: [
            *(entry.kind for entry in registry.MECHANISMS),
            *registry.OTHER_MECHANISMS,
            *(kind for kind, _ in registry.CHOICES),
        ],
        TableSolver: [entry.kind for entry in registry.TABLE_SOLVERS],
        TrustModel: [type(entry.make()) for entry in registry.TRUST],
        Solver: [entry.kind for entry in registry.SOLVERS],
        Ledger: [entry.kind for entry in registry.LEDGERS],
        Event: [type(event) for event in registry.EVENTS],
    }


def check_registered(base: type) -> None:
    missing = set(concrete(base)) - set(registered()[base])
    assert not missing, f"add to tests/registry.py: {sorted(cls.__name__ for cls in missing)}"


@pytest.mark.parametrize(
    "base", [RowMap, Query, Mechanism, TrustModel, Solver, TableSolver, Ledger, Event], ids=lambda cls: cls.__name__
)
def test_every_class_is_registered(base: type) -> None:
    check_registered(base)


def test_every_exported_estimator_is_registered() -> None:
    exported = {getattr(module, name) for module in (dpregress, dpregress.estimators) for name in module.__all__}
    estimators = {cls for cls in exported if isinstance(cls, type) and issubclass(cls, BaseEstimator)}
    elsewhere = {*registry.LOCAL_ESTIMATORS, *registry.TABLE_ESTIMATORS}
    missing = estimators - {entry.kind for entry in registry.ESTIMATORS} - elsewhere
    assert not missing, f"add to tests/registry.py: {sorted(cls.__name__ for cls in missing)}"


def test_a_class_outside_the_registry_is_found() -> None:
    """The law itself works: a new solver that nobody registered is refused."""
    planted = type("Planted", (registry.OneShot,), {"__module__": "dpregress.solvers.planted"})
    with pytest.raises(AssertionError, match="Planted"):
        check_registered(Solver)
    # classes live until they are collected; without its module the package no longer owns it
    planted.__module__ = "tests.planted"

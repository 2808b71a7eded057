"""Whatever the package defines is in the registry, so that no law can miss it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import pytest

import dpregress
import dpregress.estimators
from dpregress.accounting import Event, Ledger
from dpregress.mechanisms import Mechanism, Sampler
from dpregress.mechanisms.sketching import MIXINGS
from dpregress.models.families import Distribution
from dpregress.models.links import Link
from dpregress.queries import Query, RowQuery, SketchMatrix, TableQuery
from dpregress.releases import NoiseLaw
from dpregress.rows import Engine, RowMap, Source
from dpregress.rows.readers.base import Reader
from dpregress.solvers import Solver
from dpregress.solvers.marginals.tables import TableSolver
from dpregress.trust import TrustModel
from tests import registry


def modules() -> list[ModuleType]:
    """Every module of the package, imported."""
    found = pkgutil.walk_packages(dpregress.__path__, "dpregress.")
    return [importlib.import_module(module.name) for module in found if not module.name.endswith("__main__")]


def concrete(base: type) -> Iterator[type]:
    """Every class of the package that can be made and descends from ``base``."""
    modules()
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
        Mechanism: [entry.kind for entry in registry.MECHANISMS],
        Sampler: [type(make(rng)) for make in registry.SAMPLERS.values()],
        SketchMatrix: MIXINGS.values(),
        NoiseLaw: [type(law) for law in registry.NOISE_LAWS],
        Distribution: [type(each) for each in registry.DISTRIBUTIONS],
        Link: [type(each) for each in registry.LINKS],
        Reader: [entry.kind for entry in registry.READERS],
        Engine: [entry.kind for entry in registry.ENGINES],
        Source: [entry.kind for entry in registry.SOURCES],
        TableSolver: [entry.kind for entry in registry.TABLE_SOLVERS],
        TrustModel: [type(entry.make()) for entry in registry.TRUST],
        Solver: [entry.kind for entry in registry.SOLVERS],
        Ledger: [entry.kind for entry in registry.LEDGERS],
        Event: [type(event) for event in registry.EVENTS],
    }


def check_registered(base: type) -> None:
    missing = set(concrete(base)) - set(registered()[base])
    assert not missing, f"add to tests/registry.py: {sorted(cls.__name__ for cls in missing)}"


@pytest.mark.parametrize("base", registered(), ids=lambda cls: cls.__name__)
def test_every_class_is_registered(base: type) -> None:
    check_registered(base)


def test_every_exported_estimator_is_registered() -> None:
    exported = {getattr(module, name) for module in (dpregress, dpregress.estimators) for name in module.__all__}
    estimators = {cls for cls in exported if isinstance(cls, type) and callable(getattr(cls, "fit", None))}
    assert len(estimators) >= 9
    missing = estimators - {entry.kind for entry in registry.FITS}
    assert not missing, f"add to FITS in tests/registry.py: {sorted(cls.__name__ for cls in missing)}"


def test_every_mechanism_is_in_a_table() -> None:
    """What no trust model would pick is dead, and what a table picks has the norm of its place."""
    picked = set()
    for trust in registry.TRUST:
        for (norm, event), maker in trust.make().mechanisms.items():
            spend = next(entry.spend(0.5) for entry in registry.MECHANISMS if isinstance(entry.spend(0.5), event))
            mechanism = maker(spend, 10)
            assert mechanism.norm is norm
            assert mechanism.event() == spend
            picked.add(type(mechanism))
    assert picked == {entry.kind for entry in registry.MECHANISMS}


def test_abstract_methods_are_enforced() -> None:
    """A class with abstract methods cannot be made, anywhere in the package; a query without a value neither."""
    for module in modules():
        for cls in filter(inspect.isclass, vars(module).values()):
            abstract = any(getattr(member, "__isabstractmethod__", False) for member in vars(cls).values())
            if abstract and cls.__module__ == module.__name__ and Protocol not in cls.__mro__:
                assert inspect.isabstract(cls), f"{cls.__name__} has abstract methods and can be made"
    for base in (RowQuery, TableQuery):
        members = {name: None for name in base.__abstractmethods__ if name != "exact"}
        with pytest.raises(TypeError, match="exact"):
            type("Valueless", (base,), members)(None)


def test_a_class_outside_the_registry_is_found() -> None:
    """The law itself works: a new solver that nobody registered is refused."""
    planted = type("Planted", (registry.OneShot,), {"__module__": "dpregress.solvers.planted"})
    with pytest.raises(AssertionError, match="Planted"):
        check_registered(Solver)
    # classes live until they are collected; without its module the package no longer owns it
    planted.__module__ = "tests.planted"

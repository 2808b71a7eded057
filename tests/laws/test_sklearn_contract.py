"""scikit-learn's own checks, with the noise on.

What must fail for privacy's sake is listed in ``expected_failures.py`` and is shown to fail; everything else has to
pass, whatever the noise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from dpregress import GDP, MemoryLedger, Numeric, Schema, VerticalRegression
from tests import registry
from tests.laws.expected_failures import BY_CHANCE, expected_failures

KINDS = sorted({entry.kind for entry in registry.ESTIMATORS}, key=lambda kind: kind.__name__)
#: Bounds of y where they are no wide ones: classes other than 0 and 1 are to be named.
BOUNDS = {"DPLogisticRegression": (0, 1)}
# checks that compare two fits set a seed, and the estimator warns of it
seeded = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")


def estimator(kind: type[Any]) -> BaseEstimator:
    """With public facts that fit whatever table a check makes: a bound on rows, and bounds of y."""
    lower, upper = BOUNDS.get(kind.__name__, (0, 1000) if is_positive(kind) else (-1000, 1000))
    return kind(GDP(1.0), row_bound=10.0, schema=Schema({"y": Numeric(lower, upper)}))


def is_positive(kind: type[Any]) -> bool:
    """Whether the responses of its family are no negative numbers."""
    return not is_classifier(kind()) and kind().response_model.family != "gaussian"


@seeded
@parametrize_with_checks(
    [estimator(kind) for kind in KINDS],
    expected_failed_checks=lambda model: {**expected_failures(type(model)), **BY_CHANCE.get(type(model).__name__, {})},
)
def test_contract(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


@seeded
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in KINDS for name in expected_failures(kind)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_expected_failures_fail(kind: type[Any], name: str) -> None:
    """The list holds nothing that passes, and no name that scikit-learn does not know."""
    checks = [check for _, check in estimator_checks_generator(estimator(kind)) if check.func.__name__ == name]
    assert checks
    for check in checks:
        with pytest.raises(AssertionError):
            check(estimator(kind))


@pytest.mark.parametrize("kind", [entry.kind for entry in registry.FITS], ids=lambda kind: kind.__name__)
def test_parameters_survive_clone(kind: type[Any]) -> None:
    """Of every estimator, whoever holds the rows: constructors keep what they are given, and clones share ledgers."""
    ledger = MemoryLedger(GDP(1.0))
    model = kind(GDP(1.0), ledger={"lab": ledger} if kind is VerticalRegression else ledger, random_state=3)
    copied = clone(model)
    assert copied.get_params().keys() == model.get_params().keys() == inspect.signature(kind).parameters.keys()
    for name, value in model.get_params().items():
        assert copied.get_params()[name] == value
    assert copied.set_params(privacy=GDP(2.0)).privacy == GDP(2.0)
    assert model.privacy == GDP(1.0)
    assert kind.__name__ in repr(model)

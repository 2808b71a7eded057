"""Every mechanism and query under every trust model, attacked with its worst neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from dpregress.queries import Norm
from tests.audit.auditor import check_audit, check_choice
from tests.registry import (
    CODED_QUERIES,
    MECHANISMS,
    QUERIES,
    SPACES,
    TRUST,
    CodedEntry,
    MechanismEntry,
    QueryEntry,
    TrustEntry,
    gaussian,
)

#: Queries whose releases cannot be drawn many at a time: one of each shape.
_FEW = ("joint second moment", "Gaussian score", "mean class residual")


def _marks(trust: TrustEntry, mechanism: MechanismEntry) -> tuple[Any, ...]:
    if trust is TRUST[0]:
        return ()
    return (pytest.mark.slow if mechanism.additive else pytest.mark.nightly,)


def attacks() -> list[Any]:
    """Every trust model, mechanism and query that go together."""
    return [
        pytest.param(trust, mechanism, entry, id=f"{trust} {mechanism} {entry}", marks=_marks(trust, mechanism))
        for trust in TRUST
        for mechanism in MECHANISMS
        for entry in QUERIES
        if (mechanism.kind.norm, type(mechanism.spend(1.0))) in trust.make().mechanisms
        and mechanism.answers(entry)
        and (mechanism.additive or entry.name in _FEW)
    ]


@pytest.mark.parametrize(("trust", "mechanism", "entry"), attacks())
def test_claim(trust: TrustEntry, mechanism: MechanismEntry, entry: QueryEntry, seed: int) -> None:
    """The bound exceeds a true claim with probability 1e-7; with 1e5 draws it misses 0.8 with less than 1e-12."""
    check_audit(trust, entry, seed, mechanism=mechanism)


@pytest.mark.parametrize("space", [space for space in SPACES if space != "plain"])
@pytest.mark.parametrize("entry", QUERIES[1:6:4], ids=str)
def test_mu_in_other_spaces(entry: QueryEntry, space: str, seed: int) -> None:
    """As above."""
    check_audit(TRUST[0], entry, seed, space, gaussian())


@pytest.mark.parametrize("entry", [each for each in CODED_QUERIES if each.norm is Norm.LINF], ids=str)
def test_choices(entry: CodedEntry, seed: int) -> None:
    """The bound exceeds a true claim with probability 1e-7."""
    (mechanism,) = (each for each in MECHANISMS if each.kind.norm is Norm.LINF)
    check_choice(entry, mechanism, seed)

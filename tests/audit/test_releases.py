"""Every query under every trust model, attacked with its worst neighbours."""

from __future__ import annotations

import pytest

from tests.audit.auditor import check_audit
from tests.registry import QUERIES, SPACES, TRUST, QueryEntry, TrustEntry


@pytest.mark.parametrize("entry", QUERIES, ids=str)
@pytest.mark.parametrize("trust", [TRUST[0], *(pytest.param(e, marks=pytest.mark.slow) for e in TRUST[1:])], ids=str)
def test_mu(trust: TrustEntry, entry: QueryEntry, seed: int) -> None:
    """The bound exceeds a true claim with probability 1e-7; with 1e5 draws it misses 0.8 with less than 1e-12."""
    check_audit(trust, entry, seed)


@pytest.mark.parametrize("space", [space for space in SPACES if space != "plain"])
@pytest.mark.parametrize("entry", QUERIES[1:6:4], ids=str)
def test_mu_in_other_spaces(entry: QueryEntry, space: str, seed: int) -> None:
    """As above."""
    check_audit(TRUST[0], entry, seed, space)

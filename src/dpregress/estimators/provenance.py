"""When a fit was made, and from what."""

from __future__ import annotations

from datetime import UTC, datetime

from dpregress.reports import Provenance


def made_now(origin: str) -> Provenance:
    """The provenance of a fit that ends now."""
    return Provenance(origin, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))

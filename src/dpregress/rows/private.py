"""Private rows as mechanisms use them: their number, and sums of queries over them."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpregress.rows.engines import Engine, ThreadedEngine
from dpregress.rows.sources import Source


@dataclass(frozen=True, repr=False)
class PrivateRows:
    """A source with the engine that computes sums over it.

    Parameters
    ----------
    source : Source
    engine : Engine
    """

    source: Source
    engine: Engine = field(default_factory=ThreadedEngine)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.source.n

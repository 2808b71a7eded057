"""Watching a fit from outside: what it charges, draws, reads and adds, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Ledger, Reservation
from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector
from dpregress.mechanisms import Sampler
from dpregress.rows import Source, ThreadedEngine

CHARGE, DRAW, READ, NOISE = "charge", "draw", "read", "noise"


class Silent(Sampler):
    """A source that adds nothing: the exact answer, as a release carries it."""

    seeded = True

    def add_gaussian(self, value: ExactVector | Vector, sigma: float, *, apart: int = 0) -> Vector:  # noqa: ARG002 - silence has no scale
        return np.asarray(value)

    def _draw(self, value: ExactVector | Vector, sigma: float) -> Vector:  # noqa: ARG002
        return np.asarray(value)

    def add_discrete_laplace(self, value: NDArray[np.int64], scale: float) -> NDArray[np.int64]:  # noqa: ARG002
        return value

    def _choose(self, scores: Vector, scale: float) -> int:  # noqa: ARG002
        return int(scores.argmax())


@dataclass(frozen=True)
class Remembering(ThreadedEngine):
    """An engine that sums the same rows once for each query: tests draw hundreds of releases of one sum."""

    workers: int = 1
    known: list[tuple[type[Source], Any, ExactVector]] = field(default_factory=list)

    def total(self, source: Source, value: Any, *, columns: int) -> ExactVector:
        for kind, query, found in self.known:
            if kind is type(source) and query is value.query:
                return found
        found = super().total(source, value, columns=columns)
        self.known.append((type(source), value.query, found))
        return found


@contextmanager
def watched() -> Iterator[list[str]]:
    """The steps taken inside the block. A charge or a draw counts once it has succeeded."""
    steps: list[str] = []
    with ExitStack() as patches:
        watched_methods = [
            *((cls, "_append", CHARGE) for cls in descendants(Ledger)),
            (Reservation, "draw", DRAW),
            *((cls, name, READ) for cls in descendants(Source) for name in ("pieces", "parts")),
            *((cls, "add_gaussian", NOISE) for cls in (Sampler, *descendants(Sampler))),
            *((Sampler, name, NOISE) for name in ("choose", "add_discrete_laplace", "add_integer_gaussian")),
        ]
        for cls, name, step in watched_methods:
            if name in vars(cls):
                patches.enter_context(patch.object(cls, name, _spied(vars(cls)[name], step, steps)))
        yield steps


def descendants(base: type) -> Iterator[type]:
    """All classes below ``base``."""
    for cls in base.__subclasses__():
        yield cls
        yield from descendants(cls)


def _spied(method: Callable[..., Any], step: str, steps: list[str]) -> Callable[..., Any]:
    def spy(self: Any, *args: Any, **parameters: Any) -> Any:
        result = method(self, *args, **parameters)
        steps.append(step)
        return result

    return spy

"""The transcript of a fit on one of two neighbouring tables, and what it tells about which of the two it was.

Every question of the fit is answered for both tables by the library's own mechanism: for the table of the fit with
noise, and for its neighbour with the same answer put in place of fresh noise. That gives the exact values on both sides
and the scales of their noise, at the coefficients that the transcript itself led to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from benchmarks.audit.attack import claimed
from dpregress.accounting import ZCDP, Event
from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector
from dpregress.mechanisms import Sampler
from dpregress.queries import Query
from dpregress.rows import CodedSource, PrivateRows, RangedSource
from dpregress.trust import Session

#: A reservation is spent if no more than this share of it is left.
_SPENT = 1e-6


class Heard(NamedTuple):
    """A value that a sampler was handed, the scale of its noise, and what it answered."""

    choice: bool
    value: Vector
    scale: float
    answer: Any


class Listener(Sampler):
    """A sampler that keeps what passes through another one."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.seeded = sampler.seeded
        self.heard: list[Heard] = []

    def add_gaussian(self, value: ExactVector | Vector, sigma: float, *, apart: int = 0) -> Vector:
        answer = self.sampler.add_gaussian(value, sigma, apart=apart)
        self.heard.append(Heard(False, np.asarray(value), sigma, answer))
        return answer

    def choose(self, scores: Vector, scale: float) -> int:
        answer = self.sampler.choose(scores, scale)
        self.heard.append(Heard(True, scores, scale, answer))
        return answer

    def _draw(self, value: Vector, sigma: float) -> Vector:
        raise NotImplementedError("a listener draws nothing itself")


class Echo(Listener):
    """A sampler that repeats the answers that another one gave, and keeps the values and scales that it is handed."""

    def __init__(self, heard: Sequence[Heard]) -> None:
        self.seeded = True
        self.heard = []
        self._answers = iter(heard)

    def add_gaussian(self, value: ExactVector | Vector, sigma: float, *, apart: int = 0) -> Vector:  # noqa: ARG002
        return self._repeated(False, value, sigma)

    def choose(self, scores: Vector, scale: float) -> int:
        return int(self._repeated(True, scores, scale))

    def _repeated(self, choice: bool, value: ExactVector | Vector, scale: float) -> Any:
        answer = next(self._answers).answer
        self.heard.append(Heard(choice, np.asarray(value), scale, answer))
        return answer


@dataclass(frozen=True, eq=False)
class Step:
    """One answer of a transcript, with its exact values on the table of the fit and on its neighbour.

    Attributes
    ----------
    place : int
        The number of the session.
    query : Query
    spend : Event
        Its cost, for one row.
    here, there : Heard
    rows : PrivateRows
        As the question was asked of them: perhaps within released ranges, or coded by a released domain.
    """

    place: int
    query: Query[Any]
    spend: Event
    here: Heard
    there: Heard
    rows: PrivateRows

    @property
    def loss(self) -> float:
        """The logarithm of the answer's likelihood ratio, of the table of the fit to its neighbour."""
        here, there = self.here, self.there
        if here.choice:
            return float(self._chances[0][here.answer] - self._chances[1][here.answer])
        near, far = (float(np.sum((each.answer - each.value) ** 2)) for each in (here, there))
        return (far - near) / (2 * here.scale**2)

    @property
    def divergence(self) -> float:
        """The mean of the loss: ``a^2 / 2`` of Gaussian noise; infinite if the two sides have different noise."""
        here, there = self.here, self.there
        if here.scale != there.scale or here.value.shape != there.value.shape:
            return math.inf
        if here.choice:
            one, other = self._chances
            return float(np.exp(one) @ (one - other))
        return float(np.sum((here.value - there.value) ** 2)) / (2 * here.scale**2)

    @property
    def reach(self) -> float:
        """``sqrt(2 divergence) / mu`` for the cost of this answer: at most k, where k rows of a unit count."""
        return math.sqrt(2 * self.divergence) / claimed(self.spend)

    @property
    def _chances(self) -> tuple[Vector, Vector]:
        """Logarithms of the chances of every choice, on both sides."""
        one, other = (log_softmax(each.value / each.scale) for each in (self.here, self.there))
        return np.asarray(one), np.asarray(other)


@dataclass
class Transcript:
    """What a fit released, seen by somebody who knows both tables.

    Attributes
    ----------
    steps : list of Step
    sessions : list of Session
        One; one a party where there are several.
    """

    steps: list[Step] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """The log likelihood ratio of the transcript, of the table of the fit to its neighbour."""
        return math.fsum(step.loss for step in self.steps)

    @property
    def divergence(self) -> float:
        """The sum of the steps' divergences at the transcript's own coefficients."""
        return math.fsum(step.divergence for step in self.steps)

    @property
    def paid(self) -> float:
        """mu of what was drawn from the reservations, which is what the fit says it cost."""
        return math.hypot(*(_drawn(session) for session in self.sessions))

    @property
    def reach(self) -> float:
        """``sqrt(2 divergence) / mu``: with Gaussian noise ``sqrt(sum a_t^2) / mu``, at most 1 in every transcript."""
        return math.sqrt(2 * self.divergence) / self.paid if self.paid else math.inf


def _drawn(session: Session) -> float:
    """What was drawn, on the scale of mu; a reservation of rho-zCDP counts every draw by its rho."""
    drawn = session.reservation.drawn
    if isinstance(session.reservation.promise, ZCDP):
        return math.sqrt(2 * drawn.rho)
    return drawn.mu if drawn.parts else 0.0


def _spent(session: Session) -> bool:
    promised = claimed(session.reservation.promise)
    return _drawn(session) >= promised * (1 - _SPENT)


class _NothingLeft(Exception):
    """Everything that was promised has been drawn: what follows is post-processing."""


@contextmanager
def followed(others: Sequence[PrivateRows] = (), parties: int = 1) -> Iterator[Transcript]:
    """Follow the questions of a fit, and end it when the budget of all parties is spent.

    Parameters
    ----------
    others : sequence of PrivateRows
        The rows of the neighbouring table, one for each party, as a fit on it sees them. If there are none, only the
        sessions are kept, and the fit runs to its end.
    parties : int
        The number of sessions.
    """
    transcript, plain = Transcript(), Session.__call__

    def asked(session: Session, query: Query[Any], spend: Event) -> Any:
        places = enumerate(transcript.sessions)  # of one reservation: the same rows, perhaps in other coordinates
        place = next((i for i, seen in places if seen.reservation is session.reservation), None)
        if place is None:
            place = len(transcript.sessions)
            transcript.sessions.append(session)
        if not others:
            return plain(session, query, spend)
        listener = Listener(session.sampler)
        answer = session.trust.release(session.rows, query, spend, sampler=listener, reservation=session.reservation)
        rows, echo = as_asked(others[place], session.rows), Echo(listener.heard)
        mechanism = session.trust.mechanism(query, spend, rows)
        mechanism.release(query, rows, echo, session.reservation.relation)
        transcript.steps.extend(
            Step(place, query, spend, here, there, session.rows)
            for here, there in zip(listener.heard, echo.heard, strict=True)
        )
        if len(transcript.sessions) == parties and all(map(_spent, transcript.sessions)):
            raise _NothingLeft
        return answer

    Session.__call__ = asked
    try:
        yield transcript
    except _NothingLeft:
        pass
    finally:
        Session.__call__ = plain


def as_asked(rows: PrivateRows, asked: PrivateRows) -> PrivateRows:
    """Rows of another table as a question was asked of a table: within the same ranges, coded by the same domain."""
    source = asked.source
    if isinstance(source, RangedSource):
        return replace(rows, source=RangedSource(rows.source, source.ranges))
    if isinstance(source, CodedSource) and isinstance(rows.source, CodedSource):
        return replace(rows, source=replace(rows.source, domain=source.domain))
    return rows


def rows_of(fit: Callable[[], object]) -> list[PrivateRows]:
    """The rows that a fit sees, one source for each party."""
    with followed() as transcript:
        fit()
    return [session.rows for session in transcript.sessions]

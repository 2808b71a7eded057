"""Lower bounds from fits on one of two neighbouring tables, whichever a coin says."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from scipy.stats import beta, norm

from benchmarks.audit.cells import Rng
from dpregress.accounting import ZCDP, Event, PureDP
from dpregress.coordinates import Vector

#: Probability that a bound exceeds a claim that is true.
FAILURE = 0.01


@dataclass(frozen=True, eq=False)
class Pair:
    """Two rows; the neighbouring table has the other one, or none if that is None."""

    row: Vector
    other: Vector | None


class Outcome(NamedTuple):
    """Whether a run told which table it was (None: the attacker does not guess), its reach, and what it drew."""

    right: bool | None
    reach: float
    paid: float


class Audit(ABC):
    """One line of the table.

    Attributes
    ----------
    name : str
    claim : Event
    reason : str
        Why an attack finds less than nine tenths of the claim; may be empty.
    """

    name: str
    claim: Event
    reason: str

    @abstractmethod
    def search(self, seed: int) -> Pair:
        """The worst pair that a search finds."""

    @abstractmethod
    def attack(self, pair: Pair) -> Attack:
        """What runs on this pair."""

    def __str__(self) -> str:
        return self.name


class Attack(ABC):
    """Runs on a pair of neighbouring tables."""

    @abstractmethod
    def run(self, rng: Rng) -> Outcome:
        """One run on the table that a coin says."""


@dataclass
class Tally:
    """What the runs of a cell have shown.

    Attributes
    ----------
    runs : int
    guesses : int
        In how many of them the attacker guessed.
    right : int
        How often the likelihood ratio of the transcript told which table it was.
    divergence : float
        The sum of ``2 divergence / mu^2`` over the runs, mu being what was drawn.
    largest : float
        The largest reach of a run.
    paid : float
        The smallest mu that a run has drawn.
    """

    runs: int = 0
    guesses: int = 0
    right: int = 0
    divergence: float = 0.0
    largest: float = 0.0
    paid: float = math.inf

    def add(self, outcome: Outcome) -> None:
        """Count one run."""
        self.runs += 1
        self.guesses += outcome.right is not None
        self.right += bool(outcome.right)
        self.divergence += outcome.reach**2
        self.largest = max(self.largest, outcome.reach)
        self.paid = min(self.paid, outcome.paid)

    @property
    def reach(self) -> float:
        """The exact part of the claim that the transcripts reveal, in the mean."""
        return math.sqrt(self.divergence / self.runs) if self.runs else math.nan

    def bound(self, claim: Event, failure: float = FAILURE) -> float:
        """A lower confidence bound on the claim's own number, by the share of right guesses."""
        return lower_bound(claim, self.right, self.guesses, failure)


def lower_bound(claim: Event, right: int, guesses: int, failure: float) -> float:
    """What a mechanism with this share of right guesses must cost at least.

    The tables are drawn by a coin. Under mu-GDP no guess is right with a probability above ``Phi(mu / 2)``. Under
    rho-zCDP the divergence is at most rho, and that of the guess is at least ``(2 p - 1) log(p / (1 - p))``, because
    divergence is convex; the answer is ``sqrt(2 rho)``. Under epsilon-DP no guess is right with a probability above
    ``e^epsilon / (1 + e^epsilon)``, even if the attacker does not always guess. The limit of p is exact (Clopper,
    Pearson 1934).

    Parameters
    ----------
    claim : GDP, ZCDP or PureDP
    right, guesses : int
    failure : float
        The probability that the bound is too large.
    """
    p = float(beta.ppf(failure, right, guesses - right + 1)) if right else 0.0
    if p <= 0.5:
        return 0.0
    if isinstance(claim, ZCDP):
        return math.sqrt(2 * (2 * p - 1) * math.log(p / (1 - p)))
    if isinstance(claim, PureDP):
        return math.log(p / (1 - p))
    return 2 * float(norm.ppf(p))


def claimed(claim: Event) -> float:
    """The number that a bound is compared with: epsilon of a pure guarantee, else mu, or ``sqrt(2 rho)``."""
    if isinstance(claim, PureDP):
        return claim.epsilon0
    return math.sqrt(2 * claim.rho) if isinstance(claim, ZCDP) else claim.mu

"""A user's value as a random unit vector: pure epsilon-DP, with far less noise than a Gaussian message."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from dpregress.accounting import PureDP, Relation
from dpregress.accounting.caps import LARGEST_EPSILON, Cap, best_cap
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import NotAnswered, UnsafeNoise
from dpregress.mechanisms.base import Mechanism
from dpregress.mechanisms.randomness import Sampler
from dpregress.queries.base import Norm, Query, R
from dpregress.releases import UnitMessages
from dpregress.rows import PrivateRows

#: The part of epsilon reserved for rounding (docs/privacy/local-messages.md).
ROUNDING = 1e-4
#: A message's entries are whole multiples of 2^-28.
UNIT_BITS = 28
_BATCH = 256
#: A value below this, or below this fraction of its bound, counts as 0.
_NOTHING = 1e-300


@dataclass(frozen=True)
class UnitVector(Mechanism):
    r"""PrivUnit: the value of each row is replaced by a random unit vector that is more likely near its direction.

    A value of norm at most B is first replaced by its direction v with probability ``(1 + ||value|| / B) / 2``, and by
    ``-v`` otherwise. Then a unit vector u is drawn whose density is ``e^eps`` times higher on the cap around this
    direction than off it. ``B u / g``, of norm ``B / g``, is an unbiased answer of one user to one question.

    Parameters
    ----------
    spend : PureDP
        The cost of a message to its user, with epsilon up to 10.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor, Rogers (2018), Algorithm 1; Asi, Feldman, Talwar (2022), Theorem 4.4, for
    the cap; docs/privacy/local-messages.md for floating point.
    """

    norm: ClassVar[Norm] = Norm.L2
    spend: PureDP

    def event(self) -> PureDP:
        return self.spend

    def cap(self, order: int) -> Cap:
        """The cap for values of this length."""
        return best_cap(self.spend.epsilon0 - ROUNDING, order)

    def refuse(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:  # noqa: ARG002 - n plays no part
        if relation is not Relation.REPLACE_ONE:
            raise NotAnswered(
                "a user's message hides the content of their row, not that they have one: use replace-one neighbours"
            )
        if query.kept_apart:
            raise NotAnswered("unit vectors can answer only sums")
        if query.apart:
            raise NotAnswered("unit vectors cannot answer a sum together with a count: ask for the sum alone")
        check_epsilon(self.spend.epsilon0)
        self.cap(query.size)

    def release(self, query: Query[R], rows: PrivateRows, sampler: Sampler, relation: Relation) -> R:  # noqa: ARG002
        row_map, cap, bound = query.row_map, self.cap(query.size), query.contribution()
        unit, noise = self.law(query, rows.n)
        total = np.zeros(query.size)
        for chunk in rows.source.chunks(rows.engine.chunk_rows(query.columns)):
            directions = _directions(query.each(row_map(chunk)), bound, sampler.uniform(len(chunk.x)))
            total += _leaning(directions, cap, sampler).sum(axis=0)
        return query.read(total * unit, n=rows.n, noise=noise, events=(self.spend,))

    def law(self, query: Query[R], n: int) -> tuple[float, UnitMessages]:
        """The value ``B / g`` of a message of norm 1, and the law of the sum of n messages."""
        gain = self.cap(query.size).gain
        unit = query.contribution() / gain
        return unit, UnitMessages(math.sqrt(n / query.size) * unit, 1 - gain**2)

    def message(self, value: Vector, bound: float, sampler: Sampler) -> NDArray[np.int32]:
        """One user's own message, u in multiples of 2^-28: uniform unit vectors are tried until one is taken.

        A candidate is drawn and rounded before the value is looked at, so whatever the arithmetic, every message
        can come from every value, and the odds of two values differ by a factor of e^eps at most.

        Parameters
        ----------
        value : ndarray of shape (p,)
            Of norm at most ``bound``.
        bound : float
        sampler : Sampler
        """
        check_epsilon(self.spend.epsilon0)
        cap = self.cap(len(value))
        direction = _directions(value[None, :], bound, sampler.uniform(1))[0]
        elsewhere = math.exp(-cap.epsilon)
        while True:
            tried = sampler.normal(_BATCH, len(value))
            tried /= np.linalg.norm(tried, axis=1)[:, None]
            rounded = np.rint(tried * 2.0**UNIT_BITS).astype(np.int32)
            taken = (tried @ direction >= cap.gamma) | (sampler.uniform(_BATCH) < elsewhere)
            if taken.any():
                return np.asarray(rounded[int(np.argmax(taken))])


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that rounding would swallow, or whose caps are too small to be found."""
    if not 2 * ROUNDING < epsilon <= LARGEST_EPSILON:
        raise UnsafeNoise(f"unit vectors take an epsilon between {2 * ROUNDING:g} and {LARGEST_EPSILON:g}")


def _directions(values: Matrix, bound: float, uniform: Vector) -> Matrix:
    """Random signs times directions, with ``values / bound`` as their mean; 0 or no number gets a fixed one.

    Each value is divided by its largest entry first: squares of tiny entries would be lost, and the direction's
    length, on which epsilon rests, with them.
    """
    size = np.abs(values).max(axis=1)
    nothing = ~((size > max(_NOTHING, _NOTHING * bound)) & (size < np.inf))
    scaled = values / np.where(nothing, 1.0, size)[:, None]
    length = np.where(nothing, 1.0, np.linalg.norm(scaled, axis=1))
    share = np.where(nothing, 0.0, np.minimum(size / bound * length, 1.0))
    sign = np.where(uniform < (1 + share) / 2, 1.0, -1.0)
    directions = scaled * (sign / length)[:, None]
    directions[nothing] = 0.0
    directions[nothing, 0] = sign[nothing]
    return np.asarray(directions)


def _leaning(directions: Matrix, cap: Cap, sampler: Sampler) -> Matrix:
    """A random unit vector for each direction, by the law of its cosine: the same law as trying, without the tries."""
    n, order = directions.shape
    inside = sampler.uniform(n) < cap.inside
    uniform = sampler.uniform(n)
    tail = np.where(inside, uniform * cap.share, cap.share + uniform * (1 - cap.share))  # P(cosine of a uniform > t)
    if order == 1:
        return np.asarray(directions * np.where(tail < 0.5, 1.0, -1.0)[:, None])
    squared_sine = betaincinv((order - 1) / 2, 0.5, np.minimum(2 * np.minimum(tail, 1 - tail), 1.0))
    cosine = np.sqrt(1 - squared_sine) * np.where(tail < 0.5, 1.0, -1.0)
    across = sampler.normal(n, order)
    across -= np.einsum("ij,ij->i", across, directions)[:, None] * directions
    across *= np.sqrt(squared_sine / np.maximum(np.einsum("ij,ij->i", across, across), np.finfo(float).tiny))[:, None]
    across += cosine[:, None] * directions
    return across

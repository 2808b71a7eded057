"""Moments of centred and scaled columns, by what was released of their means and variances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.display import ShownInShort
from dpregress.releases.noise import NoiseLaw
from dpregress.releases.release import Moments

_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class TurnedNoise(ShownInShort, NoiseLaw):
    """The law of ``T N T'``.

    Parameters
    ----------
    noise : NoiseLaw
        Of N.
    turn : ndarray of shape (q, p)
    """

    noise: NoiseLaw
    turn: Matrix

    def __add__(self, other: NoiseLaw) -> TurnedNoise:
        if not isinstance(other, TurnedNoise) or not np.array_equal(self.turn, other.turn):
            return NotImplemented
        return TurnedNoise(self.noise + other.noise, self.turn)

    def product_covariance(self, vector: Vector) -> Matrix:
        """``T Cov(N T'v) T'``."""
        return np.asarray(self.turn @ self.noise.product_covariance(self.turn.T @ vector) @ self.turn.T)

    def cut(self, places: Sequence[int]) -> TurnedNoise:
        """The law of the noise in these rows and columns."""
        return TurnedNoise(self.noise, self.turn[list(places)])


@dataclass(frozen=True, eq=False, repr=False)
class Standardised(ShownInShort):
    """Moments in other coordinates.

    Attributes
    ----------
    moments : Moments
        Of ``T x~``.
    turn : ndarray of shape (p, p)
        T: the constant is left as it is.
    """

    moments: Moments
    turn: Matrix


def standardised(moments: Moments, numbers: Sequence[bool]) -> Standardised:
    """Columns less their means, and numbers over twice their standard deviations.

    A number then varies as much as the indicator of a class that half of the rows have. A variance counts as the noise
    in it at least.

    Parameters
    ----------
    moments : Moments
        In a plain space with an intercept.
    numbers : sequence of bool
        For every column but the constant, whether it is a number.
    """
    gram = moments.gram
    turn = np.eye(len(gram))
    turn[1:, 0] = -gram[0, 1:] / gram[0, 0]
    for place in 1 + np.flatnonzero(numbers):
        turn[place] /= 2 * math.sqrt(_variance(moments, turn[place]))
    joint = np.eye(len(gram) + 1)
    joint[:-1, :-1] = turn
    space = moments.space.rewhitened(turn, moments.space.radius)
    total = joint @ moments.total @ joint.T
    return Standardised(replace(moments, total=total, noise=TurnedNoise(moments.noise, joint), space=space), turn)


def _variance(moments: Moments, row: Vector) -> float:
    """Of a combination of columns."""
    padded = np.append(row, 0.0)
    noise = math.sqrt(float(padded @ moments.noise.product_covariance(padded) @ padded)) / moments.n
    return max(float(row @ moments.gram @ row), noise, _LEAST_VARIANCE)

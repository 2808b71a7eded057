"""What clips take from expected scores, so that they bias no coefficient where the model holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import definite_inverse, moment_of_products
from dpregress.models import Family, probabilities
from dpregress.solvers.glm.tails import AmountTail, CountTail, Tail
from dpregress.solvers.shared.public_fit import LabelledRows
from dpregress.solvers.shared.surrogate import SurrogateRows

#: Share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-13
#: What a sample tells is shrunk as if its variance were so many times as large: all scores share its error.
_DOUBT = 3.0
#: The least share of a change that a clip is taken to leave.
_LEAST_KEPT = 0.05
#: Rates of rows with the same features vary by at most this, their variance relative to their squared mean: of rare
#: counts, a tail that was not seen would say much more.
_MOST_VARIED = 4.0


class CutOff(ABC):
    """What a clip takes from an expected score.

    Attributes
    ----------
    guessed : ndarray of shape (p,) or None
        What depends on the shape of a tail, which the model only guesses at.
    variance : float
        Of an entry, where a sample tells.
    kept : float
        The most of a change that the clip leaves, where responses tell more than the sizes of residuals.
    """

    guessed: Vector | None = None
    variance: float = 0.0
    kept: float = 1.0

    @abstractmethod
    def score(self, coef: Vector) -> Vector:
        """Where these coefficients are the true ones, of shape (p,)."""

    @abstractmethod
    def slope(self, coef: Vector) -> Matrix:
        """Its derivative, of shape (p, p)."""


@dataclass(frozen=True, eq=False)
class ClassCut(CutOff):
    """Of a response in {0, 1}, over the surrogate rows where the clip takes anything.

    Attributes
    ----------
    rows : SurrogateRows
        Those rows.
    family : Family
    ones, zeros : ndarray of shape (m,)
        How much of a residual the clip takes if the response is 1, and if it is 0.
    share : float
        One over the number of all surrogate rows.
    """

    rows: SurrogateRows
    family: Family
    ones: Vector
    zeros: Vector
    share: float

    @classmethod
    def of(cls, rows: SurrogateRows, family: Family, coef: Vector, clip: float | Vector) -> ClassCut:
        """For a score at these coefficients; ``clip`` is that of residuals, for all rows or for each, of shape (m,)."""
        eta = rows.predictor(coef)
        mean, unit = family.mean(eta), rows.weight * family.factor_size(eta)
        ones, zeros = np.maximum(unit * (1 - mean) - clip, 0), np.maximum(unit * mean - clip, 0)
        hit = ones + zeros > 0
        return cls(rows.among(hit), family, ones[hit], zeros[hit], 1 / len(mean))

    def score(self, coef: Vector) -> Vector:
        mean = self.family.mean(self.rows.predictor(coef))
        return np.asarray(self.share * ((mean * self.ones - (1 - mean) * self.zeros) @ self.rows.x))

    def slope(self, coef: Vector) -> Matrix:
        change = self.family.slope(self.rows.predictor(coef)) * (self.ones + self.zeros) / self.rows.weight
        return np.asarray(self.share * (self.rows.x * change[:, None]).T @ self.rows.x)


@dataclass(frozen=True, eq=False)
class SoftmaxCut(CutOff):
    """Of several classes, over the surrogate rows where the clip takes anything.

    Attributes
    ----------
    rows : SurrogateRows
        Those rows.
    basis : ndarray of shape (K, K - 1)
        Contrasts.
    taken : ndarray of shape (m, K, K - 1)
        What the clip takes of the residual of each row if it is of each class.
    share : float
        One over the number of all surrogate rows.
    asked : ndarray of shape (p, K - 1)
        Where the score was asked, and the slope is taken: elsewhere it would cost as much as the score's own.
    """

    rows: SurrogateRows
    basis: Matrix
    taken: Vector
    share: float
    asked: Matrix

    @classmethod
    def of(cls, rows: SurrogateRows, basis: Matrix, coef: Matrix, clip: float) -> SoftmaxCut:
        """For a score at these coefficients, of shape (p, K - 1), whose residuals have at most the norm ``clip``."""
        within = probabilities(rows.predictor(coef), basis) @ basis
        residual = rows.weight[:, None, None] * (basis - within[:, None, :])
        size = np.linalg.norm(residual, axis=2, keepdims=True)
        taken = residual * (1 - np.minimum(1.0, clip / np.maximum(size, 1e-300)))
        hit = taken.any(axis=(1, 2))
        return cls(rows.among(hit), basis, taken[hit], 1 / len(within), coef)

    def score(self, coef: Vector) -> Vector:
        each = np.einsum("mk,mkj->mj", self._mean(coef), self.taken)
        return np.asarray(self.share * (self.rows.x.T @ each).ravel())

    def slope(self, coef: Vector) -> Matrix:  # noqa: ARG002
        return self._slope

    @cached_property
    def _slope(self) -> Matrix:
        mean, x = self._mean(self.asked), self.rows.x
        against = mean[:, :, None] * (self.basis - (mean @ self.basis)[:, None, :])
        change = np.einsum("mkj,mkl->mjl", self.taken, against, optimize=True) / self.rows.weight[:, None, None]
        return self.share * moment_of_products(x, change)

    def _mean(self, coef: Vector) -> Matrix:
        return probabilities(self.rows.predictor(coef.reshape(self.rows.x.shape[1], -1)), self.basis)


@dataclass(frozen=True, eq=False)
class _FixedCut(CutOff):
    """What is taken where the score was asked, to first order whatever the true coefficients are."""

    taken: Vector

    def score(self, coef: Vector) -> Vector:  # noqa: ARG002
        return self.taken

    def slope(self, coef: Vector) -> Matrix:  # noqa: ARG002
        return np.zeros((len(self.taken), len(self.taken)))


@dataclass(frozen=True, eq=False)
class TailCut(_FixedCut):
    """Of counts and amounts, by the model: a tail above the mean is longer than one below.

    Amounts are taken to have gamma distributions with the mean and variance of the model, counts negative binomial
    ones (:mod:`.tails`). Of a change of means the clip takes what it takes of the responses that change with them.
    """

    kept: float

    @classmethod
    def of(cls, rows: SurrogateRows, family: Family, coef: Vector, clip: float, dispersion: float) -> TailCut:
        """For a score at these coefficients."""
        eta = rows.predictor(coef)
        mean, factor = np.maximum(family.mean(eta), 1e-300), family.factor(eta)  # below 0 where a mean falls
        length = np.maximum(np.abs(factor), 1e-150)
        variance = np.abs(family.slope(eta)) / length
        if family.distribution.fixed_dispersion:  # counts vary more by rates that vary in proportion to the mean
            square = rows.weight**2 * factor**2
            extra = max(dispersion - 1, 0) * float(square @ variance) / max(float(square @ mean**2), 1e-300)
            tail: Tail = CountTail(mean, min(extra, _MOST_VARIED))
        else:
            tail = AmountTail.of(mean, dispersion * variance)
        reach = np.minimum(clip / rows.weight / length, 1e150)
        low, high = np.maximum(mean - reach, 0.0), mean + reach
        above, below = tail.beyond(high), np.where(low > 0, tail.beyond(low) - (mean - low), 0.0)
        taken = np.asarray((rows.weight * factor * (above - below)) @ rows.x / len(rows.x))
        information = family.information(eta) * np.einsum("ij,ij->i", rows.x, rows.x)
        kept = float(information @ tail.kept(low, high)) / max(float(information.sum()), 1e-300)
        return cls(taken, max(kept, _LEAST_KEPT))

    @property
    def guessed(self) -> Vector:  # type: ignore[override]
        return self.taken


@dataclass(frozen=True, eq=False)
class SampleCut(_FixedCut):
    """Of counts and amounts, as a clip takes it from public rows, which are a sample."""

    variance: float

    @classmethod
    def of(cls, rows: LabelledRows, family: Family, coef: Vector, clip: float) -> SampleCut:
        """For a score at these coefficients: labelled rows tell what a clip takes from a tail of any shape.

        What the clip takes of a row's residual is regressed on the mean prediction, so that its sampling error is that
        of two numbers rather than p, and shrunk by that error.
        """
        eta = rows.x @ coef + rows.offset
        residual = rows.weight * (rows.y - family.mean(eta)) * family.factor(eta)
        beyond = residual - np.clip(residual, -clip, clip)
        mean = family.mean(eta)
        basis = np.column_stack([np.ones(len(mean)), mean / max(float(np.mean(np.abs(mean))), 1e-300)])
        inverse = definite_inverse(basis.T @ basis, _DIGITS)
        coefficients = inverse @ (basis.T @ beyond)
        left = (beyond - basis @ coefficients)[:, None] * basis
        carried = (rows.weight[:, None] * rows.x).T @ basis / len(mean)
        covariance = carried @ inverse @ (left.T @ left) @ inverse @ carried.T
        taken, variance = carried @ coefficients, float(np.trace(covariance))
        gain = max(0.0, 1 - _DOUBT * variance / max(float(taken @ taken), 1e-300))
        return cls(gain * taken, gain * variance / len(coef))

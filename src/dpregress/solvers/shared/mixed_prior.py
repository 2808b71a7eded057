r"""What public labels say of coefficients: one of several normal distributions, and released scores say which.

A penalised fit to labelled public rows is the mean of a posterior, and its penalty one guess at the size of slopes.
Rows that are left out say how likely each guess is, but where public rows are few, released scores know better. With an
estimate b of covariance N by scores alone, the weight of ``N(b_k, P_k)`` is multiplied by its likelihood
``N(b; b_k, P_k + N)``, and the prior that is used has the mean of all posterior means and the mean gain,

.. math:: \bar V = \operatorname{mean} (P_k^{-1} + N^{-1})^{-1}, \quad P = \bar V^{-1} - N^{-1}.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import definite_inverse, eigen
from dpregress.solvers.shared.explained import Known, Prior
from dpregress.solvers.shared.posterior import Step, widening

#: The share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-13
#: Beside another one, a candidate that is less likely by this factor beforehand, as a logarithm, is left out.
_NEGLIGIBLE = 20.0
#: Candidates that are less likely by this factor, as a logarithm, do not say how long a step may be.
_UNLIKELY = 5.0
#: The least share of a way that a prior holds back, and that it leaves.
_LEAST = 1e-12


def likely(log_weights: Vector) -> NDArray[np.intp]:
    """Places of those that count beside the likeliest."""
    return np.flatnonzero(log_weights.max() - log_weights <= _NEGLIGIBLE)


class Candidate(NamedTuple):
    """A mean, of shape (q,), a precision, of shape (q, q), and the logarithm of how likely they are."""

    mean: Vector
    precision: Matrix
    log_weight: float


@dataclass(frozen=True, eq=False)
class MixedPrior(Prior):
    """One of several normal distributions.

    Attributes
    ----------
    coef : ndarray of shape (q,)
        Where the first score is asked.
    among : tuple of Candidate
        At least one, the likeliest first.
    """

    coef: Vector
    among: tuple[Candidate, ...]

    @classmethod
    def of(cls, coef: Vector, among: list[Candidate]) -> Self:
        """Of these candidates those that count, for a first score at ``coef``."""
        counted = [among[place] for place in likely(np.array([each.log_weight for each in among]))]
        return cls(coef, tuple(sorted(counted, key=lambda each: -each.log_weight)))

    @classmethod
    def single(cls, coef: Vector, precision: Matrix) -> Self:
        """One distribution."""
        return cls(coef, (Candidate(coef, precision, 0.0),))

    def known(self, told: Vector, scores: Matrix) -> Known:
        values, vectors = eigen(scores)
        deviation = np.maximum(values, max(_DIGITS * float(values.sum()), 1e-300)) ** -0.5
        root, back = vectors * deviation, vectors / deviation
        at, found = back.T @ told, []
        for mean, precision, log_weight in self.among:  # in units of the noise
            factors, axes = eigen(root.T @ precision @ root)
            factors = np.maximum(factors, 1e-300)
            held, way = factors / (1 + factors), axes.T @ (back.T @ mean - at)
            likely = log_weight + float(np.sum(np.log(held) - held * way**2)) / 2
            found.append((likely, axes @ (held * way), (axes * held) @ axes.T))
        weights = np.exp([likely - max(each[0] for each in found) for likely, _, _ in found])
        weights /= weights.sum()
        moved = sum(weight * move for weight, (_, move, _) in zip(weights, found, strict=True))
        held, axes = eigen(np.asarray(sum(weight * part for weight, (_, _, part) in zip(weights, found, strict=True))))
        held = np.clip(held, _LEAST, 1 - _LEAST)
        inner = back @ axes
        return Known(
            root @ (at + axes @ ((axes.T @ moved) / held)), np.asarray((inner * (held / (1 - held))) @ inner.T)
        )

    @cached_property
    def _covariances(self) -> list[Matrix]:
        return [definite_inverse(each.precision, _DIGITS) for each in self.among]

    def after(self, step: Step, sampling: Matrix) -> MixedPrior:
        """Of the private rows' optimum, whose covariance about the population's is ``sampling``, after the first step.

        If the step is longer than any likely candidate and its noise explain, public rows are from another population,
        and all covariances are multiplied by the smallest factor with which one does.
        """
        known = [covariance + sampling for covariance in self._covariances]
        factor = np.inf
        for each, covariance in zip(self.among, known, strict=True):
            if factor == 1.0 or self.among[0].log_weight - each.log_weight > _UNLIKELY:
                break
            way = self.coef + step.value - each.mean
            factor = min(factor, widening(covariance, replace(step, value=way)))
        among = zip(self.among, known, strict=True)
        return MixedPrior(
            self.coef,
            tuple(each._replace(precision=definite_inverse(factor * wider, _DIGITS)) for each, wider in among),
        )

r"""What is known before the first private step of a linear fit: the size of slopes, the mean, and public labels.

Slopes are ``N(0, tau I)`` in whitened units, or of the shape that public labels suggest. How large they are is told by
labels and by all steps together; after each step the posterior is computed anew from the first one on, with the prior
that is likeliest by then. The precision is the one whose gain is the posterior mean of ``tau / (tau + error)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse
from dpregress.solvers.shared.posterior import Posterior, Taken, together
from dpregress.solvers.shared.public_prior import PublicLabels, PublicPrior

#: Decades of the share of variance that slopes may explain, and so many shares among them.
_DECADES, _SHARES = 3.0, 200
#: The share of a covariance's trace that is rounding.
_ROUNDING = 1e-15
#: The smallest variance of a mean, as a share of the response's.
_SURE = 1e-12


@dataclass(frozen=True, eq=False)
class LinearPrior:
    """What is known before the first step, but for the size of slopes.

    Attributes
    ----------
    space : WhitenedSpace
    gram : ndarray of shape (p, p)
        The released Gram matrix.
    coef : ndarray of shape (p,)
        With an intercept alone.
    variance : float
        Of the response.
    doubt : float
        The variance of its mean, beside what labels say.
    labels : PublicLabels or None
    sampling : ndarray of shape (p, p) or None
        By which the private rows' answer differs from the population's, which is what labels tell.
    """

    space: WhitenedSpace
    gram: Matrix
    coef: Vector
    variance: float
    doubt: float
    labels: PublicLabels | None = None
    sampling: Matrix | None = None

    def after(self, taken: Sequence[Taken]) -> Posterior:
        """The posterior after these steps, with the size of slopes that they and labels suggest."""
        coef, precision, _ = self._known(taken)
        if self.sampling is not None:
            precision = definite_inverse(definite_inverse(precision, _ROUNDING) + self.sampling, _ROUNDING)
        return Posterior(coef, np.zeros_like(self.gram), precision).after(taken)

    @property
    def by_labels(self) -> PublicPrior:
        """The fit by labels alone."""
        assert self.labels is not None
        coef, precision, dispersion = self._known(())
        return PublicPrior.of(self.labels, coef, definite_inverse(precision, _ROUNDING), dispersion)

    def _known(self, taken: Sequence[Taken]) -> tuple[Vector, Matrix, float]:
        """Coefficients and precision before the steps, and the variance of errors where labels tell it."""
        slopes = np.eye(self.space.order) - self.space.along_constant
        shape = slopes if self.labels is None else self.labels.shape
        size, dispersion = self._size(taken, shape, max(float(np.trace(slopes)), 1.0))
        precision = np.asarray(size * shape)
        if self.space.intercept:  # the mean row is that of the private rows: that of public rows may differ
            row = self.space.mean_row(self.gram)
            precision += np.outer(row, row) / max(self.doubt, _SURE * self.variance)
        if self.labels is None:
            return self.coef, precision, dispersion
        return (*self.labels.update(self.coef, precision, dispersion), dispersion)

    def _size(self, taken: Sequence[Taken], shape: Matrix, d: float) -> tuple[float, float]:
        """The precision of slopes in units of the shape, and the variance of errors by labels."""
        tau = np.logspace(-_DECADES, 0, _SHARES) * self.variance / d
        log_weight, precise, dispersions = np.zeros(len(tau)), 0.0, np.zeros(len(tau))
        if self.labels is not None:
            log_weight, dispersions, tau = self.labels.odds
        if taken:
            told, noise = together(self.coef, taken)
            error, length = float(np.sum(shape * noise)) / d, float(told @ shape @ told)
            log_weight = log_weight - d / 2 * np.log(tau + error) - length / 2 / (tau + error)
            precise = 1 / error
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        dispersion = float(weight @ dispersions)
        if self.labels is not None:
            precise += self.labels.told / dispersion / d
        gain = precise * tau / (1 + precise * tau)
        return float(weight @ (1 / (1 + precise * tau))) * precise / max(float(weight @ gain), 1e-300), dispersion


def told_by_labels(space: WhitenedSpace, rows: Matrix, labels: Vector) -> PublicPrior:
    """The linear fit by labelled public rows alone, however few.

    Parameters
    ----------
    space : WhitenedSpace
    rows : ndarray of shape (m, d)
        In original units.
    labels : ndarray of shape (m,)
    """
    known = PublicLabels.of(space, rows, labels, np.zeros((space.order, space.order)))
    gram = known.second / len(labels)
    mean, variance = float(labels.mean()), float(labels.var())
    if not space.intercept:
        return LinearPrior(space, gram, np.zeros(space.order), variance + mean**2, 0.0, known).by_labels
    return LinearPrior(space, gram, mean * space.constant, variance, variance, known).by_labels

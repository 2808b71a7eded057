r"""What is known before the first private step of a linear fit: the sizes of slopes, the mean, and public labels.

Slopes are ``N(0, tau T^{-1})`` with one of several shapes T (:mod:`.slope_shapes`). Which shape they have and how large
they are is told by labels and by all steps together; after each step the posterior is computed anew from the first one
on, with the prior that they suggest by then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse
from dpregress.solvers.shared.posterior import Posterior, Taken, together
from dpregress.solvers.shared.public_prior import PublicLabels, PublicPrior
from dpregress.solvers.shared.slope_shapes import SizedShape, Told, shape_probabilities, slope_shapes, slopes_basis

#: Decades of the share of variance that slopes may explain, and so many shares among them.
_DECADES, _SHARES = 3.0, 200
#: The share of a covariance's trace that is rounding.
_ROUNDING = 1e-15
#: The least that is told of a slope, as a share of what is told of all.
_LEAST_TOLD = 1e-7
#: The smallest variance of a mean, as a share of the response's.
_SURE = 1e-12


@dataclass(frozen=True, eq=False)
class LinearPrior:
    """What is known before the first step, but for the sizes of slopes.

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
        """The posterior after these steps, with the sizes of slopes that they and labels suggest."""
        coef, precision, _ = self._known(taken)
        if self.sampling is not None:
            precision = definite_inverse(definite_inverse(precision, _ROUNDING) + self.sampling, _ROUNDING)
        return Posterior(coef, np.zeros_like(self.gram), precision).after(taken)

    def varying(self, coef: Vector, residual: float) -> LinearPrior:
        """The same where residuals from these coefficients are so large: the response varies no more than both do."""
        away = coef - self.coef
        return replace(self, variance=min(self.variance, (residual + math.sqrt(float(away @ self.gram @ away))) ** 2))

    @property
    def by_labels(self) -> PublicPrior:
        """The fit by labels alone."""
        assert self.labels is not None
        coef, precision, dispersion = self._known(())
        return PublicPrior.of(self.labels, coef, definite_inverse(precision, _ROUNDING), dispersion)

    def _known(self, taken: Sequence[Taken]) -> tuple[Vector, Matrix, float]:
        """Coefficients and precision before the steps, and the variance of errors where labels tell it."""
        precision, dispersion = self._slopes(taken)
        if self.space.intercept:  # the mean row is that of the private rows: that of public rows may differ
            row = self.space.mean_row(self.gram)
            precision = precision + np.outer(row, row) / max(self.doubt, _SURE * self.variance)
        if self.labels is None:
            return self.coef, precision, dispersion
        return (*self.labels.update(self.coef, precision, dispersion), dispersion)

    def _slopes(self, taken: Sequence[Taken]) -> tuple[Matrix, float]:
        """The precision of slopes after these steps, and the variance of errors by labels."""
        basis, sizes = self._basis, list(self._sizes)
        information = np.zeros((basis.shape[1], basis.shape[1]))
        if taken:
            told, noise = together(self.coef, taken)
            steps = Told(basis.T @ told, basis.T @ noise @ basis)
            sizes = [steps.after(each) for each in sizes]
            information += definite_inverse(steps.noise, _ROUNDING)
        dispersion = 0.0
        if self.labels is not None:
            weights = zip(shape_probabilities(sizes), self.labels.odds, strict=True)
            dispersion = float(sum(weight @ odds.dispersion for weight, odds in weights))
            information += basis.T @ self.labels.second @ basis / dispersion
        if not information.any():  # whatever the noise, then
            information = np.eye(len(information))
        known = Told(np.zeros(len(information)), definite_inverse(information, _LEAST_TOLD))
        return np.asarray(basis @ known.precision(sizes) @ basis.T), dispersion

    @cached_property
    def _basis(self) -> Matrix:
        return slopes_basis(np.eye(self.space.order) - self.space.along_constant)

    @cached_property
    def _sizes(self) -> tuple[SizedShape, ...]:
        """Shapes and sizes of slopes before the steps, as likely as labels say."""
        basis = self._basis
        if self.labels is not None:
            return tuple(
                SizedShape(basis.T @ odds.shape @ basis, odds.slope, odds.log_weight) for odds in self.labels.odds
            )
        tau = np.logspace(-_DECADES, 0, _SHARES) * self.variance / max(basis.shape[1], 1)
        shapes = slope_shapes(self.space, self.gram)
        return tuple(SizedShape(basis.T @ shape @ basis, tau, np.zeros(_SHARES)) for shape in shapes)


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

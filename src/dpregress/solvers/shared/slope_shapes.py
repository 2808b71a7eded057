r"""Which slopes are large: shapes that a prior for slopes may have, averaged as released numbers suggest.

Before anything is told of a response, slopes may be of one size in whitened units, so that all directions of the
columns explain as much; of one size for standardised columns, so that directions in which these vary more explain
more; or larger along what columns have in common, so that these explain still more. As precisions,

.. math:: T_1 = I, \quad T_2 = S S', \quad T_3 = S (C + c I)^{-1} S',

with ``S'`` from whitened slopes to those of standardised columns, C the correlations of the columns, and c a tenth of
their mean eigenvalue. Slopes are ``N(0, tau T^{-1})``. How likely a shape and a size tau are, released slopes with
their noise say by their marginal likelihood (empirical Bayes). The prior that is used has the mean gain over all shapes
and sizes: with noise of covariance N, and with their posterior probabilities as weights,

.. math:: P = \bar V^{-1} - N^{-1}, \quad \bar V = \operatorname{mean} (T / \tau + N^{-1})^{-1}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse, eigen
from dpregress.solvers.shared.repair import standardised_penalty

#: The floor under what columns have in common, as a share of the mean eigenvalue of their correlations.
_COMMON = 0.1
#: The share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-15
#: The least gain.
_SMALLEST_GAIN = 1e-12


def slope_shapes(
    space: WhitenedSpace, gram: Matrix, deviations: Vector | None = None, *, common: bool = True
) -> tuple[Matrix, ...]:
    """The precisions, 0 along the constant, in units in which d slopes explain the variance d.

    Parameters
    ----------
    space : WhitenedSpace
    gram : ndarray of shape (p, p)
        The second moment of whitened rows.
    deviations : ndarray of shape (d,), optional
        Standard deviations of the columns, in original units. Default: by the second moment.
    common : bool, default=True
        Whether slopes may be larger along what columns have in common.
    """
    slopes = np.eye(space.order) - space.along_constant
    covariance = space.covariance(gram)
    if deviations is None:
        deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = deviations > 0
    if not varies.any():
        return (slopes,)
    shapes = [standardised_penalty(space, deviations)]
    if common:
        unit = np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0)
        correlation, identity = covariance * np.outer(unit, unit), np.eye(len(covariance))
        usual = float(np.trace(correlation)) / len(correlation)
        unlike = definite_inverse(correlation / max(usual, _DIGITS) + _COMMON * identity, _DIGITS)
        standard = space.slopes * deviations
        shapes.append(shapes[0] + standard @ (unlike - identity) @ standard.T)
    return (slopes, *(_scaled(slopes @ shape @ slopes, slopes, gram) for shape in shapes))


def standardised_shape(space: WhitenedSpace, gram: Matrix, deviations: Vector) -> Matrix:
    """T_2 alone, for deviations that are all positive, however small in this space."""
    slopes, standard = np.eye(space.order) - space.along_constant, space.slopes * deviations
    return _scaled(slopes @ standard @ standard.T @ slopes, slopes, gram)


def _scaled(shape: Matrix, slopes: Matrix, gram: Matrix) -> Matrix:
    """In units in which slopes of variance 1 explain as much as whitened ones do of whitened rows, if these vary."""
    constant = np.eye(len(slopes)) - slopes
    inverse = definite_inverse(shape + constant, _DIGITS) - constant
    explained, least = float(np.sum(inverse * gram)), _DIGITS * float(np.trace(inverse)) * float(np.trace(gram))
    return np.asarray(shape * (explained / float(np.trace(slopes)) if explained > least else 1.0))


def slopes_basis(slopes: Matrix) -> Matrix:
    """An orthonormal basis of the space of slopes, of shape (q, d), given the projection on it."""
    values, vectors = eigen(slopes)
    return np.asarray(vectors[:, values > 0.5])


class SizedShape(NamedTuple):
    """A shape, of shape (d, d), the variances tau that are considered, and logarithms of how likely each is."""

    shape: Matrix
    tau: Vector
    log_weight: Vector


@dataclass(frozen=True, eq=False)
class Told:
    """Estimated slopes, of shape (d,), and the covariance of their noise."""

    slopes: Vector
    noise: Matrix

    @cached_property
    def _axes(self) -> tuple[Vector, Matrix]:
        values, vectors = eigen(self.noise)
        return np.sqrt(np.maximum(values, max(_DIGITS * float(values.sum()), 1e-300))), vectors

    def after(self, sizes: SizedShape) -> SizedShape:
        """How likely sizes are after these slopes were told."""
        deviation, vectors = self._axes
        factors, axes = self._relative(sizes.shape)
        squares = (axes.T @ ((vectors.T @ self.slopes) / deviation)) ** 2
        total = 1 + sizes.tau[:, None] / factors
        return sizes._replace(log_weight=sizes.log_weight - np.sum(np.log(total) + squares / total, axis=1) / 2)

    def precision(self, among: Sequence[SizedShape]) -> Matrix:
        """That of the prior with the mean gain."""
        deviation, vectors = self._axes
        weights = shape_probabilities(among)
        gain = np.zeros_like(self.noise)
        for sizes, weight in zip(among, weights, strict=True):
            factors, axes = self._relative(sizes.shape)
            gain += (axes * (weight @ (sizes.tau[:, None] / (sizes.tau[:, None] + factors)))) @ axes.T
        gains, axes = eigen(gain)
        gains = np.clip(gains, _SMALLEST_GAIN, 1.0)
        back = (vectors / deviation) @ axes
        return np.asarray((back * ((1 - gains) / gains)) @ back.T)

    def _relative(self, shape: Matrix) -> tuple[Vector, Matrix]:
        """A shape's eigenvalues relative to the precision of the noise, and the axes in units of the noise."""
        deviation, vectors = self._axes
        root = vectors * deviation
        factors, axes = eigen(root.T @ shape @ root)
        return np.maximum(factors, max(_DIGITS * float(factors.sum()), 1e-300)), axes


def shape_probabilities(among: Sequence[SizedShape]) -> list[Vector]:
    """Of all sizes of all shapes together."""
    most = max(float(sizes.log_weight.max()) for sizes in among)
    weights = [np.exp(sizes.log_weight - most) for sizes in among]
    total = float(sum(weight.sum() for weight in weights))
    return [weight / total for weight in weights]

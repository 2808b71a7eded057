"""Norms of whitened rows, and the rule for the radius at which rows are truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.public.moments import PublicMoments

#: Leverages are capped here: a row with a larger leverage says too little about the norms of similar rows.
_LARGEST_LEVERAGE = 0.5
#: The number of equally likely norms that represent the chi distribution.
_NORMAL_NORMS = 400


@dataclass(frozen=True, eq=False)
class RowNorms:
    """The distribution of a new row's norm in a whitened space, by which a radius is chosen.

    Attributes
    ----------
    sample : ndarray of shape (m,)
        Equally likely norms above 0, correct up to one common factor.
    median : float
        The median norm itself, which fixes that factor. It is also the radius before any planning.
    assumed : bool
        Whether the sample is of normal rows, because no rows were seen.
    """

    sample: Vector
    median: float
    assumed: bool = False

    @classmethod
    def leave_one_out(cls, public: PublicMoments, space: WhitenedSpace) -> RowNorms:
        """The norm of each public row in a space whitened by the others: ``sqrt((m - 1) h / (1 - h))``, h its leverage.

        This is infinite for the only row with a rare level, although a private row with that level has norm
        ``sqrt(m h)`` in this space. Leverages are therefore capped at 1/2, so that no norm exceeds ``sqrt(m - 1)``.

        Raises
        ------
        InvalidInput
            If all rows are 0.
        """
        assert public.rows is not None
        whitened = space.whiten(public.rows)
        leverage = np.minimum(np.einsum("ij,ij->i", whitened, whitened) / public.n, _LARGEST_LEVERAGE)
        squares = positive((public.n - 1) * leverage / (1 - leverage))
        if not squares.size:
            raise InvalidInput("all public rows are 0: give public rows that are not, or leave public= out")
        return cls(np.asarray(np.sqrt(squares)), float(np.sqrt(np.median(squares))))

    @classmethod
    def normal(cls, space: WhitenedSpace, median: float | None = None) -> RowNorms:
        """Norms of normal rows that are whitened exactly, or whose median norm is ``median``."""
        levels = (np.arange(_NORMAL_NORMS) + 0.5) / _NORMAL_NORMS
        sample = np.asarray(np.sqrt(chi2.ppf(levels, len(space.features)) + space.intercept))
        return cls(sample, chi_radius(space) if median is None else median, assumed=True)

    @classmethod
    def of(cls, public: PublicMoments | None, space: WhitenedSpace, *, refined: bool) -> RowNorms:
        """Leave-one-out norms if the space was whitened by public rows, otherwise norms of normal rows.

        If only a public moment is known, squared norms are multiplied by the expected inflation ``m / (m - p - 1)``.

        Parameters
        ----------
        public : PublicMoments or None
        space : WhitenedSpace
        refined : bool
            Whether a private second moment will whiten the space again; rows are then assumed to be normal.
        """
        if public is None or refined:
            return cls.normal(space)
        if public.rows is None or public.n <= space.order + 1:
            inflation = public.n / max(public.n - space.order - 1, 1)
            return cls.normal(space, chi_radius(space) * math.sqrt(min(inflation, float(public.n))))
        return cls.leave_one_out(public, space)


def positive(norms: Vector) -> Vector:
    """The norms above 0: rows of zeros, of sparse columns without an intercept, lie within any radius."""
    return np.asarray(norms[norms > 0])


def public_radius(public: PublicMoments, space: WhitenedSpace) -> float:
    """The median norm of a new row in a space whitened by these public rows."""
    return RowNorms.of(public, space, refined=False).median


def refined_radius(space: WhitenedSpace, mean_square: float) -> float:
    """The median norm of a row in a space whitened by a noisy private second moment.

    Directions that are too weak against the noise are not fully whitened, which makes rows shorter.

    Parameters
    ----------
    space : WhitenedSpace
    mean_square : float
        The released mean squared norm in that space.
    """
    return min(chi_radius(space), math.sqrt(max(mean_square, 1.0)))


def chi_radius(space: WhitenedSpace) -> float:
    """The median norm of a whitened normal row: ``sqrt(median chi2_d)``, plus the constant's 1."""
    degrees = len(space.features)
    return math.sqrt(float(chi2.median(degrees)) + space.intercept)

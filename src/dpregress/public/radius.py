"""Norms of whitened rows, and the radius at which rows are truncated: the one rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.public.moments import PublicMoments

#: Public rows of a larger leverage say too little of the norms of others like them.
_LARGEST_LEVERAGE = 0.5
#: How many equally likely norms stand for the chi distribution.
_NORMAL_NORMS = 400


@dataclass(frozen=True, eq=False)
class RowNorms:
    """The distribution of a new row's norm in a whitened space: what a radius is chosen by.

    Attributes
    ----------
    sample : ndarray of shape (m,)
        Equally likely norms, correct up to one common factor.
    median : float
        The median norm itself, which fixes that factor. It is also the radius before any planning.
    """

    sample: Vector
    median: float

    @classmethod
    def leave_one_out(cls, public: PublicMoments, space: WhitenedSpace) -> RowNorms:
        """Of every public row in a space whitened by the others, from its leverage h: ``sqrt((m - 1) h / (1 - h))``.

        That is infinite for a row that alone has a rare level, while a private row of that level has norm
        ``sqrt(m h)`` in this space. Leverages therefore count as 1/2 at most, and no norm exceeds ``sqrt(m - 1)``.
        """
        assert public.rows is not None
        whitened = space.whiten(public.rows)
        leverage = np.minimum(np.einsum("ij,ij->i", whitened, whitened) / public.n, _LARGEST_LEVERAGE)
        squares = (public.n - 1) * leverage / (1 - leverage)
        return cls(np.asarray(np.sqrt(squares)), float(np.sqrt(np.median(squares))))

    @classmethod
    def normal(cls, space: WhitenedSpace, median: float | None = None) -> RowNorms:
        """Of normal rows that are whitened exactly, or whose median norm is ``median``."""
        levels = (np.arange(_NORMAL_NORMS) + 0.5) / _NORMAL_NORMS
        sample = np.asarray(np.sqrt(chi2.ppf(levels, len(space.features)) + space.intercept))
        return cls(sample, chi_radius(space) if median is None else median)

    @classmethod
    def of(cls, public: PublicMoments | None, space: WhitenedSpace, *, refined: bool) -> RowNorms:
        """Leave-one-out norms where public rows whitened the space, else those of normal rows.

        Where only the public moment is known, normal rows are longer by the expected inflation ``m / (m - p - 1)``.

        Parameters
        ----------
        public : PublicMoments or None
        space : WhitenedSpace
        refined : bool
            Whether the space will be whitened again by a private second moment: its rows are then taken for normal.
        """
        if public is None or refined:
            return cls.normal(space)
        if public.rows is None or public.n <= space.order + 1:
            inflation = public.n / max(public.n - space.order - 1, 1)
            return cls.normal(space, chi_radius(space) * math.sqrt(min(inflation, float(public.n))))
        return cls.leave_one_out(public, space)


def public_radius(public: PublicMoments, space: WhitenedSpace) -> float:
    """The median norm that a new row has in a space whitened by these public rows."""
    return RowNorms.of(public, space, refined=False).median


def refined_radius(space: WhitenedSpace, mean_square: float) -> float:
    """The median norm of a row in a space whitened by a noisy private second moment.

    Directions too weak to be whitened in its noise make rows shorter than normal ones.

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

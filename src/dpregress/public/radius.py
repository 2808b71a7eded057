"""The radius at which rows are truncated: the one rule."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.public.moments import PublicMoments

_LARGEST_LEVERAGE = 0.5


def public_radius(public: PublicMoments, space: WhitenedSpace) -> float:
    """The median norm that a new row has in a frame whitened by these public rows.

    From the rows where they are at hand (leave-one-out leverages), else from the chi-square law with
    the expected inflation ``m / (m - d - 1)``.
    """
    if public.rows is None or public.n <= space.order + 1:
        inflation = public.n / max(public.n - space.order - 1, 1)
        return chi_radius(space) * math.sqrt(min(inflation, float(public.n)))
    return math.sqrt(float(np.median(leave_one_out_norms(public.rows, space) ** 2)))


def leave_one_out_norms(rows: Matrix, space: WhitenedSpace) -> Vector:
    """Norms that new rows may have in a frame whitened by these public rows, of shape (m,).

    ``sqrt((m - 1) h / (1 - h))`` is the norm of each row in the frame of the others, h its leverage. It is infinite
    for a row that alone has a rare level, while a private row of that level has norm ``sqrt(m h)`` in this frame.
    Leverages therefore count as 1/2 at most, and no norm lies beyond ``sqrt(m - 1)``.
    """
    whitened = space.whiten(rows)
    leverage = np.minimum(np.einsum("ij,ij->i", whitened, whitened) / len(rows), _LARGEST_LEVERAGE)
    return np.asarray(np.sqrt((len(rows) - 1) * leverage / (1 - leverage)))


def chi_radius(space: WhitenedSpace) -> float:
    """The median norm of a whitened normal row: ``sqrt(median chi2_d)``, plus the constant's 1."""
    degrees = len(space.features)
    return math.sqrt(float(chi2.median(degrees)) + space.intercept)

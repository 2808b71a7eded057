"""Quasi-random normal rows: the same in every process, and drawn from nothing."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from dpregress.coordinates.svec import Matrix


def quasi_normal(degrees: int, log2: int) -> Matrix:
    """``2^log2`` rows of Sobol's sequence, turned into standard normal ones, of shape (2^log2, degrees).

    Examples
    --------
    >>> quasi_normal(2, 3).shape
    (8, 2)
    """
    points = qmc.Sobol(degrees, scramble=False).random_base2(log2)
    return np.asarray(ndtri(points * (1 - 2.0**-log2) + 2.0 ** -(log2 + 1)))

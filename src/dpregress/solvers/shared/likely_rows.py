"""Rows that a table may have, by its schema and the released moments of its columns.

Normal rows are a poor likeness of indicators and of amounts that are mostly 0. The bounds of a column and its mean and
variance say how skewed it is: columns are Beta distributed between their bounds, and joined by a Gaussian copula. A row
has one level of a categorical column: the one whose normal variable, plus a constant for its frequency, is the largest.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta

from dpregress.coordinates import Matrix, Vector
from dpregress.public.schema import Schema

#: Quantiles of a column that are computed, between which others are interpolated.
_LEVELS = 1024
#: Rounds in which the constants of levels are fitted to their frequencies, and the share of a correction that is made.
_ROUNDS, _CAREFUL = 30, 0.7
#: A mean is this share of the range away from the bounds at least, and a variance within the shares of its largest.
_INSIDE, _LEAST_VARIANCE, _MOST_VARIANCE = 1e-4, 1e-6, 0.999


def likely_rows(schema: Schema, names: tuple[str, ...], normal: Matrix, mean: Vector, variance: Vector) -> Matrix:
    """Rows within the bounds of a schema, with about these means and variances.

    Parameters
    ----------
    schema : Schema
        With bounds for all columns.
    names : tuple of str
        Design columns.
    normal : ndarray of shape (m, d)
        Standard normal rows, correlated as the columns are.
    mean, variance : ndarray of shape (d,)

    Returns
    -------
    rows : ndarray of shape (m, d)
    """
    rows = np.empty_like(normal)
    uniform = ndtr(normal)
    for place, name in enumerate(names):
        if schema.indicates(name) is not None:
            continue
        lower, upper = schema.bounds_of(name)
        width = upper - lower
        centre = min(max((mean[place] - lower) / width, _INSIDE), 1 - _INSIDE)
        largest = centre * (1 - centre)
        spread = min(max(variance[place] / width**2, _LEAST_VARIANCE * largest), _MOST_VARIANCE * largest)
        rows[:, place] = lower + width * _beta(uniform[:, place], centre, largest / spread - 1)
    for places in schema.indicator_places(names).values():
        rows[:, places] = _one_level(normal[:, places], np.clip(mean[places], _INSIDE, 1 - _INSIDE))
    return rows


def _one_level(normal: Matrix, frequency: Vector) -> Matrix:
    """Indicators of these frequencies, at most one a row: of the largest variable above 0, that of all other levels."""
    constant, wanted = ndtri(frequency), ndtri(frequency)
    for _ in range(_ROUNDS):
        value = normal + constant
        chosen = (value == value.max(axis=1, keepdims=True)) & (value > 0)
        constant = constant + _CAREFUL * (wanted - ndtri(np.clip(chosen.mean(axis=0), _INSIDE, 1 - _INSIDE)))
    return np.asarray(chosen, dtype=float)


def _beta(uniform: Vector, mean: float, size: float) -> Vector:
    """Quantiles of a Beta distribution with this mean and sum of parameters."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return np.asarray(np.interp(uniform, levels, beta.ppf(levels, mean * size, (1 - mean) * size)))

"""What is expected of a mean that lies between known ends, given a noisy one: the mean of a truncated normal law."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import truncnorm

from dpregress.coordinates import Vector

#: Standard deviations beyond which the law of a truncated normal number is at the nearer end, and its narrowest width.
_FAR, _NARROW = 20.0, 1e-3
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def mean_between(low: float, high: float) -> float:
    """The mean of a standard normal number that lies between these; near an end where hardly any does."""
    if high - low < _NARROW:
        return (low + high) / 2
    if max(low, -high) > _FAR:
        return low if low > 0 else high
    return float(truncnorm.mean(max(low, -2 * _FAR), min(high, 2 * _FAR)))


def mean_within(value: float, noise: float, low: float, high: float) -> float:
    """What is expected between two ends, by a value with normal noise of this standard deviation.

    Examples
    --------
    >>> round(mean_within(-0.1, 0.1, 0.0, 1.0), 3)
    0.053
    """
    if noise == 0:
        return min(max(value, low), high)
    return value + noise * mean_between((low - value) / noise, (high - value) / noise)


def shares_within(values: Vector, noise: float) -> Vector:
    """Shares that are not negative and sum to 1, by values with independent normal noise.

    Each is the mean of a normal law above 0, all of them moved by the same amount. Without noise this is the nearest
    point of the simplex; noise alone leaves equal shares.

    Examples
    --------
    >>> shares_within(np.array([0.9, 0.3, -0.4]), 1e-9).round(3).tolist()
    [0.8, 0.2, 0.0]
    >>> shares_within(np.array([0.9, 0.3, -0.4]), 1.0).round(2).tolist()
    [0.39, 0.33, 0.27]
    """

    def moved(by: float) -> Vector:
        place = (values - by) / noise
        near = np.maximum(place, -_FAR)
        above = near + np.exp(-(near**2) / 2 - log_ndtr(near)) / _ROOT_TWO_PI
        return np.asarray(noise * np.where(place < -_FAR, -1 / np.minimum(place, -_FAR), above))

    largest = float(values.max())
    by = brentq(lambda by: float(moved(by).sum()) - 1, largest - 1, largest + len(values) * noise**2 + noise)
    shares = np.maximum(moved(by), 0.0)
    return np.asarray(shares / shares.sum())

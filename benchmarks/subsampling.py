"""The noise of DP-SGD with Poisson subsampling for replaced rows, as little as any accountant could allow.

Every step takes each row with probability q and adds N(0, s^2 c^2) to the sum of gradients of length at most c. Replace
a row by one whose gradient is the opposite, all other gradients being 0: along it a step is

    P = (1 - q) N(0, s^2) + q N(1, s^2)    against    Q = (1 - q) N(0, s^2) + q N(-1, s^2)

in units of c. Steps compose to the sum of their privacy losses ``log P / Q``, whose law is found by Fourier transforms
on a grid (Koskela, Jalko and Honkela, 2020), and ``delta(epsilon) = E[(1 - exp(epsilon - loss))+]``. Another pair may
be worse (Lebeda, Regehr, Kamath and Steinke, 2024). DP-SGD therefore needs at least this noise; it is a peer here, not
a method of the library, and never at a disadvantage.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.fft import irfft, rfft
from scipy.special import ndtr

from dpregress import ApproxDP

#: Losses beyond are no budget's; so many cells of the grid, points of the output, standard deviations that it reaches.
_FARTHEST, _CELLS, _POINTS, _REACH = 30.0, 2**18, 100_000, 12.0
_HALVINGS = 18


@lru_cache(maxsize=128)
def noise_of(share: float, steps: int, epsilon: float, delta: float) -> float:
    """The smallest s, to .01%, at which so many steps with batches of this share are private for the pair.

    Parameters
    ----------
    share : float
        q, above 0 and at most 1.
    steps : int
    epsilon, delta : float

    Returns
    -------
    s : float
        Standard deviation of the noise in multiples of the clip; 2 sqrt(steps) / mu with ``share=1``.

    Examples
    --------
    >>> round(noise_of(1.0, 9, 1.0, 1e-6) * ApproxDP(1.0, 1e-6).gaussian_mu / 6, 3)
    1.0
    """
    full = 2 * math.sqrt(steps) / ApproxDP(epsilon, delta).gaussian_mu
    low, high = 0.3 * share * full, 2.0 * full
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle, share, steps, epsilon) > delta else (low, middle)
    return high


def spent(s: float, share: float, steps: int, epsilon: float) -> float:
    """The delta at epsilon of so many steps with noise s."""
    edges = np.linspace(-1 - _REACH * s, 1 + _REACH * s, _POINTS)
    mass = (1 - share) * np.diff(ndtr(edges / s)) + share * np.diff(ndtr((edges - 1) / s))
    middle = (edges[1:] + edges[:-1]) / 2
    rest = math.log1p(-share) if share < 1 else -math.inf
    over, under = (np.logaddexp(rest, math.log(share) + (sign * middle - 0.5) / s**2) for sign in (1, -1))
    width = 2 * _FARTHEST / _CELLS
    cells = np.clip(np.rint((over - under) / width).astype(int) + _CELLS // 2, 0, _CELLS - 1)
    law = np.fft.ifftshift(np.bincount(cells, mass, minlength=_CELLS))
    composed = np.fft.fftshift(irfft(rfft(law) ** steps, _CELLS))
    loss = (np.arange(_CELLS) - _CELLS // 2) * width
    return float(-np.expm1(epsilon - loss[loss > epsilon]) @ composed[loss > epsilon])

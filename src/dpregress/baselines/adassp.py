r"""AdaSSP: perturbed sufficient statistics with a ridge chosen from a private smallest eigenvalue."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector, svec
from dpregress.mechanisms import Sampler, SeededSampler

#: Probability that the ridge is smaller than the noise.
_FAILURE = 0.05


@dataclass(frozen=True)
class AdaSSPNoise:
    """What depends on the neighbours and the calibration: the noise of the three releases, and what the ridge assumes.

    Parameters
    ----------
    eigenvalue, gram, cross : float
        Standard deviations of the noise on the smallest eigenvalue of X'X, on X'X and on X'y.
    margin : float
        How many standard deviations are taken off the noisy eigenvalue.
    entry : float
        Standard deviation of an entry of the noise on X'X, as the bound on its spectral norm takes it.
    isometric : bool, default=True
        Whether the noise is added to svec of X'X or, with the same deviation on and above the diagonal, to X'X itself.
    """

    eigenvalue: float
    gram: float
    cross: float
    margin: float
    entry: float
    isometric: bool = True


def adassp(x: Matrix, y: Vector, *, mu: float, radius: float, bound: float, rng: np.random.Generator) -> Vector:
    r"""AdaSSP (see :func:`ridge_of_noisy_moments`), mu-GDP for replacing one row.

    Three releases at ``mu/sqrt 3`` each, with the exact Gaussian calibration: the smallest eigenvalue (sensitivity
    ``R^2``), svec of X'X (``sqrt 2 R^2``) and X'y (``2 R C``).

    Parameters
    ----------
    x : ndarray of shape (n, p)
        With a column of ones where there is to be an intercept; whiten before for the whitened variant.
    y : ndarray of shape (n,)
    mu : float
    radius, bound : float
        Public bounds on the norm of a row and on a response; what lies beyond is clipped.
    rng : numpy Generator
        For simulations: whoever knows its seed can take the noise off.

    References
    ----------
    Wang (2018), Revisiting differentially private linear regression, Algorithm 2.
    """
    part = mu / math.sqrt(3)
    gram = math.sqrt(2) * radius**2 / part
    noise = AdaSSPNoise(
        eigenvalue=radius**2 / part,
        gram=gram,
        cross=2 * radius * bound / part,
        margin=math.sqrt(2 * math.log(1 / _FAILURE)),
        entry=gram / math.sqrt(2),
    )
    return ridge_of_noisy_moments(*bounded(x, y, radius, bound), noise, SeededSampler(rng))


def ridge_of_noisy_moments(x: Matrix, y: Vector, noise: AdaSSPNoise, sampler: Sampler) -> Vector:
    r"""Coefficients ``(X'X + N + lam I)^{-1} (X'y + e)``, of minimum norm where they are not unique.

    ``lam`` makes up for what the noisy smallest eigenvalue, less its margin, lacks of the spectral norm of N. That norm
    is at most ``s sqrt(p log(2 p^2 / 0.05))`` with probability 0.95, for entries of standard deviation s.

    Parameters
    ----------
    x : ndarray of shape (n, p)
        Rows within the bound that ``noise`` was made for.
    y : ndarray of shape (n,)
        Responses within theirs.
    noise : AdaSSPNoise
    sampler : Sampler

    Returns
    -------
    coef : ndarray of shape (p,)
    """
    p = x.shape[1]
    gram = x.T @ x
    smallest = np.array([max(float(np.linalg.eigvalsh(gram)[0]), 0.0)])
    floor = max(float(sampler.add_gaussian(smallest, noise.eigenvalue)[0]) - noise.margin * noise.eigenvalue, 0.0)
    ridge = max(math.sqrt(p * math.log(2 * p**2 / _FAILURE)) * noise.entry - floor, 0.0)
    drawn = sampler.add_gaussian(np.zeros(svec.length(p)), noise.gram)
    noisy = gram + (svec.unsvec if noise.isometric else svec.un_upper)(drawn, p)
    cross = sampler.add_gaussian(x.T @ y, noise.cross)
    return np.asarray(np.linalg.lstsq(noisy + ridge * np.eye(p), cross, rcond=None)[0])


def bounded(x: Matrix, y: Vector, radius: float, bound: float) -> tuple[Matrix, Vector]:
    """Rows of norm at most ``radius`` and responses within ``+-bound``, each clipped on its own."""
    norms = np.maximum(np.linalg.norm(x, axis=1), 1e-300)
    return x * np.minimum(1.0, radius / norms)[:, None], np.clip(y, -bound, bound)

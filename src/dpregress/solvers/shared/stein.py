r"""Stein's constant: the ratio of the coefficients of a model to those of least squares.

For normal x and a mean response ``m(x'w)``, ``E[x y] = E[m'(x'w)] E[xx'] w``: the coefficients are ``c w_ols`` with
c the root of ``1 = c E[m'(c x'w_ols)]``. Only c depends on the model, so one release serves any number of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from dpregress.coordinates import Vector
from dpregress.errors import NoScaleWarning

#: The largest root mean square of the scaled predictor in the search.
_REACH = 10.0
_SMALLEST, _STEPS_PER_OCTAVE = 2.0**-20, 4
#: A normal predictor is represented by this many of its quantiles.
_QUANTILES = 1001
#: Without a root: the smallest scale whose value is this close to the best.
_NEAR = 0.99


@dataclass(frozen=True)
class Scale:
    """Stein's constant, and whether it is a root; otherwise it follows from the rule of :func:`stein_scale`."""

    value: float
    root: bool


def stein_scale(slope: Callable[[Vector], Vector], predictor: Vector) -> Scale:
    r"""The root c of ``1 = c mean(m'(c z))`` that is nearest to 0, found in a bracket.

    Both signs are searched, up to a root mean square of 10 for ``c z``. If there is no root, because noise made z
    longer than the model can explain, the answer is the smallest c, of the sign that comes closest, at which
    ``c mean(m'(c z))`` is within 1% of its largest value.

    Parameters
    ----------
    slope : callable
        ``m'``, elementwise: ``Phi''`` of a loss, ``f'`` of a link.
    predictor : ndarray of shape (m,)
        ``z = x'w_ols`` of public rows.

    References
    ----------
    Wang, Hu, Zhang, Gaboardi, Xu (2023), Lemma 5 and Theorem 18.

    Examples
    --------
    >>> stein_scale(lambda z: 0.5 * np.ones_like(z), np.array([1.0, -1.0]))
    Scale(value=2.0, root=True)
    """
    size = float(np.sqrt(np.mean(predictor**2)))
    largest = _REACH / max(size, 1e-6)

    def reached(scale: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            found = scale * float(np.mean(slope(scale * predictor)))
        return found if math.isfinite(found) else math.inf

    octaves = max(math.ceil(math.log2(largest / _SMALLEST) * _STEPS_PER_OCTAVE), 2)
    grid = np.geomspace(_SMALLEST, largest, octaves + 1)
    curves = {sign: [reached(sign * scale) for scale in grid] for sign in (1.0, -1.0)}
    crossings = [
        (int(np.argmax(np.array(curve) >= 1)), sign) for sign, curve in curves.items() if max(curve) >= 1
    ]  # fmt: skip
    if crossings:
        at, sign = min(crossings, key=lambda crossing: crossing[0])
        if at == 0:
            return Scale(sign * float(grid[0]), False)
        root = brentq(lambda scale: min(reached(sign * scale), 1e9) - 1, grid[at - 1], grid[at], xtol=1e-14)
        return Scale(sign * float(root), True)
    sign = max(curves, key=lambda each: max(curves[each]))
    best = max(curves[sign])
    return Scale(sign * float(grid[int(np.argmax(np.array(curves[sign]) >= _NEAR * best))]), False)


def scaled_coefficients(slope: Callable[[Vector], Vector], predictor: Vector, coef: Vector) -> Vector:
    """``c w_ols``; warns with :class:`~dpregress.errors.NoScaleWarning` where c is no root.

    Parameters
    ----------
    slope, predictor
        As in :func:`stein_scale`.
    coef : ndarray of shape (p,)
        ``w_ols``.
    """
    scale = stein_scale(slope, predictor)
    if not scale.root:
        warnings.warn(
            "Stein's equation has no root: the noise is larger than the signal; "
            f"the scale {scale.value:.3g} comes nearest. Spend more, or collect more",
            NoScaleWarning,
            stacklevel=3,
        )
    return np.asarray(scale.value * coef)


def logistic_scale(mean: float, spread: float) -> tuple[Scale, float]:
    r"""Logistic coefficients from the least squares fit of labels 0 and 1, for a normal predictor.

    With z the least squares predictor less its mean, ``P(y = 1) = g(b + c z)`` with the logistic function g implies

        1 = c E[g'(b + c z)],        mean = E[g(b + c z)],        z ~ N(0, spread^2),

    which has a root if ``spread < phi(Phi^{-1}(mean))``; a normal predictor cannot explain labels better than that.

    Parameters
    ----------
    mean : float
        Share of ones, strictly between 0 and 1.
    spread : float
        Standard deviation of the least squares predictor.

    Returns
    -------
    scale : Scale
        c; without a root by the rule of :func:`stein_scale`.
    level : float
        b.

    References
    ----------
    Brillinger (1982), A generalized linear model with "Gaussian" regressor variables.

    Examples
    --------
    >>> scale, level = logistic_scale(0.5, 0.0)
    >>> round(scale.value, 6), abs(level) < 1e-9  # a weak signal: the slope of g at 0 is 1/4
    (4.0, True)
    """
    z = spread * ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)

    def level(predictor: Vector) -> float:
        reach = 1 + abs(math.log(mean / (1 - mean))) + float(np.abs(predictor).max())
        return float(brentq(lambda b: float(expit(b + predictor).mean()) - mean, -reach, reach, xtol=1e-12))

    def slope(predictor: Vector) -> Vector:
        found = expit(level(predictor) + predictor)
        return np.asarray(found * (1 - found))

    scale = stein_scale(slope, z)
    return scale, level(scale.value * z)

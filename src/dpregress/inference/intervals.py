"""Standard errors, t ratios, p-values and intervals of single coefficients.

For a coefficient that is not identified all of them are NaN.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, one_line
from dpregress.releases import Estimates

LEVEL = 0.95
#: From here on a number without a name may be meant as a level.
_LEAST_LEVEL = 0.5
#: From here on a t distribution is the normal one to all digits that matter.
_NORMAL = 1e8


def checked_level(level: float | None = None, alpha: float | None = None, significance: float | None = None) -> float:
    """The confidence level, from itself or from ``alpha = 1 - level``; 95% without either.

    Parameters
    ----------
    level, alpha : float, optional
    significance : float, optional
        What was given by position: alpha, as in statsmodels, if it can hardly be meant as a level.

    Raises
    ------
    InvalidInput
        For more than one of them, or for a number that is not between 0 and 1.
    """
    if sum(given is not None for given in (level, alpha, significance)) > 1:
        raise InvalidInput("give level= or alpha= (1 - level), not both")
    alpha = alpha if significance is None else significance
    name, given = ("level", LEVEL if level is None else level) if alpha is None else ("alpha", alpha)
    try:
        share = float(given)
    except (TypeError, ValueError, OverflowError):
        share = float("nan")
    if not 0 < share < 1:
        raise InvalidInput(f"{name}= takes a number between 0 and 1, not {one_line(given)}")
    if significance is not None and share >= _LEAST_LEVEL:
        raise InvalidInput(
            f"a number without a name is alpha, as in statsmodels: write level={share:g} or alpha={share:g}"
        )
    return share if alpha is None else 1 - share


def critical_values(df: Vector, level: float) -> Vector:
    """Quantiles of t distributions that intervals of this level take; normal ones where df is large."""
    tail = 0.5 + level / 2
    return np.asarray(np.where(df > _NORMAL, ndtri(tail), stdtrit(np.minimum(df, _NORMAL), tail)))


def interval_ends(level: float) -> tuple[str, str]:
    """Headers of the ends of intervals."""
    tail = (1 - level) / 2
    return f"[{tail:.4g}", f"{1 - tail:.4g}]"


def ratio_of(df: float) -> str:
    """What an estimate over its standard error is called."""
    return "z" if np.isinf(df) else "t"


def normal_reach(level: float | None, alpha: float | None, significance: float | None = None) -> float:
    """Standard errors on either side of a normal estimate in an interval of this level, or of level 1 - alpha."""
    return float(critical_values(np.array(np.inf), checked_level(level, alpha, significance)))


def two_sided(ratio: Vector, df: Vector) -> Vector:
    """Two-sided p-values of t ratios; normal ones where df is large."""
    below = -np.abs(ratio)
    return np.asarray(2 * np.where(df > _NORMAL, ndtr(below), stdtr(np.minimum(df, _NORMAL), below)))


def masked_covariance(estimates: Estimates, covariance: Matrix) -> Matrix:
    """A covariance of the estimates with NaN in the rows and columns of coefficients that are not identified."""
    known = estimates.identified
    return np.where(np.outer(known, known), covariance, np.nan)


def standard_errors(estimates: Estimates, covariance: Matrix | None = None) -> Vector:
    """Standard deviations of the estimates, of shape (k,).

    Parameters
    ----------
    estimates : Estimates
    covariance : ndarray of shape (k, k), optional
        ``estimates.sampling`` or ``estimates.privacy``; default: of both together.
    """
    found = estimates.covariance if covariance is None else covariance
    return np.sqrt(np.maximum(np.diag(masked_covariance(estimates, found)), 0.0))


def t_ratios(estimates: Estimates) -> Vector:
    """Estimates over their standard errors, of shape (k,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(estimates.estimate / standard_errors(estimates))


def p_values(estimates: Estimates) -> Vector:
    """Two-sided p-values of the hypotheses that a coefficient is 0, of shape (k,)."""
    return two_sided(t_ratios(estimates), estimates.degrees_of_freedom)


def intervals(estimates: Estimates, level: float) -> Matrix:
    """Lower and upper ends of confidence intervals, of shape (k, 2)."""
    reach = critical_values(estimates.degrees_of_freedom, level) * standard_errors(estimates)
    return np.column_stack([estimates.estimate - reach, estimates.estimate + reach])

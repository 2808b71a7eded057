"""Coefficients in original units, from whitened ones and their covariances."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.inference.linear import in_original_units
from dpregress.releases import Coefficients


def original_coefficients(
    space: WhitenedSpace,
    whitened: Vector,
    *,
    target: str,
    n: int,
    privacy: Matrix | None = None,
    total: Matrix | None = None,
) -> Coefficients:
    """Whitened coefficients and their standard errors in the units of the columns.

    Parameters
    ----------
    space : WhitenedSpace
    whitened : ndarray of shape (p,)
    target : str
    n : int
    privacy, total : ndarray of shape (p, p), optional
        Covariances of the whitened coefficients: due to privacy noise, and in total. Standard errors are NaN if these
        are not known.
    """
    coef, intercept = space.pull_back(whitened)
    unknown = np.full(len(coef), np.nan)
    return Coefficients(
        features=space.features,
        coef=coef,
        intercept=intercept,
        target=target,
        n=n,
        privacy_error=unknown if privacy is None else in_original_units(privacy, space),
        standard_error=unknown if total is None else in_original_units(total, space),
        fill=space.fill,
    )

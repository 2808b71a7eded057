"""Intervals of mean responses and of new responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.inference.intervals import critical_values
from dpregress.models import Family
from dpregress.releases import Estimates
from dpregress.releases.estimates import INTERCEPT

#: Of the mean response, or of a new response.
IntervalKind = Literal["mean", "prediction"]


@dataclass(frozen=True, eq=False)
class PredictedIntervals:
    """Mean responses by the unshrunk estimate, with intervals.

    Parameters
    ----------
    mean : ndarray of shape (m,)
    lower, upper : ndarray of shape (m,)
        NaN for a row that a coefficient enters which is not identified.
    interval : {"mean", "prediction"}
        Whether they cover the mean response, or a new response.
    level : float
    """

    mean: Vector
    lower: Vector
    upper: Vector
    interval: IntervalKind
    level: float

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each prediction, under statsmodels' names."""
        import pandas as pd

        prefix = "mean_ci" if self.interval == "mean" else "obs_ci"
        return pd.DataFrame({"mean": self.mean, f"{prefix}_lower": self.lower, f"{prefix}_upper": self.upper})


def predicted_intervals(
    estimates: Estimates,
    x: Matrix,
    family: Family,
    *,
    interval: IntervalKind,
    level: float,
    offset: Vector | float = 0.0,
) -> PredictedIntervals:
    """Intervals for rows.

    Those of the mean are ``eta +- q sqrt(x'Vx)`` on the scale of the linear predictor, carried to the scale of the
    response by the link. Those of a new response, for the gaussian family, add the residual variance and take its
    distribution as normal.

    Parameters
    ----------
    estimates : Estimates
        Of one linear predictor.
    x : ndarray of shape (m, d)
        Without missing cells.
    family : Family
    interval : {"mean", "prediction"}
    level : float
    offset : float or ndarray of shape (m,)
        Added to the linear predictor.

    Raises
    ------
    InvalidInput
        For new responses, where the family is not gaussian or the residual variance was not released.
    """
    rows = np.column_stack([np.ones(len(x)), x]) if INTERCEPT in estimates.names else x
    eta = rows @ estimates.estimate + offset
    variance = np.maximum(np.einsum("mi,ij,mj->m", rows, estimates.covariance, rows), 0.0)
    unknown = (rows[:, ~estimates.identified] != 0).any(axis=1)
    critical = critical_values(estimates.df_along(rows), level)
    reach = np.where(unknown, np.nan, critical * np.sqrt(variance))
    mean = family.mean(eta)
    if interval == "mean":
        ends = np.sort(np.stack([family.mean(eta - reach), family.mean(eta + reach)]), axis=0)
        return PredictedIntervals(mean, ends[0], ends[1], interval, level)
    if family.distribution.name != "gaussian":
        raise InvalidInput(
            f"intervals of new responses need their distribution, and a {family.distribution.name} fit models their "
            'mean only: ask for interval="mean"'
        )
    if estimates.dispersion is None:
        raise InvalidInput(
            'intervals of new responses need the residual variance, which this fit did not release: interval="mean"'
        )
    width = critical * np.sqrt(family.slope(eta) ** 2 * variance + estimates.dispersion)
    width = np.where(unknown, np.nan, width)
    return PredictedIntervals(mean, mean - width, mean + width, interval, level)

"""Intervals of mean responses and of new responses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logsumexp, softmax

from dpregress.coordinates import Matrix, Vector
from dpregress.display import UNIDENTIFIED, ShownInShort, how_many, text_table
from dpregress.errors import InvalidInput
from dpregress.inference.intervals import critical_values, interval_ends
from dpregress.models import MULTINOMIAL, Family
from dpregress.releases import ANYWHERE, Estimates
from dpregress.releases.estimates import INTERCEPT

#: Of the mean response, or of a new response.
IntervalKind = Literal["mean", "prediction"]
#: Rows that are printed.
_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class PredictedIntervals(ShownInShort):
    """Mean responses by the unshrunk estimate, with intervals.

    Parameters
    ----------
    mean : ndarray of shape (m,)
        For several classes their probabilities, of shape (m, K); so are the ends.
    lower, upper : ndarray of shape (m,)
        NaN for a row that a coefficient enters which is not identified.
    interval : {"mean", "prediction"}
        Whether they cover the mean response, or a new response.
    level : float
    classes : tuple of str
        Of more than two classes; otherwise empty.
    """

    mean: Vector
    lower: Vector
    upper: Vector
    interval: IntervalKind
    level: float
    classes: tuple[str, ...] = ()

    def _in_short(self) -> str:
        return f"of {how_many(len(self.mean), 'row')}: {self.interval}, level {self.level:g}"

    def __str__(self) -> str:
        """The first rows as a table; for several classes a line for each class of a row."""
        names, columns = list(map(str, range(len(self.mean)))), (self.mean, self.lower, self.upper)
        if self.classes:
            names = [f"{name} {each}" for name in names[:_SHOWN] for each in self.classes]
        shown = list(zip(names, *(each[:_SHOWN].ravel().tolist() for each in columns), strict=False))
        rows = [[name, f"{mean:.6g}", *_ends_in_words(*ends)] for name, mean, *ends in shown]
        what = "mean responses" if self.interval == "mean" else "new responses"
        said = f"{how_many(len(self.mean), 'row')}; intervals of {what}, level {self.level:g}"
        more = f" (the first {_SHOWN} are shown: to_frame() has all)" if len(self.mean) > _SHOWN else ""
        return f"{text_table(('', 'mean', *interval_ends(self.level)), rows)}\n{said}{more}"

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each prediction, under statsmodels' names.

        For several classes the first level of its columns is the class.
        """
        import pandas as pd

        prefix = "mean_ci" if self.interval == "mean" else "obs_ci"
        columns = {"mean": self.mean, f"{prefix}_lower": self.lower, f"{prefix}_upper": self.upper}
        if not self.classes:
            return pd.DataFrame(columns)
        each = [pd.DataFrame({name: found[:, k] for name, found in columns.items()}) for k in range(len(self.classes))]
        return pd.concat(each, axis=1, keys=list(self.classes))


def predicted_intervals(
    estimates: Estimates,
    x: Matrix,
    family: Family,
    *,
    interval: IntervalKind,
    level: float,
    offset: Vector | float = 0.0,
    limits: tuple[float, float] = ANYWHERE,
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
    limits : (float, float)
        Linear predictors without the offset, and their intervals, are kept between these; so are new responses, on the
        scale of the response.

    Raises
    ------
    InvalidInput
        For new responses, where the family is not gaussian or the residual variance was not released.
    """
    rows = _with_constant(x) if INTERCEPT in estimates.names else x
    eta = rows @ estimates.estimate
    variance = np.maximum(np.einsum("mi,ij,mj->m", rows, estimates.covariance, rows), 0.0)
    unknown = (rows[:, ~estimates.identified] != 0).any(axis=1)
    critical = critical_values(estimates.df_along(rows), level)
    reach = np.where(unknown, np.nan, critical * np.sqrt(variance))
    mean, *ends = (family.mean(np.clip(found, *limits) + offset) for found in (eta, eta - reach, eta + reach))
    if interval == "mean":
        lower, upper = np.sort(np.stack(ends), axis=0)
        return PredictedIntervals(mean, lower, upper, interval, level)
    if family.distribution.name != "gaussian":
        raise InvalidInput(_mean_only(family.distribution.name))
    if estimates.dispersion is None:
        raise InvalidInput(
            'intervals of new responses need the residual variance, which this fit did not release: interval="mean"'
        )
    width = critical * np.sqrt(family.slope(eta + offset) ** 2 * variance + estimates.dispersion)
    width = np.where(unknown, np.nan, width)
    least, most = (family.mean(np.asarray(end + offset)) if np.isfinite(end) else end for end in limits)
    lower, upper = (np.clip(end, least, most) for end in (mean - width, mean + width))
    return PredictedIntervals(mean, lower, upper, interval, level)


def class_intervals(
    estimates: Estimates, x: Matrix, classes: tuple[str, ...], *, interval: IntervalKind, level: float
) -> PredictedIntervals:
    """Intervals of the probabilities of several classes, each by itself.

    With ``p = softmax(eta)`` and ``l_k = logit p_k``, ``d l_k = d eta_k - sum_{j != k} w_j d eta_j`` with
    ``w_j = p_j / (1 - p_k)``: the delta method. Intervals are ``l_k +- q sd(l_k)``, carried to probabilities, so that
    they lie between 0 and 1.

    Parameters
    ----------
    estimates : Estimates
        Class by class.
    x : ndarray of shape (m, d)
        Without missing cells.
    classes : tuple of str
        The K of them.
    interval : {"mean"}
    level : float

    Raises
    ------
    InvalidInput
        For new responses.
    """
    if interval != "mean":
        raise InvalidInput(_mean_only(MULTINOMIAL))
    width = len(estimates.names) // len(classes)
    rows = _with_constant(x) if width > x.shape[1] else x
    eta = rows @ estimates.estimate.reshape(len(classes), width).T
    known = estimates.identified.reshape(len(classes), width).all(axis=0)
    unknown = (rows[:, ~known] != 0).any(axis=1)
    ends = [_ends_of_class(estimates, rows, eta, k, level) for k in range(len(classes))]
    lower, upper = (np.where(unknown[:, None], np.nan, np.column_stack(side)) for side in zip(*ends, strict=True))
    return PredictedIntervals(np.asarray(softmax(eta, axis=1)), lower, upper, interval, level, classes)


def _ends_of_class(estimates: Estimates, rows: Matrix, eta: Matrix, k: int, level: float) -> tuple[Vector, Vector]:
    """The ends for one class, each of shape (m,)."""
    others = np.delete(eta, k, axis=1)
    logit = eta[:, k] - logsumexp(others, axis=1)
    weights = np.insert(-softmax(others, axis=1), k, 1.0, axis=1)
    gradient = (weights[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    variance = np.maximum(np.einsum("mi,ij,mj->m", gradient, estimates.covariance, gradient), 0.0)
    reach = critical_values(estimates.df_along(gradient), level) * np.sqrt(variance)
    return np.asarray(expit(logit - reach)), np.asarray(expit(logit + reach))


def _ends_in_words(lower: float, upper: float) -> list[str]:
    return [UNIDENTIFIED, ""] if math.isnan(lower) else [f"{lower:.6g}", f"{upper:.6g}"]


def _with_constant(x: Matrix) -> Matrix:
    return np.column_stack([np.ones(len(x)), x])


def _mean_only(family: str) -> str:
    """Why a family has no intervals of new responses."""
    return (
        f"intervals of new responses need their distribution, and a {family} fit models their mean only: "
        'ask for interval="mean"'
    )

r"""How well a model fits, from a paid diagnosis: ROC curve, AUC, calibration, Brier score, deviance, residuals.

Every number has a standard error that covers the sampling of rows and the privacy noise of the diagnosis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from dpregress.accounting import PrivacyStatement
from dpregress.coordinates import Matrix, Vector
from dpregress.display import ShownInShort, text_table
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.inference.intervals import standard_errors
from dpregress.json_files import DAMAGED
from dpregress.models import family_of
from dpregress.releases import Estimates

#: Points at which a chi-square is convolved with the noise of a likelihood ratio.
_POINTS = 4000


class Measured(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(ShownInShort):
    """A paid diagnosis of a fitted model on private rows.

    Parameters
    ----------
    family, link : str
    n : float
        Rows with a usable response, as released.
    edges : ndarray of shape (bins - 1,)
        Inner ends of the bins of the linear predictor.
    predicted : ndarray of shape (bins,)
        Mean predictions.
    table : ndarray of shape (bins, 3)
        The released sums: of two classes their numbers and the position in the bin; otherwise the number of rows, and
        the sums of r and of ``2 r^2 - 1``, r the Pearson residual over ``scale``, clipped to [-1, 1].
    sigma : float
        The standard deviation of the noise in each entry.
    scale : float or None
        None for two classes.
    dispersion : float
        At which the log-likelihood is taken; None of a family is estimated by the diagnosis.
    parameters : int
        Coefficients of the model.
    deviance_, null_, saturated_ : tuple of (float, float)
        Sums of unit deviances of the model and of the model without features, and the log-likelihood of a perfect fit,
        each with the standard deviation of its noise.
    shortened : tuple of (float, float) or None
        The share of rows outside the truncation radius of the fit, and its standard error.
    privacy : PrivacyStatement or None
        The guarantee of a diagnosis that was paid for by itself; None for one within the budget of a fit.
    """

    family: str
    link: str
    n: float
    edges: Vector
    predicted: Vector
    table: Matrix
    sigma: float
    scale: float | None
    dispersion: float
    parameters: int
    deviance_: tuple[float, float]
    null_: tuple[float, float]
    saturated_: tuple[float, float]
    shortened: tuple[float, float] | None = None
    privacy: PrivacyStatement | None = None

    def measures(self) -> list[tuple[str, float, float]]:
        """The numbers of this diagnosis by their names, with their standard errors."""
        found = [("deviance", *self.deviance), ("deviance explained", *self.explained), ("AIC", *self.aic)]
        if self.scale is None:
            found = [("AUC", *self.auc), ("Brier score", *self.brier), *found]
        if self.shortened is not None:
            found.append(("share of rows downweighted", *self.shortened))
        return found

    def _in_short(self) -> str:
        value, error = self.deviance_
        return f"of {self.family}, {self.link} link: deviance {value:.4g} (s.e. {error:.2g})"

    def __str__(self) -> str:
        rows = [[name, f"{value:.6g}", f"{error:.4g}"] for name, value, error in self.measures()]
        return text_table(("", "estimate", "std. error"), rows)

    # ------------------------------------------------------------- likelihood

    @property
    def deviance(self) -> Measured:
        """The sum of unit deviances, as statsmodels has it, with the standard deviation of its privacy noise."""
        return Measured(*self.deviance_)

    @property
    def explained(self) -> Measured:
        """The share of the deviance without features that the model explains."""
        (whole, noise), (null, other) = self.deviance_, self.null_
        share = whole / null
        return Measured(1 - share, math.hypot(noise / null, share * other / null))

    @property
    def llf(self) -> Measured:
        """The log-likelihood at the predicting coefficients, with the standard deviation of its privacy noise.

        The dispersion of a gaussian model is the maximum-likelihood estimate; that of others is the fit's.
        """
        deviance, noise = self.deviance_
        if self.family == "gaussian":
            mean = max(deviance / self.n, 1e-300)
            return Measured(-self.n / 2 * (math.log(2 * math.pi * mean) + 1), noise / (2 * mean))
        saturated, other = self.saturated_
        return Measured(saturated - deviance / (2 * self.dispersion), math.hypot(noise / (2 * self.dispersion), other))

    @property
    def aic(self) -> Measured:
        """``2 k - 2 llf``, k the number of coefficients."""
        found = self.llf
        return Measured(2 * self.parameters - 2 * found.value, 2 * found.error)

    @property
    def bic(self) -> Measured:
        """``k log n - 2 llf``."""
        found = self.llf
        return Measured(self.parameters * math.log(max(self.n, 1.0)) - 2 * found.value, 2 * found.error)

    # ------------------------------------------------------------- bins

    @property
    def rows(self) -> Vector:
        """Rows of each bin, at least one standard deviation of the noise."""
        found = self.table[:, :2].sum(axis=1) if self.scale is None else self.table[:, 0]
        return np.asarray(np.maximum(found, max(self.sigma, 1.0)))

    def calibration(self) -> Matrix:
        """Mean prediction, mean response and the standard error of the latter, bin by bin, of shape (bins, 3)."""
        rows = self.rows
        if self.scale is None:
            first, second = self._classes()
            mean = second / (first + second)
            noise = self.sigma * np.sqrt((1 - mean) ** 2 + mean**2) / rows
            return np.column_stack([self.predicted, mean, np.hypot(noise, np.sqrt(mean * (1 - mean) / rows))])
        spread = self.residuals()
        deviation = np.sqrt(family_of(self.family, self.link).distribution.variance(self.predicted))
        return np.column_stack([self.predicted, self.predicted + deviation * spread[:, 1], deviation * spread[:, 2]])

    def residuals(self) -> Matrix:
        """The spread of Pearson residuals against fitted values, bin by bin, of shape (bins, 5).

        The columns are the mean prediction, the mean residual and its standard error, and the root mean square of the
        residuals and its standard error.
        """
        rows = self.rows
        if self.scale is None:
            mean, observed, error = self.calibration().T
            deviation = np.sqrt(np.maximum(mean * (1 - mean), 1e-12))
            square = np.maximum(observed * (1 - mean) ** 2 + (1 - observed) * mean**2, 1e-12) / deviation**2
            root = np.sqrt(square)
            return np.column_stack(
                [mean, (observed - mean) / deviation, error / deviation, root,
                 np.abs(1 - 2 * mean) * error / deviation**2 / (2 * root)]
            )  # fmt: skip
        _, sums, squares = self.table.T
        mean = np.clip(sums / rows, -1.0, 1.0)
        square = np.clip((squares / rows + 1) / 2, 0.0, 1.0)
        noise = self.sigma / rows
        mean_error = np.sqrt(noise**2 * (1 + mean**2) + np.maximum(square - mean**2, 0) / rows)
        # the fourth moment of r is at most its second
        square_error = np.sqrt(noise**2 * (1 + (2 * square - 1) ** 2) / 4 + square * (1 - square) / rows)
        root = np.sqrt(np.maximum(square, square_error / 4))
        return np.column_stack(
            [self.predicted, self.scale * mean, self.scale * mean_error, self.scale * root,
             self.scale * square_error / (2 * root)]
        )  # fmt: skip

    # ------------------------------------------------------------- two classes

    def _classes(self) -> tuple[Vector, Vector]:
        """Numbers of both classes by bin, not negative."""
        if self.scale is not None:
            raise NotAvailable("ROC, AUC and Brier score are of models with two classes")
        floor = 0.5 / len(self.table)
        return np.maximum(self.table[:, 0], floor), np.maximum(self.table[:, 1], floor)

    @property
    def auc(self) -> Measured:
        """The area under the ROC curve: the probability that a row of the second class is predicted higher.

        Rows of one bin count half, plus what calibrated predictions within the bin add; a half of that is counted in
        the standard error.
        """
        first, second = self._classes()
        _, _, below, above, zeros, ones = self._ranks(first, second)
        area = float(second @ below) / ones
        privacy = (below - area) ** 2 / ones**2 + (above - area) ** 2 / zeros**2
        sampling = (
            float(second @ (below - area) ** 2) / ones**2 + float(first @ (above - area) ** 2) / zeros**2
        )  # DeLong, DeLong and Clarke-Pearson (1988)
        within = float(np.sum(first / zeros * second / ones * self._widths() / 12))
        error = math.sqrt(self.sigma**2 * float(np.sum(privacy)) + sampling + (within / 2) ** 2)
        return Measured(min(max(area + within, 0.0), 1.0), error)

    def roc(self) -> Matrix:
        """The ROC curve at the ends of the bins: false and true positive rates, of shape (bins + 1, 2)."""
        first, second = self._classes()
        rates = [np.append(0.0, np.cumsum(each[::-1]) / each.sum()) for each in (first, second)]
        return np.column_stack(rates)

    @property
    def brier(self) -> Measured:
        """The mean squared difference between response and predicted probability."""
        first, second = self._classes()
        mean, rows = self.predicted, float(np.sum(first + second))
        within = np.minimum(self._widths() * mean * (1 - mean), 0.5) ** 2 / 12
        value = float(first @ mean**2 + second @ (1 - mean) ** 2 - (first + second) @ within) / rows
        privacy = float(np.sum((mean**2 - value) ** 2 + ((1 - mean) ** 2 - value) ** 2)) * (self.sigma / rows) ** 2
        square = float(first @ mean**4 + second @ (1 - mean) ** 4) / rows
        return Measured(value, math.sqrt(privacy + max(square - value**2, 0.0) / rows))

    @staticmethod
    def _ranks(first: Vector, second: Vector) -> tuple[Vector, Vector, Vector, Vector, float, float]:
        """Numbers of both classes, the share of the first class below a bin and of the second above, and totals."""
        zeros, ones = float(first.sum()), float(second.sum())
        below = (np.cumsum(first) - first / 2) / zeros
        above = (ones - np.cumsum(second) + second / 2) / ones
        return first, second, below, above, zeros, ones

    def _widths(self) -> Vector:
        """Widths of bins in log odds; the outer bins are as wide as two of their neighbours."""
        family = family_of(self.family, self.link)
        ends = family.mean(self.edges)
        inner = np.diff(np.log(ends / (1 - ends))) if len(ends) > 1 else np.zeros(0)
        outer = 2 * inner[[0, -1]] if len(inner) else np.ones(2)
        return np.concatenate([outer[:1], inner, outer[1:]])

    # ------------------------------------------------------------- files

    def encode(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found: dict[str, Any] = {}
        for name, value in vars(self).items():
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            found[name] = list(plain) if isinstance(plain, tuple) else plain
        return {**found, "privacy": None if self.privacy is None else self.privacy.encode()}

    @classmethod
    def decode(cls, record: Mapping[str, Any]) -> Self:
        """Read back what :meth:`encode` wrote.

        Raises
        ------
        InvalidInput
            For numbers that do not fit together.
        """
        known = {field.name for field in fields(cls)}
        given = {name: value for name, value in record.items() if name in known}
        edges, predicted, table = (np.array(given[name], dtype=np.float64) for name in ("edges", "predicted", "table"))
        deviance, null, saturated = (
            (float(given[name][0]), float(given[name][1])) for name in ("deviance_", "null_", "saturated_")
        )
        shortened, scale = given.get("shortened"), given["scale"]
        found = cls(
            family=str(given["family"]),
            link=str(given["link"]),
            n=float(given["n"]),
            sigma=float(given["sigma"]),
            scale=None if scale is None else float(scale),
            dispersion=float(given["dispersion"]),
            parameters=int(given["parameters"]),
            shortened=None if shortened is None else (float(shortened[0]), float(shortened[1])),
            privacy=None if given.get("privacy") is None else PrivacyStatement.decode(given["privacy"]),
            edges=edges,
            predicted=predicted,
            table=table,
            deviance_=deviance,
            null_=null,
            saturated_=saturated,
        )
        family_of(found.family, found.link)  # refuses others
        bins = len(found.edges) + 1
        numbers = [found.n, found.sigma, found.dispersion, *found.edges, *found.predicted, *found.table.ravel()]
        shapes = found.predicted.shape == (bins,) and found.table.shape == (bins, 3)
        if not (shapes and np.isfinite(numbers).all() and min(found.n, found.dispersion) > 0 and found.sigma >= 0):
            raise InvalidInput(f"its diagnosis holds invalid numbers: {DAMAGED}")
        return found


@dataclass(frozen=True)
class LikelihoodRatio:
    """A likelihood-ratio test of nested models from their diagnoses.

    Parameters
    ----------
    statistic : float
        Twice the difference of log-likelihoods.
    error : float
        The standard deviation of the privacy noise in it.
    df : int
        The number of coefficients that the smaller model lacks.
    """

    statistic: float
    error: float
    df: int

    @property
    def pvalue(self) -> float:
        """The probability that a chi-square plus the privacy noise is as large."""
        quantiles = chi2.ppf((np.arange(_POINTS) + 0.5) / _POINTS, self.df)
        if self.error == 0:
            return float(chi2.sf(self.statistic, self.df))
        return float(np.mean(ndtr((quantiles - self.statistic) / self.error)))


def likelihood_ratio(larger: Diagnosis, smaller: Diagnosis, excess: float) -> LikelihoodRatio:
    """Compare two diagnoses; ``excess`` is what noise in both models' coefficients adds to a deviance, and an error.

    Raises
    ------
    InvalidInput
        For models of other families or links, or of as many coefficients.
    """
    if (larger.family, larger.link) != (smaller.family, smaller.link):
        raise InvalidInput("a likelihood-ratio test compares models of one family and link")
    if larger.parameters <= smaller.parameters:
        raise InvalidInput("the other model must be nested in this one: it needs fewer coefficients")
    first, second = larger.deviance_, smaller.deviance_
    statistic = (second[0] - first[0]) / larger.dispersion
    error = math.hypot(first[1], second[1]) / larger.dispersion
    return LikelihoodRatio(statistic, math.hypot(error, excess), larger.parameters - smaller.parameters)


def excess_deviance(estimates: Estimates) -> float:
    """What privacy noise in the coefficients adds to the deviance over the dispersion: ``tr(V_s^-1 V_p)``."""
    known = np.ix_(estimates.identified, estimates.identified)
    sampling = np.maximum(standard_errors(estimates, estimates.sampling)[estimates.identified], 1e-300)
    scaled = [part[known] / np.outer(sampling, sampling) for part in (estimates.sampling, estimates.privacy)]
    return float(np.trace(np.linalg.pinv(scaled[0], rcond=1e-8) @ scaled[1]))

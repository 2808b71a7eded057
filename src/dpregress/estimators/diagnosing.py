"""Paid diagnoses of fitted models: what is asked about private rows, and at which bins and bounds.

Bins of the prediction come from the public rows, or from a released histogram of linear predictors. All bounds come
from these and from released quantities.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import Exposure, ResponseScale, Vector, WhitenedSpace
from dpregress.errors import InvalidInput, NotAvailable, one_line
from dpregress.inference.diagnosis import Diagnosis
from dpregress.models import MULTINOMIAL, Family, family_of
from dpregress.models.hazards import SURVIVAL
from dpregress.public.facts import PublicFacts
from dpregress.queries import (
    Ask,
    BinnedClasses,
    BinnedResiduals,
    DevianceSums,
    ExposureHistogram,
    PredictorHistogram,
    ShortenedRows,
)
from dpregress.releases import Coefficients, Estimates
from dpregress.releases.diagnosis import BinnedSums
from dpregress.releases.model_files import ResponseModel
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes

#: Relative shares of the budget: the histogram of predictors where no public rows have bins, that of exposures, the
#: sums by bins, deviances, the count of shortened rows.
_HISTOGRAM, _EXPOSURES, _TABLE, _DEVIANCES, _SHORTENED = 0.2, 0.1, 0.45, 0.3, 0.05
#: Bins of the prediction, and the rows times mu that a bin needs: its count is then known to an eighth.
_FEWEST_BINS, _MOST_BINS, _ROWS_OF_A_BIN = 4, 20, 12.0
#: With fewer public rows their predictions are no bins.
_FEWEST_PUBLIC = 100
#: The histogram of predictors: bins of this many standard deviations, so many to either side.
_FINE, _FINE_BINS = 0.25, 32
#: Points that represent a distribution of predictors.
_POINTS = 4096
#: A count below this many standard deviations of its noise is taken for 0 in the histogram of predictors.
_VISIBLE = 2.0
#: Squared Pearson residuals, in dispersions, are clipped between these, so that the noise of a bin's mean square is
#: this many dispersions; deviances of rows likewise, with this noise in their mean.
_LEAST_SQUARE, _MOST_SQUARE, _SQUARE_NOISE, _DEVIANCE_NOISE = 16.0, 256.0, 0.05, 0.01
#: Log odds beyond nearly all predictions at which the deviance of a class is clipped.
_SLACK = 1.0
#: Amounts this many logarithmic units above and below nearly all means have their own log-likelihood.
_ABOVE, _BELOW = 3.0, 5.0
#: Shares of predictors below "nearly none" and "nearly all".
_NEARLY_NONE, _NEARLY_ALL = 0.001, 0.999
#: The share of predictions whose distance from the mean response the clip of the null deviance allows for.
_MOST_APART = 0.999
#: A count of usable rows this many standard deviations below n is believed.
_BELIEVED = 4.0


class Subject(NamedTuple):
    """A fitted model as a diagnosis sees it.

    Parameters
    ----------
    coefficients : Coefficients
        In the order of the design columns of the rows.
    response : ResponseModel
    estimates : Estimates or None
    exposure : Exposure or None
        Bounds of exposures.
    public : ndarray or None
        Linear predictors of public rows, which queries do not limit either.
    space : WhitenedSpace or None
        The coordinates in which the model was fitted, if its rows are the ones that are diagnosed.
    """

    coefficients: Coefficients
    response: ResponseModel
    estimates: Estimates | None
    exposure: Exposure | None = None
    public: Vector | None = None
    space: WhitenedSpace | None = None

    @classmethod
    def of_fit(
        cls,
        coefficients: Coefficients,
        response: ResponseModel,
        estimates: Estimates | None,
        facts: PublicFacts,
        space: WhitenedSpace,
    ) -> Self:
        """A model that has just been fitted to the rows that are diagnosed.

        Bins come from the public rows, if there are at least 100, with exposures where the model has them.
        """
        known = facts.public
        usable = known is not None and known.rows is not None and known.n >= _FEWEST_PUBLIC
        public = coefficients.predictor(known.rows) if usable and known is not None and known.rows is not None else None
        if facts.exposure is not None and public is not None:
            offsets = None if known is None or known.exposure is None else np.log(known.exposure)
            public = None if offsets is None else public + offsets
        return cls(coefficients, response, estimates, facts.exposure, public, space)

    @property
    def family(self) -> Family:
        """The family with its link."""
        return family_of(self.response.family, self.response.link)

    @property
    def classes(self) -> bool:
        """Whether the response is one of two classes."""
        return self.response.family == "binomial"

    @property
    def scaled(self) -> bool:
        """Whether the dispersion, to which residuals are compared, is known; a fit may be too noisy to release it."""
        found = None if self.estimates is None else self.estimates.dispersion
        return self.classes or (found is not None and found > 0)

    @property
    def dispersion(self) -> float:
        """The released dispersion; 1 for two classes."""
        if self.classes:
            return 1.0
        found = None if self.estimates is None else self.estimates.dispersion
        if found is None or not found > 0:
            raise NotAvailable(
                "a diagnosis needs the dispersion, which this fit did not release: fit with the default recipe"
            )
        return found

    @property
    def original(self) -> WhitenedSpace:
        """The columns in their own units, without a bound on rows: every query of a diagnosis bounds what it sums."""
        found = self.coefficients
        return WhitenedSpace(
            found.features, np.eye(len(found.features) + 1), math.inf, found.fill, intercept=True,
            response=ResponseScale(found.target), exposure=self.exposure,
        )  # fmt: skip

    @property
    def coef(self) -> Vector:
        """The intercept and the slopes."""
        return np.append(self.coefficients.intercept, self.coefficients.coef)

    @property
    def centre(self) -> tuple[float, float]:
        """The prediction at the fill values, and the released standard deviation of predictions about their mean."""
        found = self.coefficients
        spread = None if self.estimates is None else self.estimates.spread
        deviation = 1.0
        if spread is not None and np.isfinite(spread).all():
            with np.errstate(over="ignore", invalid="ignore"):  # a file may hold any coefficients
                deviation = math.sqrt(max(float(found.coef @ spread @ found.coef), 0.0))
        level = float(found.predictor(found.fill[None, :])[0])
        return level, max(deviation, 1e-6 * max(1.0, abs(level)))


def checked_share(share: Any) -> float:
    """The share of a fit's budget for its diagnosis.

    Raises
    ------
    InvalidInput
        For anything but a number from 0 to 1/2.
    """
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 <= share <= 0.5:
        raise InvalidInput(f"diagnose= takes the share of the budget, from 0 to 0.5, not {one_line(share)}")
    return float(share)


_OFFERED = "a diagnosis is offered for numeric responses and for two classes"
#: Why a model of several classes has no diagnosis.
SEVERAL = f"{_OFFERED}: fit two of the classes"


#: Families without one, and why.
_WITHOUT = {SURVIVAL: f"{_OFFERED}: a survival model has none", MULTINOMIAL: SEVERAL}


def check_diagnosable(response: ResponseModel) -> None:
    """Refuse survival models and models of several classes, before anything is charged."""
    if not is_diagnosable(response):
        raise NotAvailable(_WITHOUT[response.family])


def is_diagnosable(response: ResponseModel) -> bool:
    """Whether a diagnosis is offered for models of this kind."""
    return response.family not in _WITHOUT


#: The largest number of questions of a diagnosis.
MOST_QUESTIONS = 5


class Budgets(NamedTuple):
    """The budgets of a fit and of its diagnosis."""

    fit: GDP
    diagnosis: GDP | None

    @property
    def questions(self) -> int:
        """The most that a diagnosis asks."""
        return 0 if self.diagnosis is None else MOST_QUESTIONS


def shared(budget: GDP, share: float, response: ResponseModel) -> Budgets:
    """A budget divided between a fit and its diagnosis.

    Parameters
    ----------
    budget : GDP
    share : float
        Of mu squared, for the diagnosis.
    response : ResponseModel
        Of several classes no diagnosis is offered.
    """
    if not share:
        return Budgets(budget, None)
    check_diagnosable(response)
    return Budgets(*split(budget, (1 - share, share)))


def diagnosed(ask: Ask, subject: Subject, spend: GDP, n: int) -> Diagnosis:
    """Ask about n private rows, within the budget.

    Parameters
    ----------
    ask : Ask
    subject : Subject
    spend : GDP
        All of it is drawn.
    n : int
    """
    parts = _budget(subject, spend)
    space, family = subject.original, subject.family
    sample = subject.public if subject.public is not None else _sample(ask, subject, parts["histogram"])
    bins = int(np.clip(n * parts["table"].mu / _ROWS_OF_A_BIN, _FEWEST_BINS, _MOST_BINS))
    edges = np.unique(np.quantile(sample, np.arange(1, bins) / bins))
    square = _affordable(_SQUARE_NOISE * n * parts["table"].mu / bins)
    scale = None if subject.classes else math.sqrt(square * subject.dispersion)
    if scale is None:
        binned = BinnedClasses(space, family, subject.coef, edges)
        found = ask(binned, parts["table"])
        predicted = _positions(binned, found)
    else:
        found = ask(BinnedResiduals(space, family, subject.coef, edges, scale), parts["table"])
        predicted = _means(family, sample, edges)
    rows = found.table[:, :2].sum(axis=1) if scale is None else found.table[:, 0]
    doubt = _BELIEVED * found.sigma * math.sqrt((2 if scale is None else 1) * len(rows))
    usable = float(n) if n - rows.sum() < doubt else max(float(rows.sum()), 1.0)
    mean = _mean_response(family, found, predicted, scale)
    exposure = 1.0
    if subject.exposure is not None:
        exposure = Magnitudes.of_histogram(ask(ExposureHistogram(space, EDGES), parts["exposures"])).mean
    null = family.link.predictor(mean) - (math.log(exposure) if subject.exposure is not None else 0.0)
    bounds = _bounds(subject, sample, mean, _affordable(_DEVIANCE_NOISE * n * parts["deviances"].mu))
    fixed = family.distribution.fixed_dispersion
    dispersion = 1.0 if fixed else subject.dispersion
    sums = ask(DevianceSums(space, family, subject.coef, null, dispersion, bounds), parts["deviances"])
    shortened = None
    if subject.space is not None:
        asked = ShortenedRows(subject.space.with_response(ResponseScale(subject.coefficients.target)))
        count = ask(asked, parts["shortened"])
        share = min(max(float(count.total[0]) / usable, 0.0), 1.0)
        shortened = (share, asked.noise(parts["shortened"], max(round(usable), 1)))
    return Diagnosis(
        family=subject.response.family,
        link=subject.response.link,
        n=usable,
        edges=edges,
        predicted=predicted,
        table=found.table,
        sigma=found.sigma,
        scale=scale,
        dispersion=dispersion,
        parameters=_parameters(subject),
        deviance_=sums.sum_of("deviance", usable) or (0.0, 0.0),
        null_=sums.sum_of("null", usable) or _entropy(found, usable),
        saturated_=sums.sum_of("saturated", usable) or (0.0, 0.0),
        shortened=shortened,
    )


def _affordable(square: float) -> float:
    """A clip of squares, in dispersions."""
    return min(max(square, _LEAST_SQUARE), _MOST_SQUARE)


def _budget(subject: Subject, spend: GDP) -> dict[str, GDP]:
    """The cost of each question."""
    shares = {
        "histogram": 0.0 if subject.public is not None else _HISTOGRAM,
        "exposures": 0.0 if subject.exposure is None else _EXPOSURES,
        "table": _TABLE,
        "deviances": _DEVIANCES,
        "shortened": 0.0 if subject.space is None else _SHORTENED,
    }
    asked = {name: share for name, share in shares.items() if share > 0}
    return dict(zip(asked, split(spend, list(asked.values())), strict=True))


def _parameters(subject: Subject) -> int:
    found = subject.coefficients
    return len(found.features) + (1 if subject.estimates is None else len(subject.estimates.names) - len(found.coef))


def _sample(ask: Ask, subject: Subject, spend: GDP) -> Vector:
    """Points that represent the distribution of predictors, from a released histogram about the prediction's centre."""
    level, deviation = subject.centre
    width = _FINE * deviation
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.asarray(level + width * np.arange(-_FINE_BINS, _FINE_BINS + 1.0), dtype=np.float64)
    seen = ask(PredictorHistogram(subject.original, subject.family, subject.coef, edges), spend)
    counts = seen.table[:, 0]
    counts = np.where(counts > _VISIBLE * seen.sigma, counts, 0.0)
    if not counts.any():
        counts = np.ones(len(counts))
    ends = np.concatenate([[edges[0] - width], edges, [edges[-1] + width]])
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(np.interp(levels, np.append(0.0, np.cumsum(counts) / counts.sum()), ends))


def _positions(query: BinnedClasses, found: BinnedSums) -> Vector:
    """Mean predictions of the bins, from the released positions in them."""
    middle, half = query.middle
    rows = np.maximum(found.table[:, :2].sum(axis=1), max(found.sigma, 1.0))
    return np.asarray(middle + half * np.clip(found.table[:, 2] / query.position / rows, -1.0, 1.0))


def _means(family: Family, sample: Vector, edges: Vector) -> Vector:
    """Mean predictions of the bins on these predictors."""
    place, means = np.searchsorted(edges, sample, side="right"), family.mean(sample)
    rows = np.bincount(place, minlength=len(edges) + 1)
    sums = np.bincount(place, weights=means, minlength=len(edges) + 1)
    near = family.mean(np.concatenate([edges, edges[-1:]])) if len(edges) else np.array([float(np.mean(means))])
    return np.where(rows > 0, sums / np.maximum(rows, 1), near)


def _mean_response(family: Family, found: BinnedSums, predicted: Vector, scale: float | None) -> float:
    """The mean response, inside the range of the link."""
    table = found.table
    least = found.sigma * math.sqrt(len(table))
    if scale is None:
        whole = max(float(table[:, :2].sum()), 1.0)
        rate = float(table[:, 1].sum()) / whole
        rarest = min(max(least / whole, 0.5 / whole), 0.5)
        return min(max(rate, rarest), 1 - rarest)
    deviation = scale * np.sqrt(family.distribution.variance(predicted))
    weight = np.maximum(table[:, 0], 0.0)
    if not weight.sum() > least:
        return float(np.mean(predicted))
    found_mean = float(weight @ predicted + deviation @ table[:, 1]) / float(weight.sum())
    if family.distribution.signed:
        return found_mean
    return max(found_mean, 0.1 * float(np.min(predicted)), 1e-10)


def _entropy(found: BinnedSums, usable: float) -> tuple[float, float]:
    """The deviance of two classes without features, from their numbers, and the standard deviation of its noise."""
    ones = float(found.table[:, 1].sum())
    rate = min(max(ones / usable, 0.5 / usable), 1 - 0.5 / usable)
    noise = found.sigma * math.sqrt(len(found.table)) * math.hypot(rate, 1 - rate)
    entropy = -2 * (rate * math.log(rate) + (1 - rate) * math.log(1 - rate))
    return usable * entropy, abs(2 * math.log((1 - rate) / rate)) * noise


def _bounds(subject: Subject, sample: Vector, mean: float, square: float) -> dict[str, tuple[float, float]]:
    """Bounds of what is summed: deviances that calibrated predictions hardly ever exceed."""
    family = subject.family
    low, high = np.quantile(sample, [_NEARLY_NONE, _NEARLY_ALL])
    if subject.classes:
        chance = family.mean(np.array([low, high]))
        least = max(min(float(chance.min()), float(1 - chance.max()), 0.5), 1e-9)
        return {"deviance": (0.0, 2 * (_SLACK - math.log(least)))}
    distribution, dispersion = family.distribution, subject.dispersion
    means = family.mean(sample)
    centre = mean if distribution.signed else max(mean, 1e-10)
    apart = float(np.quantile(distribution.unit_deviance(means, np.full(len(means), centre)), _MOST_APART))
    bounds = {
        "deviance": (0.0, square * dispersion),
        "null": (0.0, square * dispersion + apart),
    }
    ends = np.sort(family.mean(np.array([low, high])))
    if distribution.name == "poisson":
        most = float(ends[1] + 2 * math.sqrt(square * dispersion * ends[1]) + 10)
        bounds["saturated"] = (float(distribution.saturated(np.array([most]), 1.0)[0]), 0.0)
    elif distribution.name != "gaussian":
        amounts = np.array([ends[1] * math.exp(_ABOVE), ends[0] * math.exp(-_BELOW)])
        least, most = distribution.saturated(amounts, dispersion)
        bounds["saturated"] = (float(least), float(most))
    return {part: _finite(*ends) for part, ends in bounds.items()}


def _finite(low: float, high: float) -> tuple[float, float]:
    """Bounds that a query accepts, whatever a model that is far off suggests."""
    largest = DevianceSums.largest
    low, high = np.clip(np.nan_to_num([low, high]), -largest, largest).tolist()
    return (low, high) if low < high else (min(low, 0.0) - 1.0, max(high, 0.0) + 1.0)

"""The radius at which rows are truncated, weighed against the budget on public or assumed norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Vector
from dpregress.public.radius import RowNorms
from dpregress.queries import ClippedScore, SecondMoment, noise_in_mean

NORM_LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0])
#: Candidates beyond the largest public size: half octaves, up to four times that size.
_BEYOND = 2.0 ** np.arange(0.5, 2.1, 0.5)
#: The number of rows, per sample of public size, that may lie above the largest public one.
HIDDEN = 0.3
#: The squared bias is approximated by half the squared share of the second moment that is cut off, times this.
PROXY = 0.15
#: Candidates beyond the largest assumed size, which few rows may exceed by far: half octaves, up to 64 times that size.
_FAR_BEYOND = 2.0 ** np.arange(0.5, 6.1, 0.5)
#: The excess error that is expected of rows further out than assumed ones, if the radius is the median norm. It falls
#: in inverse proportion to the radius.
_UNKNOWN_TAIL = 0.002
#: The same for moments in which no column is the response: it falls with the square of the radius, as their noise
#: rises.
_MOMENTS_TAIL = 0.0005
#: The share of the second moment that is feared beyond the median norm of assumed rows; it falls likewise.
_FAR_SHARE = 0.03
#: The explained variance that is assumed if nothing is known about the response, in units of the residual variance.
_SIGNAL, CLIP = 2.0, 2.0
#: The power with which what the noise of the Gram matrix leaves falls, over several steps.
_UNSOLVED = 2.0
#: A larger radius or clip may cost this share of the sampling variance.
TOLERATED = 0.05
#: The same for moments in which no column is the response.
_TOLERATED_MOMENTS = 0.02
#: The squared noise of a Gram matrix, summed over a row of it, below which a larger radius is affordable.
CLEAR_GRAM = 5e-4
#: Shares of second moments that differ by less are as good.
_NEGLIGIBLE = 0.005


@dataclass(frozen=True)
class TruncationPlan:
    """The radius and clip, and the expected excess squared error.

    ``truncated`` is the share of the second moments of rows and residuals that they may take.

    Without labels, the clip is in units of the residual standard deviation, and the error in units of the variance.
    """

    radius: float
    clip: float
    expected: float
    truncated: float


def plan_unlabelled(
    expected_norms: RowNorms, order: int, *, n: int, scores: GDP, gram: GDP, clip: float = CLIP
) -> TruncationPlan:
    """The radius with the smallest expected error if residuals are not known.

    Parameters
    ----------
    expected_norms : RowNorms
    order : int
    n : int
        Private rows.
    scores, gram : GDP
        What all scores and the Gram matrix will cost.
    clip : float
        Of residuals, in units of their standard deviation.
    """
    norms = expected_norms.sample
    unit = float(np.median(norms)) / expected_norms.median
    whole = float(np.mean(norms**2))
    plans = []
    beyond = _FAR_BEYOND if expected_norms.assumed else _BEYOND
    for radius, hidden in candidates(norms, NORM_LEVELS, beyond):
        weight = np.minimum(1.0, radius / norms)
        kept = float(np.mean((weight * norms) ** 2)) / whole
        noise = (noise_in_mean(ClippedScore.largest_change(radius / unit, clip), scores, n) / kept) ** 2
        shrunk = order * noise / (1 + order * noise / _SIGNAL)
        cut_rows = 1 - kept + hidden / len(norms) * float(norms.max()) ** 2 / order
        inefficiency = float(np.mean((weight**2 * norms) ** 2)) / whole / kept**2 - 1
        gram_noise = order * (noise_in_mean(SecondMoment.largest_change(radius / unit), gram, n) / kept) ** 2
        unsolved = PROXY * 2 * min(1.0, gram_noise) ** _UNSOLVED * _SIGNAL
        expected = shrunk + PROXY * (cut_rows / kept) ** 2 + max(0.0, inefficiency) * order / n + unsolved
        truncated = cut_rows if gram_noise <= CLEAR_GRAM else 1.0  # a larger radius is no use then
        if expected_norms.assumed:
            expected += _UNKNOWN_TAIL * float(np.median(norms)) / radius
            truncated += _FAR_SHARE * float(np.median(norms)) / radius
        plans.append(TruncationPlan(radius / unit, clip, expected, truncated))
    return least_truncating(plans, TOLERATED * order / n)


def least_truncating(plans: Sequence[TruncationPlan], tolerated: float) -> TruncationPlan:
    """Of all plans that are worse than the best by no more than ``tolerated``, the one that truncates least.

    Truncation moves the estimand where the model is not exact, by an amount that no plan can know.
    """
    best = min(plan.expected for plan in plans)
    usable = [plan for plan in plans if plan.expected <= best + tolerated]
    least = min(plan.truncated for plan in usable)
    return min((plan for plan in usable if plan.truncated <= least + _NEGLIGIBLE), key=lambda plan: plan.expected)


def candidates(sizes: Vector, levels: Vector, beyond: Vector = _BEYOND) -> list[tuple[float, float]]:
    """Quantiles of public sizes and larger candidates, each with the number of rows that may lie above."""
    seen = np.quantile(sizes, levels)
    beyond = seen[-1] * beyond
    hidden = [HIDDEN] * len(seen) + [HIDDEN * (1 - (i + 1) / len(beyond)) for i in range(len(beyond))]
    return [(float(size), rows) for size, rows in zip([*seen, *beyond], hidden, strict=True)]


def plan_moments(expected_norms: RowNorms, order: int, *, n: int, spend: GDP, public_rows: int) -> float:
    """The radius of moments in which no column is the response.

    The row weights depend on the response of any later regression, and therefore move its coefficients towards those of
    the coordinates. Let p be the order, and T the truncated share of rows. Of normal rows whose second moment differs
    from the identity by D, the weighted moment shows ``(1 - b) D`` with ``b = 2 T R^2 / ((p + 2) E min(||x~||, R)^2)``.
    The entries of D have variance 1/m if m public rows whitened the columns.

    Parameters
    ----------
    expected_norms : RowNorms
    order : int
    n : int
        Private rows.
    spend : GDP
        The cost of the moments.
    public_rows : int
        m; 0 if private moments whitened the columns.
    """
    norms = expected_norms.sample
    middle = float(np.median(norms))
    unit, whole = middle / expected_norms.median, float(np.mean(norms**2))
    apart = order / public_rows if public_rows else 0.0
    plans = []
    for radius, hidden in candidates(norms, NORM_LEVELS, _FAR_BEYOND if expected_norms.assumed else _BEYOND):
        shortened = float(np.mean(np.minimum(norms, radius) ** 2))
        kept = shortened / whole
        noise = order * (noise_in_mean(SecondMoment.largest_change(radius / unit), spend, n) / kept) ** 2 / 2
        cut = 1 - kept + hidden / len(norms) * float(norms.max()) ** 2 / whole
        pulled = 2 / (order + 2) * float(np.mean(norms > radius)) * radius**2 / shortened
        expected = noise + PROXY * (cut / kept) ** 2 + pulled**2 * apart
        truncated = cut
        if expected_norms.assumed:
            expected += _MOMENTS_TAIL * (middle / radius) ** 2
            truncated += _FAR_SHARE * middle / radius
        plans.append(TruncationPlan(radius / unit, math.inf, expected, truncated))
    return least_truncating(plans, _TOLERATED_MOMENTS * order / n).radius

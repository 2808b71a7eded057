r"""Radius and clips of a residual fit, from public rows and released sizes of residuals.

All choices minimise one criterion, the expected excess of the mean squared error over least squares on the private
rows. With whitened rows this is ``||b - b_ols||^2``. It includes the noise, the bias from weights and clips, and their
loss of efficiency. Radius and clip grow with the budget, because only noise limits them; for large ``n mu`` they lie
far beyond the largest public row and residual.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse
from dpregress.models import GaussianFamily
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms, positive
from dpregress.queries import ClippedScore, MeanResidual, SecondMoment, noise_in_mean
from dpregress.solvers.shared.budget import has_labels, has_prior
from dpregress.solvers.shared.gram import spectral_noise
from dpregress.solvers.shared.public_prior import PublicPrior
from dpregress.solvers.shared.radius_plan import (
    NORM_LEVELS,
    PROXY,
    TOLERATED,
    TruncationPlan,
    candidates,
    least_truncating,
    plan_unlabelled,
)

_CLIP_LEVELS = np.array([0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0])
#: The weight of the bias on the public rows themselves, which is a noisy estimate.
_SEEN = 0.5
#: Scores are of whole rows if the noise of the Gram matrix, in spectral norm, is at most this share of its mean
#: eigenvalue; the second where public rows without labels whiten, which show well how long rows are. With labels a
#: shorter radius is planned, down to the usual one, for less noise; so many are considered.
CLEAR, NOT_CLEAR, _PLANNED, _RADII = 0.4, 0.9, 0.25, 33
#: The assumed variance of a bounded response, in squares of its reach, if nothing else is known.
_VARIANCE = 0.04
#: With fewer labels than two a column, the noise of a score, in units of the reach of y, above which they are used.
_FEW_LABELS_TELL = 0.01
#: For planning the start: the clip of a score as a share of the reach, and the share of the scores in what is left.
_CLIP_OF_REACH, _STEPS_OF_REST = 0.6, 0.7
#: The share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-15

#: The least share of the second moment that weights leave: one public row may hold all of it.
_LEAST_KEPT = 1e-9
#: A squared bias of this share of the dispersion is rounding.
_ROUNDING = 1e-10


def plan_labelled(
    x: Matrix, prior: PublicPrior, expected_norms: RowNorms, *, n: int, scores: GDP, gram: GDP, steps: int
) -> TruncationPlan:
    """The radius and clip with the smallest expected error on labelled public rows.

    Parameters
    ----------
    x : ndarray of shape (m, p)
        Whitened public rows.
    prior : PublicPrior
    expected_norms : RowNorms
        Norms of new rows. Public rows are shorter in the space that they whitened themselves. A radius is planned on
        their norms and then multiplied by the ratio of the medians.
    n : int
        Number of private rows.
    scores, gram : GDP
        Budgets of all scores together, and of the Gram matrix.
    steps : int
    """
    m, p = x.shape
    norms = np.linalg.norm(x, axis=1)
    lengths = positive(norms)
    unit = float(np.median(lengths)) / expected_norms.median
    eigenvalues = np.linalg.eigvalsh(prior.covariance + prior.dispersion / n * np.eye(p))
    plain = prior.residuals[:, None] * (x @ _inverse(x))
    largest = float(norms.max())
    plans = []
    for radius, hidden in candidates(lengths, NORM_LEVELS):
        weight = np.minimum(1.0, radius / np.maximum(norms, 1e-300))
        direction = weight[:, None] * x @ _inverse(x * weight[:, None])
        cut_rows = float(np.mean((1 - weight**2) * norms**2)) / p
        kept = max(1 - cut_rows, _LEAST_KEPT)
        cut_rows += hidden / m * largest**2 / p
        private = noise_in_mean(SecondMoment.largest_change(radius / unit), gram, n) ** 2 / 2  # of an entry
        entry = _mixed_variance(private, weight * norms, p)
        unsolved = min(1.0, 2 * p * entry / kept**2) ** steps * float(eigenvalues.sum())
        sizes = weight * np.abs(prior.residuals)
        second = float(np.mean(sizes**2))
        for clip, hidden_size in candidates(sizes, _CLIP_LEVELS):
            influence = np.clip(weight * prior.residuals, -clip, clip)[:, None] * direction
            moved = influence.mean(axis=0) - plain.mean(axis=0)
            seen = float(moved @ moved) - float(np.sum((influence - plain).var(axis=0))) / m
            cut = float(np.mean(np.maximum(sizes - clip, 0) ** 2)) / second
            cut += hidden_size / m * float(sizes.max()) ** 2 / second
            seen = seen if seen > _ROUNDING * prior.dispersion else 0.0
            bias = _SEEN * seen + PROXY * ((cut_rows / kept) ** 2 + cut**2) * prior.dispersion
            noise = (noise_in_mean(ClippedScore.largest_change(radius / unit, clip), scores, n) / kept) ** 2
            gain = eigenvalues / (eigenvalues + noise + bias / p)
            inefficiency = max(0.0, float(np.sum(influence.var(axis=0) - plain.var(axis=0)))) / n
            expected = float(np.sum((1 - gain) ** 2 * eigenvalues + gain**2 * (noise + bias / p)))
            plans.append(TruncationPlan(radius / unit, clip, expected + inefficiency + unsolved, cut_rows + cut))
    return least_truncating(plans, TOLERATED * p / n * prior.dispersion)


def _mixed_variance(private: float, norms: Vector, p: int) -> float:
    """The variance of an entry of a Gram matrix, mixed with that of public rows of these norms."""
    return private / (1 + private * len(norms) * p**2 / max(float(np.mean(norms**4)), 1e-300))


def with_clear_gram(
    plan: TruncationPlan, x: Matrix, expected_norms: RowNorms, *, n: int, scores: GDP, gram: GDP
) -> TruncationPlan:
    """The plan, with a shorter radius where the Gram matrix would be noisy: scores of whole rows do not rest on it.

    It is the longest one with little noise, no shorter than without labels; the plan stays as it is if there is too
    much noise in any case.

    Parameters
    ----------
    plan : TruncationPlan
    x : ndarray of shape (m, p)
        Whitened public rows.
    expected_norms : RowNorms
        Norms of new rows.
    n : int
        Number of private rows.
    scores, gram : GDP
    """
    p, norms = x.shape[1], np.linalg.norm(x, axis=1)
    norms = norms * (expected_norms.median / float(np.median(positive(norms))))

    def noise(radius: float) -> float:
        private = noise_in_mean(SecondMoment.largest_change(radius), gram, n) ** 2 / 2
        within = np.minimum(norms, radius)
        return float(spectral_noise(_mixed_variance(private, within, p), p) * p / np.mean(within**2))

    usual = plan_unlabelled(expected_norms, p, n=n, scores=scores, gram=gram).radius
    radii = np.geomspace(min(usual, plan.radius), plan.radius, _RADII).tolist()
    radius = max((radius for radius in radii if noise(radius) <= _PLANNED), default=radii[0])
    return replace(plan, radius=radius) if noise(radius) <= CLEAR else plan


def _inverse(rows: Matrix) -> Matrix:
    """The inverse Gram matrix, which may be singular if public rows do not vary in a column scaled by the schema."""
    return definite_inverse(rows.T @ rows / len(rows) + 1e-9 * np.eye(rows.shape[1]), _DIGITS)


def score_noise(space: WhitenedSpace, radius: float, budget: GDP, n: int) -> float:
    """The length of the noise of a score at the whole budget, in units of the reach of the response."""
    usual = space.rewhitened(np.eye(space.order), radius)
    return ClippedScore(usual, GaussianFamily, np.zeros(usual.order), 1.0).noise_length(budget, n)


def uses_labels(facts: PublicFacts, budget: GDP) -> bool:
    """Whether labels are used: few of them tell nothing beside private rows without noise, and may mislead."""
    space = facts.start.space
    return has_labels(facts) and (
        has_prior(facts) or score_noise(space, space.radius, budget, facts.n) > _FEW_LABELS_TELL
    )


def start_share(n: int, budget: GDP, noise: float) -> float:
    """The share of the mean response: large if noise would hide the slopes, small if the noise is small.

    Parameters
    ----------
    n : int
    budget : GDP
    noise : float
        The norm of a score's noise at the whole budget, in units of the reach of the response.
    """
    share = np.linspace(0.03, 0.95, 93)
    slopes = (_CLIP_OF_REACH * noise) ** 2 / (_STEPS_OF_REST * (1 - share)) / _VARIANCE
    mean = noise_in_mean(MeanResidual.largest_change(-1.0, 1.0), budget, n)
    loss = mean**2 / share + _VARIANCE * slopes / (1 + slopes)
    return float(share[np.argmin(loss)])

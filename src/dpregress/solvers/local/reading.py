r"""What messages tell of the moments of rows and responses, as far as noise lets them.

The noise of a cross moment grows with the range of the responses, which often lie in a small part of it. The masses
``f_j = E[k phi_j]`` of hat functions over the range show where that is (:class:`.LikelyValues`), and the moments
``h_j = E[k x~ phi_j]`` are about as large as the masses. So ``sum_j (c_j - c) h_j``, the cross moment about a centre c,
is estimated by its expectation under

    h ~ N(0, diag(f_j^2 + e^2) + f f')

given the noisy moments and the noisy cross moment over the whole range. Where that alone differs by more than noise
explains, masses mislead (long tails are spread over many nodes), and it is used for what it tells. Everything here is
post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from dpregress.coordinates import Vector
from dpregress.releases import CrossMoments, Entrywise, Histogram, Isotropic, Moments, Release, UnitMessages
from dpregress.solvers.shared.likely_values import LikelyValues

#: The mass that a node may hide, as a share of the standard deviation of its noise.
_HIDDEN = 0.1
#: The least mean of the weights of rows.
LEAST_KEPT = 0.05
#: Without shrinkage moments of hats may be so many times as large as their masses, and as these shares of those beside
#: them, where noise may hide a tail.
_WIDE, _BESIDE = 10.0, (0.1, 1.0, 0.1)
#: For inference, the factor of variances because the same message tells the moments and what they are weighted by.
_CHOSEN = 1.6
#: Noise explains squared differences up to this quantile of their law.
_EXPLAINED = 0.99


class MeanOfRows(NamedTuple):
    """``E[k x~]`` with the variances of its entries, each of shape (p,)."""

    mean: Vector
    variance: Vector


@dataclass(frozen=True, eq=False)
class CentredMoments:
    """Moments of responses about a centre, in half-ranges from the middle of their bounds.

    Attributes
    ----------
    centre : float
    cross : ndarray of shape (p,)
        ``E[k x~ (y~ - centre)]``.
    noise : ndarray of shape (p,)
        Variances of its entries: by the noise of messages, and by what was taken for noise.
    leaning : ndarray of shape (p,)
        By how much it falls as the mean of the rows rises.
    """

    centre: float
    cross: Vector
    noise: Vector
    leaning: Vector


def entry_variance(release: Release) -> float:
    """Of an entry of the mean message, by everything that varies."""
    assert isinstance(release.noise, UnitMessages | Isotropic)
    return (release.noise.sigma / release.n) ** 2


def told_mean(release: Release) -> MeanOfRows | None:
    """The mean of the weighted rows as users told it, if they did."""
    entry = entry_variance(release)
    if isinstance(release, Moments):
        return MeanOfRows(release.gram[0], entry * _beside(len(release.gram)) + 1 / release.n)
    if not isinstance(release, CrossMoments):
        return None
    order, weighted, precision = release.space.order, np.zeros(release.space.order), np.zeros(release.space.order)
    if release.gram is not None:
        by_products = release.parts.gram**2 / (entry * _beside(order))
        weighted, precision = weighted + by_products * release.gram[0], precision + by_products
    if release.parts.first:
        by_rows = release.parts.first**2 / entry
        weighted, precision = weighted + by_rows * release.columns[:, 1], precision + by_rows
    return MeanOfRows(weighted / precision, 1 / precision) if precision.all() else None


def _beside(order: int) -> Vector:
    """Variances of the first row of a symmetric matrix, in those of its diagonal."""
    return np.where(np.arange(order), 0.5, 1.0)


def told_cross(release: Release, rows: MeanOfRows, *, shrunk: bool = True) -> CentredMoments:
    """The cross moment about where responses lie.

    Parameters
    ----------
    release : Score, CrossMoments or Moments
    rows : MeanOfRows
        The best that is known of the mean of the weighted rows.
    shrunk : bool
        Whether what responses hardly tell may count as nothing, for predictions; inference does without.
    """
    if isinstance(release, CrossMoments) and release.parts.nodes:
        return _by_hats(release, rows, shrunk)
    whole = uncentred(release)
    centre = float(np.clip(whole.cross[0] / max(float(rows.mean[0]), LEAST_KEPT), -1.0, 1.0))
    return replace(
        whole, centre=centre, cross=whole.cross - centre * rows.mean, leaning=np.full(len(whole.cross), centre)
    )


def uncentred(release: Release) -> CentredMoments:
    """The cross moment about the middle of the bounds, as it was told over the whole range."""
    noise = entry_variance(release)
    if isinstance(release, Moments):
        assert release.space.response is not None
        cross, noise = release.cross, noise / (2 * release.space.response.cross**2)
    else:
        cross = release.columns[:, 0] if isinstance(release, CrossMoments) else release.mean
    return CentredMoments(0.0, cross, np.full(len(cross), noise), np.zeros(len(cross)))


def _by_hats(release: CrossMoments, rows: MeanOfRows, shrunk: bool) -> CentredMoments:
    places, kept = release.parts.places, max(float(rows.mean[0]), LEAST_KEPT)
    likely = _likely(release, kept)
    centre = likely.mean
    mass = kept * (likely.share if shrunk else _WIDE * np.convolve(likely.share, _BESIDE, "same"))
    weights, left = _wiener(release, mass, places - centre)
    whole = np.eye(release.parts.width)[0]
    by_hats = release.columns @ weights
    away = release.columns @ whole - centre * rows.mean - by_hats
    beside = centre**2 * rows.variance
    apart = _by_noise(release, whole - weights) + beside
    joint = float(_noises(release) @ (weights * (whole - weights)))
    share, noise = np.zeros(len(away)), np.zeros(len(away))
    for part in (slice(0, 1), slice(1, len(away))):
        if part.start == part.stop:
            continue
        usual, found = float(np.mean(apart[part])), float(np.mean(away[part] ** 2))
        bias = _beyond_noise(found, usual, part.stop - part.start)
        share[part] = np.clip((bias - joint) / (bias + usual), 0.0, 1.0)  # the least expected square of the error
        mixed = _by_noise(release, weights + share[part.start] * (whole - weights)) * (1.0 if shrunk else _CHOSEN)
        noise[part] = mixed + (1 - share[part]) ** 2 * max(left, bias if shrunk else found - usual)
    return CentredMoments(centre, by_hats + share * away, noise, share * centre)


def _beyond_noise(square: float, usual: float, entries: int) -> float:
    """What noise does not explain of the mean square of so many differences, which usually is that of the noise."""
    return max(square - float(chi2.ppf(_EXPLAINED, entries)) / entries * usual, 0.0)


def _likely(release: CrossMoments, kept: float) -> LikelyValues:
    """Where responses lie, by the masses of the hats."""
    parts, n = release.parts, release.n
    counts = release.columns[0, parts.width - parts.nodes :] * n / kept
    noise = Isotropic(float(np.sqrt(entry_variance(release))) * n / (parts.hat * kept))
    edges = np.append(parts.places, 2.0)
    return LikelyValues.of(Histogram(counts, n, noise, release.events, release.space, edges), parts.places)


def _wiener(release: CrossMoments, mass: Vector, functional: Vector) -> tuple[Vector, float]:
    """Weights of the columns by which a functional of the moments of hats is estimated, and what they leave of it."""
    parts = release.parts
    hidden = _HIDDEN**2 * entry_variance(release) / parts.hat**2
    prior = np.diag(mass**2 + hidden) + np.outer(mass, mass)
    before = [parts.places] + [np.ones(parts.nodes)] * (parts.first > 0)
    known = np.vstack([*before, np.eye(parts.nodes)])
    weights = np.linalg.solve(known @ prior @ known.T + np.diag(_noises(release)), known @ prior @ functional)
    away = functional - weights @ known
    return np.asarray(weights), float(away @ prior @ away)


def _noises(release: CrossMoments) -> Vector:
    """Variances of an entry of each column."""
    return np.asarray(entry_variance(release) / release.factors**2)


def _by_noise(release: CrossMoments, weights: Vector) -> float:
    """The variance of a weighted sum of columns."""
    return float(_noises(release) @ weights**2)


def joint_moments(release: CrossMoments) -> Moments:
    """The joint second moment of rows and of responses about where these lie, from a message with products of rows.

    Entries count as independent. Without hats nothing is known of squared responses but their bound.
    """
    assert release.gram is not None
    assert release.space.response is not None
    response, entry, n = release.space.response, entry_variance(release), release.n
    mean = told_mean(release)
    told = uncentred(release) if mean is None or not release.parts.nodes else told_cross(release, mean, shrunk=False)
    second, apart = response.bound**2, 0.0
    if release.parts.nodes:
        squares = (release.parts.places - told.centre) ** 2
        second = float(release.columns[0, -release.parts.nodes :] @ squares)
        apart = entry / release.parts.hat**2 * float(squares @ squares)
        second = max(second, math.sqrt(apart))
    joint = np.block([[release.gram, told.cross[:, None]], [told.cross[None, :], np.array([[second]])]])
    noise = np.full(joint.shape, entry / (2 * release.parts.gram**2))
    np.fill_diagonal(noise, entry / release.parts.gram**2)
    beside = told.noise + (0.0 if mean is None else told.leaning**2 * mean.variance)
    noise[-1, :-1] = noise[:-1, -1] = beside
    noise[-1, -1] = apart
    centred = replace(response, centre=response.centre + response.scale * told.centre, bound=2.0, cross=1.0)
    space = release.space.with_response(centred)
    return Moments(joint * n, n, Entrywise(noise * n**2), release.events, space)

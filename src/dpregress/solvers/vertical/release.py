r"""The vertical recipe: what one party releases, and how releases are joined (docs/methods/vertical.md).

A party of d columns first asks for the ranges of its numbers (:mod:`~dpregress.solvers.vertical.ranges`), unless public
moments give their scale. In these ranges it asks for the second moment of ``(1, x)``, which gives its means m and
covariance S; then, in coordinates ``z = S^{-1/2}(x - m)`` truncated to the ball of
``R = min(reach of its rows, sqrt(d) + g)``, the sketch ``M = B Z``, where g grows with the budget. Then, with c the
share of covariances that truncation keeps of normal rows,

* blocks of one party are its own moments, the identity in its coordinates;
* blocks of two parties are ``M_j' M_k / (n c_j c_k)``: their noises are independent, and an entry has the variance
  ``(1/k + (s_j^2 + s_k^2)/n + k s_j^2 s_k^2 / n^2) / (c_j c_k)^2`` for noises of scale s and correlations near 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag
from scipy.special import gammaln
from scipy.stats import chi2

from dpregress.accounting import GDP, Event, split
from dpregress.coordinates import Matrix, Ranges, Vector, WhitenedSpace, endless
from dpregress.coordinates.matrices import eigen, symmetric_power
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput
from dpregress.public import Numeric
from dpregress.queries import Ask, RowSketch, SecondMoment, SketchMatrix, noise_in_mean
from dpregress.releases import Entrywise, Isotropic, Moments, NoiseLaw, Sketch
from dpregress.solvers.shared.column_values import RANGE_ROUNDS
from dpregress.solvers.shared.repair import noise_norm
from dpregress.solvers.vertical.ranges import AskWithin, FoundRanges, find_ranges, range_spends, ranged_space

#: Spread of a column that budgets are planned for: a tenth of its range.
_SPREAD = 0.2
_FEWEST_SHARE, _LARGEST_SHARE = 0.05, 0.4
#: Correlations that are measured worse than this are hardly used.
_HOPELESS, _SHARE_WITHOUT_HOPE = 0.5, 0.9
#: How far the radius lies at least beyond the root mean square norm: a standard normal column is cut at 1.5.
_BEYOND = 0.5
#: At this n mu^2 it lies 1 beyond. The radius grows, so that what it cuts vanishes with the noise.
_PLENTY = 2e4
_FEWEST_MIXED = 64
#: Standard deviations of noise by which a constant's second moment below 1 shows shortened rows, and the least of it.
_SHORTENED, _LEAST_SHARE = 3.0, 0.5
#: How often a party asks at most: for ranges, for its moments, and for its mixture.
PARTY_ROUNDS = RANGE_ROUNDS + 2
#: The constant's scale in a space that centres rows for mixing: it takes nothing of the ball.
_FAINT = 2.0**-40


@dataclass(frozen=True, eq=False)
class PartyRelease:
    """Everything that leaves one party.

    Attributes
    ----------
    moments : Moments
        Of ``(1, x)`` in the party's public space, or in the ranges of its numbers.
    mixture : Sketch
        In the space of :func:`mixing_space`.
    found : FoundRanges or None
        None for a party without numbers to look for.
    """

    moments: Moments
    mixture: Sketch
    found: FoundRanges | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """The cost to this party."""
        looked = () if self.found is None else self.found.events
        return looked + self.moments.events + self.mixture.events

    @property
    def ends(self) -> Matrix:
        """Of the ranges of its columns, of shape (2, d); infinite where there are none."""
        return endless(len(self.mixture.space.features)) if self.found is None else self.found.ranges.ends


def plan_radius(columns: int, n: int, mu: float) -> float:
    """``sqrt(d) + g`` with ``g = max(1/2, (n mu^2 / 2e4)^(1/4))``: where whitened rows are cut."""
    growth = math.sqrt(mu * math.sqrt(n / _PLENTY))
    return math.sqrt(columns) + max(_BEYOND, growth)


def plan_shares(columns: int, n: int, mu: float) -> tuple[float, float]:
    r"""Shares of mu^2 for the moments and for the mixture, by predicted variance.

    With share a the moments cost ``A / a`` and the mixture ``C / (1 - a)``, least at
    ``a = sqrt A / (sqrt A + sqrt C)``: ``sqrt A = sqrt2 (1 + d) / (mu n v)`` for columns of variance v (a spread of
    a tenth of the range) and ``sqrt C = 4 R / (mu sqrt n)``, kept within [0.05, 0.4]. Correlations measured
    worse than to a standard deviation of 1/2 will be shrunk to nothing: the moments then get 0.9.
    """
    budget = GDP(mu)
    moments = noise_in_mean(SecondMoment.largest_change(math.sqrt(1 + columns)), budget, n) / _SPREAD**2
    sketch = noise_in_mean(RowSketch.largest_change(plan_radius(columns, n, mu)), budget, 1)
    mixture = 2 * sketch / math.sqrt(n)
    share = min(max(moments / (moments + mixture), _FEWEST_SHARE), _LARGEST_SHARE)
    share = share if mixture < _HOPELESS else _SHARE_WITHOUT_HOPE
    return share, 1 - share


def plan_rows(columns: Sequence[int], mus: Sequence[float], n: int) -> int:
    r"""The length k of the mixture: ``n / (mean of s_j s_k over pairs of parties)``, at least 64, at most n.

    It balances sketching, 1/k, against the product of two noises, ``k s_j^2 s_k^2 / n^2``, with
    ``s = 2 R / mu`` predicted from d, n and mu alone.

    Parameters
    ----------
    columns : sequence of int
        d of each party, at least two parties.
    mus : sequence of float
        Each party's mu, without that of ranges.
    n : int
    """
    scales = _planned_scales(columns, mus, n)
    pairs = [a * b for i, a in enumerate(scales) for b in scales[:i]]
    best = n / (math.fsum(pairs) / len(pairs))
    return int(min(max(best, _FEWEST_MIXED), max(n, 8)))


def plan_deviation(columns: Sequence[int], mus: Sequence[float], n: int, k: int) -> float:
    """The predicted standard deviation of a correlation between the two parties with the most noise.

    Parameters
    ----------
    columns, mus, n
        As in :func:`plan_rows`.
    k : int
    """
    one, other = sorted(_planned_scales(columns, mus, n))[-2:]
    return math.sqrt(1 / k + (one**2 + other**2) / n + k * (one * other / n) ** 2)


def _planned_scales(columns: Sequence[int], mus: Sequence[float], n: int) -> list[float]:
    """The noise of each party in a sketch of whitened rows, ``2 R / mu_2``."""
    return [
        noise_in_mean(RowSketch.largest_change(plan_radius(d, n, mu)), GDP(mu * math.sqrt(plan_shares(d, n, mu)[1])), 1)
        for d, mu in zip(columns, mus, strict=True)
    ]


def party_spends(columns: int, n: int, budget: GDP) -> tuple[GDP, GDP]:
    """The budgets of a party's moments and of its sketch, by :func:`plan_shares`; together, all that is left to it."""
    first, second = split(budget, plan_shares(columns, n, budget.mu))
    return first, second


def release_party(
    ask: AskWithin, space: WhitenedSpace, budget: GDP, mixing: SketchMatrix, numbers: Mapping[int, Numeric]
) -> PartyRelease:
    """Ask for the ranges of one party's numbers, its moments and its mixture, within its budget.

    Parameters
    ----------
    ask : AskWithin
        Asks questions about the party's rows.
    space : WhitenedSpace
        Its public space, with an intercept.
    budget : GDP
        All of it is drawn.
    mixing : SketchMatrix
        The same B for all parties.
    numbers : mapping of int to Numeric
        The places of columns whose ranges are looked for, with their bounds, and what their missing cells count as.
    """
    look, rest = range_spends(budget, numbers)
    within: Ask = ask
    space, found = space.with_response(None), None
    if look is not None:
        found = find_ranges(ask, space, numbers, look)
        space, within = ranged_space(space, found.ranges), ask.within(found.ranges)
    first, second = party_spends(len(space.features), mixing.n, rest)
    moments = within(SecondMoment(space), first)
    return PartyRelease(moments, within(RowSketch(mixing_space(moments, second.mu), mixing), second), found)


def mixing_space(moments: Moments, mu: float) -> WhitenedSpace:
    """Coordinates ``S^{-1/2}(x - m)`` by a party's released moments, and the radius its rows are cut to."""
    space = moments.space
    mean, covariance = _mean_and_covariance(moments)
    root = symmetric_power(covariance, -0.5)
    columns = len(mean)
    matrix = np.zeros((columns + 1, columns + 1))
    matrix[0, 0] = _FAINT
    matrix[1:, 0] = -root @ mean
    matrix[1:, 1:] = root
    within = math.sqrt(max(space.radius**2 - 1, 0.0))  # beside the constant's 1
    reach = float(np.linalg.norm(root, 2)) * (within + float(np.linalg.norm(mean)))
    return space.rewhitened(matrix, min(reach, plan_radius(columns, moments.n, mu)))


@dataclass(frozen=True, eq=False, repr=False)
class Joint(ShownInShort):
    """Moments of all columns of all parties.

    Attributes
    ----------
    moments : Moments
        Of ``(1, z)``, z every party's whitened columns: the identity within a party.
    owners : tuple of int
        Which party each column belongs to.
    ends : ndarray of shape (2, d)
        Of the columns' ranges, infinite where there are none.
    kept : tuple of float or None
        For each column, the share of its covariances that truncating its party's rows keeps if they are normal; None
        for a joint release that was read from a file.
    """

    moments: Moments
    owners: tuple[int, ...]
    ends: Matrix
    kept: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.owners) != len(self.moments.space.features):
            raise InvalidInput("every column needs one owner")
        Ranges(self.ends, self.moments.space.fill)  # refuses ends that are not those of ranges


def join_parties(releases: Sequence[PartyRelease]) -> Joint:
    """One second moment of all columns of all parties, with the variance of every entry; this is post-processing.

    Raises
    ------
    InvalidInput
        If sketches have different lengths or numbers of people, or two parties have the same column.
    """
    shapes = {(release.mixture.k, release.mixture.n) for release in releases}
    names = tuple(name for release in releases for name in release.mixture.space.features)
    if len(shapes) != 1 or len(set(names)) != len(names):
        raise InvalidInput("parties must sketch the same people in as many rows, and share no column: check the plan")
    k, n = shapes.pop()
    owner = np.repeat(np.arange(len(releases)), [len(release.mixture.space.features) for release in releases])
    same = owner[:, None] == owner
    own = [_Own.of(release) for release in releases]
    mixed = np.hstack([release.mixture.matrix @ each.directions for release, each in zip(releases, own, strict=True)])
    gram = np.eye(len(names) + 1)
    kept = np.array([kept_share(len(each.noise), each.space.radius) for each in own])[owner]
    cut = np.where(same, 1.0, np.outer(kept, kept))
    gram[1:, 1:] = np.where(same, np.eye(len(names)), mixed.T @ mixed / n / cut)
    noise = np.concatenate([each.noise for each in own])
    between = _between(releases, n, k)[np.ix_(owner, owner)]
    variance = np.zeros_like(gram)
    variance[1:, 1:] = np.where(same, (np.outer(noise, noise) + np.diag(noise**2)) / 2, between / cut**2)
    variance[0, 1:] = variance[1:, 0] = np.concatenate([each.of_means for each in own])
    events = tuple(event for release in releases for event in release.events)
    space = _stacked([each.space for each in own])
    moments = Moments(n * gram, n, Entrywise(n**2 * variance), events, space)
    ends = np.hstack([release.ends for release in releases])
    return Joint(moments, tuple(int(party) for party in owner), ends, tuple(kept.tolist()))


def kept_share(columns: int, radius: float) -> float:
    """``E min(1, R/|z|) |z|^2 / d`` of a standard normal z with d entries: what truncation to R keeps of covariances.

    Examples
    --------
    >>> round(kept_share(1, 2.0), 4), kept_share(3, math.inf)
    (0.9545, 1.0)
    """
    beyond = radius * math.sqrt(2) * math.exp(gammaln((columns + 1) / 2) - gammaln(columns / 2)) / columns
    tail = float(chi2.sf(radius**2, columns + 1))
    return float(chi2.cdf(radius**2, columns + 2)) + (beyond * tail if tail > 0 else 0.0)


def _between(releases: Sequence[PartyRelease], n: int, k: int) -> Matrix:
    """Variance of an entry of the joint Gram matrix, by pairs of different parties."""
    scales = np.array([_scale(release.mixture.noise) * release.mixture.unit for release in releases])
    noise = scales[:, None] ** 2
    return np.asarray(1 / k + (noise + noise.T) / n + k * (noise * noise.T) / n**2)


@dataclass(frozen=True, eq=False)
class _Own:
    """What a party's own moments say, in directions in which their noise is independent.

    Attributes
    ----------
    directions : ndarray of shape (d, d)
        In the coordinates of its sketch, as columns: eigenvectors of its covariance.
    noise, of_means : ndarray of shape (d,)
        The standard deviation of a mean square along each direction, and the variance of a mean.
    space : WhitenedSpace
        Of these directions.
    """

    directions: Matrix
    noise: Vector
    of_means: Vector
    space: WhitenedSpace

    @classmethod
    def of(cls, release: PartyRelease) -> _Own:
        """By the noise of one scale s in the moments of x~: an entry of ``S^{-1/2} N S^{-1/2}`` has s over the root of
        both eigenvalues of S.
        """
        values, directions = eigen(_mean_and_covariance(release.moments)[1])
        scale = _scale(release.moments.noise) / release.moments.n
        space = release.mixture.space
        turned = space.rewhitened(block_diag(1.0, directions.T), space.radius)
        return cls(directions, scale / values, scale**2 / (2 * values), turned)


def _scale(noise: NoiseLaw) -> float:
    if not isinstance(noise, Isotropic):
        raise InvalidInput("a party's release has noise of one scale: this is another kind of release")
    return noise.sigma


def _mean_and_covariance(moments: Moments) -> tuple[Vector, Matrix]:
    """Of ``x~`` by the moments of ``(1, x~)``; eigenvalues are raised to the noise.

    Unless rows lie far outside their bounds the constant's own second moment is 1, and the noise in it is no news.
    """
    share = max(float(moments.gram[0, 0]), _LEAST_SHARE)
    if share > 1 - _SHORTENED * _scale(moments.noise) / moments.n:
        share = 1.0
    mean = moments.gram[1:, 0] / share
    covariance = moments.gram[1:, 1:] / share - np.outer(mean, mean)
    return mean, symmetric_power(covariance, 1.0, smallest=noise_norm(moments))


def _stacked(spaces: Sequence[WhitenedSpace]) -> WhitenedSpace:
    """All parties' whitened columns after one constant."""
    order = 1 + sum(len(space.features) for space in spaces)
    whitening = np.zeros((order, order))
    whitening[0, 0] = 1.0
    start = 1
    for space in spaces:
        stop = start + len(space.features)
        whitening[start:stop, 0] = space.whitening[1:, 0]
        whitening[start:stop, start:stop] = space.whitening[1:, 1:]
        start = stop
    names = tuple(name for space in spaces for name in space.features)
    return WhitenedSpace(names, whitening, math.inf, np.concatenate([space.fill for space in spaces]), intercept=True)

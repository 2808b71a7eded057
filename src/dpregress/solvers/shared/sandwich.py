r"""Estimates for inference: all released scores explained without a prior, and the sandwich covariance.

The estimate is the root of the population's score equation, ``E s x clip(s (y - m) f, +-C) = 0``. Its covariance has
two parts: ``J^{-1} M J^{-1} / n`` with J the slope of that score and M its second moment, and the covariance of the
privacy noise and of the surrogate model's errors. M is released (:class:`~dpregress.queries.ScoreSquares`), or taken
from the model. Everything else is post-processing (docs/inference.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen, sandwich, symmetric_power
from dpregress.queries import Ask, RowQuery, ScoreSquares, noise_in_mean
from dpregress.releases import CovarianceType, Score
from dpregress.solvers.base import Unshrunk
from dpregress.solvers.shared.explained import Evidence, FixedPrior
from dpregress.solvers.shared.heterogeneity import reconciled
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.posterior import longest
from dpregress.solvers.shared.remainder import MISSED, Remainder
from dpregress.solvers.shared.surrogate import SurrogateRows

#: Share of mu^2 of the second moment of scores, between these: the standard deviation of the noise, relative to a mean
#: square, is then this for the least kappa.
_LEAST_SHARE, _MOST_SHARE, _NOISE = 0.01, 0.06, 0.25
#: Squares of scores are cut at kappa times their expected sum: kappa is such that the noise, relative to a mean square,
#: is ``_KAPPA``, between these.
_LEAST_KAPPA, _MOST_KAPPA, _KAPPA = 6.0, 40.0, 0.08
#: With fewer degrees of freedom the second moment is not worth asking for.
FEWEST = 4.0
#: The eigenvalues of the released second moment, relative to the model's, are at least this.
_SMALLEST = 0.2
#: Of the second moment along a direction, cuts are taken to leave at least this share.
_LEAST_KEPT = 0.2
#: A direction has this share of the mean second moment at least, of which nothing is cut.
_UNSEEN = 1e-3
#: Rows are at least so long, in squares, relative to a mean one: no bound cuts rows of zeros.
_SHORTEST = 1e-12
#: Least mean square of a score, as a share of the largest square.
_NEGLIGIBLE = 1e-24
#: Points at which the sizes of rows and residuals are taken.
_POINTS = 64
#: Directions of which the weak prior supplies this share of the precision are not identified, and the least eigenvalue
#: of a sum of projections along what these span: two directions less than a tenth apart are one, since what the prior
#: says of the one is in the covariance of the other.
_HELD, _SPANNED = 0.25, 0.005


@dataclass(frozen=True, eq=False)
class Meat:
    """The second moment of scores per row.

    Attributes
    ----------
    matrix : ndarray of shape (q, q)
    df : float
        Infinite if it is the model's.
    cov_type : {"robust", "model"}
    ratio : float
        To the model's, on average over directions.
    """

    matrix: Matrix
    df: float
    cov_type: CovarianceType
    ratio: float = 1.0


def meat_share(n: int, order: int, budget: GDP) -> float:
    """The share of mu^2 for the second moment of scores of length ``order``; 0 where noise would hide it."""
    share = min(max((_LEAST_KAPPA * _noise(n, order, budget) / _NOISE) ** 2, _LEAST_SHARE), _MOST_SHARE)
    return share if _freedom(n, order, GDP(budget.mu * math.sqrt(share))) >= FEWEST else 0.0


def _noise(n: int, order: int, spend: GDP) -> float:
    """The standard deviation of the noise for kappa = 1, relative to a mean square: ``order`` is the trace then."""
    return noise_in_mean(ScoreSquares.largest_change(math.sqrt(order)), spend, n)


def _kappa(n: int, order: int, spend: GDP) -> float:
    return min(max(_KAPPA / _noise(n, order, spend), _LEAST_KAPPA), _MOST_KAPPA)


def _freedom(n: int, order: int, spend: GDP) -> float:
    """``2 / s^2``, with s the standard deviation of the noise in a mean square relative to it."""
    return 2 / (_kappa(n, order, spend) * _noise(n, order, spend)) ** 2


def released_meat(
    ask: Ask, score: RowQuery[Score], spend: GDP, expected: Matrix, rows: Matrix, sizes: Magnitudes, n: int
) -> Meat:
    """The second moment of scores.

    Parameters
    ----------
    ask : Ask
    score : RowQuery
        The last score.
    spend : GDP
    expected : ndarray of shape (q, q)
        By the model.
    rows : ndarray of shape (m, p)
        Weighted rows, such as surrogate rows.
    sizes : Magnitudes
        Of clipped residuals.
    n : int
    """
    order = len(expected)
    # where the model expects no residuals at all, the query still needs a bound
    expected = symmetric_power(expected, 1.0, smallest=_NEGLIGIBLE * score.contribution() ** 2 / order)
    square = _kappa(n, order, spend) * float(np.trace(expected))
    uncut = _uncut(rows, sizes, square, order)
    found = uncut @ ask(ScoreSquares(score, math.sqrt(square)), spend).mean @ uncut
    root = symmetric_power(expected, 0.5)
    back = symmetric_power(expected, -0.5, smallest=1e-12 * float(np.trace(expected)))
    relative = symmetric_power(np.asarray(back @ found @ back), 1.0, smallest=_SMALLEST)
    ratio = float(np.trace(relative)) / order
    return Meat(np.asarray(root @ relative @ root), _freedom(n, order, spend), "robust", ratio)


def _uncut(rows: Matrix, sizes: Magnitudes, most: float, order: int) -> Matrix:
    """T with ``T A T`` the second moment of scores if A is that of scores whose squares are cut at most there.

    Long rows are cut most, so that A lacks most along directions of which few rows tell, such as those of rare levels.
    """
    size = math.sqrt(float(np.mean(np.sum(rows**2, axis=1))))
    if size == 0:
        return np.eye(order)
    x, squares = rows / size, sizes.quantiles((np.arange(_POINTS) + 0.5) / _POINTS) ** 2
    lengths, total = np.maximum(np.sum(x**2, axis=1), _SHORTEST), max(float(squares.sum()), 1e-300)
    reach = np.minimum(most / size**2 / lengths, float(squares[-1]))
    whole = np.searchsorted(squares, reach, side="right")
    left = np.append(0.0, np.cumsum(squares))[whole] + (len(squares) - whole) * reach
    kept = np.where(whole < len(squares), np.minimum(left / total, 1.0), 1.0)
    unseen = _UNSEEN / x.shape[1] * np.eye(x.shape[1])  # nobody knows what is cut there
    second, cut = x.T @ x / len(x) + unseen, (x * kept[:, None]).T @ x / len(x) + unseen
    root, back = symmetric_power(second, 0.5), symmetric_power(second, -0.5)
    cut = root @ symmetric_power(back @ cut @ back, 1.0, smallest=_LEAST_KEPT) @ root
    half, against = symmetric_power(cut, 0.5), symmetric_power(cut, -0.5)
    turned = against @ symmetric_power(half @ second @ half, 0.5) @ against
    return np.asarray(np.kron(turned, np.eye(order // len(turned))))


@dataclass(frozen=True, eq=False)
class ClippedEvidence(Evidence):
    """A released score of which clips keep the share ``kept`` of every change."""

    score: Evidence
    kept: float

    @property
    def value(self) -> Vector:  # type: ignore[override]  # of the score
        return self.score.value

    @property
    def variance(self) -> float:  # type: ignore[override]
        return self.score.variance

    def change(self, coef: Vector) -> Vector:
        return self.kept * self.score.change(coef)

    def slope(self, coef: Vector) -> Matrix:
        return self.kept * self.score.slope(coef)

    def error(self, coef: Vector) -> float:
        change = self.score.change(coef)
        return self.score.error(coef) + (1 - self.kept) ** 2 * float(change @ change) / len(coef)

    @property
    def doubted(self) -> float:  # type: ignore[override]
        """The clip may take nothing, or twice as much."""
        return (1 - self.kept) / self.kept


def gain_of(found: Vector, doubt: float, noise: float, *, biased: bool = False) -> float:
    """The share of a released residual that is followed, by its variance before the release and that of its noise.

    A residual that both variances cannot explain says itself how far off the mean prediction was: the first is widened
    until a chi-square explains it. If clips are known to bias the mean prediction the way that the residual says, the
    first is whatever noise does not explain of it.
    """
    explained = len(found) if biased else longest(len(found))
    doubt = max(doubt, float(np.sum(found**2)) / explained - noise)
    return doubt / (doubt + noise)


@dataclass(frozen=True, eq=False)
class MeanEquation:
    """The released mean residual at a fit: an equation for intercepts that neither weights nor clips bias.

    Attributes
    ----------
    asked : ndarray of shape (q,)
    value : ndarray of shape (k,)
        The released residuals.
    slope : ndarray of shape (k, q)
        Of mean predictions.
    constant : ndarray of shape (q, k)
        The directions of intercepts.
    privacy : float
        The variance of the noise.
    sampling : ndarray of shape (k, k)
        The covariance due to sampling.
    bias : float
        The squared bias of the scores' mean predictions, which clips cause.
    biased : bool
        Whether clips make mean predictions too small, by an amount that nobody knows.
    """

    asked: Vector
    value: Vector
    slope: Matrix
    constant: Matrix
    privacy: float
    sampling: Matrix
    bias: float
    biased: bool = False

    def applied(self, coef: Vector, sampling: Matrix, privacy: Matrix) -> tuple[Vector, Matrix, Matrix]:
        """Coefficients and covariances, with intercepts as far from this equation as it is better than the scores.

        Residuals of the same rows are in both, so that their sampling errors do not average out.
        """
        back = self.constant @ np.linalg.inv(self.slope @ self.constant)
        away = self.value - self.slope @ (coef - self.asked)
        doubt = float(np.trace(self.slope @ privacy @ self.slope.T)) / len(away) + self.bias
        gain = gain_of(away, doubt, self.privacy, biased=self.biased)
        left = np.eye(len(coef)) - gain * back @ self.slope
        moved = coef + gain * back @ away
        whole = np.eye(len(coef)) - back @ self.slope
        known = left @ privacy @ left.T + (gain**2 * self.privacy + (1 - gain) ** 2 * self.bias) * back @ back.T
        return moved, np.asarray(whole @ sampling @ whole.T + back @ self.sampling @ back.T), np.asarray(known)


def truncated(rows: SurrogateRows, cut: float, meat: Meat) -> Matrix:
    r"""The part of the second moment of scores that weights and clips take, of shape (q, q).

    A model that misses ``tau`` standard deviations of the residuals may have its estimand moved by as much as
    ``tau`` times the standard deviation that this matrix has in the sandwich.

    Parameters
    ----------
    rows : SurrogateRows
    cut : float
        The share of the residuals' second moment beyond the clip.
    meat : Meat
    """
    lost = rows.lost
    blocks = len(meat.matrix) // len(lost)
    variance = float(np.trace(meat.matrix)) / (blocks * max(float(np.mean(np.sum(rows.x**2, axis=1))), 1e-300))
    return np.asarray(variance * np.kron(lost, np.eye(blocks)) + cut * meat.matrix)


def unshrunk(
    scores: Sequence[Evidence],
    start: Vector,
    system: Matrix,
    meat: Meat,
    gram: Matrix,
    *,
    n: int,
    mean: MeanEquation | None,
    hidden: Matrix,
    unidentified: Matrix,
    dispersion: float,
    lost: Matrix,
    remainder: Remainder | None = None,
    weak: Matrix | None = None,
) -> Unshrunk:
    """The estimate that explains the scores alone, with its covariances.

    Parameters
    ----------
    scores : sequence of Evidence
    start : ndarray of shape (q,)
        The fit.
    system : ndarray of shape (q, q)
        J, the slope of the last score.
    meat : Meat
    gram : ndarray of shape (p, p)
    n : int
    mean : MeanEquation or None
    hidden : ndarray of shape (q, q)
        A covariance of what the design does not resolve.
    unidentified : ndarray of shape (q, q)
        The projection on directions about which too little is known.
    dispersion : float
    lost : ndarray of shape (q, q)
        The second moment of what weights and clips take from scores, beyond the remainder if there is one.
    remainder : Remainder, optional
        ``system`` is the slope of the ordinary score then.
    weak : ndarray of shape (q, q), optional
        The precision of a prior about the fit that only counts where scores may have no root.
    """
    prior = FixedPrior(start, np.zeros((len(start), len(start))) if weak is None else weak)
    found = reconciled(scores, prior, start)
    if weak is not None:
        unidentified = _with_held(unidentified, weak, found.covariance)
    privacy = found.covariance + np.outer(found.doubt, found.doubt) + hidden
    coef, sampling = found.coef, sandwich(system, meat.matrix) / n
    if remainder is not None:
        move = remainder.move(coef, last=scores[-1])
        coef, privacy = coef + move.value, privacy + move.covariance + remainder.beyond(coef)
    if mean is not None:
        coef, sampling, privacy = mean.applied(coef, sampling, privacy)
    shift = MISSED**2 * sandwich(system, lost)
    return Unshrunk(coef, sampling, privacy, unidentified, shift, meat.df, meat.cov_type, dispersion, gram)


def _with_held(unidentified: Matrix, weak: Matrix, covariance: Matrix) -> Matrix:
    """The projection on what is not identified, and on directions of which the prior supplies much of the precision."""
    root, back = symmetric_power(weak, 0.5), symmetric_power(weak, -0.5)
    shares, vectors = eigen(root @ covariance @ root)
    held = np.linalg.qr(back @ vectors[:, shares > _HELD])[0]
    both, axes = eigen(unidentified + held @ held.T)
    spanned = axes[:, both > _SPANNED]
    return np.asarray(spanned @ spanned.T)

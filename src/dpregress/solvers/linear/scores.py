r"""Scores of a linear fit: of shortened rows, or gradients of whole rows, and the slopes that clips leave.

A row that lies beyond the radius is shortened, once in the row and once in its residual. Where public rows show how
long rows are, a gradient ``x~ (y - x~'b)`` of the whole row is clipped in their place: a far row counts in full while
its response is predicted well. What a clip K leaves of the slope follows row by row from the released sizes of
residuals, of which those within ``K / ||x||`` keep theirs,

.. math:: S = \operatorname{mean} x x' P(|r| \le K / ||x||),

with the mean over surrogate rows (docs/methods/residual.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import GaussianFamily
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, ClippedGradient, ClippedScore
from dpregress.solvers.linear.far_truncation import LinearTruncation, number_directions
from dpregress.solvers.linear.residual_plan import CLEAR, NOT_CLEAR
from dpregress.solvers.shared.explained import Evidence
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.magnitudes import Magnitudes, sums_from
from dpregress.solvers.shared.posterior import Step
from dpregress.solvers.shared.radius_plan import PROXY, TOLERATED
from dpregress.solvers.shared.repair import floored, solvable
from dpregress.solvers.shared.surrogate import SurrogateRows, shows_lengths, surrogate_rows

#: Rows are whole within so many radii.
_REACH = 1.4
#: Quantiles of the lengths of rows that are paired with each size of residuals.
_LENGTHS = (np.arange(200) + 0.5) / 200
#: Shares of gradients within the clips that are considered, and clips beyond the largest, in times this.
_WITHIN, _BEYOND = 1 - np.geomspace(0.7, 1e-5, 40), 2.0 ** np.arange(0, 2.1, 0.5)
#: The largest share of private rows that surrogate rows may lack along a direction.
_MISSED = 0.02
#: The least share of the slope that a clip is taken to leave.
_LEAST_KEPT = 1e-3
#: The smallest clip of residuals, as a share of their root mean square.
_LEAST_CLIP = 0.7


@dataclass(frozen=True, eq=False)
class LinearScore(Evidence):
    """A released score at ``asked``.

    Attributes
    ----------
    asked : ndarray of shape (p,)
    value : ndarray of shape (p,)
    variance : float
    whole, left : ndarray of shape (p, p)
        Its slope, without and with the clip.
    gram_variance : float
        Of an entry of the Gram matrix.
    clipped : float
        The share of scores that are clipped.
    """

    asked: Vector
    value: Vector
    variance: float
    whole: Matrix
    left: Matrix
    gram_variance: float
    clipped: float

    def change(self, coef: Vector) -> Vector:
        return np.asarray(self.left @ (coef - self.asked))

    def slope(self, coef: Vector) -> Matrix:  # noqa: ARG002  # the same everywhere
        return self.left

    def error(self, coef: Vector) -> float:
        move = coef - self.asked
        whole = self.whole @ move
        return self.gram_variance * float(move @ move) + self.clipped**2 * float(whole @ whole) / len(move)

    def kept(self, share: float) -> LinearScore:
        """With this share of the slope that the clip was taken to leave."""
        return replace(self, left=share * self.left)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of shortened rows with clipped residuals.

    Attributes
    ----------
    space : WhitenedSpace
    mixed : MixedGram
        The second moment of shortened rows.
    rows : SurrogateRows
        With that second moment.
    numeric : ndarray of shape (p, k)
        An orthonormal basis of the directions of numbers.
    """

    space: WhitenedSpace
    mixed: MixedGram
    rows: SurrogateRows
    numeric: Matrix
    #: Whether they are gradients of whole rows.
    whole: ClassVar[bool] = False

    def question(self, coef: Vector, clip: float = 1.0) -> ClippedScore | ClippedGradient:
        """The query of a step; that with a clip of 1 is for planning the clip."""
        return ClippedScore(self.space, GaussianFamily, coef, clip)

    def best_clip(self, levels: Magnitudes, per_unit: float, inefficiency: float) -> float:
        """The clip with the smallest sum of squared noise, approximate squared bias and loss of efficiency.

        Parameters
        ----------
        levels : Magnitudes
            Sizes of weighted residuals.
        per_unit : float
            Root mean squared noise of the step for a clip of 1.
        inefficiency : float
            ``p / n``.
        """
        second = levels.root_mean_square**2
        clips = levels.size[levels.size >= _LEAST_CLIP * math.sqrt(second)] * levels.most
        cut = np.array([float(levels.share @ np.maximum(levels.size - clip, 0) ** 2) for clip in clips.tolist()])
        loss = (per_unit * clips) ** 2 + PROXY * cut * (cut / second) + inefficiency * cut
        return float(clips[loss <= loss.min() + TOLERATED * inefficiency * second].max())

    def planned_clip(self, coef: Vector, levels: Magnitudes, spend: GDP, n: int) -> float:
        """The best clip of a score of this cost at coefficients with residuals of these sizes."""
        return self.best_clip(levels, self.question(coef).noise_length(spend, n), len(coef) / n)

    def step(
        self,
        ask: Ask,
        coef: Vector,
        levels: Magnitudes,
        clip: float,
        spend: GDP,
        penalty: Matrix,
        n: int,
        *,
        latest: bool = True,
    ) -> tuple[Step, LinearScore]:
        """A released Newton step, and the score that it follows.

        Parameters
        ----------
        ask : Ask
        coef : ndarray of shape (p,)
        levels : Magnitudes
            Sizes of weighted residuals.
        clip : float
        spend : GDP
        penalty : ndarray of shape (p, p)
            Per row.
        n : int
            Private rows.
        latest : bool, default=True
            Whether the sizes are those at these coefficients.
        """
        query = self.question(coef, clip)
        score, variance = ask(query, spend), query.noise(spend, n) ** 2
        left, clipped = self.left(levels, clip), self.clipped(levels, clip)
        system = solvable((self.system(left) if latest else self.slope) + penalty)
        step = np.linalg.solve(system, score.mean - penalty @ coef)
        told = LinearScore(coef, score.mean, variance, self.slope, left, self.mixed.variance, clipped)
        return Step(np.asarray(step), system, variance), told

    @property
    def slope(self) -> Matrix:
        """That of a score without a clip."""
        return self.mixed.matrix

    def clipped(self, levels: Magnitudes, clip: float) -> float:
        """The share of scores that are clipped."""
        return levels.above(clip)

    def left(self, levels: Magnitudes, clip: float) -> Matrix:
        """The slope that a clip leaves."""
        return (1 - levels.above(clip)) * self.slope

    def system(self, left: Matrix) -> Matrix:  # noqa: ARG002
        """What steps are solved with where the clip leaves this slope: what it takes is left to the next step."""
        return self.slope

    def cut(self, levels: Magnitudes, clip: float) -> float:
        """The mean amount of a residual that a clip takes."""
        return levels.cut(clip)

    def truncation(self, levels: Magnitudes, clip: float) -> LinearTruncation:
        """What weights and a clip take from the scores of surrogate rows."""
        return LinearTruncation(self.rows, levels.seen, clip, numeric=self.numeric)


@dataclass(frozen=True, eq=False)
class WholeScores(Scores):
    """Gradients of rows that are whole within a reach, clipped as vectors."""

    whole: ClassVar[bool] = True

    def question(self, coef: Vector, clip: float = 1.0) -> ClippedGradient:
        return ClippedGradient(self.space, GaussianFamily, coef, clip, _REACH)

    @cached_property
    def _longer(self) -> Vector:
        """The score of a whole row over that of the shortened one, of shape (m,)."""
        return np.asarray(1 / np.maximum(self.rows.shortening, 1 / _REACH) ** 2)

    @cached_property
    def _lengths(self) -> Vector:
        """Those of gradients for a weighted residual of 1, of shape (m,)."""
        return np.asarray(np.maximum(np.linalg.norm(self.rows.x, axis=1) * self._longer, 1e-300))

    @cached_property
    def _reached(self) -> SurrogateRows:
        """Surrogate rows that are whole within the reach."""
        return self.rows.whole(_REACH)

    @cached_property
    def slope(self) -> Matrix:
        return self._reached.second

    def _gradients(self, levels: Magnitudes) -> Magnitudes:
        """Lengths of gradients, with sizes of residuals that do not depend on the row."""
        lengths = np.quantile(self._lengths, _LENGTHS)
        size = np.outer(levels.size * levels.most, lengths).ravel()
        return Magnitudes(size, np.repeat(levels.share, len(lengths)) / len(lengths))

    def best_clip(self, levels: Magnitudes, per_unit: float, inefficiency: float) -> float:
        gradients, p = self._gradients(levels), self.space.order
        clips = np.unique(np.append(gradients.quantiles(_WITHIN), float(gradients.size.max()) * _BEYOND))
        order = np.argsort(gradients.size)
        size, share = gradients.size[order], gradients.share[order]
        beyond = np.searchsorted(size, clips, side="right")
        above = [sums_from(share * size**power)[beyond] for power in range(3)]  # of lengths above each clip
        rows, total, square = above
        second = float(share @ size**2)
        cut = np.maximum(square - 2 * clips * total + clips**2 * rows, 0.0)
        kept = np.maximum(1 - (square - clips * total) / max(second, 1e-300), _LEAST_KEPT)
        loss = ((per_unit * clips) ** 2 + PROXY * cut * (cut / second) / p) / kept**2 + inefficiency * cut / p
        return float(clips[loss <= loss.min() + TOLERATED * inefficiency * second / p].max())

    def _most(self, clip: float) -> Vector:
        """The size of weighted residuals up to which each row is not clipped, of shape (m,)."""
        with np.errstate(over="ignore"):  # nothing clips rows of zeros
            return np.asarray(clip / self._lengths)

    def clipped(self, levels: Magnitudes, clip: float) -> float:
        return self._gradients(levels).above(clip)

    def left(self, levels: Magnitudes, clip: float) -> Matrix:
        order = np.argsort(levels.size)
        within = np.append(0.0, np.cumsum(levels.share[order]))
        share = within[np.searchsorted(levels.size[order], self._most(clip), side="right")]
        whole = self._reached.x
        return np.asarray((whole * share[:, None]).T @ whole / len(whole) + self._reached.unseen)

    def system(self, left: Matrix) -> Matrix:
        """Half way between the slope that the clip leaves and the whole one: residuals become shorter on the way."""
        return floored((self.slope + left) / 2, self.mixed.floor)

    def cut(self, levels: Magnitudes, clip: float) -> float:
        most = np.quantile(self._most(clip), _LENGTHS)
        return float(np.mean([levels.cut(bound) for bound in most.tolist()]))

    def truncation(self, levels: Magnitudes, clip: float) -> LinearTruncation:
        most = self._most(clip) * self._longer
        return LinearTruncation(self.rows, levels.seen, most, self._longer, numeric=self.numeric)


def linear_scores(
    facts: PublicFacts, space: WhitenedSpace, mixed: MixedGram, *, alike: bool = True, clear: bool = True
) -> Scores:
    """Of whole rows, if public rows show how long they are and the Gram matrix stands out from its noise.

    ``alike`` is whether public rows are about as long as private ones, ``clear`` whether the matrix has to stand out
    clearly: less is asked where public rows without labels whiten, which show well how long rows are.
    """
    rows = surrogate_rows(space, facts.public, mixed.matrix, facts.schema)
    known = alike and space.order > space.intercept and shows_lengths(facts.public, space.order)
    noisy = mixed.noise > (CLEAR if clear else NOT_CLEAR)
    whole = known and not noisy and rows.complete(_MISSED * space.radius**2, mixed.floor)
    return (WholeScores if whole else Scores)(space, mixed, rows, number_directions(space, facts.numbers))

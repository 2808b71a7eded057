"""A family on surrogate rows: what scores are expected to be, and how the next one is asked."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import BinomialFamily, Family
from dpregress.queries import ClippedGradient, ClippedScore
from dpregress.solvers.glm.cut_off import ClassCut, CutOff, SampleCut, TailCut
from dpregress.solvers.glm.score_loop import Beginning, Clipped, ScoreModel
from dpregress.solvers.shared.explained import Evidence, SlopesPrior
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.public_fit import LabelledRows
from dpregress.solvers.shared.radius_plan import TOLERATED
from dpregress.solvers.shared.repair import floor_information
from dpregress.solvers.shared.slope_shapes import slope_shapes
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.solvers.shared.truncation import ResidualTruncation, Truncation
from dpregress.solvers.shared.weak_prior import WeakPrior

#: Smallest eigenvalue of a Fisher information (relative to the Gram matrix) that is believed, as a share of the mean.
SMALLEST_INFORMATION = 0.02
#: The same for steps where means saturate: rows at their ends have almost no information, and steps would be too long.
SMALLEST_SATURATED = 0.1
#: A step may move this share of the rows' predictors by no more than the link's longest step: of classes, and where
#: means have no upper end, so that a level that is moved too far decides on all later scores.
MOST_ROWS, _MOST_ROWS_WITHOUT_END = 0.95, 0.99
#: And the others' by no more than this many longest steps.
_OTHERS = 2.0
#: Intercepts may be so many of the longest steps away.
_INTERCEPT = 3.0
#: What the surrogate rows miss of a mean that moves, as a share.
MEAN_MISSED = 0.1


def shortened(moves: Vector, most_rows: float, longest: float) -> float:
    """The part of a step with which this share of rows move by the longest step at most, and no others much further."""
    furthest = max(float(np.quantile(moves, most_rows)), float(moves.max()) / _OTHERS)
    return min(1.0, longest / max(furthest, 1e-300))


@dataclass(frozen=True, eq=False)
class FamilyModel(ScoreModel):
    """What the models of all families have in common.

    Attributes
    ----------
    family : Family
    space : WhitenedSpace
    rows : SurrogateRows
    gram : ndarray of shape (p, p)
        That of the rows.
    n : int
    gram_variance : float
    estimates : bool, default=False
        Whether the information is that for estimates.
    """

    family: Family
    space: WhitenedSpace
    rows: SurrogateRows
    gram: Matrix
    n: int
    gram_variance: float
    estimates: bool = field(default=False, kw_only=True)

    @cached_property
    def resolved(self) -> Self:
        return replace(self, estimates=True)

    @property
    def canonical(self) -> bool:  # type: ignore[override]  # of the family
        return self.family.canonical

    @property
    def longest(self) -> float:
        """The longest step, in standard deviations of predictors."""
        return self.family.link.longest

    @property
    def furthest(self) -> float:
        """The largest standard deviation of predictors."""
        return self.longest

    @property
    def likely(self) -> float:
        """The variance of predictors from which larger ones are less likely beforehand."""
        return math.inf

    @property
    def most_rows(self) -> float:
        """The share of rows whose predictors a step moves by no more than the longest."""
        return MOST_ROWS

    @property
    def farthest(self) -> float:
        """The largest bound of a remainder that is of any use."""
        return math.inf

    @abstractmethod
    def question(self, coef: Vector, spend: GDP) -> ClippedScore | ClippedGradient: ...

    @abstractmethod
    def dispersion(self, coef: Vector) -> float:
        """Of residuals relative to the family's variance, at most."""

    @abstractmethod
    def truncation(self, coef: Vector, clip: float) -> Truncation:
        """What weights and this clip take from a score at these coefficients."""

    def information(self, coef: Vector) -> Matrix:
        saturated = self.family == BinomialFamily and not self.estimates
        smallest = SMALLEST_SATURATED if saturated else SMALLEST_INFORMATION
        found = self.rows.information(self.family, coef, sure=self.estimates)
        return floor_information(found, self.gram, smallest)

    def expected(self, coef: Vector, asked: Vector) -> Vector:
        return self.rows.expected(self.family, coef, asked)

    def curvature(self, coef: Vector, asked: Vector) -> Matrix:
        return self.rows.curvature(self.family, coef, asked)

    def length(self, move: Vector) -> float:
        return float(np.mean((self.rows.x @ move) ** 2))

    def limited(self, move: Vector) -> Vector:
        """Shortened so that the predictors of most surrogate rows move by no more than the longest step."""
        return np.asarray(move * shortened(np.abs(self.rows.x @ move), self.most_rows, self.family.link.longest))

    def beginning(self, coef: Vector, weak: WeakPrior | None = None) -> Beginning:
        """Nothing is known but the mean, how far predictors go, and a weak prior."""
        along = self.space.along_constant
        intercept = along / (_INTERCEPT * self.longest) ** 2
        shapes = slope_shapes(self.space, self.gram, common=False)
        prior = SlopesPrior(coef, intercept, shapes, self.furthest**2, self.likely)
        return Beginning(prior, self.dispersion(coef), weak=weak)


#: The most that a clip may take from the squares of released residuals: of rare events it would take nearly all.
_MOST_CUT = 0.75
#: A score contradicts labels if it is more than this share of the longest that its clip allows, and its noise.
_SATURATED = 0.5


@dataclass(frozen=True, eq=False)
class SurrogateModel(FamilyModel):
    """Counts, amounts and other responses whose residuals have any size: scores of shortened rows.

    Attributes
    ----------
    levels : Magnitudes
        Sizes of residuals.
    labelled : LabelledRows, optional
        Public rows with responses, from which a prior was estimated.
    """

    levels: Magnitudes
    labelled: LabelledRows | None = None

    @property
    def _classes(self) -> bool:
        return self.family.distribution == BinomialFamily.distribution

    @property
    def longest(self) -> float:
        longest = self.family.link.longest
        return longest if math.isfinite(longest) else self.levels.root_mean_square

    @property
    def most_rows(self) -> float:
        return MOST_ROWS if self._classes else _MOST_ROWS_WITHOUT_END

    @property
    def unweighted(self) -> SurrogateModel:
        rows = self.rows.unweighted
        return replace(self, rows=rows, gram=self.gram + rows.gram - self.rows.gram)

    def question(self, coef: Vector, spend: GDP) -> ClippedScore:
        per_unit = ClippedScore(self.space, self.family, coef, 1.0).noise_length(spend, self.n)
        least = 0.0 if self.labelled is not None else self.levels.seen.nearly_all(_MOST_CUT)
        clip = self.levels.best_clip(lambda clip: per_unit * clip, least=least)
        tolerated = TOLERATED * self.levels.square_within(clip) * self.space.order / self.n
        clip = self.levels.best_clip(lambda clip: per_unit * clip, least=least, tolerated=tolerated)
        return ClippedScore(self.space, self.family, coef, clip)

    def contradicts(self, coef: Vector, score: Vector, variance: float, clip: float) -> bool:
        """Whether residuals are nearly as far in one direction as they can be: a step of any length could be meant.

        Of rare events, a clip holds back nearly all in one direction in any case.
        """
        if self.labelled is None or self._classes:
            return False
        if (events := self._events_cut(coef, clip)) is not None:
            score = score + events.taken
        length, noise = float(np.linalg.norm(score)), len(score) * variance
        along = self.rows.x @ score / max(length, 1e-300)
        longest = float(np.mean(np.where(along > 0, clip * along, -self._lowest(coef, clip) * along)))
        return math.sqrt(max(length**2 - noise, 0.0)) > _SATURATED * longest + math.sqrt(noise)

    def _lowest(self, coef: Vector, clip: float) -> Vector:
        """How far below zero clipped residuals may be: counts and amounts are nowhere below nothing."""
        if self.family.distribution.signed:
            return np.full(len(self.rows.x), clip)
        eta = self.rows.predictor(coef)
        return np.asarray(np.minimum(clip, self.rows.weight * self.family.factor_size(eta) * self.family.mean(eta)))

    def clipped(self, coef: Vector, clip: float) -> Clipped:
        sizes, dispersion = self.levels, self.dispersion(coef)
        share = sizes.share_within(clip)
        within = replace(sizes, size=np.minimum(sizes.size, clip))
        whole = sizes.seen
        plain = dispersion * (whole.root_mean_square / max(sizes.root_mean_square, 1e-300)) ** 2
        kept = 1.0 if self._classes else 1 - sizes.above(clip)  # of classes the cut-off says exactly what is lost
        return Clipped(kept, share * dispersion, dispersion, within, whole, plain, sizes.beyond(clip))

    def truncation(self, coef: Vector, clip: float) -> Truncation:  # noqa: ARG002  # sizes are those at the start
        return ResidualTruncation(self.rows, self.levels.seen, clip)

    def cut_off(self, coef: Vector, clip: float, dispersion: float | None = None) -> CutOff | None:
        if self._classes:
            return ClassCut.of(self.rows, self.family, coef, clip)
        if self.family.distribution.signed:
            return None
        if dispersion is not None:
            return TailCut.of(self.rows, self.family, coef, clip, dispersion)
        if (events := self._events_cut(coef, clip)) is not None:
            return events  # predictions do better without a guess at any other tail
        return None if self.labelled is None else SampleCut.of(self.labelled, self.family, coef, clip)

    def _events_cut(self, coef: Vector, clip: float) -> TailCut | None:
        """What a clip takes that holds back every event, being below the residual of one; None if it does not."""
        if not self.family.distribution.fixed_dispersion:  # amounts
            return None
        eta = self.rows.predictor(coef)
        event = float(np.mean(self.rows.weight * self.family.factor_size(eta) * (1 - self.family.mean(eta))))
        return TailCut.of(self.rows, self.family, coef, clip, self.dispersion(coef)) if clip < event else None

    def dispersion(self, coef: Vector) -> float:
        """An upper estimate from the residuals at the start, which include what the slopes will explain."""
        information = self.rows.weight**2 * self.family.information(self.rows.predictor(coef))
        found = self.levels.root_mean_square**2 / max(float(np.mean(information)), 1e-300)
        return max(found, 1.0) if self.family.distribution.fixed_dispersion else found


@dataclass(frozen=True, eq=False)
class ReleasedMean(Evidence):
    """The mean response, released before any score, as the mean prediction of the optimum."""

    model: FamilyModel
    asked: Vector
    value: Vector
    variance: float

    @cached_property
    def _start(self) -> Vector:
        """The mean predictions where it was released."""
        return self.model.family.mean(self.model.rows.predictor(self.asked))

    def change(self, coef: Vector) -> Vector:
        mean = self.model.family.mean(self.model.rows.predictor(coef))
        return np.array([np.mean(mean - self._start)])

    def slope(self, coef: Vector) -> Matrix:
        rows = self.model.rows
        slope = self.model.family.slope(rows.predictor(coef)) / rows.weight
        return np.asarray(slope[None, :] @ rows.x / len(slope))

    def error(self, coef: Vector) -> float:
        length = self.model.length(coef - self.asked)
        slope = float(np.mean(self.model.family.slope(self.model.rows.predictor(coef))))
        return (MEAN_MISSED * slope) ** 2 * length * min(length, 1.0)

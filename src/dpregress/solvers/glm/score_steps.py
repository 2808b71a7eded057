r"""Score steps: generalised linear models from one private Gram matrix and a few private scores.

Every choice is a function of public facts or of earlier releases (docs/methods/score-steps.md):

1. coordinates from the public moment, or from bounds, which three private second moments refine (10% of mu^2 each);
2. a start: with labelled public rows their own penalised fit, with its covariance as a prior; otherwise
   coefficients of 0, the intercept from a private mean or histogram of the response (5%);
   with an exposure, before that its distribution from a histogram (5%) and its slopes on the features (5%);
3. the radius weighed against the budget, and one private Gram matrix of the weighted rows, mixed with that of the
   public rows, to which surrogate rows are recoloured;
4. scores ``mean(s x clip(s (y - m) f, +-C)) + noise``, or of two classes gradients that are clipped as vectors, each at
   the coefficients that explain all before it best;
5. what weights and clips take from the last score (5%, and for two classes whose model is wrong a quarter of that
   score's cost), of two classes by a schema alone the information there (5%, for intervals), and the mean residual
   between wide lopsided bounds, which moves the intercept as far as it is known better than before.

The clip, by sizes of residuals (public, or from a private histogram, 5%), minimises noise and the loss from clipping.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import ResponseScale, Vector, WhitenedSpace
from dpregress.models import BinomialFamily, Family
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms
from dpregress.queries import (
    Ask,
    BinomialInformation,
    ClippedGradient,
    ClippedScore,
    Counted,
    ExposureHistogram,
    ExposureScore,
    MeanResidual,
    Query,
    ResidualHistogram,
    ResponseHistogram,
    ScoreRemainder,
    ScoreSquares,
    SecondMoment,
    among,
    has_order,
)
from dpregress.solvers.base import FactSolver, Solution
from dpregress.solvers.glm.amounts import LOOK, ROUGH, Amounts, between
from dpregress.solvers.glm.binary_model import BinaryModel
from dpregress.solvers.glm.design import design_shares, released_design
from dpregress.solvers.glm.estimates import released_squares, scored_estimates, untruncated
from dpregress.solvers.glm.exposures import exposure_slopes, released_exposures
from dpregress.solvers.glm.mean_step import MeanStep
from dpregress.solvers.glm.rare_counts import likely_mean, may_be_none
from dpregress.solvers.glm.rate import START, Rate, again_share, mean_start_share
from dpregress.solvers.glm.reach import declared_limits, reach
from dpregress.solvers.glm.released_information import released_difference, with_difference
from dpregress.solvers.glm.score_loop import Beginning, LabelsContradicted, take_steps
from dpregress.solvers.glm.sizes import Largest, SizedModel, released_sizes
from dpregress.solvers.glm.surrogate_model import FamilyModel, ReleasedMean, SurrogateModel
from dpregress.solvers.shared.asked_remainder import AskedRemainder
from dpregress.solvers.shared.budget import allocate_budget, has_prior, joint_budget, leaving_steps
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.likely_tail import FAR, Looked
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes
from dpregress.solvers.shared.public_fit import LabelledRows, PublicFit, fit_public
from dpregress.solvers.shared.radius_plan import CLIP
from dpregress.solvers.shared.remainder import Asked, Untruncated, remainder_share
from dpregress.solvers.shared.repair import ridge_penalty
from dpregress.solvers.shared.sandwich import meat_share
from dpregress.solvers.shared.surrogate import SurrogateRows, shows_lengths, surrogate_rows
from dpregress.solvers.shared.unresolved import are_where_public_rows_are
from dpregress.solvers.shared.weak_prior import WeakPrior, has_scale
from dpregress.solvers.shared.whitening import planned_start, start_in_reach

_EXPOSURE, _LEVELS = 0.05, 0.05
#: The share of sizes of residuals that are released again before the last two scores.
_SIZES = 0.04
#: Shares for the mean residual: of a response in [0, 1]; of one with a tail, with a prior and without one.
MEAN_BOUNDED, _MEAN_WITH_PRIOR, _MEAN_WITHOUT = 0.05, 0.40, 0.25
#: Private scores.
STEPS_WITH_PRIOR, STEPS_WITHOUT = (1.0, 1.0, 2.0), (1.0, 1.0, 1.0, 2.0, 2.0)
#: The same for classes without labelled public rows, or with too few of the rarer class to fit all coefficients.
STEPS_OF_CLASSES = (1.0, 1.0, 1.0, 3.0)
#: And for two classes where n mu is at least so many times the number of coefficients: noise hides no step then. Of a
#: rare class, n is the number of rows of even classes whose responses would vary as much.
STEPS_OF_MANY, _MANY = (0.5, 0.5, 1.0, 1.0, 1.0, 4.0), 100.0
#: And whatever is public where it is so many times: what surrogate rows miss is then all that is wrong, and more scores
#: correct it.
STEPS_OF_MOST, _MOST = (0.5, 0.5, *(1.0,) * 9, 4.0), 3000.0
#: The share of the information at the last coefficients, by a schema alone, where there are so many scores.
_INFORMATION, _WITH_INFORMATION = 0.05, (STEPS_OF_MANY, STEPS_OF_MOST)
#: The share of the last score for a wider remainder where the model is wrong.
WIDER = 1 / 4
#: The largest share of private rows that surrogate rows may lack along a direction, beside gradients of whole rows.
_MISSED = 0.001
#: How many public rows' worth may lie above the largest public residual.
_HIDDEN = 0.3


class ScoreSteps(FactSolver):
    """Noisy scoring with surrogate rows for one private Gram matrix.

    Parameters
    ----------
    facts : PublicFacts
    family : Family
    budget : GDP
        All of it is drawn.
    alpha : float
        Ridge penalty ``alpha / 2 ||b||^2`` on the slopes in original units, subtracted from the log-likelihood.
    steps : tuple of float, optional
        Relative budgets of the private steps.
    norms : RowNorms, optional
        Of new rows in the first space: what the radius is planned on. Default: by the public rows.
    robust : bool, default=True
        Whether to release the second moment of scores, for standard errors that do not rest on the family.
    """

    def __init__(
        self,
        facts: PublicFacts,
        family: Family,
        budget: GDP,
        alpha: float,
        steps: tuple[float, ...] | None = None,
        norms: RowNorms | None = None,
        *,
        robust: bool = True,
    ) -> None:
        self._labelled = labelled = has_prior(facts)
        self.facts = facts = planned_start(facts, budget) if labelled else start_in_reach(facts, budget)
        self.family = family
        self.alpha = alpha
        self.norms = norms
        natural = family == BinomialFamily  # the logistic residual always lies in [-1, 1]
        starts = not family.distribution.signed and facts.start.space.intercept and not labelled and not natural
        self._between = between(facts, family, budget.mu) if starts else None
        self._plans = ((steps, 0.0),) if steps else _plans(facts, family, budget)
        weights = self._scores(facts.n)
        alone = facts.public is None or facts.public.rows is None
        sized = not (labelled or natural or self._between)
        mean = MEAN_BOUNDED if natural else _MEAN_WITH_PRIOR if labelled else _MEAN_WITHOUT
        shares = {
            **design_shares(facts),
            "exposures": 0.0 if facts.exposure is None else _EXPOSURE,
            "exposed": 0.0 if facts.exposure is None else _EXPOSURE,
            "levels": _LEVELS * sized,
            "sizes": _SIZES * (sized and len(weights) > 2),
            "mean": 0.0 if not facts.start.space.intercept else mean,
            "remainder": remainder_share(facts.start.space),
            "information": _INFORMATION if steps is None and alone and weights in _WITH_INFORMATION else 0.0,
            "squares": meat_share(facts.n, facts.start.space.order, budget) if robust else 0.0,
        }
        start = 0.0 if labelled or not facts.start.space.intercept else mean_start_share(facts, budget)
        shares = _with_start(start, shares, looked=self._between is not None)
        self._spend, self._steps = allocate_budget(budget, shares, weights)
        self.squares = facts.start.space.order if "squares" in self._spend else 0

    def _scores(self, n: float) -> tuple[float, ...]:
        """The relative budgets of the scores, for so many rows of even classes."""
        return next((steps for steps, enough in self._plans if n >= enough), self._plans[-1][0])

    @property
    def asks(self) -> tuple[type[Query[Any]], ...] | None:
        if not has_order(self.family):
            return None
        exposures = (ExposureHistogram, ExposureScore) if self.facts.exposure is not None else ()
        gradients = (ClippedGradient,) if self._whole else ()
        asked = (
            SecondMoment,
            *gradients,
            ClippedScore,
            ScoreRemainder,
            ScoreSquares,
            *((BinomialInformation,) if self.family == BinomialFamily else ()),
            MeanResidual,
            ResponseHistogram,
            ResidualHistogram,
        )
        return (*asked, *exposures)

    @property
    def rounds(self) -> int:
        rated = self.family == BinomialFamily and "start" in self._spend
        asked = len(self._spend) + len(self._steps) + ("remainder" in self._spend) + rated
        if not self._labelled or self.family.distribution == BinomialFamily.distribution:
            return asked
        others = {before: self._without_labels(before) for before in range(1, len(self._steps))}
        return max([asked, *(1 + before + len(each._spend) + len(each._steps) for before, each in others.items())])

    def solve(self, ask: Ask) -> Solution:
        rated, rate = self._rated(ask) if self.family == BinomialFamily else (self, None)
        return rated._designed(ask, rate)

    def _designed(self, ask: Ask, rate: Rate | None) -> Solution:
        """From the Gram matrix on."""
        clip = CLIP if rate is None else 1 / math.sqrt(rate.value * (1 - rate.value))
        space, gram, n = released_design(ask, self.facts, self._spend, self._steps, self.norms, clip, whole=self._whole)
        solver = self.among(n)
        weights = self._scores(self.facts.n if rate is None else n * rate.evenness)
        if len(weights) < len(self._steps):
            solver._spend, left = dict(self._spend), []
            if "information" in self._spend and weights not in _WITH_INFORMATION:
                left = [solver._spend.pop("information")]
            solver._steps = split(joint_budget([*self._steps, *left]), weights)
        return solver._scored(among(ask, n), space, gram, rate)

    def _scored(self, ask: Ask, space: WhitenedSpace, mixed: MixedGram, rate: Rate | None) -> Solution:
        """From the Gram matrix of the usable rows."""
        gram = mixed.matrix
        rows = surrogate_rows(space, self.facts.public, gram, self.facts.schema)
        space = replace(space, response=ResponseScale(self.facts.target), exposure=self.facts.exposure)
        exposures = None
        if space.exposure is not None:
            exposures = released_exposures(ask, space, space.exposure, self._spend["exposures"])
            slopes = exposure_slopes(ask, space, gram, exposures, self._spend["exposed"])
            rows = rows.exposed(space.exposure, exposures, slopes)
        try:
            return self._fitted(ask, space, mixed, rows, exposures, rate)
        except LabelsContradicted as found:
            return self._without_labels(found.asked)._fitted(ask, space, mixed, rows, exposures, rate)

    def _without_labels(self, asked: int) -> ScoreSteps:
        """The same solver after so many scores, for what was to follow: labels are of another population."""
        other, facts = copy(self), self.facts
        left = joint_budget([*self._steps[asked:], *([self._spend["mean"]] if "mean" in self._spend else [])])
        intercept, signed = facts.start.space.intercept, self.family.distribution.signed
        other._between = between(facts, self.family, left.mu) if intercept and not signed else None
        looked = other._between is not None
        shares = {"levels": _LEVELS * (not looked), "sizes": _SIZES * (not looked), "mean": _MEAN_WITHOUT * intercept}
        start = mean_start_share(facts, left) if intercept else 0.0
        spend, other._steps = allocate_budget(left, _with_start(start, shares, looked=looked), STEPS_WITHOUT)
        other._spend, other._labelled = {**self._spend, **spend}, False
        return other

    def _fitted(
        self,
        ask: Ask,
        space: WhitenedSpace,
        mixed: MixedGram,
        rows: SurrogateRows,
        exposures: Magnitudes | None,
        rate: Rate | None,
    ) -> Solution:
        gram, n = mixed.matrix, self.facts.n
        weak = WeakPrior.of(space, gram, self.facts.schema) if has_scale(self.family) else None
        prior = self._prior(space, weak)
        amounts = None if self._between is None else self._amounts(ask, space, self._between)
        coef, doubt = (prior.coef, 0.0) if prior is not None else self._start(ask, space, exposures, amounts or rate)
        largest = Largest(self.family, self.facts, rows, float(space.mean_row(gram) @ coef))
        look = self._look(ask, space, coef, prior if amounts is None else amounts, largest)
        levels = None if look is None else look.levels
        model = self._model(space, rows, mixed, levels, None if prior is None else prior.rows)
        sized = SizedModel(ask, model, self._spend.get("sizes"), len(self._steps), look, largest)
        penalty = ridge_penalty(space, self.alpha, n)
        told = [ReleasedMean(model, coef, np.zeros(1), doubt)] if doubt else []
        begin, beyond = self._begin(model, coef, prior, weak), None
        if "remainder" in self._spend:
            spend, most = self._spend["remainder"], model.farthest
            beyond = AskedRemainder(ask, sized.truncation, partial(self._ordinary, sized), spend, n, WIDER, most)
        steps = take_steps(ask, sized, begin, self._steps, penalty, n, told, beyond)
        model, coef, equation, steps = sized.model.resolved, steps.coef, None, steps.resolved
        answer, wide = (None, None) if beyond is None else (beyond.first, beyond.wide)
        paid = self._steps[-1], self._spend.get("squares")
        squares = released_squares(ask, model, steps.coef, *paid, n, answer)
        if "information" in self._spend:
            difference = released_difference(ask, model, steps.coef, self._spend["information"])
            steps = with_difference(steps, model, difference)
            squares = replace(squares, slope=squares.slope + difference)
        if "mean" in self._spend:
            if prior is not None and levels is not None:
                levels = Magnitudes.of_sample(prior.residuals).with_hidden_tail(_HIDDEN / len(prior.residuals), FAR)
            elif isinstance(model, SurrogateModel):
                levels = model.levels
            clip = math.inf if levels is None else model.question(coef, self._steps[-1]).clip
            most = 0.0 if sized.coded or self.facts.coded else largest.usual(coef)
            step = MeanStep(self.family, space, rows, levels, n, most)
            found = step.released(ask, self._spend["mean"], coef, clip)
            coef, equation = found.adjusted(steps.uncertainty.total), found.equation
        known = model, steps, squares, equation, mixed, n, answer, wide
        there = are_where_public_rows_are(space, gram, self.facts.known_rows)
        estimates = scored_estimates(*known, identified=sized.vary and there)
        limits = declared_limits(self.facts, self.family)
        within = reach(self.facts, self.family, space, rows, coef, steps.uncertainty)
        return Solution(coef, steps.system, space, None, steps.uncertainty, estimates, reach=within, limits=limits)

    @property
    def _whole(self) -> bool:
        """Whether scores may be gradients of whole rows: of two classes, if public rows show how long rows are."""
        return self.family == BinomialFamily and shows_lengths(self.facts.public, self.facts.start.space.order)

    def _prior(self, space: WhitenedSpace, weak: WeakPrior | None) -> PublicFit | None:
        public = self.facts.public
        return fit_public(public, space, self.family, weak) if self._labelled and public else None

    def _rated(self, ask: Ask) -> tuple[ScoreSteps, Rate | None]:
        """The rate of the second class, of public labels or released, which says how little a row tells.

        Of a rare class the mean is most of what can be told: what then remains has less for the scores.
        """
        if "start" not in self._spend:
            labels = self.facts.trusted_labels
            if labels is None or not self._labelled:
                return self, None
            return self, Rate.of(float(np.mean(labels)), 0.0, len(labels))
        space = self.facts.start.space.with_response(ResponseScale(self.facts.target))
        query = Counted(MeanResidual(space, BinomialFamily, np.zeros(space.order), -0.5, 0.5))
        first = ask(query, self._spend["start"])
        value, n, noise = float(first.mean[0]), first.n, query.noise(self._spend["start"], first.n)
        rate, scores = Rate.of(0.5 + value, noise, n), joint_budget(self._steps)
        share = again_share(space, scores, n, rate, noise)
        if not share:
            return self, rate
        spend, left = split(scores, [share, 1 - share])
        other = copy(self)
        other._steps = split(left, self._scores(self.facts.n))
        again = ask(query, spend)
        error = query.noise(spend, again.n)
        gain = noise**2 / (noise**2 + error**2)
        value += gain * (float(again.mean[0]) - value)
        return other, Rate.of(0.5 + value, math.sqrt(gain) * error, again.n)

    def _amounts(self, ask: Ask, space: WhitenedSpace, bounds: tuple[float, float]) -> Amounts:
        """The response between its bounds, where noise hides the bins of a histogram."""
        look, rest = self._spend["where"], self._spend["start"]
        return Amounts.released(ask, space, self.facts, bounds, look, rest, counts=may_be_none(self.family))

    def _start(
        self, ask: Ask, space: WhitenedSpace, exposures: Magnitudes | None, known: Rate | Amounts | None
    ) -> tuple[Vector, float]:
        """No slopes, and the intercept of the mean with its variance: of two classes their rate, else the mean size."""
        if "start" not in self._spend:
            return np.zeros(space.order), 0.0
        if known is None:
            seen = ask(ResponseHistogram(space, EDGES), self._spend["start"])
            mean = likely_mean(self.family, seen, self.facts.response_bounds, self.facts.possible)
            known = Rate(mean, (ROUGH * mean) ** 2)
        level = self.family.link.predictor(known.value)
        if exposures is not None:  # the link is the logarithm: the overall rate
            level -= math.log(exposures.mean)
        return level * space.constant, known.variance

    def _look(
        self, ask: Ask, space: WhitenedSpace, coef: Vector, known: PublicFit | Amounts | None, most: Largest
    ) -> Looked | None:
        """Sizes of residuals at the start, from the public rows or released; None if they are bounded anyway."""
        if self.family == BinomialFamily:
            return None
        if isinstance(known, PublicFit):
            return Looked(Magnitudes.of_sample(known.residuals * known.rows.weight))
        if known is not None:
            return known.sizes(float(self.family.factor(np.array([self.family.link.predictor(known.value)]))[0]))
        return released_sizes(ask, space, self.family, coef, self._spend["levels"], most, pooled=True)

    def _model(
        self,
        space: WhitenedSpace,
        rows: SurrogateRows,
        mixed: MixedGram,
        levels: Magnitudes | None,
        labelled: LabelledRows | None,
    ) -> FamilyModel:
        common = self.family, space, rows, mixed.matrix, self.facts.n, mixed.variance
        if levels is None:
            model = BinaryModel(*common, labelled)
            known = self._whole and rows.complete(_MISSED * space.radius**2, mixed.floor)
            return model.whole if known else model
        return SurrogateModel(*common, levels, labelled)

    def _ordinary(self, sized: SizedModel, query: Asked) -> Untruncated:
        """The ordinary score where the remainder is asked, with the tail that clips take if labels tell of it."""
        model = sized.model
        seen = model.clipped(query.score.coef, query.score.clip).square if self._labelled else None
        return untruncated(model, query, seen)

    def _begin(self, model: FamilyModel, coef: Vector, prior: PublicFit | None, weak: WeakPrior | None) -> Beginning:
        if prior is not None:
            return Beginning(prior.prior, prior.dispersion, weak)
        return model.beginning(coef, weak)


def _plans(facts: PublicFacts, family: Family, budget: GDP) -> tuple[tuple[tuple[float, ...], float], ...]:
    """Relative budgets of scores, the most first, with the number of rows of even classes from which they are asked."""
    order, labelled = facts.start.space.order, has_prior(facts)
    if family != BinomialFamily:
        return ((STEPS_WITH_PRIOR if labelled else STEPS_WITHOUT, 0.0),)
    most, many = (STEPS_OF_MOST, order * (_MOST / budget.mu)), (STEPS_OF_MANY, order * (_MANY / budget.mu))
    if labelled and not _few_events(facts):
        return most, (STEPS_WITH_PRIOR, 0.0)
    return most, many, (STEPS_OF_CLASSES, 0.0)


def _with_start(start: float, shares: dict[str, float], *, looked: bool) -> dict[str, float]:
    """Shares with that of the start, in two parts where the response is looked for first; all else shares the rest."""
    if start > START:
        shares = {name: share * (1 - start) / (1 - START) for name, share in shares.items()}
    where = LOOK * start if looked else 0.0
    return {"where": where, "start": start - where, **leaving_steps(shares, 1 - start)}


def _few_events(facts: PublicFacts) -> bool:
    """Whether fewer public rows than coefficients are of the rarer class: their fit is little but its penalty."""
    labels = facts.trusted_labels
    return labels is not None and min(labels.sum(), (1 - labels).sum()) < facts.start.space.order

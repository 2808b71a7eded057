r"""Residual steps: least squares from one private Gram matrix and a few private correlations with residuals.

Every choice is a function of public facts or of earlier releases (docs/methods/residual.md):

1. coordinates from the public moment, refined for 10% of mu^2 if there are few public rows; a radius that depends on
   the budget;
2. a start: with labelled public rows their ridge fit, with its covariance as a prior; otherwise the mean response
   between bounds from the schema or from a private histogram of its values or of their sizes;
3. one private Gram matrix of the weighted rows, mixed with that of the public rows;
4. steps ``b += K H^{-1} [mean(s x clip(s (y - x'b), +-C)) + noise]``, K the Kalman gain given what is known before;
5. the mean residual between wide bounds, which corrects the intercept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.public import response
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms
from dpregress.queries import (
    Ask,
    ClippedGradient,
    ClippedScore,
    Counted,
    FarVotes,
    MeanResidual,
    Query,
    ResidualHistogram,
    ResponseHistogram,
    ScoreRemainder,
    ScoreSquares,
    SecondMoment,
    ShortenedRows,
    among,
)
from dpregress.releases import ANYWHERE
from dpregress.solvers.base import FactSolver, Solution, Uncertainty
from dpregress.solvers.linear.estimates import FinalScore
from dpregress.solvers.linear.far_rows import Kept, confirmed, confirmed_reach, far_share, held_back
from dpregress.solvers.linear.one_shot import scale_share
from dpregress.solvers.linear.residual_plan import (
    plan_labelled,
    score_noise,
    start_share,
    uses_labels,
    with_clear_gram,
)
from dpregress.solvers.linear.residual_sizes import Sizes
from dpregress.solvers.linear.scores import LinearScore, Scores, linear_scores
from dpregress.solvers.linear.start import ResponseStart
from dpregress.solvers.shared.budget import allocate_budget, has_prior, joint_budget
from dpregress.solvers.shared.gram import far_apart, mixed_gram
from dpregress.solvers.shared.linear_prior import LinearPrior
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.posterior import Posterior, Taken, most_left
from dpregress.solvers.shared.public_prior import PublicLabels
from dpregress.solvers.shared.radius_plan import HIDDEN, plan_unlabelled
from dpregress.solvers.shared.remainder import remainder_share
from dpregress.solvers.shared.repair import STEPS_FOLLOW, gram_floor, ridge_penalty, solvable
from dpregress.solvers.shared.sandwich import meat_share
from dpregress.solvers.shared.surrogate import shows_lengths
from dpregress.solvers.shared.unresolved import Way, unresolved_covariance
from dpregress.solvers.shared.whitening import (
    REFINE,
    Rewhitened,
    far_public_rows,
    refined_in_turn,
    refinements,
    rewhitened,
    start_from_few,
    without_far_rows,
)

#: With labels: shares of the Gram matrix and of the mean residual, and equal steps.
_GRAM_LABELLED, _MEAN_LABELLED, STEPS_LABELLED = 0.10, 0.10, (1.0, 1.0, 1.0)
#: Without labels: shares of what is left after the mean response.
_GRAM, _MEAN, _LEVELS, _MOST_LEVELS = 0.15, 0.08, 0.03, 0.08
#: The share of the start that looks for the response between bounds, and the n mu from which a mean is plain.
_WHERE, _PLAIN = 0.5, 500.0
#: The n mu up to which bounds may be so wide that a mean between them is noise, and the share of a look for that.
_SURELY_PLAIN, _GLANCE = 5_000.0, 0.01
#: Without labels: steps, of which the last also pays for votes of far rows, and those before which sizes are asked.
STEPS, SIZED = (1.0,) * 6 + (3.0,), (0, 1, 3)
#: If the noise of a step exceeds 1/8 of the reach of y: three steps, one histogram, and more for the mean.
_FEW, STEPS_FEW, _MEAN_FEW = 8.0, (1.0,) * 3, 0.15
#: If it exceeds this share of it, gradients of whole rows need a clear Gram matrix.
_DROWNS = 1 / 3
#: From about this n mu on, a histogram of residuals is useful.
_USEFUL = 50.0
#: The share of the first step that a second Gram matrix costs, if private rows are far from the public ones.
_AGAIN = 0.5
#: The n mu at which a histogram determines the size of residuals, and its share of a step: of the last step if that
#: suffices, and of all steps if public labels are not informative.
_CLEAR, _LEAST_LOOK, _LOOK = 300.0, 0.01, 0.1
#: The largest ratio of the median sizes of private and public residuals, and of the median norms of rows.
_UNLIKE = 2.0


class _Found(NamedTuple):
    """The form of scores, with the Gram matrix and its space, the remaining steps, and the number of usable rows."""

    scores: Scores
    steps: tuple[GDP, ...]
    n: int


class Residual(FactSolver):
    """Noisy least squares by residuals, with or without a public prior.

    Parameters
    ----------
    facts : PublicFacts
    budget : GDP
        All of it is drawn.
    alpha : float
        Ridge penalty, as in scikit-learn.
    norms : RowNorms, optional
        Norms of new rows in the first space, for planning the radius. Default: estimated from the public rows.
    robust : bool, default=True
        Whether to release the second moment of scores, for standard errors under unequal error variances.

    Raises
    ------
    UnboundedData
        If nothing public bounds the response and n mu is too small to estimate its scale privately.
    """

    def __init__(
        self, facts: PublicFacts, budget: GDP, alpha: float, norms: RowNorms | None = None, *, robust: bool = True
    ) -> None:
        facts = start_from_few(facts, budget)
        self.alpha = alpha
        far = far_public_rows(facts)
        self.labelled, self.far_public = uses_labels(facts, budget), float(np.mean(far))
        if norms is None and not self.labelled:
            facts, norms = without_far_rows(facts, far)
        self.facts, space = facts, facts.start.space
        self.norms = RowNorms.of(facts.public, space, refined=facts.start.refinements > 0) if norms is None else norms
        self.declared = response.from_bounds(facts.target, facts.schema, space)
        noise = score_noise(space, self.norms.median, budget, facts.n)
        self._clear = self.labelled or facts.start.refinements > 0 or noise > _DROWNS
        self._squares = meat_share(facts.n, space.order, budget) if robust else 0.0
        self._far = (space.order > space.intercept) * far_share(
            facts.n, budget, self.far_public, labelled=self.labelled
        )
        shares, steps = self._labelled_shares() if self.labelled else self._shares(budget, noise)
        self._spend, self._steps = allocate_budget(budget, shares, steps)
        self.squares = space.order if self._squares else 0

    @property
    def asks(self) -> tuple[type[Query[Any]], ...]:
        histograms = (ResponseHistogram, ResidualHistogram)
        scores = (ClippedScore, ClippedGradient, ScoreRemainder, ScoreSquares, MeanResidual)
        return (SecondMoment, *scores, ShortenedRows, FarVotes, *histograms)

    @property
    def rounds(self) -> int:
        """The largest number, with a second Gram matrix, without trusted labels, and with far rows or a wrong model."""
        more = 2 if "far" in self._spend else "remainder" in self._spend
        return len(self._spend) + more + len(self._steps) * (1 + self.labelled) + self._may_repeat

    @property
    def _scores(self) -> GDP:
        """The cost of all steps together."""
        return joint_budget(self._steps)

    @property
    def _may_repeat(self) -> bool:
        """Whether a second Gram matrix may follow if the first is far from that of the public rows."""
        public = self.facts.public
        seen = public is not None and public.rows is not None and not self.facts.start.refinements
        return seen and (self.labelled or len(self._steps) > len(STEPS_FEW))

    def solve(self, ask: Ask) -> Solution:
        start = Rewhitened(self.facts.start.space, self.norms)
        # rows with uncommon levels stay out of reach: a level may explain a large residual, which their weight shortens
        better = refined_in_turn(ask, start, [self._spend[turn] for turn in refinements(self.facts)], None)
        space, norms = better.space, better.norms
        return self._from_prior(ask, space, norms) if self.labelled else self._from_nothing(ask, space, norms)

    # ------------------------------------------------------------------ shares of the budget

    def _labelled_shares(self) -> tuple[dict[str, float], tuple[float, ...]]:
        start = self.facts.start
        shares = {
            **dict.fromkeys(refinements(self.facts), REFINE),
            "gram": _GRAM_LABELLED,
            "mean": _MEAN_LABELLED if start.space.intercept else 0.0,
            "far": self._far,
            "remainder": remainder_share(self.facts.start.space),
            "squares": self._squares,
        }
        return shares, STEPS_LABELLED

    def _shares(self, budget: GDP, noise: float) -> tuple[dict[str, float], tuple[float, ...]]:
        start, n_mu = self.facts.start, self.facts.n * budget.mu
        few = noise > 1 / _FEW
        levels = min(max((_USEFUL / n_mu) ** 2, _LEVELS), _MOST_LEVELS)
        scale = scale_share(self.facts, budget) if self.declared is None else 0.0
        first = start_share(self.facts.n, budget, noise) * (1 - scale) if start.space.intercept else 0.0
        looked = self.declared is not None and (few or n_mu < _PLAIN)  # sizes at the mean are known from there
        glance = _GLANCE if self.declared is not None and first and n_mu < _SURELY_PLAIN else 0.0
        shares = {
            **dict.fromkeys(refinements(self.facts), REFINE),
            "gram": _GRAM,
            "mean": (_MEAN_FEW if few else _MEAN) if start.space.intercept else 0.0,
            **{f"levels {turn}": levels for turn in SIZED[: 1 if few else None] if turn or not looked},
            "far": self._far,
            "remainder": remainder_share(self.facts.start.space),
            "squares": self._squares,
        }
        left = {name: share * (1 - scale - first) for name, share in shares.items()}
        where = max(_WHERE * first, levels) if looked else glance
        return {"scale": scale, "where": where, "start": max(first - where, 0.0), **left}, STEPS_FEW if few else STEPS

    # ------------------------------------------------------------------ with labelled public rows

    def _from_prior(self, ask: Ask, space: WhitenedSpace, norms: RowNorms) -> Solution:
        public, labels = self.facts.public, self.facts.trusted_labels
        assert public is not None
        assert public.rows is not None
        assert labels is not None
        centre = float(np.mean(labels)) if space.intercept else 0.0
        x, n, scores, gram = space.whiten(public.rows), self.facts.n, self._scores, self._spend["gram"]
        if has_prior(self.facts):
            known = self._labelled_prior(space, np.eye(space.order), public.rows, labels - centre).by_labels
            plan = plan_labelled(x, known, norms, n=n, scores=scores, gram=gram, steps=len(self._steps))
        else:
            plan = plan_unlabelled(norms, space.order, n=n, scores=scores, gram=gram)
        longest = plan.radius
        if shows_lengths(public, space.order):
            plan = with_clear_gram(plan, x, norms, n=n, scores=scores, gram=gram)
        found = self._gram(ask, self._truncated_space(space, plan.radius, centre))
        counted = self.among(found.n)
        prior = counted._labelled_prior(found.scores.space, found.scores.mixed.matrix, public.rows, labels - centre)
        clip = plan.clip if has_prior(self.facts) and plan.radius == longest and not found.scores.whole else None
        return counted._sharpened(among(ask, found.n), found, clip, prior)

    def _labelled_prior(self, space: WhitenedSpace, gram: Matrix, rows: Matrix, labels: Vector) -> LinearPrior:
        """What labels tell; the mean may lie anywhere beside that."""
        told = PublicLabels.of(space, rows, labels, self._penalty(space))
        return LinearPrior(space, gram, np.zeros(space.order), float(np.var(labels)), float(np.mean(labels**2)), told)

    def _sharpened(self, ask: Ask, found: _Found, planned: float | None, prior: LinearPrior) -> Solution:
        """The fit of the public rows, updated by steps over the usable rows, with the planned clip if there is one."""
        scores, steps, n = found
        space, mixed = scores.space, scores.mixed
        gram, penalty = mixed.matrix, self._penalty(space)
        assert prior.labels is not None
        fit, weights = prior.by_labels, space.weights(prior.labels.x)
        levels = Magnitudes.of_sample(weights * fit.residuals)
        levels = levels if self.facts.coded else levels.with_hidden_tail(HIDDEN / len(weights))
        sizes = shown = Sizes.of_labels(levels, prior.labels.y)
        dispersion, trusted, taken = fit.dispersion, not fit.unseen and not shown.tail, list[Taken]()
        prior = replace(prior, sampling=np.asarray(dispersion / n * np.linalg.inv(gram)))
        posterior = before = prior.after(taken)
        reach, usual = float(levels.size.max()), max(levels.median, 1e-300)
        told, declared = list[LinearScore](), self.facts.possible is not None
        for turn, spend in enumerate(steps):
            last = turn == len(steps) - 1
            spend, kept = self._held_back(ask, found, spend) if last else (spend, None)
            slack, clipped = mixed.variance, 1.0
            share = (_CLEAR / (n * spend.mu)) ** 2
            look = not trusted or share <= (_LOOK if last else _LEAST_LOOK)
            if look:
                share = min(max(share, _LEAST_LOOK), _LOOK)
                cost, spend = split(spend, (share, 1 - share))
                coef, most = posterior.coef, 2 * self._range(levels)
                sizes = Sizes.asked(ask, space, coef, reach, cost, most=most, before=shown, declared=declared)
                trusted = trusted and (sizes.blind or 1 / _UNLIKE < sizes.levels.median / usual < _UNLIKE)
                if not sizes.blind:
                    dispersion = self._dispersion(sizes.levels, space)
            if not trusted and not sizes.blind:
                levels, reach = sizes.levels, max(reach, sizes.levels.root_mean_square)
            clip = planned if trusted and planned is not None else scores.planned_clip(posterior.coef, levels, spend, n)
            if look:
                clipped = scores.clipped(sizes.levels, clip)
            slack += 0.0 if trusted else clipped**2 / space.order
            step, score = scores.step(ask, posterior.coef, levels, clip, spend, penalty, n)
            told.append(score)
            trusted = trusted and posterior.inflated(step) is posterior
            taken.append(Taken(posterior.coef, step, slack, most_left(step.system, mixed.off, clipped)))
            posterior = prior.after(taken)
        vary = not (shown.blind and sizes.blind)
        return self._finished(ask, found, posterior, told, levels, clip, dispersion, kept, before, identified=vary)

    # ------------------------------------------------------------------ without

    def _from_nothing(self, ask: Ask, space: WhitenedSpace, norms: RowNorms) -> Solution:
        n = self.facts.n
        start = ResponseStart.of(ask, space, self.facts.target, self.declared, self._spend)
        plan = plan_unlabelled(norms, space.order, n=n, scores=self._scores, gram=self._spend["gram"])
        space = self._truncated_space(space, plan.radius, start.centre)
        if "start" in self._spend:
            start = start.averaged(ask, space, self._spend["start"], n)
        found = self._gram(ask, space)
        return self.among(found.n)._found_out(among(ask, found.n), found, start)

    def _found_out(self, ask: Ask, found: _Found, start: ResponseStart) -> Solution:
        """Steps over the usable rows, starting from the mean response."""
        scores, steps, n = found
        space, mixed = scores.space, scores.mixed
        gram, penalty = mixed.matrix, self._penalty(space)
        coef = start.mean * space.constant if space.intercept else np.zeros(space.order)
        prior, taken, beyond = LinearPrior(space, gram, coef, 0.0, start.doubt), list[Taken](), False
        told, seen, declared = list[LinearScore](), list[Sizes](), self.facts.possible is not None
        sizes = start.sizes or Sizes.unknown(start.reach)
        for turn, spend in enumerate(steps):
            spend, kept = self._held_back(ask, found, spend) if turn == len(steps) - 1 else (spend, None)
            if f"levels {turn}" in self._spend:
                asked, most = self._spend[f"levels {turn}"], 2 * self._range(sizes.levels)
                sizes = start.looked(ask, space, coef, asked, most, sizes, declared=declared)
                seen.append(sizes)
                prior = prior.varying(coef, sizes.levels.root_mean_square)
            if not turn:
                variance = (start.reach / 3) ** 2 if sizes.blind else sizes.levels.root_mean_square**2
                prior = replace(prior, variance=variance)
                beyond = start.shows_beyond(sizes)
            clip, latest = scores.planned_clip(coef, sizes.levels, spend, n), f"levels {turn}" in self._spend
            step, score = scores.step(ask, coef, sizes.levels, clip, spend, penalty, n, latest=latest)
            told.append(score)
            # the Gram matrix is noisy, and the clipped correlation has a smaller slope than the system
            slack = mixed.variance + score.clipped**2 / space.order
            taken.append(Taken(coef, step, slack, most_left(step.system, mixed.off, score.clipped)))
            posterior = prior.after(taken)
            coef = posterior.coef
        spread, vary = self._dispersion(sizes.levels, space), start.shows_others(seen)
        last = posterior, told, sizes.levels, clip, spread, kept
        return self._finished(ask, found, *last, identified=vary, beyond=beyond)

    # ------------------------------------------------------------------ what both share

    def _truncated_space(self, space: WhitenedSpace, radius: float, centre: float) -> WhitenedSpace:
        better = space.rewhitened(np.eye(space.order), radius)
        return better.with_response(ResponseScale(self.facts.target, centre))

    def _penalty(self, space: WhitenedSpace) -> Matrix:
        return ridge_penalty(space, self.alpha, self.facts.n)

    def _system(self, space: WhitenedSpace, gram: Matrix) -> Matrix:
        return solvable(gram + self._penalty(space))

    def _gram(self, ask: Ask, space: WhitenedSpace) -> _Found:
        """The Gram matrix of the usable rows, or a second one if the public rows are misleading.

        The second is paid from the first step, in coordinates whitened by the first matrix.
        """
        moments = ask(Counted(SecondMoment(space.with_response(None))), self._spend["gram"])
        # with labels the radius follows public norms: one far row would then be most of the public rows' matrix
        known = None if self.labelled and self.facts.start.refinements else self.facts.known_rows
        rows = None if known is None else space.whiten(known)
        if known is None or rows is None or not self._may_repeat or not far_apart(moments, rows):
            mixed = mixed_gram(moments, rows, STEPS_FOLLOW)
            scores = linear_scores(self.facts, space, mixed, clear=self._clear)
            return _Found(scores, self._steps, moments.n)
        again, first = split(self._steps[0], (_AGAIN, 1 - _AGAIN))
        better = rewhitened(space, moments, gram_floor(moments, STEPS_FOLLOW))
        radius = better.norms.median * space.radius / self.norms.median  # keeps the ratio to the median
        space = better.space.rewhitened(np.eye(space.order), radius)
        moments = ask(Counted(SecondMoment(space.with_response(None))), again)
        lengths = np.linalg.norm(space.whiten(known), axis=1)
        alike = 1 / _UNLIKE < float(np.median(lengths)) / better.norms.median < _UNLIKE
        scores = linear_scores(self.facts, space, mixed_gram(moments, None), alike=alike)
        return _Found(scores, (first, *self._steps[1:]), moments.n)

    def _held_back(self, ask: Ask, found: _Found, step: GDP) -> tuple[GDP, Kept | None]:
        """What is left of the last step where there are far rows, and what they are asked for."""
        spend, scores = self._spend.get("far"), found.scores
        return held_back(ask, scores.space, scores.mixed.matrix, spend, step, n=self.facts.n, public=self.far_public)

    def _dispersion(self, levels: Magnitudes, space: WhitenedSpace) -> float:
        """The dispersion of residuals, from the sizes of weighted residuals."""
        return levels.root_mean_square**2 / self._mean_weight(space)

    def _mean_weight(self, space: WhitenedSpace) -> float:
        """The mean squared weight of a row."""
        return float(np.mean(np.minimum(1.0, space.radius / self.norms.sample) ** 2))

    def _finished(
        self, ask: Ask, found: _Found, posterior: Posterior, told: Sequence[LinearScore], levels: Magnitudes,
        clip: float, dispersion: float, kept: Kept | None, before: Posterior | None = None,
        *, identified: bool = True, beyond: bool = False,
    ) -> Solution:  # fmt: skip
        """Release the second moment of scores, and update the intercept by the released mean residual.

        ``before`` is what labels tell before the first step, ``identified`` whether responses are known to vary, and
        ``beyond`` whether many are beyond their bounds.
        """
        space, mixed, coef, n = found.scores.space, found.scores.mixed, posterior.coef, self.facts.n
        way = Way(coef - told[0].asked, posterior.known)
        # a longer slope would leave larger residuals in all rows but the few that a histogram hides
        most = min(self._range(levels), float(levels.size[levels.share > 0].max()))
        hidden = unresolved_covariance(space, mixed, len(self._steps), most, self.facts.schema, way)
        votes = None if kept is None else confirmed(ask, space, coef, mixed.matrix, kept.votes)
        if votes is not None:  # what far rows say otherwise is as much as the coefficients may be off
            coef, hidden = coef + votes.unlimited, hidden + np.outer(votes.unlimited, votes.unlimited)
        final = FinalScore(found.scores, coef, told[-1].asked, clip, levels, dispersion, self._mean_weight(space))
        spend, mean, remainder = self._spend.get("remainder"), self._spend.get("mean"), None
        if spend is not None:
            remainder, mean = final.remainder(ask, spend, mean, None if kept is None else kept.wider, n)
        query = None if remainder is None else remainder.answer.query
        meat = final.meat(ask, query, self._spend.get("squares"), n)
        equation = None if mean is None else final.mean_residual(ask, mean, n)
        result = final.estimates(told, meat, equation, hidden, n, remainder, identified=identified)
        if remainder is not None and votes is None:  # far rows are predicted by their votes
            coef = coef + replace(remainder, wide=None).move(coef, penalty=self._penalty(space)).value
        if equation is not None:
            coef = coef + final.moved(equation, posterior.known, before) * space.constant
        coef = coef if votes is None else coef + (votes.move - votes.unlimited)
        sampling = dispersion / n * np.linalg.inv(mixed.matrix)
        uncertainty = Uncertainty(posterior.privacy, sampling + posterior.known + hidden)
        bounds = None if beyond else self.facts.credible_bounds
        reach = confirmed_reach(self.facts, space, coef, mixed.matrix, votes, bounds, counted="far" in self._spend)
        limits = None if reach == (bounds or ANYWHERE) else bounds or ANYWHERE
        system = self._system(space, mixed.matrix)
        return Solution(coef, system, space, None, uncertainty, result, reach=reach, limits=limits)

    def _range(self, levels: Magnitudes) -> float:
        """Half the range of the response: declared, that of public labels, or of the residuals seen."""
        if self.declared is not None:
            return self.declared.scale * self.declared.bound
        labels = self.facts.trusted_labels
        return float(levels.size.max()) if labels is None else float(np.ptp(labels)) / 2

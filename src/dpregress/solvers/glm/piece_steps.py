r"""Proportional hazards that are constant in pieces of the follow-up, from private scores and informations of persons.

1. coordinates as for score steps; the radius is weighed against the budget;
2. events and time at risk by piece give the log hazards without features;
3. before each score the information there, merged with that before as far as noise explains their difference;
4. scores, each at the coefficients that explain all before it best. Between two places the expected score changes by
   the mean of both informations times the way.

Everything is about persons: each query sums over a person's pieces and bounds the sum (docs/methods/survival.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.coordinates.matrices import eigen, sandwich
from dpregress.models import contrasts
from dpregress.models.hazards import checked_cuts
from dpregress.public.facts import PublicFacts
from dpregress.public.radius import RowNorms
from dpregress.queries import (
    Ask,
    PieceInformation,
    PieceScore,
    PieceTotals,
    Query,
    ScoreSquares,
    SecondMoment,
    noise_in_mean,
)
from dpregress.releases import Isotropic
from dpregress.solvers.base import FactSolver, Solution, Uncertainty, Unshrunk
from dpregress.solvers.shared.budget import allocate_budget, joint_budget
from dpregress.solvers.shared.explained import Evidence, SlopesPrior, explain
from dpregress.solvers.shared.gram import spectral_noise
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.radius_plan import plan_unlabelled
from dpregress.solvers.shared.repair import floored
from dpregress.solvers.shared.sandwich import Meat, meat_share, released_meat, unshrunk
from dpregress.solvers.shared.whitening import REFINE, Rewhitened, planned_start, refined_in_turn, refinements

#: Shares of mu^2 of the totals by piece and of all informations, and relative budgets of the scores.
_TOTALS, _INFORMATION, _SCORES = 0.05, 0.20, (1.0, 1.0, 2.0)
#: Residuals of persons are clipped at this many times the hazard cumulated over the follow-up, between these; but no
#: lower than the root of the clip at which the noise of a score is this large, so that clips vanish with the noise.
_CUMULATED, _LEAST_CLIP, _MOST_CLIP, _AFFORDABLE = 1.5, 1.1, 4.0, 0.002
#: The longest change of predictors in one step, as of a log link.
_LONGEST = 3.0
#: What the information misses of a change, as a share of its squared length, where it is long.
_BENT = 0.5
#: Eigenvalues of a released information below this many norms of its noise are raised to it, and tell nothing.
_NOISES = 0.5
#: Events of a piece that stand out, in standard deviations of their noise.
_COUNTED = 3.0
#: How far estimates may be from the fit, in standard deviations of a predictor: along what the information does not
#: tell, and elsewhere.
_UNRESOLVED, _RESOLVED = 1.0, 3.0
#: Share of the squared length of a piece's log hazard that may lie along what is not identified, as of coefficients.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, eq=False)
class PieceSolution(Solution):
    """The result of :class:`PieceSteps`, with the log hazards of pieces relative to their mean.

    Attributes
    ----------
    relative : ndarray of shape (K,)
    relative_covariance : ndarray of shape (K, K)
        Of sampling and privacy noise; NaN for pieces that are not identified.
    """

    relative: Vector | None = None
    relative_covariance: Matrix | None = None


@dataclass(frozen=True, eq=False)
class _Known:
    """A released information and the variance of its entries."""

    matrix: Matrix
    variance: float

    def merged(self, before: _Known) -> _Known:
        """With one that was released elsewhere, as far as noise explains the difference of the two."""
        noise = self.variance + before.variance
        moved = max(float(np.mean((self.matrix - before.matrix) ** 2)) - noise, 0.0)
        share = self.variance / (noise + moved)
        return _Known((1 - share) * self.matrix + share * before.matrix, self.variance * (1 - share))

    @property
    def solvable(self) -> Matrix:
        """With eigenvalues above the noise."""
        return floored(self.matrix, self._floor)

    def unidentified(self, order: int) -> Matrix:
        """The projection on directions of so many whitened columns along which noise hides it."""
        values, vectors = eigen(self.matrix[:order, :order])
        hidden = vectors[:, values <= self._floor]
        return np.asarray(hidden @ hidden.T)

    @property
    def _floor(self) -> float:
        return _NOISES * spectral_noise(self.variance, len(self.matrix))


@dataclass(frozen=True, eq=False)
class _Told(Evidence):
    """A released score, with the information where it was asked and where the coefficients are now."""

    asked: Vector
    value: Vector
    variance: float
    here: Matrix
    there: Matrix
    entry: float

    @property
    def information(self) -> Matrix:
        """Their mean, with eigenvalues above the noise."""
        return _Known((self.here + self.there) / 2, self.entry).solvable

    def change(self, coef: Vector) -> Vector:
        return np.asarray(self.information @ (coef - self.asked))

    def slope(self, coef: Vector) -> Matrix:  # noqa: ARG002  # the same everywhere
        return self.information

    def error(self, coef: Vector) -> float:
        move = coef - self.asked
        whole = max(float(np.trace(self.information)) / len(move), 1e-300)
        length = float(move @ self.information @ move) / whole
        bent = _BENT * min(length, 1.0) * float(np.sum(self.change(coef) ** 2)) / len(coef)
        return bent + self.entry * float(move @ move)


class PieceSteps(FactSolver):
    """Noisy scoring of proportional hazards that are constant in pieces.

    Parameters
    ----------
    facts : PublicFacts
        With an exposure, the time, and an intercept.
    cuts : sequence of float
        Public ends of the pieces; the last is the end of the follow-up.
    budget : GDP
        All of it is drawn.
    scores : tuple of float, optional
        Relative budgets of the scores.
    robust : bool, default=True
        Whether to release the second moment of scores.
    """

    def __init__(
        self,
        facts: PublicFacts,
        cuts: Sequence[float],
        budget: GDP,
        scores: tuple[float, ...] = _SCORES,
        *,
        robust: bool = True,
    ) -> None:
        self.facts = facts = planned_start(facts, budget)
        self.cuts = checked_cuts(cuts)
        order = facts.start.space.order + len(self.cuts) - 1
        shares = {
            **dict.fromkeys(refinements(facts), REFINE),
            "totals": _TOTALS,
            **{f"information {turn}": _INFORMATION / len(scores) for turn in range(len(scores))},
            "squares": meat_share(facts.n, order, budget) if robust else 0.0,
        }
        self._spend, self._scores = allocate_budget(budget, shares, scores)
        self.squares = order if "squares" in self._spend else 0
        self.pieces = len(self.cuts)

    @property
    def asks(self) -> tuple[type[Query[Any]], ...]:
        return (SecondMoment, PieceTotals, PieceInformation, PieceScore, ScoreSquares)

    @property
    def rounds(self) -> int:
        return len(self._spend) + len(self._scores)

    def solve(self, ask: Ask) -> Solution:
        space, norms = self._space(ask)
        start, clip, counted = self._start(ask, space)
        p, basis = space.order, contrasts(len(self.cuts)) if len(self.cuts) > 1 else np.zeros((1, 0))
        prior = self._prior(space, start)
        coef, told = start, list[_Told]()
        known: _Known | None = None
        for turn, spend in enumerate(self._scores):
            known = self._information(ask, space, coef, clip, self._spend[f"information {turn}"], known)
            told = [replace(each, there=known.matrix) for each in told]
            question = PieceScore(space, self.cuts, coef, clip)
            variance = question.noise(spend, self.facts.n) ** 2
            value = ask(question, spend).mean
            told.append(_Told(coef, value, variance, known.matrix, known.matrix, known.variance))
            asked = coef
            found = explain(told, prior, coef, partial(_limited, information=known.solvable))
            coef = found.coef if np.isfinite(found.coef).all() else asked
        assert known is not None
        information = known.solvable
        meat = self._meat(ask, PieceScore(space, self.cuts, coef, clip), information, norms)
        lost = (1 - float(np.mean(space.radius / np.maximum(norms.sample, space.radius)))) * meat.matrix
        unknown = block_diag(known.unidentified(p), np.eye(len(coef) - p) * (not counted))
        estimates = unshrunk(
            told, coef, information, meat, information[:p, :p], n=self.facts.n, mean=None,
            hidden=np.zeros_like(information), unidentified=unknown, dispersion=1.0, lost=lost,
            weak=unknown / _UNRESOLVED**2 + np.eye(len(coef)) / _RESOLVED**2,
        )  # fmt: skip
        sampling = sandwich(information, meat.matrix) / self.facts.n
        whole = np.asarray(sampling + found.covariance)
        return PieceSolution(
            coef[:p], information[:p, :p], space, None,
            Uncertainty(found.privacy[:p, :p], whole[:p, :p]),
            _of_features(estimates, p),
            relative=basis @ coef[p:],
            relative_covariance=_of_pieces(basis, whole[p:, p:], estimates.unidentified[p:, p:]),
        )  # fmt: skip

    def _space(self, ask: Ask) -> tuple[WhitenedSpace, RowNorms]:
        """Coordinates with the planned radius, and the norms of rows in them."""
        facts = self.facts
        space, rounds = facts.start.space, refinements(facts)
        norms = RowNorms.of(facts.public, space, refined=bool(rounds))
        better = refined_in_turn(ask, Rewhitened(space, norms), [self._spend[turn] for turn in rounds], facts.schema)
        space, norms = better.space, better.norms
        plan = plan_unlabelled(
            norms, space.order, n=facts.n, scores=joint_budget(self._scores), gram=self._spend["information 0"]
        )
        space = better.truncated(plan.radius)
        return replace(space, response=ResponseScale(facts.target), exposure=facts.exposure), norms

    def _start(self, ask: Ask, space: WhitenedSpace) -> tuple[Vector, float, bool]:
        """No slopes and the hazards of pieces, from released totals; the clip of persons' residuals; and whether the
        events of every piece stand out from the noise: they tell its hazard, and the information of hazards is small.
        """
        query = PieceTotals(space, self.cuts)
        spend, pieces = self._spend["totals"], len(self.cuts)
        total, noise = ask(query, spend).total, query.noise(spend, 1)
        events = np.maximum(total[:pieces], max(noise, 0.5))
        time = np.maximum(total[pieces:] * math.sqrt(pieces), max(noise * math.sqrt(pieces), 0.5)) * query.widths
        logs = np.log(events / time)
        basis = contrasts(pieces) if pieces > 1 else np.zeros((1, 0))
        cumulated = float(np.sum(np.exp(logs) * query.widths))
        change = PieceScore.largest_change(space.radius, 1.0) * math.sqrt(space.order)
        affordable = math.sqrt(_AFFORDABLE / noise_in_mean(change, self._scores[-1], self.facts.n))
        clip = max(min(_CUMULATED * cumulated, _MOST_CLIP), _LEAST_CLIP, affordable)
        counted = bool((total[:pieces] > _COUNTED * noise).all())
        return np.append(float(np.mean(logs)) * space.constant, basis.T @ logs), clip, counted

    def _prior(self, space: WhitenedSpace, start: Vector) -> SlopesPrior:
        """Slopes around 0, whose size the scores tell."""
        order = len(start)
        slopes, rest = np.zeros((order, order)), np.eye(order)
        slopes[: space.order, : space.order] = np.eye(space.order) - space.along_constant
        rest -= slopes
        return SlopesPrior(start, rest / (3 * _LONGEST) ** 2, (slopes,), _LONGEST**2)

    def _information(
        self, ask: Ask, space: WhitenedSpace, coef: Vector, clip: float, spend: GDP, before: _Known | None
    ) -> _Known:
        """The information per person at these coefficients."""
        found = ask(PieceInformation(space, self.cuts, coef, clip), spend)
        assert isinstance(found.noise, Isotropic)
        new = _Known(found.mean, (found.noise.sigma / found.n) ** 2 / 2)
        return new if before is None else new.merged(before)

    def _meat(self, ask: Ask, score: PieceScore, information: Matrix, norms: RowNorms) -> Meat:
        """The second moment of scores, which the model expects to be the information."""
        if "squares" not in self._spend:
            return Meat(information, math.inf, "model")
        rows = Magnitudes.of_sample(np.minimum(norms.sample, score.space.radius))
        rate = float(
            score.space.constant @ information[: score.space.order, : score.space.order] @ score.space.constant
        )
        event = min(max(rate, 1e-6), 1.0)
        sizes = Magnitudes(np.array([event, min(1.0, score.clip)]), np.array([1 - event, event]))
        return released_meat(ask, score, self._spend["squares"], information, rows.size[:, None], sizes, self.facts.n)


def _limited(move: Vector, information: Matrix) -> Vector:
    """A move that changes predictors by no more than the longest step, on average."""
    whole = max(float(np.trace(information)) / len(move), 1e-300)
    length = math.sqrt(max(float(move @ information @ move) / whole, 0.0))
    return np.asarray(move * min(1.0, _LONGEST / max(length, 1e-300)))


def _of_pieces(basis: Matrix, covariance: Matrix, unidentified: Matrix) -> Matrix:
    """The covariance of relative log hazards, from that of contrasts; NaN for pieces that are not identified."""
    found = np.asarray(basis @ covariance @ basis.T)
    lost = np.sum((basis @ unidentified) * basis, axis=1) > _NEGLIGIBLE * np.sum(basis**2, axis=1)
    found[lost], found[:, lost] = np.nan, np.nan
    return found


def _of_features(found: Unshrunk, p: int) -> Unshrunk:
    """The estimates of the whitened columns alone; their covariances count that the hazards are estimated too."""
    own = slice(0, p)
    return replace(
        found, coef=found.coef[own], sampling=found.sampling[own, own], privacy=found.privacy[own, own],
        unidentified=found.unidentified[own, own], shift=found.shift[own, own],
    )  # fmt: skip

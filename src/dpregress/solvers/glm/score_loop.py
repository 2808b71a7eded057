"""Private scores of a generalised linear model, one after another, each where those before lead.

The loop that score steps and their multinomial form share.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import sandwich
from dpregress.queries import Ask, ClippedGradient, ClippedScore, MultinomialScore
from dpregress.solvers.base import Uncertainty
from dpregress.solvers.glm.cut_off import CutOff
from dpregress.solvers.glm.secant import Correction
from dpregress.solvers.shared.explained import Evidence, Explained, Limited, Prior, explain
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.posterior import Step
from dpregress.solvers.shared.repair import solvable
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.solvers.shared.weak_prior import WeakPrior

#: What the surrogate model misses of a change, as a share of its squared length, where it is long.
_CURVATURE = 0.1
#: Moves after one that was shortened may be so many times as long.
_LONGER = 2.0
#: A move that cannot be lengthened by this factor was shortened.
_LENGTHENED = 1.01
#: Rounds in which a weak prior becomes wider, while it does by this factor.
_WIDER, _MUCH_WIDER = 5, 1.5
#: The squared length of a move by a corrected model, over that without the correction, beyond which it is not made:
#: corrections are for steps that lead away.
_FURTHER = 2.0
#: No coefficient goes beyond it.
_LARGEST = 1e90


class LabelsContradicted(Exception):
    """A score contradicts the public labels: it does not tell how far away the private rows' optimum is."""

    def __init__(self, asked: int) -> None:
        super().__init__(asked)
        self.asked = asked


@dataclass(frozen=True, eq=False)
class Clipped:
    """What clips leave of a score, by the model.

    Attributes
    ----------
    kept : float
        The share of its slope.
    square : float
        Its second moment, relative to the Fisher information.
    dispersion : float
        The same of a score without clips.
    sizes, whole : Magnitudes
        Of residuals with and without the clip.
    plain : float
        The second moment of a score without clips by the sizes that were seen, relative to the Fisher information.
    beyond : float
        The share of the residuals' second moment that clips take.
    """

    kept: float
    square: float
    dispersion: float
    sizes: Magnitudes
    whole: Magnitudes
    plain: float
    beyond: float


class ScoreModel(ABC):
    """The interface of a model in the loop. Coefficients are flat vectors of shape (q,)."""

    rows: SurrogateRows
    #: Variance of an entry of the Gram matrix that surrogate rows have.
    gram_variance: float
    #: Whether the factors are 1, so that an expected score does not depend on where it was asked.
    canonical: bool

    @cached_property
    def _latest(self) -> dict[tuple[str, bytes], tuple[bytes, Any]]:
        """The latest results of what is a pass through all surrogate rows."""
        return {}

    def once(self, what: Callable[[Vector, Vector], Any], coef: Vector, asked: Vector) -> Any:
        """``what(coef, asked)``, computed once for all scores where the factors are 1."""
        place = (what.__name__, b"" if self.canonical else asked.tobytes())
        at = coef.tobytes()
        if self._latest.get(place, (b"", None))[0] != at:
            self._latest[place] = (at, what(coef, asked))
        return self._latest[place][1]

    @property
    def unweighted(self) -> ScoreModel:
        """The same model on rows without weights, where its scores have no other bound."""
        raise NotImplementedError

    @property
    @abstractmethod
    def resolved(self) -> ScoreModel:
        """The same model with the information that estimates have: a floor that shortens steps is none of it."""

    @abstractmethod
    def question(self, coef: Vector, spend: GDP) -> ClippedScore | ClippedGradient | MultinomialScore:
        """The clipped score at these coefficients, with the clip planned for this cost."""

    @abstractmethod
    def clipped(self, coef: Vector, clip: float) -> Clipped:
        """What this clip leaves of a score at these coefficients."""

    def cut_off(self, coef: Vector, clip: float, dispersion: float | None = None) -> CutOff | None:  # noqa: ARG002
        """What this clip takes from a score at these coefficients; None where the model does not tell.

        Of counts and amounts the dispersion of clipped residuals tells, which is known after the scores.
        """
        return None

    def contradicts(self, coef: Vector, score: Vector, variance: float, clip: float) -> bool:  # noqa: ARG002
        """Whether this score, with noise of this variance, says that public labels mislead."""
        return False

    @abstractmethod
    def information(self, coef: Vector) -> Matrix:
        """The mean Fisher information of a row, with a floor on eigenvalues that may be noise."""

    @abstractmethod
    def expected(self, coef: Vector, asked: Vector) -> Vector:
        """The expected score of surrogate rows at ``coef``, with the factors of ``asked``, up to a constant."""

    @abstractmethod
    def curvature(self, coef: Vector, asked: Vector) -> Matrix:
        """Its derivative."""

    @abstractmethod
    def length(self, move: Vector) -> float:
        """The mean square by which a move changes predictors."""

    @abstractmethod
    def limited(self, move: Vector) -> Vector:
        """The move, shortened to the longest step if necessary."""


@dataclass(frozen=True, eq=False)
class ModelledScore(Evidence):
    """A released score and the model's account of it: expected scores, and beside them what is linear.

    That is floors, penalties, directions that no surrogate row takes, and what other scores correct. ``system`` is the
    slope where it was asked, without rounding; ``missed`` is the share of a change that other scores contradict.
    """

    model: ScoreModel
    asked: Vector
    value: Vector
    variance: float
    linear: Matrix
    start: Vector
    cut: CutOff | None
    system: Matrix
    missed: float = 0.0

    @classmethod
    def of(
        cls,
        model: ScoreModel,
        asked: Vector,
        value: Vector,
        variance: float,
        system: Matrix,
        clip: float = math.inf,
    ) -> ModelledScore:
        linear = system - model.curvature(asked, asked)
        start, cut = model.expected(asked, asked), model.cut_off(asked, clip)
        return cls(model, asked, value, variance, linear, start, cut, system)

    def with_system(self, value: Vector, system: Matrix) -> ModelledScore:
        """The same score with another linear part, such as a penalty's, and what is then left of its value."""
        return replace(self, value=value, linear=self.linear + (system - self.system), system=system)

    @property
    def resolved(self) -> ModelledScore:
        """The same score for estimates, with the same correction: what steps are solved with may be indefinite then."""
        model = self.model.resolved
        more = solvable(model.information(self.asked)) - solvable(self.model.information(self.asked))
        return replace(self, model=model, linear=self.linear + more, system=self.system + more)

    def corrected(self, before: Correction, now: Correction) -> ModelledScore:
        """The same score after another correction of the model."""
        return replace(self, linear=self.linear + (now.slope - before.slope), missed=now.missed)

    def contradicted(self, later: ModelledScore, best: Vector, before: Correction) -> Correction:
        """The correction after a later score of the same model; ``best`` are the coefficients that explain both."""
        move, expected = later.asked - self.asked, self.change(best) - later.change(best)
        known = _CURVATURE * min(self.model.length(move), 1.0)
        return before.updated(move, expected, self.value - later.value, self.variance + later.variance, known)

    def change(self, coef: Vector) -> Vector:
        whole = self.model.once(self.model.expected, coef, self.asked) - self.start + self.linear @ (coef - self.asked)
        return np.asarray(whole if self.cut is None else whole - self.cut.score(coef))

    def slope(self, coef: Vector) -> Matrix:
        whole = self.model.once(self.model.curvature, coef, self.asked) + self.linear
        return np.asarray(whole if self.cut is None else whole - self.cut.slope(coef))

    def error(self, coef: Vector) -> float:
        move = coef - self.asked
        length = self.model.length(move)
        missed = max(self.missed, _CURVATURE * min(length, 1.0))
        bent = missed * float(np.sum(self.change(coef) ** 2)) / len(coef)
        sampled = 0.0 if self.cut is None else self.cut.variance
        return bent + self.model.gram_variance * float(move @ move) + sampled


@dataclass(frozen=True, eq=False)
class Steps:
    """What a loop found.

    Attributes
    ----------
    coef : ndarray of shape (q,)
    system : ndarray of shape (q, q)
        The matrix of the last step.
    uncertainty : Uncertainty
    told : tuple of ModelledScore
        The released scores, without the penalty.
    clips : tuple of float
        Theirs.
    """

    coef: Vector
    system: Matrix
    uncertainty: Uncertainty
    told: tuple[ModelledScore, ...]
    clips: tuple[float, ...]

    @property
    def resolved(self) -> Steps:
        """The same for estimates."""
        return replace(self, told=tuple(score.resolved for score in self.told))


@dataclass(frozen=True, eq=False)
class Beginning:
    """Where the steps begin.

    Attributes
    ----------
    prior : Prior
        With the coefficients of the first score.
    dispersion : float
    weak : WeakPrior or None
        Of all slopes, however wide the prior becomes.
    """

    prior: Prior
    dispersion: float
    weak: WeakPrior | None = None

    def after(self, first: ModelledScore, sampling: Matrix) -> Prior:
        """What is known after the first score; ``sampling`` is the covariance of the private rows' optimum."""
        value = first.value - first.change(first.asked)
        step = Step(np.asarray(np.linalg.solve(first.system, value)), first.system, first.variance)
        return self.prior.after(step, sampling)

    def explained(self, scores: Sequence[Evidence], prior: Prior, start: Vector, limited: Limited) -> Explained:
        """The coefficients that explain the scores, with a weak prior as wide as the slopes that are found."""
        if self.weak is None:
            return explain(scores, prior, start, limited)
        width = 1.0
        found = explain(scores, self.weak.beside(prior, width), start, limited)
        for _ in range(_WIDER - 1):
            wider = self.weak.width(found.coef, found.told)
            if wider < _MUCH_WIDER * width:
                break
            width = wider
            found = explain(scores, self.weak.beside(prior, width), start, limited)
        return found


def _within(model: ScoreModel, reach: float) -> Limited:
    """Moves shortened to so many times the longest step."""
    return lambda move: model.limited(move / reach) * reach


def take_steps(
    ask: Ask,
    models: Callable[[int, Vector], ScoreModel],
    beginning: Beginning,
    spends: Sequence[GDP],
    penalty: Matrix,
    n: int,
    told: Sequence[Evidence] = (),
    before_last: Callable[[Any, GDP], GDP] | None = None,
) -> Steps:
    """Released scores, each at the coefficients that explain those before it.

    Parameters
    ----------
    ask : Ask
    models : callable
        The model of a score, by its place from 1 on and the coefficients where it is asked.
    beginning : Beginning
    spends : sequence of GDP
        Of the scores, at least one.
    penalty : ndarray of shape (q, q)
        The penalty per row.
    n : int
        Private rows.
    told : sequence of Evidence
        What was released before.
    before_last : callable, optional
        What else is asked where the last score is, and what that leaves of its cost.

    Raises
    ------
    LabelsContradicted
        After any score but the last, with how many were asked.
    """
    coef, clips, reach = beginning.prior.coef, [], 1.0
    scores: list[ModelledScore] = []
    plain: list[ModelledScore] = []
    correction = Correction(np.zeros_like(penalty))
    for place, planned in enumerate(spends, start=1):
        model = models(place, coef)
        question = model.question(coef, planned)
        clips.append(question.clip)
        spend = planned if before_last is None or place < len(spends) else before_last(question, planned)
        score, variance = ask(question, spend), question.noise(spend, n) ** 2
        if place < len(spends) and model.contradicts(coef, score.mean, variance, question.clip):
            raise LabelsContradicted(place)
        information = correction.applied(model.information(coef))
        plain.append(ModelledScore.of(model, coef, score.mean, variance, solvable(information), question.clip))
        system = solvable(information + penalty)
        scores.append(plain[-1].with_system(np.asarray(score.mean - penalty @ coef), system))
        sampling = beginning.dispersion / n * sandwich(system, system)
        prior, within = beginning.after(scores[0], sampling), _within(model, reach)
        found = beginning.explained((*told, *scores), prior, coef, within)
        better = correction if len(plain) < 2 else plain[-2].contradicted(plain[-1], found.coef, correction)
        if better is not correction:
            plain, scores = ([one.corrected(correction, better) for one in each] for each in (plain, scores))
            correction, again = better, beginning.explained((*told, *scores), prior, coef, within)
            if model.length(again.coef - coef) <= _FURTHER * model.length(found.coef - coef):
                found = again
        if not (np.abs(found.coef) <= _LARGEST).all():  # diverged: keep the last usable coefficients
            break
        moved = found.coef - coef
        longer = float(np.linalg.norm(within(_LENGTHENED * moved)))
        if longer < (1 + _LENGTHENED) / 2 * float(np.linalg.norm(moved)):
            reach = _LONGER  # it was shortened, and the next score tells whether it led the right way
        coef = found.coef
    uncertainty = Uncertainty(found.privacy, np.asarray(sampling + found.covariance))
    return Steps(coef, system, uncertainty, tuple(plain), tuple(clips))

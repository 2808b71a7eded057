"""Estimates for inference from the scores of a generalised linear model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.queries import Ask, RowQuery, remainder_of
from dpregress.releases import Score
from dpregress.solvers.base import Unshrunk
from dpregress.solvers.glm.score_loop import ModelledScore, ScoreModel, Steps
from dpregress.solvers.shared.gram import MixedGram
from dpregress.solvers.shared.remainder import Answer, Asked, Remainder, Untruncated
from dpregress.solvers.shared.repair import solvable
from dpregress.solvers.shared.sandwich import ClippedEvidence, MeanEquation, Meat, released_meat, truncated, unshrunk
from dpregress.solvers.shared.unresolved import unidentified_directions

#: The standard deviation of what a clip takes from a tail, as a share of what a gamma tail would lose.
_GUESSED = 1.0
#: How far coefficients may be from the fit, in standard deviations of a predictor: those of directions that the Gram
#: matrix does not resolve, and others. Beyond it means saturate, and scores may have no root.
_UNRESOLVED, _RESOLVED = 1.0, 3.0


@dataclass(frozen=True, eq=False)
class Squares:
    """The second moment of scores at a fit, and what it says about their dispersion relative to the model's."""

    slope: Matrix
    meat: Meat
    dispersion: float
    clipped: float
    lost: Matrix


def released_squares(
    ask: Ask, model: ScoreModel, coef: Vector, last: GDP, spend: GDP | None, n: int, answer: Answer | None = None
) -> Squares:
    """The second moment of the scores at ``coef``, released if there is a budget for it.

    Parameters
    ----------
    ask : Ask
    model : ScoreModel
    coef : ndarray of shape (q,)
    last : GDP
        The cost of the last score, for which its clip was planned.
    spend : GDP or None
    n : int
    answer : Answer, optional
        The remainder of the last score. That of the score at ``coef``, with its bound, is a part of what is squared.
    """
    score = model.question(coef, last)
    information = solvable(model.information(coef))
    clipped = model.clipped(coef, score.clip)
    asked: RowQuery[Score] = score
    if answer is None:
        expected, sizes = clipped.square * information, clipped.sizes
        slope, cut = clipped.kept * information, model.cut_off(coef, score.clip)
        slope = slope if cut is None else slope - cut.slope(coef)
    else:
        asked = remainder_of(score, answer.query.bound)
        slope = solvable(model.unweighted.information(coef))
        expected, sizes = clipped.plain * slope, clipped.whole
    meat = Meat(expected, math.inf, "model")
    if spend is not None:
        meat = released_meat(ask, asked, spend, expected, model.rows.x, sizes, n)
    return Squares(
        slope,
        meat,
        meat.ratio * (clipped.dispersion if answer is None else clipped.plain),
        meat.ratio * clipped.square,
        truncated(model.rows, clipped.beyond, meat) if answer is None else answer.lost,
    )


def untruncated(model: ScoreModel, query: Asked, dispersion: float | None = None) -> Untruncated:
    """The score without weights and clips, by the model.

    Parameters
    ----------
    model : ScoreModel
    query : ScoreRemainder or ClassRemainder
        What they take.
    dispersion : float, optional
        Of clipped residuals, if it is known.
    """
    whole, asked, nothing = model.unweighted, query.coef.ravel(), np.zeros(query.coef.size)
    everything = ModelledScore.of(whole, asked, nothing, 0.0, solvable(whole.information(asked)))
    score = ModelledScore.of(model, asked, nothing, 0.0, solvable(model.information(asked)), query.score.clip)
    kept = _clipped(replace(score, cut=model.cut_off(asked, query.score.clip, dispersion)), query.score.clip)
    return Untruncated(everything.system, lambda coef: everything.change(coef) - kept.change(coef))


def _clipped(score: ModelledScore, clip: float) -> ClippedEvidence:
    """The score, which knows what this clip takes from it, with what the clip takes from its slope."""
    kept = score.model.clipped(score.asked, clip).kept
    return ClippedEvidence(score, kept if score.cut is None else min(kept, score.cut.kept))


def scored_estimates(
    model: ScoreModel,
    steps: Steps,
    squares: Squares,
    mean: Callable[[float], MeanEquation] | None,
    mixed: MixedGram,
    n: int,
    answer: Answer | None = None,
    wide: Answer | None = None,
    *,
    identified: bool = True,
) -> Unshrunk:
    """The estimate that explains all scores, and its covariances.

    Parameters
    ----------
    model : ScoreModel
    steps : Steps
    squares : Squares
    mean : callable or None
        The equation of the mean residual for a dispersion.
    mixed : MixedGram
    n : int
    answer, wide : Answer, optional
        The remainder of the last score, and the one with the wider bound.
    identified : bool, default=True
        Whether responses are known to vary.
    """
    pairs = list(zip(steps.told, steps.clips, strict=True))
    scores = [replace(score, cut=model.cut_off(score.asked, clip, squares.clipped)) for score, clip in pairs]
    told = list(map(_clipped, scores, steps.clips))
    order = len(steps.coef)
    cut = scores[-1].cut
    tail = None if cut is None or answer is not None else cut.guessed
    guess = np.zeros(order) if tail is None else _GUESSED * np.linalg.solve(squares.slope, tail)
    unknown = np.asarray(np.kron(unidentified_directions(mixed), np.eye(order // len(mixed.matrix))))
    remainder = None
    if answer is not None:
        ordinary = replace(untruncated(model, answer.query, squares.clipped), slope=squares.slope)
        remainder = Remainder(answer, ordinary, wide, ordinary)
    return unshrunk(
        told, steps.coef, squares.slope, squares.meat, mixed.matrix,
        n=n,
        mean=None if mean is None else mean(squares.dispersion),
        hidden=np.outer(guess, guess),
        unidentified=unknown if identified else np.eye(order),
        dispersion=squares.dispersion,
        lost=squares.lost,
        remainder=remainder,
        weak=unknown / _UNRESOLVED**2 + np.eye(order) / _RESOLVED**2,
    )  # fmt: skip

"""Private Newton steps of a generalised linear model: the loop that score steps and their multinomial form share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import sandwich
from dpregress.queries import Ask, Query
from dpregress.releases import Score
from dpregress.solvers.base import Uncertainty
from dpregress.solvers.shared.posterior import Posterior, Step
from dpregress.solvers.shared.repair import solvable

#: The squared error of a step due to curvature, as a share of its squared length: the best of .03 to 1 in tests.
_CURVATURE = 0.3
#: The largest magnitude of a coefficient.
_LARGEST = 1e90


class ScoreModel(ABC):
    """The interface of a model in the loop. Coefficients are flat vectors of shape (q,)."""

    @abstractmethod
    def question(self, coef: Vector, spend: GDP) -> Query[Score]:
        """The clipped score at these coefficients, with the clip planned for this cost."""

    @abstractmethod
    def information(self, coef: Vector) -> Matrix:
        """The mean Fisher information of a row, with a floor on eigenvalues that may be noise."""

    @abstractmethod
    def along_curve(self, coef: Vector, system: Matrix, step: Vector) -> Vector:
        """The move that changes the expected score by ``system @ step``."""

    @abstractmethod
    def limited(self, move: Vector) -> Vector:
        """The move, shortened to the longest step if necessary."""

    @abstractmethod
    def missed(self, move: Vector, left: Vector) -> Matrix:
        """The covariance of the error of a move due to curvature and to the part ``left`` out of it."""


@dataclass(frozen=True, eq=False)
class Beginning:
    """The starting point of the steps.

    Attributes
    ----------
    coef : ndarray of shape (q,)
    covariance : ndarray of shape (q, q)
        The prior covariance of the coefficients.
    dispersion : float
    fitted : bool
        Whether they come from public rows, whose population may differ from that of the private rows.
    """

    coef: Vector
    covariance: Matrix
    dispersion: float
    fitted: bool


def take_steps(
    ask: Ask, model: ScoreModel, beginning: Beginning, spends: Sequence[GDP], penalty: Matrix, n: int
) -> tuple[Vector, Matrix, Uncertainty]:
    """Released Newton steps, each combined with the posterior before it by a Kalman update.

    Parameters
    ----------
    ask : Ask
    model : ScoreModel
    beginning : Beginning
    spends : sequence of GDP
        The costs of the steps, at least one.
    penalty : ndarray of shape (q, q)
        The penalty per row.
    n : int
        Number of private rows.

    Returns
    -------
    coef : ndarray of shape (q,)
    system : ndarray of shape (q, q)
        The matrix of the last step.
    uncertainty : Uncertainty
    """
    posterior = Posterior.before(beginning.coef, beginning.covariance)
    for turn, spend in enumerate(spends):
        coef = posterior.coef
        question = model.question(coef, spend)
        score = ask(question, spend)
        system = solvable(model.information(coef) + penalty)
        value = np.asarray(np.linalg.solve(system, score.mean - penalty @ coef))
        step = Step(value, system, question.noise(spend, n) ** 2)
        sampling = beginning.dispersion / n * sandwich(system, system)
        if turn == 0 and beginning.fitted:
            posterior = Posterior.before(coef, beginning.covariance + sampling).inflated(step)
        updated = posterior.update(step, follow=partial(_followed, model, coef, system))
        if (np.abs(updated.coef) > _LARGEST).any():  # diverged, which is public: keep the last usable step
            break
        posterior = updated
    return posterior.coef, system, Uncertainty(posterior.privacy, np.asarray(sampling + posterior.known))


def curvature_slack(length: float, left: Vector, gram: Matrix) -> Matrix:
    """The error of a step: from the change of information, by its squared length, and from shortening it."""
    bent = _CURVATURE * length * min(length, 1.0)
    return np.asarray(bent / len(gram) * np.linalg.inv(gram) + np.outer(left, left))


def _followed(model: ScoreModel, coef: Vector, system: Matrix, step: Vector) -> tuple[Vector, Matrix]:
    wanted = model.along_curve(coef, system, step)
    move = model.limited(wanted)
    return move, model.missed(move, wanted - move)

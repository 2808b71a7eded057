"""The posterior of coefficients: a normal distribution, updated by released Newton steps and widened by surprises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import definite_inverse, eigen, symmetric_power

#: The share of the trace below which a precision is due to rounding.
_JITTER = 1e-15
#: The squared share of a step's length that may be due to rounding.
_ROUNDING = 1e-14
#: The number of standard deviations of a chi-square beyond which a step is longer than the prior and noise explain.
_SURPRISE = 4.0
#: The relative accuracy of a factor.
_CLOSE = 1e-3
#: The largest share of the way that a step is assumed to leave.
_MOST_LEFT = 0.95
#: A difference that is so many times as long as the move is not what the system did not capture of it.
_UNEXPLAINED = 3.0


@dataclass(frozen=True, eq=False)
class Step:
    """A Newton step ``A^{-1} g`` with noise of one variance on every entry of g."""

    value: Vector
    system: Matrix
    variance: float

    @property
    def covariance(self) -> Matrix:
        return self.variance * symmetric_power(self.system, -2.0, smallest=_JITTER * float(np.trace(self.system)))

    @property
    def precision(self) -> Matrix:
        """``(v A^{-2})^{-1}``, without inverting a nearly singular matrix."""
        return np.asarray(self.system @ self.system / self.variance)


@dataclass(frozen=True, eq=False)
class Taken:
    """A step asked at ``asked``, with what the update by it allows for (:meth:`Posterior.update`)."""

    asked: Vector
    step: Step
    slack: float
    most_left: float

    def seen_from(self, coef: Vector) -> Step:
        """The way from other coefficients to where the step leads."""
        return replace(self.step, value=self.asked + self.step.value - coef)


#: From the wanted move to the move that is made, with the covariance of its error.
Follow = Callable[[Vector], tuple[Vector, Matrix]]


@dataclass(frozen=True, eq=False)
class Posterior:
    """Coefficients, the covariance of the noise in them, and the precision for the private rows' exact answer.

    ``last`` is the preceding step with the part of it that was made; None before the first step.
    """

    coef: Vector
    privacy: Matrix
    precision: Matrix
    last: tuple[Step, Vector] | None = None

    def inflated(self, step: Step) -> Posterior:
        """The posterior, widened if a step is longer than it allows: public rows may be from another population."""
        factor = widening(self.known, step)
        return self if factor == 1 else replace(self, precision=self.precision / factor)

    def update(
        self,
        step: Step,
        *,
        slack: float = 0.0,
        most_left: float = _MOST_LEFT,
        follow: Follow | None = None,
    ) -> Posterior:
        """Update by a released step: the Kalman update for a measurement of the private rows' exact answer.

        Parameters
        ----------
        step : Step
        slack : float
            Squared error of the move in each coordinate, as a share of its squared length.
        most_left : float
            The largest share of the way that the step can have left, from :func:`most_left`. Not used with ``follow``.
        follow : callable, optional
            Maps the move of the Kalman gain to the one to make, such as along a curve or shortened, with the covariance
            of its error. Default: the move itself, with an error from ``slack`` and from contradictions between steps.
        """
        identity = np.eye(len(self.coef))
        precision = self.precision + step.precision
        precision += _JITTER * float(np.trace(precision)) * identity  # not singular: the budget is already spent
        known = definite_inverse(precision, _JITTER)
        kept = known @ self.precision
        gain = identity - kept
        wanted = gain @ step.value
        move, missed = (wanted, self._missed(step, wanted, slack, most_left)) if follow is None else follow(wanted)
        # a step starts from coefficients with the noise of earlier steps, part of which it replaces
        privacy = kept @ self.privacy @ kept.T + gain @ step.covariance @ gain.T
        return Posterior(self.coef + move, np.asarray(privacy), definite_inverse(known + missed, _JITTER), (step, move))

    def after(self, taken: Sequence[Taken]) -> Posterior:
        """The posterior after these steps, widened by surprises on the way."""
        posterior = self
        for each in taken:
            step = each.seen_from(posterior.coef)
            posterior = posterior.inflated(step).update(step, slack=each.slack, most_left=each.most_left)
        return posterior

    @classmethod
    def before(cls, coef: Vector, known: Matrix) -> Posterior:
        """The prior, before the first private step: coefficients without noise, and their covariance."""
        return cls(coef, np.zeros_like(known), definite_inverse(known, _JITTER))

    @property
    def known(self) -> Matrix:
        """The covariance."""
        return definite_inverse(self.precision, _JITTER)

    def _missed(self, step: Step, move: Vector, slack: float, most_left: float) -> Matrix:
        identity, length = np.eye(len(move)), float(move @ move)
        missed = (slack + _ROUNDING) * length * identity
        left = self._left_over(step, most_left)
        return np.asarray(missed + left * (np.outer(move, move) + length / len(move) * identity))

    def _left_over(self, step: Step, most_left: float) -> float:
        r"""The squared length that a step leaves, relative to its move: 0 unless it exceeds the noise.

        Exact Newton steps differ by the move between them, up to noise. Any further difference is a share r of that
        move that the system did not capture, and steps that each leave a share r leave ``r/(1 - r)`` in total.
        """
        if self.last is None:
            return 0.0
        before, moved = self.last
        noise = step.covariance + before.covariance
        beyond = step.value - before.value + moved
        smallest = max(_JITTER * float(np.trace(noise)), 1e-300)
        if float(beyond @ symmetric_power(noise, -1.0, smallest=smallest) @ beyond) <= longest(len(beyond)):
            return 0.0
        left = max(float(beyond @ beyond) - float(np.trace(noise)), 0.0)
        share = math.sqrt(left / max(float(moved @ moved), 1e-300))
        if share > _UNEXPLAINED:
            return 0.0
        share = min(share, most_left, _MOST_LEFT)
        return (share / (1 - share)) ** 2


def together(start: Vector, taken: Sequence[Taken]) -> tuple[Vector, Matrix]:
    """What all steps say of the way from the start, weighted by their precision, and the covariance of its noise."""
    total, pull = np.zeros((len(start), len(start))), np.zeros(len(start))
    for each in taken:
        precision = each.step.precision
        total += precision
        pull += precision @ each.seen_from(start).value
    covariance = definite_inverse(total, _JITTER)
    return np.asarray(covariance @ pull), covariance


def most_left(system: Matrix, off: float, clipped: float) -> float:
    """The largest share of the way that a step ``A^{-1} g`` leaves, given the uncertainty about the slope H of g.

    The share is ``|I - A^{-1} H|``. Without clips ``|H - A|`` is at most ``off``, so that everything may be left along
    an eigenvalue of A that is not larger. A clip removes the share of the slope that it clips.
    """
    return min(off / float(np.linalg.eigvalsh(system)[0]) + clipped, 1.0)


def widening(known: Matrix, step: Step) -> float:
    """The smallest factor of the covariance, at least 1, at which a step is not longer than a chi-square allows.

    Found by bisection on ``step' (factor known + noise)^{-1} step``. The step is released: this is post-processing.
    """
    root = symmetric_power(known, -0.5, smallest=max(_JITTER * float(np.trace(known)), 1e-300))
    noise, vectors = eigen(root @ step.covariance @ root)
    squares, most = (vectors.T @ root @ step.value) ** 2, longest(len(step.value))
    low, high = 0.0, math.log(max(float(squares.sum()) / most, 1.0))
    if float(np.sum(squares / (1 + np.maximum(noise, 0)))) <= most:
        return 1.0
    while high - low > _CLOSE:
        middle = (low + high) / 2
        longer = float(np.sum(squares / (math.exp(middle) + np.maximum(noise, 0)))) > most
        low, high = (middle, high) if longer else (low, middle)
    return math.exp(high)


def longest(p: int) -> float:
    """A bound that a chi-square with p degrees of freedom exceeds at most once in a hundred times."""
    return p + _SURPRISE * math.sqrt(2 * p)

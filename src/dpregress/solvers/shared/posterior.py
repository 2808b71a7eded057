"""What is believed of coefficients: a Gaussian that released Newton steps sharpen, and that surprises widen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import symmetric_power

#: Share of the trace below which a precision is rounding.
_JITTER = 1e-15
#: A step may leave this squared share of its length to rounding.
_ROUNDING = 1e-14
#: Standard deviations of a chi-square beyond which a step is longer than noise and what is known before make it.
_SURPRISE = 4.0
#: To which a factor is found, as a share of it.
_CLOSE = 1e-3
#: A step that leaves more of its way than this is no better than one that leaves this much.
_MOST_LEFT = 0.95


@dataclass(frozen=True, eq=False)
class Step:
    """A Newton step ``A^{-1} g`` with noise of one variance on every entry of g."""

    value: Vector
    system: Matrix
    variance: float

    @property
    def covariance(self) -> Matrix:
        return self.variance * symmetric_power(self.system, -2.0, smallest=_JITTER * float(np.trace(self.system)))

    def precision(self, bias: float) -> Matrix:
        """``(v A^{-2} + bias I)^{-1}``, without inverting what may be all but singular."""
        values, vectors = np.linalg.eigh(self.system)
        return np.asarray((vectors * (values**2 / (self.variance + bias * values**2))) @ vectors.T)


#: From the move that is asked for to the one that is made, and the covariance of what that may miss.
Follow = Callable[[Vector], tuple[Vector, Matrix]]


@dataclass(frozen=True, eq=False)
class Posterior:
    """Coefficients, the covariance of the noise in them, and how precisely the private rows' answer is known.

    ``last`` is the step that led here and what was moved of it; None before the first.
    """

    coef: Vector
    privacy: Matrix
    precision: Matrix
    last: tuple[Step, Vector] | None = None

    def inflated(self, step: Step, *, bias: float = 0.0) -> Posterior:
        """The same, widened where a step is longer than it allows for: public rows may be of another population."""
        factor = widening(self.known + bias * np.eye(len(self.coef)), step)
        return self if factor == 1 else replace(self, precision=self.precision / factor)

    def update(
        self,
        step: Step,
        *,
        bias: float = 0.0,
        slack: float = 0.0,
        most_left: float = _MOST_LEFT,
        follow: Follow | None = None,
    ) -> Posterior:
        """Merge a released step: the Kalman update of a measurement of the private rows' answer.

        Parameters
        ----------
        step : Step
        bias : float
            Squared bias of the step in each coordinate.
        slack : float
            Squared error of the move in each coordinate, as a share of its squared length.
        most_left : float
            The largest share of its way that the step can have left, by :func:`most_left`. Not used with ``follow``.
        follow : callable, optional
            Takes the move that the gain asks for, and gives the one to make, such as along a curve or shortened, with
            the covariance of what that may miss. Default: the move as it is; what it misses follows from ``slack``,
            and from the steps themselves where they contradict each other.
        """
        identity = np.eye(len(self.coef))
        precision = self.precision + step.precision(bias)
        precision += _JITTER * float(np.trace(precision)) * identity  # never singular: the budget is spent by now
        known = _inverse(precision)
        kept = known @ self.precision
        gain = identity - kept
        wanted = gain @ step.value
        move, missed = (wanted, self._missed(step, wanted, slack, most_left)) if follow is None else follow(wanted)
        # a step starts from coefficients that carry the noise of those before; what it gains replaces it
        privacy = kept @ self.privacy @ kept.T + gain @ step.covariance @ gain.T
        return Posterior(self.coef + move, np.asarray(privacy), _inverse(known + missed), (step, move))

    @classmethod
    def before(cls, coef: Vector, known: Matrix) -> Posterior:
        """Before the first private step: coefficients without noise, and the covariance of what is known of them."""
        return cls(coef, np.zeros_like(known), _inverse(known))

    @property
    def known(self) -> Matrix:
        """The covariance."""
        return _inverse(self.precision)

    def _missed(self, step: Step, move: Vector, slack: float, most_left: float) -> Matrix:
        identity, length = np.eye(len(move)), float(move @ move)
        missed = (slack + _ROUNDING) * length * identity
        left = self._left_over(step, most_left)
        return np.asarray(missed + left * (np.outer(move, move) + length / len(move) * identity))

    def _left_over(self, step: Step, most_left: float) -> float:
        r"""The squared length that a step leaves, in those it moved: 0 unless it stands out of the noise.

        Exact Newton steps differ by the move between them, but for their noises. What they differ by beyond is a
        share r of that move which the system failed to see, and steps that each leave r leave ``r/(1 - r)`` in all.
        """
        if self.last is None:
            return 0.0
        before, moved = self.last
        noise = step.covariance + before.covariance
        beyond = step.value - before.value + moved
        smallest = max(_JITTER * float(np.trace(noise)), 1e-300)
        if float(beyond @ symmetric_power(noise, -1.0, smallest=smallest) @ beyond) <= _longest(len(beyond)):
            return 0.0
        left = max(float(beyond @ beyond) - float(np.trace(noise)), 0.0)
        share = min(math.sqrt(left / max(float(moved @ moved), 1e-300)), most_left, _MOST_LEFT)
        return (share / (1 - share)) ** 2


def most_left(system: Matrix, off: float, clipped: float) -> float:
    """The largest share of its way that a step ``A^{-1} g`` leaves, by what is not known of the slope H of g.

    The share is ``|I - A^{-1} H|``. Without clips ``|H - A|`` is at most ``off``, so that all may be left along an
    eigenvalue of A that is no larger; a clip takes the share of the slope that it clips.
    """
    return min(off / float(np.linalg.eigvalsh(system)[0]) + clipped, 1.0)


def widening(known: Matrix, step: Step) -> float:
    """The least factor of what is known, from 1, by which a step is no longer than a chi-square allows.

    Found by bisection on ``step' (factor known + noise)^{-1} step``. The step is released: this is post-processing.
    """
    root = symmetric_power(known, -0.5, smallest=max(_JITTER * float(np.trace(known)), 1e-300))
    noise, vectors = np.linalg.eigh(root @ step.covariance @ root)
    squares, most = (vectors.T @ root @ step.value) ** 2, _longest(len(step.value))
    low, high = 0.0, math.log(max(float(squares.sum()) / most, 1.0))
    if float(np.sum(squares / (1 + np.maximum(noise, 0)))) <= most:
        return 1.0
    while high - low > _CLOSE:
        middle = (low + high) / 2
        longer = float(np.sum(squares / (math.exp(middle) + np.maximum(noise, 0)))) > most
        low, high = (middle, high) if longer else (low, middle)
    return math.exp(high)


def _longest(p: int) -> float:
    """What a chi-square with p degrees of freedom exceeds once in a thousand times or less often."""
    return p + _SURPRISE * math.sqrt(2 * p)


def _inverse(matrix: Matrix) -> Matrix:
    """Of a covariance or a precision, however far apart its eigenvalues are."""
    return symmetric_power(matrix, -1.0, smallest=max(_JITTER * float(np.trace(matrix)), 1e-300))

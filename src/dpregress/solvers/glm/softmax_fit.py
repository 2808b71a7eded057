"""Softmax regression on rows that need no protection: public rows, and non-private fits for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import contrasts, probabilities
from dpregress.public import PublicMoments
from dpregress.solvers.shared.mixed_prior import Candidate, MixedPrior, likely
from dpregress.solvers.shared.public_fit import FOLDS, RIDGES, judging, penalty_shapes
from dpregress.solvers.shared.scoring import solved

#: Steps, and the change of predictors below which they end: the next one would be its square.
_STEPS, _CONVERGED = 50, 1e-8
#: Largest change of a class predictor in one step.
LONGEST = 3.0
#: A class that a row was predicted not to have counts no more in the dispersion: one such row would widen everything.
_LARGEST_SQUARE = 30.0
#: No class that a row has counts as less likely.
_RAREST = 1e-10


@dataclass(frozen=True, eq=False)
class PublicClasses:
    """Whitened coefficients of contrasts, of shape (p, K - 1), what is known of them when flat, and the dispersion."""

    coef: Matrix
    prior: MixedPrior
    dispersion: float


def softmax_information(x: Matrix, mean: Matrix, basis: Matrix) -> Matrix:
    """``sum x x' (x) Q'(diag(pi) - pi pi')Q``, of order p (K - 1).

    Parameters
    ----------
    x : ndarray of shape (m, p)
    mean : ndarray of shape (m, K)
        Probabilities pi.
    basis : ndarray of shape (K, K - 1)
    """
    order, size = x.shape[1], basis.shape[1]
    within = mean @ basis
    found = np.empty((order, size, order, size))
    for i in range(size):
        for j in range(i, size):
            curvature = mean @ (basis[:, i] * basis[:, j]) - within[:, i] * within[:, j]
            found[:, i, :, j] = found[:, j, :, i] = (x * curvature[:, None]).T @ x
    return found.reshape(order * size, order * size)


def class_covariances(mean: Matrix, basis: Matrix) -> Vector:
    """``Q'(diag(pi) - pi pi')Q`` of each row, of shape (m, K - 1, K - 1).

    Parameters
    ----------
    mean : ndarray of shape (m, K)
        Probabilities pi.
    basis : ndarray of shape (K, K - 1)
    """
    within = mean @ basis
    whole = np.einsum("mk,ki,kj->mij", mean, basis, basis, optimize=True)
    return np.asarray(whole - within[:, :, None] * within[:, None, :])


def softmax_scoring(
    x: Matrix, y: Vector, start: Matrix, *, penalty: Matrix | None = None, begin: Matrix | None = None
) -> Matrix:
    """Coefficients of contrasts that maximise the log-likelihood less ``(B - start)' penalty (B - start) / 2``, B flat.

    Parameters
    ----------
    x : ndarray of shape (m, p)
    y : ndarray of shape (m,)
        Positions of classes.
    start : ndarray of shape (p, K - 1)
    penalty : ndarray of shape (p (K - 1), p (K - 1)), optional
    begin : ndarray of shape (p, K - 1), optional
        Where the first step is made. Default: ``start``.
    """
    basis = contrasts(start.shape[1] + 1)
    taken = basis[y.astype(np.intp)]
    coef = (start if begin is None else begin).copy()
    penalty = np.zeros((coef.size, coef.size)) if penalty is None else penalty
    least = float(np.linalg.eigvalsh(penalty)[0])
    for _ in range(_STEPS):
        mean = probabilities(x @ coef, basis)
        score = (x.T @ (taken - mean @ basis)).ravel() - penalty @ (coef - start).ravel()
        information = softmax_information(x, mean, basis) + penalty
        step = solved(information[None], score[None], np.array([least]))[0].reshape(coef.shape)
        longest = float(np.abs(x @ step @ basis.T).max())
        coef = coef + step * min(1.0, LONGEST / max(longest, 1e-300))
        if longest < _CONVERGED:
            break
    return coef


def fit_public_classes(public: PublicMoments, space: WhitenedSpace, classes: int) -> PublicClasses:
    """Penalised scoring on labelled public rows, as :func:`.fit_public`: each penalty is as likely as rows tell it.

    Parameters
    ----------
    public : PublicMoments
        With rows, whose labels are positions of classes.
    space : WhitenedSpace
    classes : int
    """
    assert public.rows is not None
    assert public.labels is not None
    x, basis, each = space.whiten(public.rows), contrasts(classes), np.eye(classes - 1)
    start = np.zeros((space.order, classes - 1))
    if space.intercept:
        counts = np.bincount(public.labels.astype(np.intp), minlength=classes) + 0.5
        start = np.outer(space.constant, basis.T @ np.log(counts / counts.sum()))
    shapes = [np.asarray(np.kron(shape, each)) for shape in penalty_shapes(public.rows, space)]
    some = judging(len(x))
    fits = _Fits(x[some], public.labels[some], basis, start, shapes)
    return fits.found if len(some) == len(x) else fits.of_all(x, public.labels)


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits to public rows, with penalties of several shapes and sizes on what differs from a start."""

    x: Matrix
    labels: Vector
    basis: Matrix
    start: Matrix
    shapes: Sequence[Matrix]

    @cached_property
    def penalties(self) -> list[Matrix]:
        return [ridge * shape for shape in self.shapes for ridge in RIDGES]

    @cached_property
    def coefs(self) -> list[Matrix]:
        found = [self.start]
        for penalty in self.penalties:  # neighbours are near
            found.append(softmax_scoring(self.x, self.labels, self.start, penalty=penalty, begin=found[-1]))
        return found[1:]

    @cached_property
    def losses(self) -> Vector:
        """Deviances of rows that are left out a fifth at a time, by complete fits to the others."""
        return np.array([self._left_out(*each) for each in zip(self.coefs, self.penalties, strict=True)])

    @property
    def found(self) -> PublicClasses:
        return self._known(self.coefs, self.penalties, self.losses)

    def of_all(self, x: Matrix, labels: Vector) -> PublicClasses:
        """Fits to all rows, with the penalties that some of them find likely."""
        dispersion = self._dispersion(self.coefs[int(np.argmin(self.losses))])
        kept = likely(-self.losses / (2 * dispersion))
        penalties = [self.penalties[place] for place in kept]
        coefs = [
            softmax_scoring(x, labels, self.start, penalty=penalty, begin=self.coefs[place])
            for place, penalty in zip(kept, penalties, strict=True)
        ]
        return replace(self, x=x, labels=labels)._known(coefs, penalties, self.losses[kept])

    def _known(self, coefs: list[Matrix], penalties: list[Matrix], losses: Vector) -> PublicClasses:
        best = coefs[int(np.argmin(losses))]
        dispersion = self._dispersion(best)
        unit = dispersion * len(self.x) / self._freedom
        among = [
            Candidate(coef.ravel(), np.asarray((self.information(coef) + penalty) / unit), -loss / (2 * dispersion))
            for coef, penalty, loss in zip(coefs, penalties, losses.tolist(), strict=True)
        ]
        return PublicClasses(best, MixedPrior.of(best.ravel(), among), dispersion)

    def information(self, coef: Matrix) -> Matrix:
        return softmax_information(self.x, probabilities(self.x @ coef, self.basis), self.basis)

    @property
    def _freedom(self) -> int:
        return int(max(len(self.x) - self.x.shape[1], 1))

    def _taken(self, coef: Matrix, among: Vector | slice = slice(None)) -> Vector:
        """Probabilities of the classes that these rows have."""
        mean = probabilities(self.x[among] @ coef, self.basis)
        return np.asarray(np.maximum(mean[np.arange(len(mean)), self.labels[among].astype(np.intp)], _RAREST))

    def _left_out(self, coef: Matrix, penalty: Matrix) -> float:
        fold, total = np.arange(len(self.labels)) % FOLDS, 0.0
        for turn in range(FOLDS):
            outer = fold == turn
            x, y = self.x[~outer], self.labels[~outer]
            found = softmax_scoring(x, y, self.start, penalty=penalty * float(np.mean(~outer)), begin=coef)
            total -= 2 * float(np.log(self._taken(found, outer)).sum())
        return total

    def _dispersion(self, coef: Matrix) -> float:
        """That of Pearson's residuals: r'V^{-1}r of a softmax residual is 1 / pi_y - 1, with the mean K - 1."""
        squares = (1 / self._taken(coef) - 1) / self.basis.shape[1]
        return max(float(np.sum(np.minimum(squares, _LARGEST_SQUARE))) / self._freedom, 1.0)

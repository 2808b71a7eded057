"""A generalised linear model on public rows: the prior of a private fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import Family
from dpregress.public import PublicMoments
from dpregress.solvers.shared.mixed_prior import Candidate, MixedPrior, likely
from dpregress.solvers.shared.repair import standardised_penalty
from dpregress.solvers.shared.scoring import penalised_scoring
from dpregress.solvers.shared.weak_prior import WeakPrior

#: The smallest dispersion, as a share of that without a fit: a few rows may be fitted perfectly by chance.
_SMALLEST_DISPERSION = 1e-4
#: Penalties on slopes, in rows: public rows are few.
RIDGES = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4)
#: Of more rows, some judge penalties: what many rows say hardly depends on them.
_JUDGES = 5_000
_GOLDEN = (math.sqrt(5) - 1) / 2
#: Parts of the rows that are left out in turn.
FOLDS = 5
#: Deviances at penalties of less than a row count so many times: few rows with a level may be separable by chance.
_SMALL_DOUBT = 1.1
#: A mean without slopes is so far inside its range, as a share of it.
_INSIDE = 0.01


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Public rows with their responses.

    Attributes
    ----------
    x : ndarray of shape (m, p)
        Whitened, without weights.
    weight, offset, y : ndarray of shape (m,)
    """

    x: Matrix
    weight: Vector
    offset: Vector
    y: Vector

    def among(self, places: NDArray[np.intp]) -> LabelledRows:
        """Some of them."""
        return LabelledRows(self.x[places], self.weight[places], self.offset[places], self.y[places])


@dataclass(frozen=True, eq=False)
class PublicFit:
    """The fit whose penalty predicts best, and the fits with all penalties as a prior.

    Attributes
    ----------
    prior : MixedPrior
        The fit that predicts best is its likeliest candidate.
    dispersion : float
    residuals : ndarray of shape (m,)
        At that fit.
    rows : LabelledRows
    """

    prior: MixedPrior
    dispersion: float
    residuals: Vector
    rows: LabelledRows

    @property
    def coef(self) -> Vector:
        return self.prior.coef

    @property
    def precision(self) -> Matrix:
        return self.prior.among[0].precision


def fit_public(public: PublicMoments, space: WhitenedSpace, family: Family, weak: WeakPrior | None = None) -> PublicFit:
    """Penalised scoring on labelled public rows.

    Each penalty is as likely as rows predict that were left out, by the likelihood of their deviance.

    Parameters
    ----------
    public : PublicMoments
        Labelled rows, with exposures if the space has one.
    space : WhitenedSpace
    family : Family
    weak : WeakPrior, optional
        Beside the penalty.
    """
    assert public.rows is not None
    assert public.labels is not None
    x, y = space.whiten(public.rows), public.labels
    offset = np.zeros(len(x))
    if space.exposure is not None and public.exposure is not None:
        offset, _ = space.exposure.offsets(public.exposure)
    rows = LabelledRows(x, space.weights(x), offset, y)
    beside = np.zeros((space.order, space.order)) if weak is None else weak.precision
    some = rows.among(judging(len(x)))
    fits = _Fits(some, family, _start(rows, space, family), penalty_shapes(public.rows, space), beside)
    if weak is not None and (width := weak.width(fits.best, fits.information(fits.best))) > 1:
        fits = replace(fits, beside=beside / width)  # for large slopes, such as of separable classes
    return fits.found if len(some.y) == len(y) else fits.of_all(rows)


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits to public rows, with penalties of several shapes and sizes, and one beside, on what differs from a start."""

    rows: LabelledRows
    family: Family
    start: Vector
    shapes: Sequence[Matrix]
    beside: Matrix

    @cached_property
    def penalties(self) -> Matrix:
        """Of shape (k, p, p)."""
        return np.asarray([ridge * shape + self.beside for shape in self.shapes for ridge in RIDGES])

    @cached_property
    def coefs(self) -> Matrix:
        """Of shape (k, p)."""
        return self._scored(self.penalties, np.tile(self.start, (len(self.penalties), 1)))

    @cached_property
    def losses(self) -> Vector:
        """Deviances of rows that are left out a fifth at a time, by complete fits to the others."""
        fold = np.arange(len(self.rows.y)) % FOLDS
        total = np.zeros(len(self.penalties))
        for turn in range(FOLDS):
            outer = fold == turn
            found = self._scored(self.penalties * float(np.mean(~outer)), self.coefs, ~outer)
            mean = self.family.mean(found @ self.rows.x[outer].T + self.rows.offset[outer])
            total += self.family.distribution.unit_deviance(self.rows.y[outer], mean).sum(axis=1)
        doubts = [_SMALL_DOUBT if ridge < 1 else 1.0 for ridge in RIDGES]
        return np.asarray(total * np.tile(doubts, len(self.shapes)))

    @property
    def best(self) -> Vector:
        return np.asarray(self.coefs[int(np.argmin(self.losses))])

    @property
    def found(self) -> PublicFit:
        return self._known(self.coefs, self.penalties, self.losses)

    def of_all(self, rows: LabelledRows) -> PublicFit:
        """Fits to all rows, with the penalties that some of them find likely."""
        _, dispersion = self._spread(self.best)
        kept, whole = likely(-self.losses / (2 * dispersion)), replace(self, rows=rows)
        coefs = whole._scored(self.penalties[kept], self.coefs[kept])
        return whole._known(coefs, self.penalties[kept], self.losses[kept])

    def _known(self, coefs: Matrix, penalties: Matrix, losses: Vector) -> PublicFit:
        best = np.asarray(coefs[int(np.argmin(losses))])
        residuals, dispersion = self._spread(best)
        m, p = self.rows.x.shape
        unit = dispersion * m / max(m - p, 1)
        among = [
            Candidate(coef, np.asarray((self.information(coef) + penalty) / unit), -float(loss) / (2 * dispersion))
            for coef, penalty, loss in zip(coefs, penalties, losses, strict=True)
        ]
        return PublicFit(MixedPrior.of(best, among), dispersion, residuals, self.rows)

    def information(self, coef: Vector) -> Matrix:
        x = self.rows.x
        return np.asarray((x * self.family.information(self._predictor(coef))[:, None]).T @ x)

    def _predictor(self, coef: Vector) -> Vector:
        return np.asarray(self.rows.x @ coef + self.rows.offset)

    def _scored(self, penalties: Matrix, begin: Matrix, among: Vector | slice = slice(None)) -> Matrix:
        x, y, offset = self.rows.x[among], self.rows.y[among], self.rows.offset[among]
        return penalised_scoring(x, y, self.family, self.start, penalties, offset, begin)

    def _spread(self, coef: Vector) -> tuple[Vector, float]:
        """Residuals, and the dispersion: that of Pearson's residuals, and at least a share of that without slopes."""
        eta, (m, p) = self._predictor(coef), self.rows.x.shape
        residuals = (self.rows.y - self.family.mean(eta)) * self.family.factor(eta)
        pearson = float(np.sum(residuals**2 / np.maximum(self.family.information(eta), 1e-12)) / max(m - p, 1))
        unexplained = self.family.mean(self._predictor(self.start))
        alike = (self.rows.y - unexplained) ** 2 / self.family.distribution.variance(unexplained)
        pearson = max(pearson, _SMALLEST_DISPERSION * float(np.mean(alike)))
        return residuals, max(pearson, 1.0) if self.family.distribution.fixed_dispersion else pearson


def judging(m: int) -> NDArray[np.intp]:
    """Places of the rows among m that judge penalties: all, or of many some, evenly and whatever comes in turn."""
    if m < 2 * _JUDGES:
        return np.arange(m)
    return np.unique((np.arange(_JUDGES) * _GOLDEN % 1 * m).astype(np.intp))


def _start(rows: LabelledRows, space: WhitenedSpace, family: Family) -> Vector:
    """No slopes, and the intercept of the mean response; of counts and classes this is inside their range."""
    if not space.intercept:
        return np.zeros(space.order)
    inside = _INSIDE if family.distribution.fixed_dispersion else 0.0
    level = family.link.predictor((1 - 2 * inside) * float(np.mean(rows.y)) + inside * float(np.ptp(rows.y)))
    level -= float(np.log(np.mean(np.exp(rows.offset))))  # where there are exposures the link is the logarithm
    return np.asarray(level * space.constant)


def penalty_shapes(rows: Matrix, space: WhitenedSpace) -> tuple[Matrix, Matrix]:
    """Penalties on whitened slopes, and on slopes of standardised columns: of collinear ones few rows tell little."""
    shape = standardised_penalty(space, rows.std(axis=0))
    if space.intercept:
        shape += np.outer(space.constant, space.constant) / float(space.constant @ space.constant)
    return np.eye(space.order), np.asarray(shape)

"""A generalised linear model on public rows: the prior of a private fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import definite_inverse
from dpregress.models import Family
from dpregress.public import PublicMoments
from dpregress.solvers.shared.repair import standardised_penalty
from dpregress.solvers.shared.scoring import fisher_scoring
from dpregress.solvers.shared.weak_prior import WeakPrior

#: The smallest dispersion, as a share of that without a fit: a few rows may be fitted perfectly by chance.
_SMALLEST_DISPERSION = 1e-4
#: Penalty on whitened slopes, in rows: public rows are few.
RIDGES = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
#: Penalties that are compared by complete fits, beside the largest ones: the best by one step; and parts left out.
_SHORT_LIST, _FOLDS = 3, 5
#: Deviances at penalties of less than a row count so many times: few rows with a level may be separable by chance.
_SMALL_DOUBT = 1.1
#: Share of an information's trace below which an eigenvalue is rounding.
DIGITS = 1e-15


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


@dataclass(frozen=True, eq=False)
class PublicFit:
    """Whitened coefficients, their covariance, the dispersion, residuals at the fit, and the rows."""

    coef: Vector
    covariance: Matrix
    dispersion: float
    residuals: Vector
    rows: LabelledRows


def fit_public(public: PublicMoments, space: WhitenedSpace, family: Family, weak: WeakPrior | None = None) -> PublicFit:
    """Penalised scoring on labelled public rows.

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
    x = space.whiten(public.rows)
    y = public.labels
    offset = np.zeros(len(x))
    if space.exposure is not None and public.exposure is not None:
        offset, _ = space.exposure.offsets(public.exposure)
    start = np.zeros(space.order)
    if space.intercept:
        # where there are exposures the link is the logarithm
        level = family.link.predictor(float(np.mean(y)) * 0.98 + 0.01 * float(np.ptp(y)))
        level -= float(np.log(np.mean(np.exp(offset))))
        start = level * space.constant
    beside = np.zeros((space.order, space.order)) if weak is None else weak.precision
    candidates = [ridge * shape + beside for shape in _shapes(public.rows, space) for ridge in RIDGES]
    fits = [fisher_scoring(x, y, family, start, penalty=each, offset=offset) for each in candidates]
    loss = [_left_out(x, y, family, coef, each, offset) for coef, each in zip(fits, candidates, strict=True)]
    kinds, usual = range(0, len(candidates), len(RIDGES)), RIDGES.index(1.0)
    always = [kind + at for kind in kinds for at in (usual, len(RIDGES) - 1)]
    short = dict.fromkeys([*np.argsort(loss, kind="stable")[:_SHORT_LIST], *always])

    def left_out(at: int) -> float:
        doubt = _SMALL_DOUBT if RIDGES[at % len(RIDGES)] < 1 else 1.0
        return doubt * _cross_validated(x, y, family, start, candidates[at], offset)

    best = min(short, key=left_out)
    coef, penalty = fits[best], candidates[best]
    told = np.asarray((x * family.information(x @ coef + offset)[:, None]).T @ x)
    if weak is not None and (width := weak.width(coef, told)) > 1:  # large slopes, such as of separable classes
        penalty = penalty - (1 - 1 / width) * beside
        coef = fisher_scoring(x, y, family, start, penalty=penalty, offset=offset)
    eta = x @ coef + offset
    residuals = (y - family.mean(eta)) * family.factor(eta)
    freedom = max(len(y) - space.order, 1)
    pearson = float(np.sum(residuals**2 / np.maximum(family.information(eta), 1e-12)) / freedom)
    information = (x * family.information(eta)[:, None]).T @ x + penalty
    unexplained = family.mean(x @ start + offset)
    alike = (y - unexplained) ** 2 / family.distribution.variance(unexplained)
    pearson = max(pearson, _SMALLEST_DISPERSION * float(np.mean(alike)))
    dispersion = max(pearson, 1.0) if family.distribution.fixed_dispersion else pearson
    covariance = np.asarray(dispersion * len(y) / freedom * definite_inverse(information, DIGITS))
    return PublicFit(coef, covariance, dispersion, residuals, LabelledRows(x, space.weights(x), offset, y))


def _shapes(rows: Matrix, space: WhitenedSpace) -> tuple[Matrix, Matrix]:
    """Penalties on whitened slopes, and on slopes of standardised columns: of collinear ones few rows tell little."""
    shape = standardised_penalty(space, rows.std(axis=0))
    if space.intercept:
        shape += np.outer(space.constant, space.constant) / float(space.constant @ space.constant)
    return np.eye(space.order), np.asarray(shape)


def _left_out(x: Matrix, y: Vector, family: Family, coef: Vector, penalty: Matrix, offset: Vector) -> float:
    """The leave-one-out mean deviance of public rows at a fit to all of them, by one scoring step for each."""
    eta = x @ coef + offset
    weight = family.information(eta)
    information = (x * weight[:, None]).T @ x + penalty
    leverage = np.minimum(weight * np.einsum("ij,ij->i", x @ definite_inverse(information, DIGITS), x), 0.99)
    residual = (y - family.mean(eta)) * family.factor(eta)
    without = eta - leverage / (1 - leverage) * residual / np.maximum(weight, 1e-12)
    return float(np.mean(family.distribution.unit_deviance(y, family.mean(without))))


def _cross_validated(x: Matrix, y: Vector, family: Family, start: Vector, penalty: Matrix, offset: Vector) -> float:
    """The mean deviance of public rows that were left out a fifth at a time, by complete fits to the others."""
    fold, total = np.arange(len(y)) % _FOLDS, 0.0
    for turn in range(_FOLDS):
        inner, outer = fold != turn, fold == turn
        shrunk = penalty * float(np.mean(inner))
        coef = fisher_scoring(x[inner], y[inner], family, start, penalty=shrunk, offset=offset[inner])
        mean = family.mean(x[outer] @ coef + offset[outer])
        total += float(np.sum(family.distribution.unit_deviance(y[outer], mean)))
    return total / len(y)

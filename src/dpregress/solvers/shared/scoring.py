"""Fisher scoring on rows that need no protection: public rows, and non-private fits for comparison."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import Matrix, Vector
from dpregress.models import Family

#: Steps, and the relative length of one below which they end.
_STEPS, _CONVERGED = 50, 1e-14
#: A step ends where its slope is 0 if at its end the slope has turned by more than this share; but not before this part
#: of it if it leads beyond the end of a link, where slopes of identity and inverse links have no limit.
_TURNED, _LEAST_PART = 0.1, 0.25
#: A penalty whose least eigenvalue is this share of the information's trace leaves no direction without information.
_DEFINITE = 1e-10
#: So many predictors are held at once.
_PREDICTORS = 2**21


def fisher_scoring(
    x: Matrix,
    y: Vector,
    family: Family,
    start: Vector,
    *,
    penalty: Matrix | None = None,
    offset: Vector | None = None,
) -> Vector:
    """Coefficients that maximise the log-likelihood less ``(b - start)' penalty (b - start) / 2``; minimum-norm steps.

    No step changes a linear predictor by more than the longest step of the link. Where the link is not canonical, the
    expected information may be much less than the observed one, and a step leads too far: it is shortened to where the
    log-likelihood along it has no slope, by a secant.

    Parameters
    ----------
    x : ndarray of shape (m, p)
    y : ndarray of shape (m,)
    family : Family
    start : ndarray of shape (p,)
        Where the first step is made.
    penalty : ndarray of shape (p, p), optional
    offset : ndarray of shape (m,), optional
        Added to the predictors.

    Returns
    -------
    coef : ndarray of shape (p,)
    """
    penalty = np.zeros((len(start), len(start))) if penalty is None else penalty
    offset = np.zeros(len(x)) if offset is None else offset
    return np.asarray(penalised_scoring(x, y, family, start, penalty[None], offset, start[None])[0])


def penalised_scoring(
    x: Matrix, y: Vector, family: Family, start: Vector, penalties: Matrix, offset: Vector, begin: Matrix
) -> Matrix:
    """:func:`fisher_scoring` for several penalties at once, of shape (k, p, p), each from a beginning of its own.

    Returns
    -------
    coef : ndarray of shape (k, p)
    """
    each = max(_PREDICTORS // max(len(x), 1), 1)
    parts = [slice(first, first + each) for first in range(0, len(begin), each)]
    return np.concatenate([_scored(x, y, family, start, penalties[part], offset, begin[part]) for part in parts])


def _scored(
    x: Matrix, y: Vector, family: Family, start: Vector, penalties: Matrix, offset: Vector, begin: Matrix
) -> Matrix:
    found, moving = begin.copy(), np.arange(len(begin))
    least: Vector = np.linalg.eigvalsh(penalties)[:, 0].astype(float)
    for _ in range(_STEPS):
        known = penalties[moving], least[moving]
        moved, still = _stepped(x, y, family, start, known, offset, found[moving])
        found[moving], moving = moved, moving[~still]
        if not len(moving):
            break
    return found


def _stepped(
    x: Matrix, y: Vector, family: Family, start: Vector, known: tuple[Matrix, Vector], offset: Vector, coef: Matrix
) -> tuple[Matrix, NDArray[np.bool_]]:
    """One step of each penalty, known with its least eigenvalue, and whether it was too short to count."""
    penalties, least = known

    def gradient(at: Matrix, eta: Matrix) -> Matrix:
        pull = np.einsum("kij,kj->ki", penalties, at - start)
        return np.asarray(((y - family.mean(eta)) * family.factor(eta)) @ x - pull)

    eta = coef @ x.T + offset
    score = gradient(coef, eta)
    information = np.stack([(x * weight[:, None]).T @ x for weight in family.information(eta)]) + penalties
    step = solved(information, score, least)
    along = step @ x.T
    part = np.minimum(1.0, family.link.longest / np.maximum(np.abs(along).max(axis=1), 1e-300))
    step *= part[:, None]
    if not family.canonical:
        end = eta + part[:, None] * along
        before = np.einsum("ki,ki->k", step, score)
        after = np.einsum("ki,ki->k", step, gradient(coef + step, end))
        shortest = np.where(family.inside(end).all(axis=1), 0.0, _LEAST_PART)
        turned = after < -_TURNED * before
        step *= np.where(turned, np.maximum(before / np.where(turned, before - after, 1.0), shortest), 1.0)[:, None]
    moved = coef + step
    return moved, np.linalg.norm(step, axis=1) <= _CONVERGED * np.linalg.norm(moved, axis=1)


def solved(information: Matrix, score: Matrix, least: Vector) -> Matrix:
    """The steps; of minimum norm where some directions may have no information.

    Parameters
    ----------
    information : ndarray of shape (k, p, p)
        With the penalties.
    score : ndarray of shape (k, p)
    least : ndarray of shape (k,)
        The least eigenvalue of each penalty.

    Returns
    -------
    steps : ndarray of shape (k, p)
    """
    if (least > _DEFINITE * np.trace(information, axis1=1, axis2=2)).all():
        return np.asarray(np.linalg.solve(information, score[:, :, None])[:, :, 0])
    rounding = float(np.finfo(float).eps * information.shape[1])
    return np.asarray(np.einsum("kij,kj->ki", np.linalg.pinv(information, rounding, hermitian=True), score))

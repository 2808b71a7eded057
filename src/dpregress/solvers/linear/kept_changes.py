r"""How much of a change clips keep, as the scores themselves say: those asked at several coefficients tell slopes.

A clip leaves the slope S_t of a score, by sizes of residuals that are the same for all rows. Where far rows have larger
residuals it takes more than that of the change from ``b_t`` to b, and scores on the way from no slopes to the fit would
hold the estimate back. Their changes are therefore ``c S_t (b - b_t)`` with one share c. Its density follows from the
misfit ``Q(c)`` of all scores at the coefficients that explain them best, relative to what noise leaves of it, f,

.. math:: p(c) \propto \exp(-Q(c) / (2 f) - (1 - c)^2 / (2 \tau^2)).

With weights ``1 / v_t`` these coefficients are ``A^{-1} (\sum S_t' S_t b_t / v_t + \sum S_t' g_t / (c v_t))``, with
``A = \sum S_t' S_t / v_t``, so that what is not known of 1/c moves them along a single direction, which noise makes
longer than it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpregress.coordinates import Vector
from dpregress.coordinates.matrices import definite_inverse
from dpregress.solvers.linear.scores import LinearScore
from dpregress.solvers.shared.explained import clear, score_weights

#: The standard deviation of c beforehand, and the shares that are considered.
_LIKELY, _SHARES = 0.3, np.linspace(0.2, 1.8, 161)
#: The share of a matrix's trace below which an eigenvalue is rounding.
_DIGITS = 1e-13


class KeptChanges(NamedTuple):
    """Scores with the share of changes that they keep, and one standard deviation of what it moves coefficients by."""

    scores: Sequence[LinearScore]
    doubt: Vector


def kept_changes(scores: Sequence[LinearScore], fit: Vector) -> KeptChanges:
    """Scores with the slopes that explain them best.

    Parameters
    ----------
    scores : sequence of LinearScore
    fit : ndarray of shape (p,)
        Scores count less the further away from it they were asked.
    """
    weights = score_weights(scores, fit)
    slopes = [math.sqrt(weight) * score.left for weight, score in zip(weights, scores, strict=True)]
    values = [math.sqrt(weight) * score.value for weight, score in zip(weights, scores, strict=True)]
    inverse = definite_inverse(np.asarray(sum(slope.T @ slope for slope in slopes)), _DIGITS)
    still = inverse @ sum(slope.T @ slope @ score.asked for slope, score in zip(slopes, scores, strict=True))
    way = np.asarray(inverse @ sum(slope.T @ value for slope, value in zip(slopes, values, strict=True)))
    # of shape (scores, p): the misfit is near - c far
    near = np.array([v - slope @ way for slope, v in zip(slopes, values, strict=True)])
    far = np.array([slope @ (still - score.asked) for slope, score in zip(slopes, scores, strict=True)])
    with np.errstate(over="ignore", invalid="ignore"):
        misfit = np.sum((near - _SHARES[:, None, None] * far) ** 2, axis=(1, 2))
    if not np.isfinite(misfit).all():  # beyond the range of floats, nothing is told
        return KeptChanges(scores, np.zeros(len(fit)))
    freedom = max(near.size - len(fit), 1)
    loss = misfit / max(float(misfit.min()) / freedom, 1.0) + ((1 - _SHARES) / _LIKELY) ** 2
    weight = np.exp((loss.min() - loss) / 2)
    weight /= weight.sum()
    kept = float(weight @ _SHARES)  # what says nothing leaves it at 1, as the mean of 1/c would not
    doubt = clear(way, inverse) * math.sqrt(float(weight @ (1 / _SHARES - 1 / kept) ** 2))
    return KeptChanges([score.kept(kept) for score in scores], doubt)

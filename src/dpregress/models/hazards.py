r"""Piecewise constant hazards: ``h(t | x) = h_k exp(x'b)`` for t in the k-th of K pieces of the follow-up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, one_line

#: The family of a response that is an event after some time.
SURVIVAL = "survival"
#: More pieces are refused as a likely error.
_MOST_PIECES = 200
#: Databases multiply the lengths of pieces: the proof in docs/privacy/floating-point.md takes 2^-340 to 2^340.
_SHORTEST, _LONGEST = 1e-100, 1e100


def checked_cuts(cuts: object) -> tuple[float, ...]:
    """The ends of the pieces, increasing and positive; the last is the end of the follow-up.

    Raises
    ------
    InvalidInput
    """
    if cuts is None:
        raise InvalidInput(
            "give cuts=, the ends of the pieces, of which the last is the end of the follow-up, such as "
            "cuts=(30, 90, 365)"
        )
    try:
        ends = tuple(float(cut) for cut in (cuts if isinstance(cuts, Sequence | np.ndarray) else ()))
    except (TypeError, ValueError, OverflowError):
        ends = ()
    if 1 <= len(ends) <= _MOST_PIECES and np.isfinite(ends).all() and not (np.diff([0.0, *ends]) > 0).all():
        # not the values: a private column may have been given by mistake
        place = int(np.argmin(np.diff([0.0, *ends]) > 0)) + 1
        than = "must be above 0" if place == 1 else "does not exceed the one before: sort them, as (30, 90, 365)"
        raise InvalidInput(f"cuts= must be positive and increase, and number {place} {than}")
    if not 1 <= len(ends) <= _MOST_PIECES or not np.isfinite(ends).all():
        raise InvalidInput(
            "cuts= takes the ends of the pieces, increasing and positive, the last one the end of the follow-up, such "
            f"as (30, 90, 365), not {one_line(cuts)}"
        )
    widths = np.diff([0.0, *ends])
    if widths.min() < _SHORTEST or ends[-1] > _LONGEST:
        raise InvalidInput(f"pieces between {_SHORTEST:g} and {_LONGEST:g} long can be fitted: change the unit of time")
    return ends


def time_in_pieces(time: Vector, cuts: Sequence[float]) -> Matrix:
    """The time of each person in each piece, of shape (m, K); what lies beyond the last cut is not observed.

    Parameters
    ----------
    time : ndarray of shape (m,)
    cuts : sequence of float

    Examples
    --------
    >>> time_in_pieces(np.array([0.5, 5.0]), (1.0, 3.0)).tolist()
    [[0.5, 0.0], [1.0, 2.0]]
    """
    ends = np.asarray(cuts, dtype=np.float64)
    starts = np.append(0.0, ends[:-1])
    return np.asarray(np.clip(time[:, None], starts, ends) - starts)


def baseline(time: Vector, cuts: Sequence[float], logs: Sequence[float]) -> Vector:
    """The hazard cumulated until each time, of shape (m,); NaN below 0 and beyond the last cut.

    Nobody was observed after the last cut: what is cumulated until then is not the hazard until later.

    Parameters
    ----------
    time : ndarray of shape (m,)
    cuts : sequence of float
    logs : sequence of float
        Log hazards of the pieces.

    Examples
    --------
    >>> baseline(np.array([0.5, 3.0, 5.0]), (1.0, 3.0), (0.0, 0.0)).tolist()
    [0.5, 3.0, nan]
    """
    followed = (time >= 0) & (time <= cuts[-1])
    return np.asarray(time_in_pieces(np.where(followed, time, np.nan), cuts) @ np.exp(np.asarray(logs)))


def event_in_piece(time: Vector, event: Vector, cuts: Sequence[float]) -> Matrix:
    """1 in the piece of a person's event, of shape (m, K); an event beyond the last cut is not observed.

    Parameters
    ----------
    time : ndarray of shape (m,)
    event : ndarray of shape (m,)
        At least 1/2 for an event at that time, otherwise the person was censored then.
    cuts : sequence of float

    Examples
    --------
    >>> event_in_piece(np.array([0.5, 2.0, 2.0, 9.0]), np.array([1.0, 1.0, 0.0, 1.0]), (1.0, 3.0)).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    """
    piece = np.searchsorted(np.asarray(cuts, dtype=np.float64), time, side="left")
    return np.asarray((piece[:, None] == np.arange(len(cuts))) & (event >= 0.5)[:, None], dtype=np.float64)

"""What survival models predict over time, of estimators and of models from files."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, NotAvailable, one_line
from dpregress.estimators.inferential import InferenceMixin
from dpregress.inputs.exposure import exposures_of
from dpregress.inputs.tables import numbers


class SurvivalCurves(InferenceMixin, ABC):
    """Survival and cumulative hazard of rows at given times."""

    @abstractmethod
    def _linear_predictor(self, X: Any) -> Vector:
        """Predictors of rows, of shape (m,)."""

    def survival(self, X: Any, times: ArrayLike | float) -> Matrix:
        """Probabilities ``exp(-H(t) exp(X b))`` of no event until each of some times, of shape (m, times).

        Parameters
        ----------
        X : array-like or table of shape (m, d)
            As in :meth:`predict`.
        times : array-like of shape (times,) or float
            NaN is returned for those below 0 and beyond the last cut, where nobody was observed.

        Raises
        ------
        NotAvailable
            For another model than one of survival.
        """
        return np.asarray(np.exp(-self.cumulative_hazard(X, times)))

    def cumulative_hazard(self, X: Any, times: ArrayLike | float) -> Matrix:
        """Cumulative hazards ``H(t) exp(X b)`` at each of some times, of shape (m, times).

        Parameters
        ----------
        X : array-like or table of shape (m, d), or None
            As in :meth:`predict`; None for the baseline H(t), for features of 0, of shape (1, times).
        times : array-like of shape (times,) or float
            As in :meth:`survival`.

        Raises
        ------
        NotAvailable
            For another model than one of survival.
        """
        self._check_fitted()
        response = self.response_model
        if not response.cuts:
            raise NotAvailable(
                f"survival and cumulative_hazard are those of survival models, and this one is {response.family}: "
                "use predict"
            )
        at = _some_times(times)
        predictor = np.array([self.coefficients_.intercept]) if X is None else self._linear_predictor(X)
        return response.cumulative_hazard(predictor[:, None], at)


def _some_times(times: Any) -> Vector:
    """One or several times."""
    if isinstance(times, str):
        raise InvalidInput(f"times= takes a number or several, such as [30, 90], not {one_line(times)}")
    return numbers([times] if isinstance(times, Real) else times, "times")


def times_of(time: Any, X: Any, rows: int) -> Vector:
    """A time for each row to predict for, of shape (m,): given so, as one for all, or as a column of the table X."""
    with in_words_of_time():
        return np.full(rows, float(time)) if isinstance(time, Real) else exposures_of(time, X, rows)


@contextmanager
def in_words_of_time() -> Iterator[None]:
    """Times take the place of exposures; a refusal calls them by the name under which they were given."""
    try:
        yield
    except InvalidInput as error:
        if type(error) is not InvalidInput or "exposure" not in str(error):
            raise
        raise InvalidInput(re.sub(r"\ban exposure\b", "a time", str(error)).replace("exposure", "time")) from error


def concordance(risk: Vector, time: Vector, event: NDArray[np.bool_]) -> float:
    """Harrell's c: of pairs of which one is known to have had the event earlier, the share in which that has more risk.

    Equal risks count half. Of equal times an event is earlier than a censoring; two events are no pair.

    Examples
    --------
    >>> concordance(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    0.6666666666666666
    """
    later, right, pairs = list[float](), 0.0, 0
    for _, places in groupby(np.lexsort((event, -time)).tolist(), key=lambda place: time[place]):
        died = list[float]()
        for place in places:  # the censored first
            if event[place]:
                died.append(float(risk[place]))
            else:
                insort(later, float(risk[place]))
        for one in died:
            right += (bisect_left(later, one) + bisect_right(later, one)) / 2
            pairs += len(later)
        for one in died:
            insort(later, one)
    return right / pairs if pairs else float("nan")

"""Mechanisms: private releases of the answers to queries."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpregress.accounting import Event, Relation
from dpregress.coordinates import Vector
from dpregress.coordinates.exact import ExactVector, Integers, words_for
from dpregress.errors import NotAnswered
from dpregress.mechanisms.randomness import Sampler
from dpregress.queries.base import Norm, Query, R
from dpregress.rows import PrivateRows, RawRows, RowMap
from dpregress.rows.row_kernel import Program

#: Covers rounding of public numbers: of a query's units, its sensitivity, and the scale of the noise.
ARITHMETIC = 1 + 2.0**-40
#: No table has more rows.
_MOST_ROWS = 2.0**50


class Mechanism(ABC):
    """Releases the answer to a query at a cost that does not depend on the data.

    Attributes
    ----------
    norm : Norm
        The norm of the sensitivities for which it is calibrated.
    """

    norm: ClassVar[Norm]

    @abstractmethod
    def event(self) -> Event:
        """The cost of one release."""

    def check(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:
        """Refuse what cannot be released safely. The decision uses public numbers only and comes before any draw.

        Raises
        ------
        NotAnswered
            For a sensitivity in another norm, and for any other query that the mechanism does not answer.
        UnsafeNoise
        """
        if query.norm is not self.norm:
            raise NotAnswered(
                f"the sensitivity of {type(query).__name__} is in {query.norm.name}, "
                f"{type(self).__name__} needs one in {self.norm.name}"
            )
        self.refuse(query, rows, relation)

    @abstractmethod
    def refuse(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:
        """Refuse queries of its norm that this mechanism cannot release safely."""

    @abstractmethod
    def release(self, query: Query[R], rows: PrivateRows, sampler: Sampler, relation: Relation) -> R:
        """Answer the query."""


def unrounded_total(query: Query[R], rows: PrivateRows) -> ExactVector:
    """The sum without noise and without rounding. It must not leave the calling mechanism."""
    source = rows.source if query.reads_features else rows.source.responses()
    value = _BoundedValue(query, query.row_map, words_for(rows.n))
    return rows.engine.total(source, value, columns=query.columns)


@dataclass(frozen=True)
class _BoundedValue:
    """The value of a query over a chunk after its row map, for any process."""

    query: Query[Any]
    row_map: RowMap
    words: int

    def __call__(self, chunk: RawRows, /) -> ExactVector:
        return self.query.exact(self.row_map(chunk, self.words))

    def programs(self, labelled: bool) -> tuple[Program, ...]:
        return self.query.programs(labelled)

    def of_all(self, wholes: Sequence[Integers], usable: int) -> ExactVector:
        return self.query.of_all(wholes, usable)


def unrounded_answer(query: Query[R], rows: PrivateRows) -> ExactVector | Vector:
    """The answer without noise and without rounding. It must not leave the calling mechanism."""
    return query.statistic(unrounded_total(query, rows))


def exact_total(query: Query[R], rows: PrivateRows) -> Vector:
    """The sum without noise in floats. It must not leave the calling mechanism."""
    return np.asarray(unrounded_total(query, rows))


def exact_answer(query: Query[R], rows: PrivateRows) -> Vector:
    """The answer without noise in floats. It must not leave the calling mechanism."""
    return np.asarray(unrounded_answer(query, rows))


def public_count(rows: PrivateRows, relation: Relation) -> int:
    """n where it is public; 0 for add-or-remove neighbours, under which it is private."""
    return rows.n if relation is Relation.REPLACE_ONE else 0


def float_sensitivity(query: Query[R], relation: Relation) -> float:
    """The sensitivity with what covers the rounding of public numbers; sums over rows have none.

    It is infinite, so that no noise is safe, if a sum could overflow.
    """
    if not math.isfinite(_MOST_ROWS * query.contribution()):
        return math.inf
    return query.sensitivity(relation) * ARITHMETIC

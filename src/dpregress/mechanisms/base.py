"""Mechanisms: how a query's answer is made private."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dpregress.accounting import Event, Relation
from dpregress.coordinates import Vector
from dpregress.errors import NotAnswered
from dpregress.mechanisms.randomness import Sampler
from dpregress.queries.base import Norm, Query, R
from dpregress.rows import PrivateRows, RawRows

#: For the roundings with which the sensitivity of an exact query and its noise are computed.
_ARITHMETIC = 1 + 2.0**-40


class Mechanism(ABC):
    """Releases a query at a cost that is known before the data.

    Attributes
    ----------
    norm : Norm
        Of the sensitivity that its noise is for.
    """

    norm: ClassVar[Norm]

    @abstractmethod
    def event(self) -> Event:
        """What one release costs."""

    def check(self, query: Query[R], rows: PrivateRows, relation: Relation) -> None:
        """Refuse what cannot be released safely; public numbers decide, before anything is drawn.

        Raises
        ------
        NotAnswered
            For a sensitivity in another norm, and all that the mechanism itself does not answer.
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
        """Refuse what this mechanism cannot release safely, of queries of its norm."""

    @abstractmethod
    def release(self, query: Query[R], rows: PrivateRows, sampler: Sampler, relation: Relation) -> R:
        """Answer the query."""


def exact_total(query: Query[R], rows: PrivateRows) -> Vector:
    """The un-noised sum. It never leaves the mechanism that called."""
    row_map = query.row_map

    def value(chunk: RawRows) -> Vector:
        return query.value(row_map(chunk))

    source = rows.source if query.reads_features else rows.source.responses()
    return rows.engine.total(source, value, columns=query.columns)


def exact_answer(query: Query[R], rows: PrivateRows) -> Vector:
    """What the noise is added to. It never leaves the mechanism that called."""
    return query.statistic(exact_total(query, rows))


def public_count(rows: PrivateRows, relation: Relation) -> int:
    """n where it is public; 0 for add-or-remove neighbours, under which nobody may learn it unpaid."""
    return rows.n if relation is Relation.REPLACE_ONE else 0


def float_sensitivity(query: Query[R], rows: PrivateRows, relation: Relation) -> float:
    """The sensitivity of the sum as computed: the exact one plus what rounding can move two sums apart.

    Raises
    ------
    NotAnswered
        For add-or-remove neighbours of a query that rounds: the bound on rounding needs n, which is then private.
    """
    if query.exact:
        return query.sensitivity(relation) * _ARITHMETIC
    if relation is not Relation.REPLACE_ONE:
        raise NotAnswered("noise for add-or-remove neighbours would depend on n: use replace-one neighbours")
    largest_total = rows.n * query.contribution()  # infinite where a total can overflow: no noise is then safe
    return query.sensitivity(relation) + 2 * rows.engine.rounding(rows.n, query.columns) * largest_total

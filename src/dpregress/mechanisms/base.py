"""Mechanisms: private releases of the answers to queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from dpregress.accounting import Event, Relation
from dpregress.coordinates import Vector
from dpregress.errors import NotAnswered
from dpregress.mechanisms.randomness import Sampler
from dpregress.queries.base import Norm, Query, R
from dpregress.rows import PrivateRows, RawRows

#: Covers rounding in the computation of an exact query's sensitivity and noise.
_ARITHMETIC = 1 + 2.0**-40


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


def exact_total(query: Query[R], rows: PrivateRows) -> Vector:
    """The sum without noise. It must not leave the calling mechanism."""
    row_map = query.row_map

    def value(chunk: RawRows) -> Vector:
        return query.value(row_map(chunk))

    source = rows.source if query.reads_features else rows.source.responses()
    return rows.engine.total(source, value, columns=query.columns)


def exact_answer(query: Query[R], rows: PrivateRows) -> Vector:
    """The answer without noise. It must not leave the calling mechanism."""
    return query.statistic(exact_total(query, rows))


def public_count(rows: PrivateRows, relation: Relation) -> int:
    """n where it is public; 0 for add-or-remove neighbours, under which it is private."""
    return rows.n if relation is Relation.REPLACE_ONE else 0


def float_sensitivity(query: Query[R], rows: PrivateRows, relation: Relation) -> float:
    """The sensitivity of the computed sum: the exact sensitivity plus the largest effect of rounding on two sums.

    Raises
    ------
    NotAnswered
        For add-or-remove neighbours, unless sums are exact: the bound on rounding depends on n, which is private then.
    """
    if query.exact:
        return query.sensitivity(relation) * _ARITHMETIC
    if relation is not Relation.REPLACE_ONE:
        raise NotAnswered("noise for add-or-remove neighbours would depend on n: use replace-one neighbours")
    largest_total = rows.n * query.contribution()  # infinite if a total can overflow: then no noise is safe
    return query.sensitivity(relation) + 2 * rows.engine.rounding(rows.n, query.columns) * largest_total

"""Queries: the questions that can be asked about private rows, each with its formula and sensitivity."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event, PureDP, Relation
from dpregress.coordinates import Domain, Matrix, Vector, WhitenedSpace
from dpregress.coordinates.exact import ExactVector, Integers
from dpregress.errors import NotAnswered
from dpregress.releases import DiscreteLaplaceNoise, NoiseLaw, Release
from dpregress.rows.bounded import BoundedRows, ResponseRows, RowMap, WhitenedRows
from dpregress.rows.codes import LevelRows
from dpregress.rows.row_kernel import Program

R = TypeVar("R", bound=Release)
#: A single bound, or one for each candidate.
Bound = TypeVar("Bound", float, Vector)


def noise_in_mean(change: Bound, spend: Event, n: int) -> Bound:
    """``change / (mu n)``: the standard deviation of Gaussian noise in the mean of n rows.

    Parameters
    ----------
    change : float or ndarray
        The largest change of the sum between neighbours, such as a query's ``largest_change``.
    spend : Event
        With a finite mu.
    n : int
        Rows; 1 for the noise in the sum itself.
    """
    return change / (spend.mu * n)


class Norm(Enum):
    """The norm of a query's sensitivity. Together with the kind of event it determines the mechanism."""

    L1 = 1
    L2 = 2
    LINF = np.inf

    def of(self, values: Vector | Matrix) -> NDArray[np.float64]:
        """The norms of vectors along the last axis."""
        return np.asarray(np.linalg.norm(values, ord=self.value, axis=-1))


class Query(ABC, Generic[R]):
    """A vector that is additive over disjoint chunks of bounded rows: a :class:`RowQuery` or a :class:`TableQuery`.

    Attributes
    ----------
    norm : Norm
        The norm of the sensitivities: L2 for Gaussian noise, L1 for Laplace noise, Linf (the largest entry) for scores
        of candidates, one of which is chosen.
    tight : bool
        Whether some pair of neighbours reaches the sensitivity, to within 1%.
    reads_features : bool
        False for a query about the response alone; its rows are not whitened.
    kept_apart : bool
        True if each row has its own cells in the vector, so that the noise of different rows does not add up.
    apart : int
        The number of last entries whose noise a seeded sampler draws from a spawned child generator, so that the other
        noise is the same as without these entries.
    free_of_n : bool
        Whether the grids of its sums do not depend on the number of rows, so that this number may be private.
    whole : bool
        Whether the answer consists of integers below 2^53.
    pushes_down : bool
        Whether a database can compute its sum (:meth:`program`), if the public numbers and the family suit it.
    shared : bool
        Whether a row of survey weight u adds at most u times what the same row adds at weight 1, after all rounding.
    """

    norm: ClassVar[Norm] = Norm.L2
    tight: ClassVar[bool]
    reads_features: ClassVar[bool] = True
    kept_apart: ClassVar[bool] = False
    free_of_n: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    pushes_down: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    apart: ClassVar[int] = 0

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of values of a row that it uses, which determines the size of chunks."""

    @property
    @abstractmethod
    def row_map(self) -> RowMap:
        """The row map that enforces the bounds of the query."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the vector."""

    @abstractmethod
    def exact(self, rows: BoundedRows) -> ExactVector:
        """The sum over the rows of a chunk, of shape (size,), without rounding."""

    def program(self, labelled: bool) -> Program:  # noqa: ARG002  # many need rows
        """What a database computes of each row, and adds up (docs/scale.md).

        Parameters
        ----------
        labelled : bool
            Whether there is a column of responses; rows without one do not count.

        Raises
        ------
        NotAnswered
            If databases cannot compute it.
        InvalidInput
            If a public number is so small or large that an operation of the database could fail.
        """
        raise NotAnswered(f"a database cannot compute {type(self).__name__}: leave the engine out")

    def of_sums(self, whole: Integers, usable: int) -> ExactVector:
        """The sum over all rows with one word on each grid, from the sums of the program and the usable rows."""
        raise NotImplementedError

    def programs(self, labelled: bool) -> tuple[Program, ...]:
        """All programs, of which each takes a pass: most queries have one."""
        return (self.program(labelled),)

    def of_all(self, wholes: Sequence[Integers], usable: int) -> ExactVector:
        """The sum over all rows, from the sums of all programs."""
        return self.of_sums(wholes[0], usable)

    def value(self, rows: BoundedRows) -> Vector:
        """The same sum in floats."""
        return np.asarray(self.exact(rows))

    def each(self, rows: BoundedRows) -> Matrix:
        """The value of each row by itself, of shape (m, size), as a user's device computes it."""
        single = (_row(rows, i) for i in range(len(rows.x)))
        return np.array([self.value(row) for row in single]).reshape(len(rows.x), self.size)

    def statistic(self, total: ExactVector) -> ExactVector | Vector:
        """The vector to which noise is added: the sum, or a function of it to which the sensitivity refers."""
        return total

    @abstractmethod
    def contribution(self) -> float:
        """The largest ``norm`` of one row's value: the sensitivity to adding or removing it."""

    @abstractmethod
    def replacement(self) -> float:
        """The largest ``norm`` of the difference between two rows' values: the sensitivity to replacing one."""

    @abstractmethod
    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> R:
        """Wrap the noisy total as a release."""

    def sensitivity(self, relation: Relation) -> float:
        """The sensitivity of the exact sum for neighbours of this kind, in ``norm``."""
        return self.replacement() if relation is Relation.REPLACE_ONE else self.contribution()

    def noise(self, spend: Event, n: int, relation: Relation = Relation.REPLACE_ONE) -> float:
        """The standard deviation of the noise in each entry of the mean, known before asking.

        The noise law of the release is larger, by less than one part in a million, to cover the sampler's grid.

        Parameters
        ----------
        spend : Event
            The cost of asking: an event with a finite mu, or PureDP for a query of norm L1.
        n : int
            Number of rows in the mean; 1 for the noise in the sum, or in one user's message.
        relation : Relation
        """
        sensitivity = self.sensitivity(relation)
        if self.norm is Norm.L1 and isinstance(spend, PureDP):
            return DiscreteLaplaceNoise((sensitivity / spend.epsilon0,)).sigma / n
        return noise_in_mean(sensitivity, spend, n)

    def noise_length(self, spend: Event, n: int) -> float:
        """The root mean square of the norm of the noise in the mean of n rows."""
        return math.sqrt(self.size) * self.noise(spend, n)


def _row(rows: BoundedRows, i: int) -> BoundedRows:
    """A chunk of one row."""
    part = slice(i, i + 1)
    offset = None if rows.offset is None else rows.offset[part]
    survey = None if rows.survey is None else rows.survey[part]
    return BoundedRows(rows.x[part], rows.y[part], rows.weight[part], rows.first_row + i, offset, rows.words, survey)


class RowQuery(Query[R]):
    """A query over rows ``(x, y)`` in whitened coordinates.

    Parameters
    ----------
    space : WhitenedSpace
        The coordinates, and the ball into which the row map brings every row.
    """

    def __init__(self, space: WhitenedSpace) -> None:
        self.space = space

    @property
    def columns(self) -> int:
        return self.space.order + 1 if self.reads_features else 1

    @property
    def row_map(self) -> RowMap:
        return WhitenedRows(self.space) if self.reads_features else ResponseRows(self.space)

    def influence(self, rows: BoundedRows) -> Matrix:
        """The contribution of each row to the estimating equation of which this sum is a part, of shape (m, size)."""
        return self.each(rows)


class TableQuery(Query[R]):
    """A query over coded rows, in which each cell is a level of its attribute.

    Parameters
    ----------
    domain : Domain
        The attributes with their public levels.
    """

    free_of_n: ClassVar[bool] = True

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    @property
    def columns(self) -> int:
        # a code usually takes one byte, and large chunks spread the fixed cost of a pass
        return math.ceil(len(self.domain.attributes) / 8)

    @property
    def row_map(self) -> RowMap:
        return LevelRows(self.domain)


class Ask(Protocol):
    """The only door through the privacy barrier: a release of ``query`` at the cost of ``spend``."""

    def __call__(self, query: Query[R], spend: Event) -> R: ...

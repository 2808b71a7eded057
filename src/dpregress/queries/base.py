"""Queries: what is asked of private rows, with its sensitivity next to its formula."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event, PureDP, Relation
from dpregress.coordinates import Domain, Matrix, Vector, WhitenedSpace
from dpregress.releases import DiscreteLaplaceNoise, NoiseLaw, Release
from dpregress.rows.bounded import BoundedRows, ResponseRows, RowMap, WhitenedRows
from dpregress.rows.codes import LevelRows

R = TypeVar("R", bound=Release)
#: One bound, or one for each candidate.
Bound = TypeVar("Bound", float, Vector)


def noise_in_mean(change: Bound, spend: Event, n: int) -> Bound:
    """``change / (mu n)``: the standard deviation of Gaussian noise in the mean of n rows.

    Parameters
    ----------
    change : float or ndarray
        The largest change of the sum for neighbours: a query's ``largest_change`` where there is no query object yet.
    spend : Event
        With a finite mu.
    n : int
        Rows; 1 for the noise in the sum itself.
    """
    return change / (spend.mu * n)


class Norm(Enum):
    """The norm in which a query's sensitivity is stated; with the kind of event it decides on the mechanism."""

    L1 = 1
    L2 = 2
    LINF = np.inf

    def of(self, values: Vector | Matrix) -> NDArray[np.float64]:
        """The norms of vectors along the last axis."""
        return np.asarray(np.linalg.norm(values, ord=self.value, axis=-1))


class Query(ABC, Generic[R]):
    """A vector that is additive over disjoint chunks of bounded rows: of a :class:`RowQuery` or a :class:`TableQuery`.

    Attributes
    ----------
    norm : Norm
        In which sensitivities are stated. L2 for Gaussian noise, L1 for Laplace noise, Linf (the largest entry) for
        qualities of candidates, one of which is chosen.
    tight : bool
        Whether some pair of neighbours reaches the sensitivity (to 1%).
    reads_features : bool
        False for a query of the response alone, whose rows are then not whitened.
    kept_apart : bool
        True where every row has cells of its own in the vector, so that no two rows' noises add up.
    apart : int
        How many entries, the last, a seed draws from a child of its own: the other noise is then what it is without.
    exact : bool
        Whether sums over rows are free of rounding: of integers times powers of two, below 2^53.
    whole : bool
        Whether its answer consists of whole numbers, below 2^53.
    """

    norm: ClassVar[Norm] = Norm.L2
    tight: ClassVar[bool]
    reads_features: ClassVar[bool] = True
    kept_apart: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    apart: ClassVar[int] = 0

    @property
    @abstractmethod
    def columns(self) -> int:
        """How many numbers of a row it looks at: what a chunk's size follows from."""

    @property
    @abstractmethod
    def row_map(self) -> RowMap:
        """What makes the query's bounds true."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the vector."""

    @abstractmethod
    def value(self, rows: BoundedRows) -> Vector:
        """The sum over the rows of a chunk, of shape (size,)."""

    def each(self, rows: BoundedRows) -> Matrix:
        """The value of every row alone, of shape (m, size): what a user's own device computes."""
        single = (
            BoundedRows(rows.x[i : i + 1], rows.y[i : i + 1], rows.weight[i : i + 1], rows.first_row + i)
            for i in range(len(rows.x))
        )
        return np.array([self.value(row) for row in single]).reshape(len(rows.x), self.size)

    def statistic(self, total: Vector) -> Vector:
        """What the noise is added to: the sum itself, or a function of it that the sensitivity is about."""
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
        """The standard deviation that noise will have in each entry of the mean, known before asking.

        The release's own noise law exceeds it by what covers rounding, below one part in a million.

        Parameters
        ----------
        spend : Event
            What asking will cost: an event with a finite mu, or PureDP for a query of norm L1.
        n : int
            Rows whose mean is taken; 1 for the noise in the sum itself, or in one user's message.
        relation : Relation
        """
        sensitivity = self.sensitivity(relation)
        if self.norm is Norm.L1 and isinstance(spend, PureDP):
            return DiscreteLaplaceNoise((sensitivity / spend.epsilon0,)).sigma / n
        return noise_in_mean(sensitivity, spend, n)

    def noise_length(self, spend: Event, n: int) -> float:
        """The root mean squared length of the noise in the mean of n rows, over all entries."""
        return math.sqrt(self.size) * self.noise(spend, n)


class RowQuery(Query[R]):
    """A query over rows ``(x, y)`` in whitened coordinates.

    Parameters
    ----------
    space : WhitenedSpace
        The coordinates and the ball that the row map makes true.
    """

    def __init__(self, space: WhitenedSpace) -> None:
        self.space = space

    @property
    def columns(self) -> int:
        return self.space.order + 1 if self.reads_features else 1

    @property
    def row_map(self) -> RowMap:
        return WhitenedRows(self.space) if self.reads_features else ResponseRows(self.space)


class TableQuery(Query[R]):
    """A query over coded rows, every cell of which is a level of its attribute.

    Parameters
    ----------
    domain : Domain
        The attributes with their public levels.
    """

    exact: ClassVar[bool] = True

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    @property
    def columns(self) -> int:
        # a code mostly takes one byte, and over large chunks the cost of a pass through all cells is spread
        return math.ceil(len(self.domain.attributes) / 8)

    @property
    def row_map(self) -> RowMap:
        return LevelRows(self.domain)


class Ask(Protocol):
    """The only door through the privacy barrier: a release of ``query`` at the cost of ``spend``."""

    def __call__(self, query: Query[R], spend: Event) -> R: ...

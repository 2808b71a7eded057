r"""Counts of coded rows: one-way tables, blocks of pairs, and functions of them.

Rows lie in a public domain (:class:`~dpregress.rows.codes.LevelRows`). The block of a pair is ``E_j' T_jk E_k``,
where T is the table of counts and E are the integer encodings of its attributes. For two classes it is the table
itself, for two numeric attributes a single number. The block of the empty clique is the number of rows, and that of a
number paired with itself holds its sum and its sum of squares. All values are integers times powers of two, so that
sums are exact and the noise need not cover rounding. These queries therefore allow add-or-remove neighbours, under
which n is private. Sums are exact while products of counts and steps stay below 2^53, far beyond any table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.coordinates.exact import ExactVector, Integers
from dpregress.queries.base import Norm, R, TableQuery
from dpregress.queries.joint_tables import count_tables, cover, margins
from dpregress.releases import Clique, Isotropic, NoiseLaw, PairScores, Selection, Tables
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.codes import code_type
from dpregress.rows.ordered_codes import counting
from dpregress.rows.row_kernel import Program

#: Weights have this many binary digits, so that their products with counts are exact.
_DIGITS = 6
#: References are rounded to this grid, so that distances from them are exact.
_GRID = 2.0**-10


def dyadic(weight: float) -> float:
    """The weight rounded down to six binary digits.

    Examples
    --------
    >>> dyadic(1 / 3)
    0.328125
    """
    mantissa, exponent = math.frexp(weight)
    return math.ldexp(math.floor(mantissa * 2**_DIGITS) / 2**_DIGITS, exponent)


def _on_grid(reference: Matrix) -> Matrix:
    """The reference on the grid, clipped so that its entries sum to less than 2^42: distances are then exact."""
    limit = 2.0**42 / reference.size
    return np.asarray(np.round(reference.clip(-limit, limit) / _GRID) * _GRID)


class CliqueQuery(TableQuery[R]):
    """A function of the joint tables of some attributes and pairs of attributes."""

    pushes_down: ClassVar[bool] = True

    def __init__(self, domain: Domain, cliques: Sequence[Clique]) -> None:
        super().__init__(domain)
        self.cliques = tuple(cliques)
        self._cover = cover(domain.sizes, [_counted(clique) for clique in self.cliques])

    def exact(self, rows: BoundedRows) -> ExactVector:
        """Integer blocks of the cliques, one after another."""
        codes = np.asarray(rows.x, dtype=code_type(self.domain), order="F")
        return self._blocks_of(count_tables(codes, self.domain.sizes, self._cover))

    def programs(self, labelled: bool) -> tuple[Program, ...]:  # noqa: ARG002  # coded rows have no response
        return tuple(counting(self.domain, joint) for joint, _ in self._cover)

    def of_all(self, wholes: Sequence[Integers], usable: int) -> ExactVector:  # noqa: ARG002  # all of them
        counted: dict[Clique, NDArray[np.int64]] = {}
        for (joint, served), whole in zip(self._cover, wholes, strict=True):
            table = whole.astype(np.int64).reshape([self.domain.sizes[j] for j in joint])
            counted |= margins(table, joint, served)
        return self._blocks_of(counted)

    def _blocks_of(self, counted: Mapping[Clique, NDArray[np.int64]]) -> ExactVector:
        blocks = [self._encoded(clique, counted[_counted(clique)]).ravel() for clique in self.cliques]
        return ExactVector(np.concatenate(blocks).astype(np.int64))

    def _encoded(self, clique: Clique, counts: NDArray[np.int64]) -> Matrix:
        """The integer block of a table of counts."""
        table = counts.astype(np.float64)
        if not clique:
            return np.array([table.sum()])
        if _alone(clique):
            attribute = self.domain.attributes[clique[0]]
            steps, unit = attribute.steps[:, 0], attribute.unit
            return np.array([2 * unit * (steps @ table), (2 * steps**2 - unit**2) @ table])
        for axis, attribute in enumerate(self.domain.attributes[j] for j in clique):
            if len(clique) > 1 and attribute.numeric:
                table = np.tensordot(attribute.steps, table, (0, axis))
                table = np.moveaxis(table, 0, axis)
        return table

    def blocks(self, total: ExactVector | Vector) -> list[Matrix]:
        """The blocks of a flat vector, in the order of the cliques."""
        shapes = [self.shape(clique) for clique in self.cliques]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(np.asarray(total), ends[:-1]), shapes, strict=True)]

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """Of one block."""
        if len(clique) < 2:
            return tuple(self.domain.sizes[j] for j in clique) or (1,)
        if _alone(clique):
            return (2,)
        return tuple(self.domain.attributes[j].steps.shape[1] for j in clique)

    def unit(self, clique: Clique) -> float:
        """The value of 1 in the block of encodings: of pairs the largest norm of one row's integer block."""
        unit = math.prod(self.domain.attributes[j].unit for j in clique) if len(clique) > 1 else 1.0
        return 2 * unit if _alone(clique) else unit


def _counted(clique: Clique) -> Clique:
    """The attributes whose joint table has the block of a clique."""
    return tuple(dict.fromkeys(clique)) or (0,)


def _alone(clique: Clique) -> bool:
    """Whether it is a number paired with itself."""
    return len(clique) == 2 and clique[0] == clique[1]


def largest_norm(clique: Clique) -> float:
    """Of what a row adds to a block, in its units."""
    return math.sqrt(5) / 2 if _alone(clique) else 1.0


def _cells(query: CliqueQuery[R]) -> int:
    return sum(math.prod(query.shape(clique)) for clique in query.cliques)


class Blocks(CliqueQuery[Tables]):
    r"""Weighted blocks ``w_b B_b`` of attributes and pairs; the weights determine the precision of each block.

    A row adds to block b a vector of norm at most ``u_b``, the product of the attributes' units (1 for classes). A
    number e paired with itself adds ``u (e, e^2 - 1/2)``, whose square is ``u^2 (e^4 + 1/4)``: at most
    ``sqrt(5)/2 u``. Adding or removing a row therefore changes the answer by at most the root of the sum of
    ``w_b^2 u_b^2``, five quarters as much for numbers with themselves, which a row at the ends of all numeric
    attributes reaches. The blocks of two rows differ by at most ``sqrt 2 u_b`` for classes, ``2 u_b`` if a number is
    involved (with itself, from one end to the other), and not at all for the number of rows, which bounds the change
    by a replacement.

    Parameters
    ----------
    domain : Domain
    cliques : sequence of tuple of int
        Single attributes, pairs, numbers with themselves ``(j, j)``, and the number of rows ``()``.
    weights : sequence of float, optional
        Relative to the unit; rounded down to six binary digits. Default 1.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = False

    def __init__(self, domain: Domain, cliques: Sequence[Clique], weights: Sequence[float] | None = None) -> None:
        super().__init__(domain, cliques)
        weights = [1.0] * len(self.cliques) if weights is None else weights
        #: The factors of the integer blocks.
        self.weights = tuple(dyadic(w / self.unit(c)) for w, c in zip(weights, self.cliques, strict=True))

    @property
    def size(self) -> int:
        return _cells(self)

    def statistic(self, total: ExactVector) -> Vector:
        return np.concatenate([w * b.ravel() for w, b in zip(self.weights, self.blocks(total), strict=True)])

    @staticmethod
    def largest_addition(*weights: float) -> float:
        """``sqrt(sum w_b^2)`` for weights relative to the norms, for planning where there is no query yet."""
        return math.hypot(*weights)

    def contribution(self) -> float:
        each = zip(self.weights, self.cliques, strict=True)
        return self.largest_addition(*(w * self.unit(c) * largest_norm(c) for w, c in each))

    def replacement(self) -> float:
        apart = (w * self.unit(c) * self._apart(c) for w, c in zip(self.weights, self.cliques, strict=True))
        return math.hypot(*apart)

    def _apart(self, clique: Clique) -> float:
        if not clique:
            return 0.0
        number = len(clique) > 1 and any(self.domain.attributes[j].numeric for j in clique)
        return 2.0 if number else math.sqrt(2)

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Tables:
        """Blocks of encodings e in [-1, 1]: of an attribute its counts, of a pair ``C_j' T_jk C_k``.

        Of a number with itself they are the sums of e and of ``e^2 - 1/2``.
        """
        assert isinstance(noise, Isotropic)
        blocks, sigmas = {}, {}
        for clique, weight, block in zip(self.cliques, self.weights, self.blocks(total), strict=True):
            scale = weight * self.unit(clique)
            blocks[clique], sigmas[clique] = block / scale, noise.sigma / scale
        return Tables(total, n, noise, events, self.domain, blocks, sigmas)


class PairDistances(CliqueQuery[PairScores]):
    r"""For every pair the L1 distance ``|B - E|_1 / u`` of its integer block from a public or released reference E.

    A row adds to B entries whose absolute values sum to at most ``u``, so each distance changes by at most 1 for any E.
    Over all pairs the change is at most ``sqrt(pairs)``, and ``2 sqrt(pairs)`` for a replacement. **E must not be
    computed from the rows**: if its margins change with the row, a distance could change by almost 4.

    Parameters
    ----------
    domain : Domain
    references : mapping of pair to ndarray
        In the encoding of [-1, 1], as :class:`Blocks` is read.

    References
    ----------
    docs/queries.md.
    """

    tight: ClassVar[bool] = False

    def __init__(self, domain: Domain, references: Mapping[Clique, Matrix]) -> None:
        super().__init__(domain, tuple(references))
        units = [self.unit(clique) for clique in self.cliques]
        self._scales = np.array([dyadic(1 / unit) for unit in units])
        self._units = np.array(units)
        with np.errstate(over="ignore", invalid="ignore"):
            self._references = [
                _on_grid(np.nan_to_num(unit * references[clique]))
                for unit, clique in zip(units, self.cliques, strict=True)
            ]

    @property
    def size(self) -> int:
        return len(self.cliques)

    def statistic(self, total: ExactVector) -> Vector:
        blocks = zip(self.blocks(total), self._references, strict=True)
        return np.asarray(self._scales * np.array([np.abs(block - reference).sum() for block, reference in blocks]))

    def contribution(self) -> float:
        return float(np.linalg.norm(self._scales * self._units))

    def replacement(self) -> float:
        return 2 * self.contribution()

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> PairScores:
        assert isinstance(noise, Isotropic)
        scale = self._scales * self._units
        return PairScores(total / scale, n, noise, events, self.domain, self.cliques, noise.sigma / scale)


class ModelErrors(CliqueQuery[Selection]):
    r"""The score of each candidate in AIM, ``w_r (|T_r - model_r|_1 - penalty_r)``, by which one is chosen.

    The model and the penalties are released or public, so a row changes the score of a candidate by at most ``w_r``.
    The sensitivities are those of the largest entry, as the exponential mechanism requires.

    Parameters
    ----------
    domain : Domain
        Every attribute a class.
    models : mapping of clique to ndarray
        The model's counts.
    weights, penalties : sequence of float

    References
    ----------
    McKenna, Mullins, Sheldon, Miklau (2022), Algorithm 2.
    """

    tight: ClassVar[bool] = False
    norm: ClassVar[Norm] = Norm.LINF

    def __init__(
        self,
        domain: Domain,
        models: Mapping[Clique, Matrix],
        weights: Sequence[float],
        penalties: Sequence[float],
    ) -> None:
        super().__init__(domain.nominal, tuple(models))
        self._weights = np.array([dyadic(weight) for weight in weights])
        self._penalties = np.round(np.asarray(penalties) / _GRID) * _GRID
        self._models = [_on_grid(models[clique]) for clique in self.cliques]

    @property
    def size(self) -> int:
        return len(self.cliques)

    def statistic(self, total: ExactVector) -> Vector:
        pairs = zip(self.blocks(total), self._models, strict=True)
        distances = np.array([np.abs(block - model).sum() for block, model in pairs])
        return np.asarray(self._weights * (distances - self._penalties))

    def contribution(self) -> float:
        return float(self._weights.max())

    def replacement(self) -> float:
        return 2 * self.contribution()

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Selection:
        """Of the position that was chosen, as a vector of length 1."""
        return Selection(total, n, noise, events, self.domain, int(total[0]))


class CentredTables(CliqueQuery[Tables]):
    r"""The tables of ResidualPlanner: n, ``P_j T_j`` and ``P_j T_jk P_k`` with ``P_j = I - 11'/k_j``, each weighted.

    The residuals of a row have squared norms ``p_j = 1 - 1/k_j`` and ``p_j p_k`` for any levels, so adding or removing
    it changes the answer by exactly ``sqrt(w_0^2 + sum w_j^2 p_j + sum w_jk^2 p_j p_k)``. The tables are multiplied by
    the numbers of levels to have integer entries.

    Parameters
    ----------
    domain : Domain
        Taken as nominal.
    sigmas : mapping of clique to float
        Relative scales ``s`` of the noise; the empty tuple is n.

    References
    ----------
    Xiao, Ding, Zhang, Kifer (2023), ResidualPlanner; docs/queries.md.
    """

    tight: ClassVar[bool] = False

    def __init__(self, domain: Domain, sigmas: Mapping[Clique, float]) -> None:
        super().__init__(domain.nominal, [clique for clique in sigmas if clique])
        self._count_weight = dyadic(1 / sigmas[()])
        self._levels = [math.prod(self.domain.sizes[j] for j in clique) for clique in self.cliques]
        self._weights = [dyadic(1 / (sigmas[c] * k)) for c, k in zip(self.cliques, self._levels, strict=True)]

    @property
    def size(self) -> int:
        return 1 + _cells(self)

    def statistic(self, total: ExactVector) -> Vector:
        blocks = self.blocks(total)
        count = blocks[0].sum()
        residuals = [
            w * (k * b - self._margins(c, b))
            for c, b, w, k in zip(self.cliques, blocks, self._weights, self._levels, strict=True)
        ]
        return np.concatenate([[self._count_weight * count], *(residual.ravel() for residual in residuals)])

    def _margins(self, clique: Clique, block: Matrix) -> Matrix:
        """``k T - k P T P``, in integers."""
        if len(clique) == 1:
            return np.full(block.shape, block.sum())
        rows, columns = block.shape
        margins = columns * block.sum(axis=0, keepdims=True) + rows * block.sum(axis=1, keepdims=True)
        return np.asarray(margins - block.sum())

    def contribution(self) -> float:
        parts = [self._count_weight]
        for clique, weight, levels in zip(self.cliques, self._weights, self._levels, strict=True):
            parts.append(weight * levels * math.sqrt(math.prod(1 - 1 / self.domain.sizes[j] for j in clique)))
        return math.hypot(*parts)

    def replacement(self) -> float:
        return 2 * self.contribution()

    def read(self, total: Vector, *, n: int, noise: NoiseLaw, events: tuple[Event, ...]) -> Tables:
        """Residuals on the scale of counts, centred along every axis."""
        assert isinstance(noise, Isotropic)
        blocks: dict[Clique, Matrix] = {(): total[:1] / self._count_weight}
        sigmas: dict[Clique, float] = {(): noise.sigma / self._count_weight}
        parts = zip(self.cliques, self._weights, self._levels, self.blocks(total[1:]), strict=True)
        for clique, weight, levels, block in parts:
            centred = block / (weight * levels)
            for axis in range(centred.ndim):
                centred = centred - centred.mean(axis=axis, keepdims=True)
            blocks[clique], sigmas[clique] = centred, noise.sigma / (weight * levels)
        return Tables(total, n, noise, events, self.domain, blocks, sigmas)

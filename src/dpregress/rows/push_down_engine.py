r"""Sums over private rows that the database computes itself, so that no row leaves it.

The statement repeats the row map in a fixed order of operations (:class:`~dpregress.rows.ordered.OrderedRows`), checks
the integers of every row against their bounds, and adds up products of integers. Its one row of sums goes to the
mechanism, which adds the noise; nothing else sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn, Self

import numpy as np
import pyarrow as pa

from dpregress.coordinates import Domain, ResponseScale, WhitenedSpace
from dpregress.coordinates.exact import ExactVector, Integers
from dpregress.errors import InvalidInput, NotAnswered, SourceError
from dpregress.rows.codes import CodedParquet
from dpregress.rows.design.encoder import Encoder
from dpregress.rows.engines import Engine, Progress, PushedValue, Value
from dpregress.rows.ordered import OrderedRows, with_exposure
from dpregress.rows.ordered_codes import coded_columns, counting
from dpregress.rows.ordered_levels import PushedColumn, opening
from dpregress.rows.ordered_units import PushedUnit, counted_alone, counted_rows
from dpregress.rows.push_down_sql import RowSums, written
from dpregress.rows.readers.base import Aggregator, Reader
from dpregress.rows.readers.failures import raise_alone
from dpregress.rows.row_kernel import Program, binned, case, floated, name, summed
from dpregress.rows.sources import Source, StreamSource
from dpregress.rows.units import CappedSource

_CHARGED = "a budget that was charged stays charged"


@dataclass(frozen=True)
class PushDownEngine(Engine):
    """Lets the database that holds the rows compute the sums (docs/scale.md).

    Totals are those of :class:`~dpregress.rows.ordered.OrderedRows` bit for bit, on every database.

    Parameters
    ----------
    progress : callable, optional
        Called with (n, n) after every statement.
    shown : callable, optional
        Is given the first sums in place of the database; it does not return.

    Raises
    ------
    InvalidInput
        Before a fit charges: for rows that are not in a database, numbers in text, and more than 40 design columns
        (fewer for several classes or pieces of a follow-up); if the fit asks for what has no program; if the database
        does not compute test rows as it should.
    SourceError
        After the charge: if the statement fails, or the number of rows has changed.

    Examples
    --------
    >>> from dpregress.rows import PushDownEngine
    >>> PushDownEngine().progress is None
    True
    """

    progress: Progress | None = None
    shown: Callable[[RowSums, PushedValue], NoReturn] | None = None

    def reporting(self, progress: Progress) -> Self:
        return replace(self, progress=progress)

    @contextmanager
    def ready(self, source: Source, asks: Sequence[type] | None = None, pieces: int = 0) -> Iterator[Self]:
        table = _Table.of(source)
        table.check_pieces(pieces)
        if asks is None or not all(getattr(kind, "pushes_down", False) for kind in asks):
            raise InvalidInput(
                "a database cannot compute what this fit asks for: leave out diagnose= and recipe='paper', or give no "
                "engine"
            )
        _check_arithmetic(table)
        yield self

    def total(self, source: Source, value: Value, *, columns: int) -> ExactVector:  # noqa: ARG002  # a program has its own
        table = _Table.of(source)
        if not isinstance(value, PushedValue):
            raise NotAnswered("a database computes queries only: leave the engine out")
        wholes, usable = [], 0
        for program in _programs(value, table):
            sums = table.sums(program, source.n)
            if self.shown is not None:
                self.shown(sums, value)
            whole, usable = _answered(table, sums)
            wholes.append(whole)
        if self.progress is not None:
            self.progress(source.n, source.n)
        return value.of_all(wholes, usable)


@dataclass(frozen=True)
class _Table:
    """Columns of a database; those of coded rows have a domain."""

    name: str
    database: Aggregator
    columns: tuple[PushedColumn, ...]
    target: PushedColumn | None
    domain: Domain | None = None
    exposed: PushedColumn | None = None
    unit: PushedUnit | None = None

    def sums(self, program: Program, n: int) -> RowSums:
        """A program over design columns, as one over columns of the table; unusable exposures are missing responses."""
        if self.exposed is not None:
            program = with_exposure(program)
        stages, cap = opening(self.columns, self.target), None
        target, exposed = (None if column is None else column.name for column in (self.target, self.exposed))
        if self.unit is not None:
            beside = {"y": target, "exposed": exposed}
            numbers = [f"c{j}" for j in range(sum(column.width for column in self.columns))]
            numbers += [column for column, known in beside.items() if known is not None]
            program, cap = counted_alone(program), self.unit.cap(stages, numbers, n)
        elif stages:
            program = Program.of((*stages, *program.stages), program.left, program.right, program.bins)
        names = tuple(column.name for column in self.columns)
        uncast = frozenset(column.name for column in self.all_columns if column.uncast)
        return RowSums(program, names, target, n, uncast, exposed, cap)

    @property
    def all_columns(self) -> tuple[PushedColumn, ...]:
        """Those of features, the response and the exposure."""
        beside = (column for column in (self.target, self.exposed) if column is not None)
        return (*self.columns, *beside)

    def check_pieces(self, pieces: int) -> None:
        """Refuse more pieces of a follow-up than a statement has room for, also on Spark.

        An information has a column for each pair of coefficients, and for each piece and coefficient.
        """
        d, most = sum(column.width for column in self.columns), Aggregator.most_columns
        if pieces and d + pieces > most + 1:
            raise InvalidInput(
                f"push-down takes up to {most + 1} columns and pieces together, not {d} and {pieces}: give fewer of "
                "cuts=, or no engine"
            )

    @classmethod
    def of(cls, source: Source) -> _Table:
        """The table of a source, refused where a database cannot compute its design columns."""
        if isinstance(source, CodedParquet):
            columns = coded_columns(source.domain, source.reader.schema)
            return cls(source.reader.name, _database_of(source.reader), columns, None, source.domain)
        if isinstance(source, CappedSource) and source.column is not None:
            found = cls.of(source.rows)
            (reader,) = source.readers()
            unit = PushedUnit(source.column, reader.schema.field(source.column).type, source.most)
            unit.check()
            return replace(found, unit=unit)
        if not isinstance(source, StreamSource):
            raise InvalidInput("push-down needs rows in a database, without weights=: give no engine")
        reader, encoder = source.reader, source.encoder
        database = _database_of(reader)
        if not isinstance(encoder, Encoder):
            raise InvalidInput(
                "a database computes no formulas: compute columns of numbers in the query, or give no engine"
            )
        classes = len(encoder.classes)
        contrasts = max(classes - 1, 1)  # a score has one for each of them and of the constant
        most, of = (database.most_columns + 1) // contrasts - 1, f" of {classes} classes" if contrasts > 1 else ""
        if len(encoder.features) > most:
            raise InvalidInput(f"push-down{of} takes up to {most} columns, not {len(encoder.features)}: give no engine")
        kinds = {column: reader.schema.field(column).type for column in encoder.needed}
        columns = tuple(PushedColumn.of(column, kinds[column], declared) for column, declared in encoder.columns)
        target, exposed = encoder.target, encoder.exposed
        response = None if target is None else PushedColumn(target, kinds[target], encoder.classes)
        rate = None if exposed is None else PushedColumn(exposed, kinds[exposed])
        found = cls(reader.name, database, columns, response, exposed=rate)
        for column in found.all_columns:
            column.check()
        return found


def _database_of(reader: Reader) -> Aggregator:
    if reader.database is None:
        raise InvalidInput(f"push-down needs rows in a database, and {reader.name} is in none: give no engine")
    return reader.database


def _programs(value: PushedValue, table: _Table) -> tuple[Program, ...]:
    """The programs of a query, whose numbers may have been released just now, after the charge."""
    try:
        return value.programs(table.target is not None)
    except InvalidInput as error:
        raise_alone(InvalidInput(f"{error}; {_CHARGED}"))


def _answered(table: _Table, sums: RowSums) -> tuple[Integers, int]:
    """The sums, unless they fail: an error may quote a cell."""
    try:
        whole, usable, n = table.database.summed(sums)
    except Exception:
        raise_alone(SourceError(f"{table.name} cannot be summed: the connection or the statement failed; {_CHARGED}"))
    if n != sums.n:
        raise SourceError(f"{table.name} has changed since the fit began: it has another number of rows; {_CHARGED}")
    return whole, usable


# ---------------------------------------------------------------- the arithmetic of the database, on public rows

#: Cells of the test rows: of many sizes, missing, beyond every limit, and some whose sums cancel.
_CELLS = (1.0, -1 / 3, None, 1e300, 5e-324, -7e150, 2.0**-200, 0.1, -1e17, 1e17, 3e-9, -0.0, 123456.789)
_TEST_ROWS, _TEST_COLUMNS, _TEST_LEVELS = 9, 8, 4
_TEST_EDGES = (-3e5, -7.0, 0.0, 1 / 3, 2e4, 3e5)


def _check_arithmetic(table: _Table) -> None:
    """Refuse a database whose numbers differ from IEEE 754's; the rows that it is asked about are public."""
    few = _few(table)
    d, columns = len(few.columns), few.all_columns
    given = pa.table({column.name: _test_cells(column, d, j) for j, column in enumerate(columns)})
    if few.unit is not None:
        given = given.append_column(few.unit.name, few.unit.trials)
    for sums in _trials(few):
        _check_sums(table, given, sums)
    *_, widest = _trials(table)
    try:
        table.database.plan(widest)
    except Exception:
        raise_alone(
            InvalidInput(
                f"the database cannot plan sums over {table.name}: cast all columns to DOUBLE PRECISION in the query, "
                "or give no engine"
            )
        )


def _few(table: _Table) -> _Table:
    """A few of its columns, those of levels first, with a few of their levels."""
    places = sorted(range(len(table.columns)), key=lambda j: not table.columns[j].trials)
    if table.domain is not None:
        few = places[:2]
        domain = Domain(tuple(table.domain.attributes[j] for j in few))
        return replace(table, columns=tuple(table.columns[j] for j in few), domain=domain)
    columns = [table.columns[j].shortened(_TEST_LEVELS) for j in places]
    ends = np.cumsum([column.width for column in columns])
    unit = None if table.unit is None else table.unit.few
    return replace(table, columns=tuple(columns[: int(np.searchsorted(ends, _TEST_COLUMNS, side="right"))]), unit=unit)


def _test_cells(column: PushedColumn, d: int, j: int) -> pa.Array:
    """Cells of the test rows in column j of d."""
    if column.trials:
        return pa.array([column.trials[(i + j) % len(column.trials)] for i in range(_TEST_ROWS)])
    return pa.array([_CELLS[(i * (d + 2) + j) ** 2 % len(_CELLS)] for i in range(_TEST_ROWS)], pa.float64())


def _trials(table: _Table) -> Iterator[RowSums]:
    """Programs that use every operation: sums of products, and counts by the size of a quotient."""
    if table.domain is not None:
        yield table.sums(counting(table.domain, range(min(len(table.columns), 2))), _TEST_ROWS)
        return
    d, target = sum(column.width for column in table.columns), table.target
    entries = np.sin(1.0 + np.arange((d + 1) ** 2)).reshape(d + 1, d + 1)
    response = None if target is None else ResponseScale(target.name, 0.3, 1.7, 2.0)
    names = tuple(each for column in table.columns for each in column.declared.design(column.name))
    rows = OrderedRows(WhitenedSpace(names, entries, 3.0, np.full(d, 0.7), intercept=True, response=response))
    labelled = target is not None
    quotient = {"a": floated(name(rows.integers[0])) / (name("w") + 2.0)}
    stages = (*rows.stages(labelled), quotient, {"h": case(name("k") >= 1, binned(name("a"), _TEST_EDGES), -1)})
    for program in (Program.of(stages, ("h",), bins=len(_TEST_EDGES) + 1), rows.joint(labelled)):
        yield table.sums(program, _TEST_ROWS)


def _check_sums(table: _Table, given: pa.Table, sums: RowSums) -> None:
    """Refuse a database whose sums over public rows differ from what IEEE 754 determines."""
    try:
        found, *counts = table.database.holding(given, written).summed(sums)
    except InvalidInput:
        raise
    except Exception:
        raise_alone(InvalidInput("the database cannot compute test rows: it may lack sqrt(); give no engine"))
    batches = given.combine_chunks().to_batches()
    if sums.cap is not None:
        batches = [counted_rows(batches[0], sums.cap, tuple(sums.beside))]
    (expected,) = summed(batches, sums.program, sums.given)
    whole, *of_rows = sums.of_words([expected])
    if (found.tolist(), counts) != (whole.tolist(), of_rows):
        raise InvalidInput("the database does not compute with numbers of IEEE 754 as it should: give no engine")

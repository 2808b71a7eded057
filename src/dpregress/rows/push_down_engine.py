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
from dpregress.public import Numeric
from dpregress.rows.codes import CodedParquet
from dpregress.rows.design.encoder import Encoder, whole_numbers
from dpregress.rows.engines import Engine, Progress, PushedValue, Value
from dpregress.rows.ordered import OrderedRows, level_place, with_exposure
from dpregress.rows.ordered_codes import check_coded, counting
from dpregress.rows.push_down_sql import RowSums, written
from dpregress.rows.readers.base import Aggregator, Reader
from dpregress.rows.readers.failures import raise_alone
from dpregress.rows.row_kernel import Program, binned, case, floated, name, summed
from dpregress.rows.sources import Source, StreamSource

_CHARGED = "a budget that was charged stays charged"


@dataclass(frozen=True)
class PushDownEngine(Engine):
    """Lets the database that holds the rows compute the sums (docs/scale.md), over numeric columns.

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
        Before a fit charges: for rows that are not in a database, columns of levels, and more than 40 columns (fewer
        for several classes); if the fit asks for what has no program; if the database does not compute test rows as it
        should.
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
    def ready(self, source: Source, asks: Sequence[type] | None = None) -> Iterator[Self]:
        table = _Table.of(source)
        if asks is None or not all(getattr(kind, "pushes_down", False) for kind in asks):
            raise InvalidInput(
                "a database cannot compute what this fit asks for: leave out diagnose= and recipe='paper'; for these "
                "and for survival models, give no engine"
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
    """Numeric columns of a database; those of coded rows have a domain."""

    name: str
    database: Aggregator
    features: tuple[str, ...]
    target: str | None
    classes: tuple[float, ...] = ()
    domain: Domain | None = None
    exposed: str | None = None

    def sums(self, program: Program, n: int) -> RowSums:
        """A program over its columns, in which classes are their places, and unusable exposures missing responses."""
        if self.exposed is not None:
            program = with_exposure(program)
        if self.classes:
            stages = ({"y": level_place("y", self.classes)}, *program.stages)
            program = Program.of(stages, program.left, program.right, program.bins)
        return RowSums(program, self.features, self.target, n, self.exposed)

    @classmethod
    def of(cls, source: Source) -> _Table:
        """The table of a source, refused where a database cannot compute its design columns."""
        if isinstance(source, CodedParquet):
            check_coded(source.domain, source.reader.schema)
            return cls(source.reader.name, _database_of(source.reader), source.domain.names, None, domain=source.domain)
        if not isinstance(source, StreamSource):
            raise InvalidInput("push-down needs rows in a database, without unit= or weights=: give no engine")
        reader, encoder = source.reader, source.encoder
        database = _database_of(reader)
        if not isinstance(encoder, Encoder):
            raise InvalidInput(
                "a database computes no formulas: compute columns of numbers in the query, or give no engine"
            )
        classes = whole_numbers(encoder.classes) if encoder.classes else ()
        if classes is None:
            raise InvalidInput(
                f"a database tells classes apart by whole numbers: compute {encoder.target!r} as 0 and 1 in the query, "
                "or give no engine"
            )
        contrasts = max(len(classes) - 1, 1)  # a score has one for each of them and of the constant
        most, of = (database.most_columns + 1) // contrasts - 1, f" of {len(classes)} classes" if contrasts > 1 else ""
        if len(encoder.columns) > most:
            raise InvalidInput(f"push-down{of} takes up to {most} columns, not {len(encoder.columns)}: give no engine")
        for column in encoder.needed:
            declared = dict(encoder.columns).get(column, Numeric())
            if not (isinstance(declared, Numeric) and declared.missing != "indicator" and _is_number(reader, column)):
                raise InvalidInput(
                    f"column {column!r} is not one of numbers alone: write it in the query as CAST(.. AS DOUBLE "
                    "PRECISION), with CASE within for a level, or give no engine"
                )
        features = tuple(column for column, _ in encoder.columns)
        return cls(reader.name, database, features, encoder.target, tuple(map(float, classes)), exposed=encoder.exposed)


def _database_of(reader: Reader) -> Aggregator:
    if reader.database is None:
        raise InvalidInput(f"push-down needs rows in a database, and {reader.name} is in none: give no engine")
    return reader.database


def _is_number(reader: Reader, column: str) -> bool:
    kind = reader.schema.field(column).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


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
_TEST_ROWS, _TEST_COLUMNS = 9, 8
_TEST_EDGES = (-3e5, -7.0, 0.0, 1 / 3, 2e4, 3e5)


def _check_arithmetic(table: _Table) -> None:
    """Refuse a database whose numbers differ from IEEE 754's; the rows that it is asked about are public."""
    few, target = replace(table, features=table.features[:_TEST_COLUMNS]), table.target
    d, names = len(few.features), [*few.features, *(each for each in (target, table.exposed) if each is not None)]
    given = pa.table(
        {
            column: pa.array([_CELLS[(i * (d + 2) + j) ** 2 % len(_CELLS)] for i in range(_TEST_ROWS)], pa.float64())
            for j, column in enumerate(names)
        }
    )
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


def _trials(table: _Table) -> Iterator[RowSums]:
    """Programs that use every operation: sums of products, and counts by the size of a quotient."""
    d, target = len(table.features), table.target
    if table.domain is not None:
        yield RowSums(counting(table.domain, range(min(d, 2))), table.features, None, _TEST_ROWS)
        return
    entries = np.sin(1.0 + np.arange((d + 1) ** 2)).reshape(d + 1, d + 1)
    response = None if target is None else ResponseScale(target, 0.3, 1.7, 2.0)
    rows = OrderedRows(WhitenedSpace(table.features, entries, 3.0, np.full(d, 0.7), intercept=True, response=response))
    labelled = target is not None
    quotient = {"a": floated(name(rows.integers[0])) / (name("w") + 2.0)}
    stages = (*rows.stages(labelled), quotient, {"h": case(name("k") >= 1, binned(name("a"), _TEST_EDGES), -1)})
    for program in (Program.of(stages, ("h",), bins=len(_TEST_EDGES) + 1), rows.joint(labelled)):
        yield RowSums(program, table.features, target, _TEST_ROWS, table.exposed)


def _check_sums(table: _Table, given: pa.Table, sums: RowSums) -> None:
    """Refuse a database whose sums over public rows differ from what IEEE 754 determines."""
    try:
        found, *counts = table.database.holding(given, written).summed(sums)
    except InvalidInput:
        raise
    except Exception:
        raise_alone(InvalidInput("the database cannot compute test rows: it may lack sqrt(); give no engine"))
    (expected,) = summed(given.combine_chunks().to_batches(), sums.program, tuple(sums.beside))
    whole, *of_rows = sums.of_words([expected])
    if (found.tolist(), counts) != (whole.tolist(), of_rows):
        raise InvalidInput("the database does not compute with numbers of IEEE 754 as it should: give no engine")

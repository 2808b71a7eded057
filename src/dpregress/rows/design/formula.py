r"""Formulas such as ``visits ~ age + C(plan) + age:plan`` as designs.

The formulaic library reads a formula into terms and factors; no more of it is used, and nothing in a formula
is run. A factor is a numeric column, a categorical column with declared levels, or arithmetic of one row's
numbers (:mod:`dpregress.rows.design.expressions`). A term is the product of its factors. Levels are coded by
treatment contrasts: the first level is left out where the columns before it span it, as formulaic does.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import itemgetter

import numpy as np
import pyarrow as pa

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, SchemaError, UnboundedData
from dpregress.public import Categorical, Numeric, Schema
from dpregress.rows.design.base import Design
from dpregress.rows.design.encoder import Encoder
from dpregress.rows.design.expressions import Column, Interval, finite, product
from dpregress.rows.design.factors import Computed, Factor, FactorLevels, Splined, computed, factor_of
from dpregress.rows.design.terms import split_terms

#: Wider interactions and more columns are refused as likely errors, which would take too long to compute.
_MOST_FACTORS = 8
#: Offsets are clipped to this range, as are the logarithms of exposures.
_FURTHEST = 69.0
_MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Coded:
    """A factor with its coding; numbers are always full."""

    factor: Factor
    full: bool


Block = tuple[Coded, ...]


@dataclass(frozen=True)
class FormulaEncoder(Design):
    """Converts batches of a table to the design columns of a formula.

    Columns are named ``age``, ``log(age)``, ``plan=gold`` and, for interactions, ``age:plan=gold``.

    Parameters
    ----------
    text : str
        The formula.
    blocks : tuple of tuple of Coded
        Columns in order: each block is the product of its coded factors.
    intercept : bool
    response : Computed
    table : Encoder
        Reads the columns that the formula names.
    offset : Computed or None
        What ``offset()`` adds to linear predictors.
    """

    text: str
    blocks: tuple[Block, ...]
    intercept: bool
    response: Computed
    table: Encoder
    offset: Computed | None = None

    @classmethod
    def of(
        cls, text: str, schema: Schema | None, classes: tuple[str, ...] = (), exposed: str | None = None
    ) -> FormulaEncoder:
        """Read a formula; categorical columns are those with declared levels.

        Parameters
        ----------
        text : str
        schema : Schema or None
        classes : tuple of str
            Levels of a response that is a class.
        exposed : str or None
            The column of exposures.

        Raises
        ------
        InvalidInput
            For what is not a formula, and for what would read private data: centring, splines without public
            knots, levels that no schema declares.
        """
        try:
            return cls._of(text, schema, classes, exposed)
        except InvalidInput as error:
            if isinstance(error, SchemaError | UnboundedData):
                raise
            raise InvalidInput(f"formula {_short(text)}: {error}") from error

    @classmethod
    def _of(cls, text: str, schema: Schema | None, classes: tuple[str, ...], exposed: str | None) -> FormulaEncoder:
        left, right = split_terms(text)
        response = _response(left)
        offset, right = _split_offset(right)
        terms = [tuple(factor_of(name, schema) for name in term) for term in right if term]
        columns = list(dict.fromkeys(name for term in terms for factor in term for name in sorted(factor.columns)))
        if offset is not None:
            columns = list(dict.fromkeys([*columns, *sorted(offset.columns)]))
        (target,) = response.columns
        if target in columns:
            raise InvalidInput(f"the response {target!r} is on the right side too: leave it out there")
        if classes and not isinstance(response.expression, Column):
            raise InvalidInput(f"a response of classes is a column, not {response.label}")
        _one_reference(factor for term in terms for factor in term)
        if not terms:
            raise InvalidInput(f"nothing to regress on: write terms, as in {target} ~ age + income")
        intercept = () in right
        constant = _spans_constant(terms)
        if constant > 1 or (constant and intercept):
            raise InvalidInput("the columns of cr() sum to 1, as the intercept does: write 0 + cr(...), or ns(...)")
        table = Encoder.of(columns, target, schema, classes, exposed)
        return cls(text, _coded(terms, intercept or constant > 0), intercept, response, table, offset)

    def __post_init__(self) -> None:
        width = sum(math.prod(len(coded.factor.names(coded.full)) for coded in block) for block in self.blocks)
        if width > _MOST_COLUMNS:
            raise InvalidInput(f"it makes {width:,} columns, more than {_MOST_COLUMNS:,}: leave interactions out")
        name, times = max(Counter(self.features).items(), key=itemgetter(1), default=("", 0))
        if times > 1:
            raise InvalidInput(f"{times} of its columns are called {name!r}: rename a column or level")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the design columns."""
        return tuple(name for block in self.blocks for name, _ in _products(block))

    @property
    def terms(self) -> dict[str, list[str]]:
        """Names of the design columns of each term."""
        found: dict[str, list[str]] = {}
        for block in self.blocks:
            label = ":".join(coded.factor.term for coded in block)
            found.setdefault(label, []).extend(name for name, _ in _products(block))
        return found

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of the table on the right side."""
        return tuple(name for name, _ in self.table.columns)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns of the table that are read."""
        return self.table.needed

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """Declared levels of the categorical columns."""
        return {name: column.levels for name, column in self.table.columns if isinstance(column, Categorical)}

    @property
    def stand_ins(self) -> dict[str, str]:
        """The levels assigned to missing and undeclared cells, where these are not the first levels."""
        return {
            name: column.missing
            for name, column in self.table.columns
            if isinstance(column, Categorical) and column.missing is not None
        }

    @property
    def right(self) -> FormulaEncoder:
        """The same columns without the response."""
        return replace(self, table=Encoder(self.table.columns))

    @property
    def plain(self) -> FormulaEncoder:
        """The same with a response that is already a number rather than a class."""
        return replace(self, table=Encoder(self.table.columns, self.table.target))

    def x(self, batch: pa.Table | pa.RecordBatch) -> Matrix:
        """Design matrix of shape (m, d); missing cells, and those outside a function's domain, are NaN."""
        cells = {name: Encoder(((name, column),)).x(batch) for name, column in self.table.columns}
        columns = []
        for block in self.blocks:
            parts = [coded.factor.values(cells, coded.full) for coded in block]
            for _, chosen in _products(block):
                columns.append(_multiplied([part[:, at] for part, at in zip(parts, chosen, strict=True)]))
        return np.ascontiguousarray(np.column_stack(columns)) if columns else np.empty((batch.num_rows, 0))

    def y(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """Response of shape (m,), or positions of classes; missing cells are NaN."""
        values = self.table.y(batch)
        return values if values is None else self.respond(values)

    def exposure(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """Exposure of shape (m,), times ``exp`` of an offset; missing cells are NaN."""
        found, offsets = self.table.exposure(batch), self.offsets(batch)
        if offsets is None:
            return found
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.exp(offsets) if found is None else found * np.exp(offsets))

    def offsets(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """What is added to linear predictors, of shape (m,), within +-69; None without an offset."""
        if self.offset is None:
            return None
        cells = {name: Encoder(((name, Numeric()),)).x(batch)[:, 0] for name in self.offset.columns}
        return np.clip(finite(self.offset.expression.values(cells)), -_FURTHEST, _FURTHEST)

    def responses(self) -> FormulaEncoder:
        """The same response and exposure without design columns."""
        names = frozenset() if self.offset is None else self.offset.columns
        table = replace(self.table.responses(), columns=tuple(each for each in self.table.columns if each[0] in names))
        return replace(self, blocks=(), table=table)

    def respond(self, values: Vector) -> Vector:
        """The left side, computed from values of the response's column; of shape (m,)."""
        (column,) = self.response.columns
        return self.response.expression.values({column: values})

    def check_types(self, schema: pa.Schema) -> None:
        """Refuse missing columns and types that cannot be read."""
        self.table.check_types(schema)

    def schema(self, schema: Schema | None, *, needed: bool = False) -> Schema | None:
        """Bounds of the design columns and of the response, by interval arithmetic on those of the columns.

        Parameters
        ----------
        schema : Schema or None
            The schema of the table's columns.
        needed : bool
            Whether nothing else bounds the rows.

        Raises
        ------
        UnboundedData
            When bounds are needed and a design column has none.
        """
        if schema is None:
            return None
        bounds: dict[str, Interval] = {}
        for name, column in schema.columns.items():
            if isinstance(column, Numeric) and column.bounds is not None:
                bounds[name] = column.bounds
        derived: dict[str, Numeric | Categorical] = {}
        for block in self.blocks:
            plain = schema.columns.get(block[0].factor.label) if isinstance(block[0].factor, Computed) else None
            fill = plain.fill if len(block) == 1 and isinstance(plain, Numeric) else None
            intervals = [coded.factor.intervals(bounds, coded.full) for coded in block]
            for name, chosen in _products(block):
                interval = reduce(product, (each[at] for each, at in zip(intervals, chosen, strict=True)))
                bounded = _numeric(interval, fill)
                if bounded is not None:
                    derived[name] = bounded
                elif needed:
                    raise UnboundedData(_unbounded(name, block, bounds, interval))
        response = _numeric(self.response.expression.interval(bounds))
        if response is not None and self.response.label not in derived:
            derived[self.response.label] = response
        return Schema(derived)


def _split_offset(right: Sequence[tuple[str, ...]]) -> tuple[Computed | None, list[tuple[str, ...]]]:
    """The arithmetic in ``offset()``, and the other terms."""
    given = [term for term in right if any(name.startswith("offset(") for name in term)]
    if not given:
        return None, list(right)
    if len(given) > 1 or len(given[0]) > 1:
        raise InvalidInput("write one offset, by itself: visits ~ age + offset(log(years))")
    inner = given[0][0].removeprefix("offset(").removesuffix(")")
    return computed(inner), [term for term in right if term is not given[0]]


def _response(left: Sequence[tuple[str, ...]]) -> Computed:
    if len(left) != 1 or len(left[0]) != 1:
        raise InvalidInput("the left side must be one column, or a function of one column")
    factor = computed(left[0][0])
    if len(factor.columns) != 1:
        raise InvalidInput(f"the response {factor.label} must depend on one column")
    return factor


def response_column(text: str) -> str:
    """The column that the left side of a formula is made of.

    Raises
    ------
    InvalidInput
    """
    try:
        (column,) = _response(split_terms(text)[0]).columns
    except InvalidInput as error:
        raise InvalidInput(f"formula {_short(text)}: {error}") from error
    return column


def _one_reference(factors: Iterable[Factor]) -> None:
    """Refuse a column with two codings, because it would be unclear which of their columns are redundant."""
    seen: dict[str, FactorLevels] = {}
    for factor in factors:
        if isinstance(factor, FactorLevels) and seen.setdefault(factor.column, factor) != factor:
            raise InvalidInput(f"{factor.column!r} has two reference levels: write the same in every term")


def _spans_constant(terms: Sequence[tuple[Factor, ...]]) -> int:
    """The number of terms whose columns sum to 1 without an intercept; coding of levels removes all of them."""
    return sum(len(term) == 1 and isinstance(term[0], Splined) and term[0].sums_to_one for term in terms)


def _coded(terms: Sequence[tuple[Factor, ...]], constant: bool) -> tuple[Block, ...]:
    """Every term as blocks of columns that are not spanned by earlier blocks."""
    spanned: set[frozenset[Coded]] = {frozenset()} if constant else set()
    blocks: list[Block] = []
    for repeated in terms:
        term = tuple(dict.fromkeys(repeated))
        if len(term) > _MOST_FACTORS:
            raise InvalidInput(f"an interaction of {len(term)} columns is more than {_MOST_FACTORS}: leave some out")
        # with contrasts a factor of levels spans the constant and its contrasts
        choices = [
            [Coded(factor, False), None] if isinstance(factor, FactorLevels) else [Coded(factor, True)]
            for factor in term
        ]
        parts = [tuple(coded for coded in chosen if coded is not None) for chosen in itertools.product(*choices)]
        new = [part for part in parts if frozenset(part) not in spanned]
        spanned.update(frozenset(part) for part in new)
        blocks.extend(_merged(new))
    return tuple(blocks)


def _merged(parts: Sequence[Block]) -> list[Block]:
    """The smallest number of blocks with the same span: ``rest`` and ``rest:contrasts`` become ``rest:all levels``."""
    kept: list[Block] = []
    for part in sorted(parts, key=len):
        for other in kept:
            added = set(part) - set(other)
            if len(added) == 1 and len(part) == len(other) + 1 and not next(iter(added)).full:
                wider = tuple(Coded(coded.factor, True) if coded in added else coded for coded in part)
                kept = _merged([*(block for block in kept if block is not other), wider])
                break
        else:
            kept.append(part)
    return kept


def _products(block: Block) -> Iterable[tuple[str, tuple[int, ...]]]:
    """Names of a block's columns, and which column of each factor they multiply; the first factor runs fastest."""
    names = [coded.factor.names(coded.full) for coded in block]
    for backwards in itertools.product(*(range(len(each)) for each in reversed(names))):
        chosen = backwards[::-1]
        yield ":".join(each[at] for each, at in zip(names, chosen, strict=True)), chosen


def _multiplied(columns: Sequence[Vector]) -> Vector:
    with np.errstate(all="ignore"):
        return finite(reduce(np.multiply, columns))


def _numeric(interval: Interval, fill: float | None = None) -> Numeric | None:
    """The interval as a numeric column, if its bounds are valid."""
    try:
        return Numeric(*interval, fill=fill)
    except SchemaError:
        return None if fill is None else Numeric(fill=fill)


def _unbounded(name: str, block: Block, bounds: Mapping[str, Interval], interval: Interval) -> str:
    numbers = [coded.factor for coded in block if not isinstance(coded.factor, FactorLevels)]
    needed = sorted(frozenset().union(*(factor.columns for factor in numbers)))
    absent = [column for column in needed if column not in bounds]
    if absent:
        return f"no public bounds for {name!r}: declare lower and upper of {absent[0]!r} in the schema"
    where = ", ".join(f"{column} in [{bounds[column][0]:g}, {bounds[column][1]:g}]" for column in needed)
    if interval[0] == interval[1] and math.isfinite(interval[0]):
        return f"column {name!r} is constant with {where}: leave it out"
    return (
        f"no finite public bounds for {name!r} with {where}: declare narrower bounds, "
        "or choose a function that is finite there, such as log1p"
    )


def _short(text: str) -> str:
    shown = " ".join(str(text).split())
    return repr(shown if len(shown) <= 80 else shown[:77] + "...")

r"""The rows of a unit that count in a database, which has no order of its own.

They are drawn by a fixed rule: the first k in the order of a digest of the id and the cells. The digest tells nothing
of how large a cell is, so that these rows are like a random sample of those of the unit, and the same in every pass.
docs/privacy/units.md has the proof, for which it does not matter what the digest is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import md5

import numpy as np
import pyarrow as pa

from dpregress.errors import InvalidInput
from dpregress.rows.design.encoder import is_text, value_type
from dpregress.rows.ordered import FINITE
from dpregress.rows.ordered_levels import of_bytes
from dpregress.rows.row_kernel import (
    Program,
    RowExpression,
    Stage,
    UnitCap,
    added,
    capped_numbers,
    case,
    clipped,
    floated,
    name,
    rounded,
    threaded,
)
from dpregress.rows.units import keys_of

#: Sizes of cells that are taken as they are: products with multipliers below 2^5 are rounded by ROUNDER. Others are
#: brought there by factors, so that the fraction of a product tells cells of all sizes from 2^-90 to 2^106 apart.
_SMALL, _LARGE = 2.0**-16, 2.0**45
_ENLARGED, _REDUCED, _FARTHEST = 2.0**60, 2.0**-61, 2.0**106
#: Steps of a fraction; sums of 401 of them are exact in floats.
_STEPS = 2.0**34
#: Ids of test rows: in several spellings, of which some are one id, and some none.
_TRIALS = ("a", "A", " a", None, "a\t", "", "a", "\u00e9", "A")
_FEW = 2


@dataclass(frozen=True)
class PushedUnit:
    """The column of ids of a table in a database, and how many rows of each id count.

    Parameters
    ----------
    name : str
    kind : pyarrow.DataType
        As its reader has it.
    most : int
    """

    name: str
    kind: pa.DataType
    most: int

    def check(self) -> None:
        """Refuse ids that a database cannot tell apart as a reader does.

        Raises
        ------
        InvalidInput
            For bytes.
        """
        kind = value_type(self.kind)
        if is_text(kind) and of_bytes(kind):
            raise InvalidInput(
                f"a database finds ids in text and whole numbers, and unit column {self.name!r} is of type {kind}: "
                "compute its text in the query"
            )

    @property
    def few(self) -> PushedUnit:
        """The same with a cap that test rows exceed."""
        return replace(self, most=min(self.most, _FEW))

    @property
    def trials(self) -> pa.Array:
        """Ids of test rows."""
        return pa.array(_TRIALS, pa.string())

    def cap(self, stages: Sequence[Stage], columns: Sequence[str], n: int) -> UnitCap:
        """The cap over ``columns``, which stages compute from cells of the table; n is the number of rows."""
        # the multipliers are irrational for every j
        products = {f"t{j}": _product(name(column), math.sqrt(j + 7 / 3)) for j, column in enumerate(columns)}
        fractions = [rounded((name(t) - floated(rounded(name(t)))) * _STEPS) for t in products]
        made = threaded((*stages, products, {"m": added(fractions)}), {*columns, "m"})
        return UnitCap(self.name, min(self.most, n), made, tuple(columns))


def _product(cell: RowExpression, factor: float) -> RowExpression:
    """A number whose fraction depends on a cell of any size."""
    return case(
        (cell > -_SMALL) & (cell < _SMALL), cell * (factor * _ENLARGED),
        (cell >= -_LARGE) & (cell <= _LARGE), cell * factor,
        (cell >= -FINITE) & (cell <= FINITE), clipped(cell, -_FARTHEST, _FARTHEST) * (factor * _REDUCED),
        0.25,
    )  # fmt: skip


def counted_alone(program: Program) -> Program:
    """The program in which rows add 0 to every sum unless ``counts`` is 1."""
    counts, nothing = name("counts") >= 1, -1 if program.bins else 0
    kept = {column: case(counts, name(column), nothing) for column in (*program.left, *program.right)}
    stage = {**kept, "k": case(counts, name("k"), 0)}
    return program.extended([stage], program.left, program.right, program.bins)


def counted_rows(batch: pa.RecordBatch, cap: UnitCap, beside: Sequence[str]) -> pa.RecordBatch:
    """The columns of a cap with ``counts``, as a database gives them to a program.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Of all rows, with ids in the last column.
    cap : UnitCap
    beside : sequence of str
        As of :func:`~dpregress.rows.row_kernel.summed`.
    """
    (found,) = capped_numbers([batch], cap, beside)
    keys = keys_of(found["unit"]).to_pylist()
    digests = [_digest(key, m) for key, m in zip(keys, found["m"].to_pylist(), strict=True)]
    numbers = found.select(list(cap.columns))
    cells = np.nan_to_num(np.column_stack([column.to_numpy(False) for column in numbers.columns]), nan=np.inf)
    seen: Counter[bytes | None] = Counter()
    counts = np.zeros(len(keys))
    for row in sorted(range(len(keys)), key=lambda row: (digests[row], *cells[row])):
        counts[row] = keys[row] is not None and seen[keys[row]] < cap.most
        seen[keys[row]] += 1
    return numbers.append_column("counts", pa.array(counts))


def _digest(key: bytes | None, m: int) -> str:
    """The digest of an id and the integer of a row; it decides on no bound."""
    return _hex(f"{_hex(key or b'')}/{m}".encode())


def _hex(text: bytes) -> str:
    return md5(text, usedforsecurity=False).hexdigest()

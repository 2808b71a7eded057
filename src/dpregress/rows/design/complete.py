"""Rows that count only if certain cells are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, one_line
from dpregress.public import Categorical, Schema
from dpregress.rows.design.encoder import Encoder, to_codes, to_numbers


@dataclass(frozen=True)
class CompleteEncoder(Encoder):
    """Converts batches of a table without a response; a row counts if the cells of the required columns are usable.

    Parameters
    ----------
    required : tuple of str
        Some of the columns: a number must be finite, a level declared.
    """

    required: tuple[str, ...] = ()

    @classmethod
    def requiring(cls, names: Sequence[str], schema: Schema | None, required: Sequence[str]) -> CompleteEncoder:
        """An encoder of these columns.

        Raises
        ------
        InvalidInput
            If a required column is not among them.
        """
        absent = [name for name in required if name not in names]
        if absent:
            raise InvalidInput(f"{one_line(absent[0])} is required of every row but is not among the columns: add it")
        encoder = Encoder.of(names, None, schema)
        return cls(encoder.columns, required=tuple(required))

    def y(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """0 for a row that counts and NaN for one that does not, of shape (m,); None if nothing is required."""
        if not self.required:
            return None
        columns = dict(self.columns)
        usable = np.ones(batch.num_rows, dtype=np.bool_)
        for name in self.required:
            column, cells = columns[name], batch.column(name)
            values = to_codes(cells, column.levels) if isinstance(column, Categorical) else to_numbers(cells)
            usable &= np.isfinite(values)
        return np.where(usable, 0.0, np.nan)

    def responses(self) -> CompleteEncoder:
        """Not without the columns: which rows count depends on them."""
        return replace(self)

"""The Parquet file of a run: one tidy row for every number of every repeat, always whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpregress.datasets.loaders import keep
from dpregress.errors import InvalidInput

#: ``setting`` is the text of the setting; ``seconds`` are of the whole repeat.
COLUMNS = pa.schema(
    [
        ("experiment", pa.string()), ("setting", pa.string()), ("repeat", pa.int64()), ("seed", pa.int64()),
        ("panel", pa.string()), ("line", pa.string()), ("method", pa.string()), ("x", pa.float64()),
        ("value", pa.float64()), ("seconds", pa.float64()),
    ]
)  # fmt: skip
Row = Mapping[str, Any]


class RunFile:
    """The rows of an experiment at a seed, and which repeats of which settings are among them.

    Parameters
    ----------
    path : Path
    seed : int

    Raises
    ------
    InvalidInput
        If the file is of another seed, or no such file.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self._table = _read(path)
        self._new: list[Row] = []
        seeds = set(self._table["seed"].to_pylist())
        if seeds - {seed}:
            raise InvalidInput(f"{path} was run with seed {seeds.pop()}: give this seed, or another --out")

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [*self._table.to_pylist(), *self._new]

    @property
    def seconds(self) -> dict[tuple[str, int], float]:
        """Seconds of every repeat that is done, by setting and repeat."""
        return {(row["setting"], row["repeat"]): row["seconds"] for row in self.rows}

    def add(self, rows: Sequence[Row]) -> None:
        """Keep the rows of a repeat until the next :meth:`write`."""
        self._new += rows

    def write(self) -> None:
        """Write everything."""
        if not self._new:
            return
        self._table = pa.concat_tables([self._table, pa.Table.from_pylist(self._new, schema=COLUMNS)])
        self._new = []
        keep(self.path, lambda part: pq.write_table(self._table, part))


def _read(path: Path) -> pa.Table:
    if not path.exists():
        return COLUMNS.empty_table()
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{path} is not the file of a run: remove it, or give another --out") from error
    if table.schema.names != COLUMNS.names:
        raise InvalidInput(f"{path} has other columns than the file of a run: remove it, or give another --out")
    try:
        return table.cast(COLUMNS)
    except (ValueError, pa.ArrowException) as error:
        raise InvalidInput(
            f"{path} has columns of other types than the file of a run: remove it, or give another --out"
        ) from error

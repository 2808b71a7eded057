"""The Parquet file of a run: one tidy row for every number of every repeat, always whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
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
_BASIS = b"dpregress.basis"
Row = Mapping[str, Any]


class RunFile:
    """The rows of an experiment at a seed, and which repeats of which settings are among them.

    Parameters
    ----------
    path : Path
    seed : int
    basis : mapping of str to str
        What the repeats are run on: the software, and the checksum of each table. Rows of another basis are left out.

    Raises
    ------
    InvalidInput
        If the file is of another seed, or no such file.
    """

    def __init__(self, path: Path, seed: int, basis: Mapping[str, str] = MappingProxyType({})) -> None:
        self.path = path
        self._table = _read(path)
        self._new: list[Row] = []
        seeds = set(self._table["seed"].to_pylist())
        if seeds - {seed}:
            raise InvalidInput(f"{path} was run with seed {seeds.pop()}: give this seed, or another --out")
        kept = _basis(path)
        #: What differs from the file, whose rows are then left out.
        self.changed = [
            name for name in basis if kept.get(name, "" if name == "software" else basis[name]) != basis[name]
        ]
        if not self._table.num_rows:
            self.changed = []
        if self.changed:
            self._table, kept = COLUMNS.empty_table(), {}
        self._kept = {**kept, **basis}

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
        table = self._table.replace_schema_metadata({_BASIS: json.dumps(self._kept)})
        keep(self.path, lambda part: pq.write_table(table, part))


def _basis(path: Path) -> dict[str, str]:
    """What the repeats of a file were run on; nothing where it does not say so."""
    try:
        held = json.loads((pq.read_schema(path).metadata or {}).get(_BASIS, b"{}")) if path.exists() else {}
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


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

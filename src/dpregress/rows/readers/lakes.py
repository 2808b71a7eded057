"""Tables of Delta Lake and Apache Iceberg, as they are when a fit begins: later commits change no pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from dpregress.errors import InvalidInput
from dpregress.rows.readers.base import DatasetReader, Reader
from dpregress.rows.readers.failures import planning, reading

#: Features of tables that Arrow cannot read.
_UNREAD = {"columnMapping": "mapped columns", "deletionVectors": "deletion vectors"}


class DeltaReader(DatasetReader):
    """A table of Delta Lake: the files of one version, by Arrow's scanner.

    Parameters
    ----------
    table : deltalake.DeltaTable
        Tables with deletion vectors or column mapping are refused, because Arrow cannot read them.
    """

    def __init__(self, table: Any) -> None:
        with planning("the Delta table cannot be opened"):
            features = {*(table.protocol().reader_features or ())} & {*_UNREAD}
            if features:
                said = " and ".join(_UNREAD[feature] for feature in sorted(features))
                raise InvalidInput(
                    f"it has {said}: give it as a table of Spark or a query of DuckDB with delta_scan(), or drop them"
                )
            super().__init__(table.to_pyarrow_dataset())

    @property
    def name(self) -> str:
        return "the Delta table"


class IcebergReader(Reader):
    """A table of Apache Iceberg: one snapshot, by the scans of pyiceberg.

    Parameters
    ----------
    table : pyiceberg.table.Table
    """

    def __init__(self, table: Any) -> None:
        snapshot = table.current_snapshot()
        self._table, self._snapshot = table, None if snapshot is None else snapshot.snapshot_id

    @property
    def name(self) -> str:
        return "the Iceberg table"

    @cached_property
    def schema(self) -> pa.Schema:
        with planning(f"{self.name} cannot be planned"):
            return self._scan("*").to_arrow_batch_reader().schema

    @cached_property
    def n(self) -> int:
        with reading(self.name):
            return int(self._scan("*").count())

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # as they come
        for batch in self._scan(*columns).to_arrow_batch_reader():
            yield batch.select(list(columns))

    def _scan(self, *columns: str) -> Any:
        return self._table.scan(selected_fields=columns, snapshot_id=self._snapshot)

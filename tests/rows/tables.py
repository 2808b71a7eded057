"""One table in everything that a fit takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dpregress.rows import SQLQuery


class Stream:
    """An object of which nothing is known but that it gives Arrow streams."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.RecordBatchReader.from_batches(
            self._table.schema, self._table.to_batches(max_chunksize=77)
        ).__arrow_c_stream__(requested_schema)


def parts(table: pa.Table, folder: Path, write: Callable[[pa.Table, Path], object], ending: str) -> list[Path]:
    """Three files: some rows in another order of columns, none, and the rest."""
    cut = table.num_rows // 3
    backwards = table.slice(0, cut).select(table.schema.names[::-1])
    paths = [folder / f"part-{number}.{ending}" for number in range(3)]
    for path, piece in zip(paths, (backwards, table.slice(0, 0), table.slice(cut)), strict=True):
        write(piece, path)
    return paths


def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=190)


def _declared(kind: pa.DataType) -> str:
    return "TEXT" if pa.types.is_string(kind) else "INTEGER" if pa.types.is_integer(kind) else "REAL"


def _sqlite(table: pa.Table, folder: Path, declared: bool = False) -> SQLQuery:
    kinds = [_declared(kind) if declared else "" for kind in table.schema.types]
    names = table.schema.names
    connection = sqlite3.connect(folder / "rows.db")
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    connection.execute(f"CREATE TABLE t ({columns})")
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", rows)
    connection.commit()
    connection.close()
    return SQLQuery(f"sqlite:///{folder / 'rows.db'}", "SELECT * FROM t;")


def _duckdb(table: pa.Table, folder: Path) -> SQLQuery:
    connection = duckdb.connect(str(folder / "rows.duckdb"))
    connection.register("arrow", table)
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    connection.close()
    return SQLQuery(f"duckdb:///{folder / 'rows.duckdb'}", "SELECT * FROM t")


def _relation(table: pa.Table) -> Any:
    connection = duckdb.connect()
    connection.register("arrow", table)
    return connection.sql("SELECT * FROM arrow")


def _delta(table: pa.Table, folder: Path) -> Any:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(folder / "delta"), table)
    return deltalake.DeltaTable(str(folder / "delta"))


def _iceberg(table: pa.Table, folder: Path) -> Any:
    """In a catalogue of SQLite, with local files."""
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("clinic", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=folder.as_uri())
    catalog.create_namespace("main")
    kept = catalog.create_table("main.rows", schema=table.schema)
    kept.append(table)
    catalog.close()  # the table reads its files without it
    return kept


def _one(table: pa.Table, path: Path, write: Callable[[pa.Table, Path], object]) -> Path:
    write(table, path)
    return path


def _remote(table: pa.Table, path: str, write: Callable[[pa.Table, Any], object]) -> str:
    import fsspec

    with fsspec.open(path, "wb") as file:
        write(table, file)
    return path


def _folder(paths: list[Path]) -> Path:
    """A folder of these files alone."""
    folder = paths[0].parent / "folder"
    folder.mkdir()
    for path in paths:
        path.rename(folder / path.name)
    return folder


def _globbed(paths: list[Path]) -> str:
    return str(paths[0].parent / "part-*")


#: How to keep a table, by the name of what it is then.
KEPT: dict[str, Callable[[pa.Table, Path], Any]] = {
    "pandas": lambda table, _: table.to_pandas(),
    "Polars": lambda table, _: pl.from_arrow(table),
    "Polars, lazy": lambda table, _: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "Arrow": lambda table, _: table,
    "Arrow dataset": lambda table, _: ds.dataset(table),
    "Parquet dataset": lambda table, folder: ds.dataset(_one(table, folder / "rows.parquet", _parquet)),
    "Delta table": _delta,
    "Iceberg table": _iceberg,
    "an Arrow stream": lambda table, _: Stream(table),
    "CSV": lambda table, folder: _one(table, folder / "rows.csv", pacsv.write_csv),
    "list of CSV files": lambda table, folder: parts(table, folder, pacsv.write_csv, "csv"),
    "pattern of CSV files": lambda table, folder: _globbed(parts(table, folder, pacsv.write_csv, "csv")),
    "Parquet": lambda table, folder: _one(table, folder / "rows.parquet", _parquet),
    "list of Parquet files": lambda table, folder: parts(table, folder, _parquet, "parquet"),
    "pattern of Parquet files": lambda table, folder: _globbed(parts(table, folder, _parquet, "parquet")),
    "folder of CSV files": lambda table, folder: _folder(parts(table, folder, pacsv.write_csv, "csv")),
    "folder of Parquet files": lambda table, folder: _folder(parts(table, folder, _parquet, "parquet")),
    "Parquet at a URL": lambda table, _: _remote(table, "memory://rows.parquet", _parquet),
    "CSV at a URL": lambda table, _: _remote(table, "memory://rows.csv", pacsv.write_csv),
    "DuckDB relation": lambda table, _: _relation(table),
    "DuckDB query": _duckdb,
    "SQLite query": _sqlite,
    "SQLite query, declared types": lambda table, folder: _sqlite(table, folder, declared=True),
}

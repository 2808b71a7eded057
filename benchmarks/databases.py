"""Databases: rows a second that a fit reads from a table of 20 numbers and a response, and what a pass costs there.

    python -m benchmarks.databases [--rows 4e5] [--postgresql URL] [--folder DIR]

Claimed: SQLite and PostgreSQL give 500,000 rows a second or more, and push-down gives the coefficients of a stream.
``--postgresql`` names a database in which a table ``dpregress_benchmark`` may be made.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import BETA, NAMES, D, model
from dpregress import GDP, DPLinearRegression, DPSurvival, Numeric, Schema, SQLQuery
from dpregress.queries import SecondMoment
from dpregress.rows import OrderedRows, RawRows, RowMap
from dpregress.rows.readers import sqlite

_TABLE = "dpregress_benchmark"
_COLUMNS = [*NAMES, "y"]
_QUERY = f"SELECT * FROM {_TABLE}"


def rows_of(n: int) -> np.ndarray:
    """Normal columns and a response, of shape (n, D + 1)."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, D))
    return np.column_stack([x, x @ BETA + rng.normal(size=n)])


def in_sqlite(folder: Path, n: int) -> SQLQuery:
    """The rows in a table of SQLite."""
    with closing(sqlite3.connect(folder / "rows.db")) as connection:
        connection.execute(f"CREATE TABLE {_TABLE} ({', '.join(f'{name} REAL' for name in _COLUMNS)})")
        connection.executemany(f"INSERT INTO {_TABLE} VALUES ({', '.join('?' * len(_COLUMNS))})", rows_of(n).tolist())
        connection.commit()
    return SQLQuery(f"sqlite:///{folder / 'rows.db'}", _QUERY)


def in_duckdb(folder: Path, n: int) -> SQLQuery:
    """The rows in a table of DuckDB."""
    import duckdb
    import pyarrow as pa

    rows = pa.table(dict(zip(_COLUMNS, rows_of(n).T, strict=True)))  # noqa: F841  # DuckDB finds it by its name
    with closing(duckdb.connect(str(folder / "rows.duckdb"))) as connection:
        connection.execute(f"CREATE TABLE {_TABLE} AS SELECT * FROM rows")
    return SQLQuery(f"duckdb:///{folder / 'rows.duckdb'}", _QUERY)


def in_postgresql(url: str, n: int) -> SQLQuery:
    """The rows in a table of PostgreSQL."""
    import pyarrow as pa
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {_TABLE}")
        cursor.adbc_ingest(_TABLE, pa.table(dict(zip(_COLUMNS, rows_of(n).T, strict=True))), mode="create")
        cursor.execute(f"VACUUM ANALYZE {_TABLE}")
    return SQLQuery(url, _QUERY)


def best(action: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """The shortest wall time, and the shortest CPU time of this process, in seconds."""
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def read(query: SQLQuery) -> None:
    """One pass of a new reader over all columns."""
    for _ in query.open().batches(_COLUMNS, 8192):
        pass


def report(queries: dict[str, SQLQuery], n: int) -> Iterator[str]:
    """The lines, as they become known."""
    yield f"n = {n:,}, {D} columns of float64 and y, best of three     rows a second   us of this process's CPU a row"
    for name, query in queries.items():
        wall, cpu = best(lambda query=query: read(query))  # type: ignore[misc]
        yield f"{name:<12} read                                    {n / wall:14,.0f} {1e6 * cpu / n:12.2f}"
        if name == "SQLite":
            driver, sqlite._driver = sqlite._driver, lambda: None
            wall, cpu = best(lambda query=query: read(query), 1)  # type: ignore[misc]
            sqlite._driver = driver
            yield f"{name:<12} read without the driver of ADBC         {n / wall:14,.0f} {1e6 * cpu / n:12.2f}"
    yield f"\nfit in one pass, us a row{'':>24} streamed     pushed down   coefficients equal"
    for name, query in queries.items():
        fitted = model().set_params(random_state=0)
        took, coefs = [], []
        for engine in (None, "push-down"):
            fit = partial(fitted.fit_table, query, "y", engine=engine, progress=False)
            took.append(best(fit, 1)[0])
            coefs.append(fitted.coef_)
        yield f"{name:<38} {1e6 * took[0] / n:16.2f} {1e6 * took[1] / n:15.2f}   {np.array_equal(*coefs)}"


def capped(queries: dict[str, SQLQuery], n: int) -> Iterator[str]:
    """What it takes a database to number the rows of units of up to about four rows."""
    yield f"\nfit in one pass, pushed down, us a row{'':>17} every row     of two a unit"
    for name, query in queries.items():
        ids = SQLQuery(query.url, f"SELECT *, CAST(x0 * {n // 10} AS INTEGER) AS person FROM {_TABLE}")
        took = []
        for unit in ({}, {"unit": "person", "max_rows_per_unit": 2}):
            fit = partial(model().fit_table, ids, "y", NAMES, "push-down", False, **unit)
            took.append(best(fit, 1)[0])
        yield f"{name:<38} {1e6 * took[0] / n:24.2f} {1e6 * took[1] / n:15.2f}"


def followed(queries: dict[str, SQLQuery], n: int) -> Iterator[str]:
    """A survival model of three columns and three pieces, streamed and pushed down."""
    names = NAMES[:3]
    died, days = (
        f"CAST({each} AS DOUBLE PRECISION)" for each in ("CASE WHEN y > 0 THEN 1 ELSE 0 END", "ABS(x3) + 0.01")
    )
    cells = f"{', '.join(names)}, {died} AS died, {days} AS days"
    schema = Schema({name: Numeric(-4, 4) for name in names})
    yield f"\nsurvival of three columns in three pieces, us a row{'':>10} streamed     pushed down   largest difference"
    for name, query in queries.items():
        people = SQLQuery(query.url, f"SELECT {cells} FROM {_TABLE}")
        took, coefs = [], []
        for engine in (None, "push-down"):
            fitted = DPSurvival(GDP(1.0), cuts=(0.5, 1.0, 2.0), schema=schema, random_state=0)
            fit = partial(fitted.fit_table, people, "died", names, engine, False, time="days")
            took.append(best(fit, 1)[0])
            coefs.append(fitted.coef_)
        apart = np.abs(coefs[0] - coefs[1]).max()
        yield f"{name:<38} {1e6 * took[0] / n:21.2f} {1e6 * took[1] / n:15.2f}   {apart:.1g}"


def fixed_order(n: int) -> Iterator[str]:
    """The row map in a fixed order of operations beside that of the matrix library, on one thread."""
    rows = rows_of(n)
    chunk = RawRows(np.asfortranarray(rows[:, :D]), rows[:, D])
    query = SecondMoment(model().fit(rows[:5000, :D], rows[:5000, D]).moments_.space)
    totals: dict[str, list[int]] = {}

    def total(name: str, row_map: RowMap) -> None:
        totals[name] = query.exact(row_map(chunk, 1)).whole.tolist()

    maps = {"matrix library": query.row_map, "fixed order": OrderedRows(query.space)}
    took = [1e6 * best(partial(total, *each))[1] / n for each in maps.items()]
    units = max(abs(a - b) for a, b in zip(*totals.values(), strict=True))
    said = ", ".join(f"{name} {each:.2f}" for name, each in zip(maps, took, strict=True))
    yield f"\nsecond moment of {n:,} rows, us of CPU a row: {said}; totals differ by {units} units of the grid"


def wide(folder: Path, rows: int = 400, columns: int = 40) -> Iterator[str]:
    """What statements of many columns take, whatever the number of rows."""
    import duckdb
    import pyarrow as pa

    names = [f"x{i}" for i in range(columns)]
    given = pa.table({name: np.random.default_rng(i).normal(size=rows) for i, name in enumerate([*names, "y"])})
    with closing(duckdb.connect(str(folder / "wide.duckdb"))) as connection:
        connection.execute("CREATE TABLE wide AS SELECT * FROM given")
    with closing(sqlite3.connect(folder / "wide.db")) as connection, connection:
        connection.execute(f"CREATE TABLE wide ({', '.join(f'{name} REAL' for name in given.schema.names)})")
        cells = zip(*(column.to_pylist() for column in given.columns), strict=True)
        connection.executemany(f"INSERT INTO wide VALUES ({', '.join('?' * (columns + 1))})", cells)
    queries = {
        "DuckDB": SQLQuery(f"duckdb:///{folder / 'wide.duckdb'}", "SELECT * FROM wide"),
        "SQLite": SQLQuery(f"sqlite:///{folder / 'wide.db'}", "SELECT * FROM wide"),
        "a relation": duckdb.connect().from_arrow(given),
    }
    fit = DPLinearRegression(GDP(1.0), schema=Schema({name: Numeric(-4, 4) for name in given.schema.names}))
    for name, query in queries.items():
        took = best(partial(fit.fit_table, query, "y", engine="push-down", progress=False), 1)[1]
        yield f"{rows} rows of {columns} columns pushed down, residual steps, seconds of CPU: {name} {took:.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="4e5")
    parser.add_argument("--postgresql", metavar="URL")
    parser.add_argument("--folder", help="where the files go while this runs")
    options = parser.parse_args()
    n = int(float(options.rows))
    warnings.simplefilter("ignore")  # noise from a seed
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        queries = {"SQLite": in_sqlite(Path(folder), n), "DuckDB": in_duckdb(Path(folder), n)}
        if options.postgresql:
            queries["PostgreSQL"] = in_postgresql(options.postgresql, n)
        tables = (report(queries, n), capped(queries, n), followed(queries, n))
        for line in chain(*tables, fixed_order(min(n, 200_000)), wide(Path(folder))):
            print(line, flush=True)


if __name__ == "__main__":
    main()

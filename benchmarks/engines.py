"""The same sums by every engine: digests that must agree, and processor time and memory beside threads.

    python -m benchmarks.engines [--rows 1e6] [--postgresql URL] [--spark PYTHON] [--folder DIR]

Claimed: the totals of NumPy, threads, Dask, Spark and push-down to DuckDB and PostgreSQL are bit-identical, that is,
print one digest; and the memory of each is the same for a tenth of the rows. Each engine runs in a process of its own.
Seconds are those of processors, of the process, its children and the servers of PostgreSQL on this machine.
``--postgresql`` names a database in which a table ``dpregress_benchmark`` may be made. ``--spark`` names the
interpreter of an environment with classic pyspark, Java and this library: then Spark's own LinearRegression, which is
not private, is printed beside it. Rows are normal, float32, in 20 columns.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq

from benchmarks.databases import _TABLE
from benchmarks.scale import NAMES, D, arrays, model, peak, write
from dpregress import SQLQuery
from dpregress.coordinates import ResponseScale
from dpregress.mechanisms.base import unrounded_total
from dpregress.models import PoissonFamily
from dpregress.queries import ClippedScore, Query, SecondMoment
from dpregress.rows import ArraySource, Encoder, Engine, PrivateRows, PushDownEngine, StreamSource, ThreadedEngine
from dpregress.rows.sources import Source, reader_of

_REPEATS = 2


def queries() -> dict[str, Query[Any]]:
    """A second moment, and a Poisson score, whose means are exponentials."""
    fitted = model().fit(*_sample())
    space = fitted.moments_.space
    score = ClippedScore(space.with_response(ResponseScale("y")), PoissonFamily, np.linspace(-0.1, 0.1, D + 1), 3.0)
    return {"moments": SecondMoment(space), "scores": score}


def _sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5_000, D))
    return x, x[:, 0] + rng.normal(size=5_000)


def _stream(table: Any) -> Source:
    return StreamSource(reader_of(table), Encoder.of(NAMES, "y", None))


@contextmanager
def _held(path: str) -> Iterator[tuple[Source, Engine]]:
    yield ArraySource(*arrays(path)), ThreadedEngine(workers=1)


@contextmanager
def _threads(path: str) -> Iterator[tuple[Source, Engine]]:
    yield _stream(path), ThreadedEngine(workers=2)


@contextmanager
def _dask(path: str) -> Iterator[tuple[Source, Engine]]:
    from dpregress.rows import DaskEngine
    from dpregress.rows.dask_cluster import LOCAL, connected

    with connected(LOCAL, 2) as client:
        yield _stream(path), DaskEngine(client)


@contextmanager
def _spark_connect(path: str) -> Iterator[tuple[Source, Engine]]:
    from tests.rows.servers import running_spark

    with running_spark() as session:
        yield _stream(session.read.parquet(path)), PushDownEngine()


@contextmanager
def _duckdb(path: str) -> Iterator[tuple[Source, Engine]]:
    import duckdb

    yield _stream(duckdb.connect().read_parquet(path)), PushDownEngine()


@contextmanager
def _postgresql(url: str) -> Iterator[tuple[Source, Engine]]:
    yield _stream(SQLQuery(url, f"SELECT * FROM {_TABLE}")), PushDownEngine()


ENGINES: dict[str, Callable[[str], Any]] = {
    "NumPy, in memory": _held,
    "two threads": _threads,
    "two Dask workers": _dask,
    "Spark Connect (Sail)": _spark_connect,
    "classic Spark": _spark_connect,  # what the environment of --spark has
    "DuckDB, pushed down": _duckdb,
    "PostgreSQL, pushed down": _postgresql,
}


def spent() -> float:
    """Processor seconds so far of this process, of its children, and of PostgreSQL."""
    own = psutil.Process()
    servers = [each for each in psutil.process_iter(["name"]) if each.info["name"] == "postgres"]
    total = 0.0
    for process in (own, *own.children(recursive=True), *servers):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def measured(name: str, where: str) -> dict[str, Any]:
    """Digests of the totals, the least processor time of each, and the peak memory of this process."""
    found: dict[str, Any] = {}
    with ExitStack() as held:
        source, engine = held.enter_context(ENGINES[name](where))
        for kind, query in queries().items():
            took = []
            for _ in range(_REPEATS):
                before = spent()
                total = unrounded_total(query, PrivateRows(source, engine))
                took.append(spent() - before)
            found[kind] = min(took)
            text = repr([int(each) for each in total.whole]).encode()
            found[f"{kind} digest"] = hashlib.sha256(text).hexdigest()[:12]
    return {**found, "peak": peak()}


def spark_ml(path: str) -> dict[str, Any]:
    """Spark's own linear regression, by normal equations."""
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import LinearRegression
    from tests.rows.servers import running_spark

    with running_spark() as session:
        rows = VectorAssembler(inputCols=NAMES, outputCol="x").transform(session.read.parquet(path))
        took = []
        for _ in range(_REPEATS):
            before = spent()
            LinearRegression(featuresCol="x", labelCol="y", solver="normal").fit(rows)
            took.append(spent() - before)
    return {"moments": min(took), "peak": peak()}


def task(name: str, where: str, python: str = sys.executable) -> dict[str, Any]:
    """Measure in a new process."""
    command = [python, "-m", "benchmarks.engines", "--task", name, where]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def in_postgresql(url: str, path: Path) -> None:
    """The rows of a file as a table."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {_TABLE}")
        for place, batch in enumerate(pq.ParquetFile(path).iter_batches(1 << 16)):
            cursor.adbc_ingest(_TABLE, batch, mode="append" if place else "create")
        cursor.execute(f"VACUUM ANALYZE {_TABLE}")


def report(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The lines, as they become known."""
    n = int(float(options.rows))
    yield f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; processor seconds, best of {_REPEATS}"
    title = f"n = {n:,}, d = {D}"
    yield f"{title:<26}    moments  ratio  digest          scores  ratio  digest     peak MB"
    digests, base = set(), None
    for rows in (n // 10, n):
        path = folder / f"{rows}.parquet"
        write(path, rows)
        if options.postgresql:
            in_postgresql(options.postgresql, path)
        for name in ENGINES:
            python = options.spark if name == "classic Spark" else sys.executable
            where = options.postgresql if name == "PostgreSQL, pushed down" else str(path)
            if python is None or where is None:
                if rows == n:
                    yield f"{name:<26} skipped: {'--spark' if python is None else '--postgresql'} is not given"
                continue
            found = task(name, where, python)
            if rows < n:
                yield f"{name + ', a tenth':<26} {'':>57} {found['peak']:19.0f}"
                continue
            base = found if name == "two threads" else base
            digests.add((found["moments digest"], found["scores digest"]))
            yield _line(name, found, base)
        if rows == n and options.spark:
            found = task("Spark ML", str(path), options.spark)
            yield f"{'Spark ML, not private':<26} {found['moments']:8.2f} s {found['moments'] / base['moments']:5.1f}"  # type: ignore[index]
    yield f"totals equal bit for bit: {'yes' if len(digests) == 1 else 'NO'}"


def _line(name: str, found: dict[str, Any], base: dict[str, Any] | None) -> str:
    cells = []
    for kind in ("moments", "scores"):
        ratio = "     " if base is None else f"{found[kind] / base[kind]:5.1f}"
        cells.append(f"{found[kind]:8.2f} s {ratio}  {found[f'{kind} digest']}")
    return f"{name:<26} {cells[0]}  {cells[1]} {found['peak']:8.0f}"


def main() -> None:
    """Print the table, or run one task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1e6")
    parser.add_argument("--postgresql", metavar="URL")
    parser.add_argument("--spark", metavar="PYTHON")
    parser.add_argument("--folder", help="where the files go while this runs")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # unrecorded fits
    if options.task:
        name, where = options.task
        print(json.dumps(spark_ml(where) if name == "Spark ML" else measured(name, where)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for line in report(options, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()

"""What a pass over many rows costs, from runs on this machine: fitted on some, judged on others.

    python -m benchmarks.cost_model [--scale 1] [--folder DIR]

Processor seconds of a pass are taken to be ``a GB + b n + c n d^2``: reading Parquet of float32 and encoding it, work
for each row, products for each pair of columns. A cluster adds the start of its workers, and the time of a worker and
of the scheduler for each part. Claimed: the runs that were not fitted are predicted within 25%.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.scale import model, rows_of
from dpregress.mechanisms.base import exact_total
from dpregress.queries import SecondMoment
from dpregress.rows import Encoder, Engine, PrivateRows, StreamSource, ThreadedEngine
from dpregress.rows.readers import files
from dpregress.rows.readers.files import read_files

#: Numbers of rows and of columns of the runs that are fitted, and of those that judge.
FITTED = ((1_600_000, 5), (800_000, 12), (500_000, 25), (250_000, 50), (120_000, 100))
JUDGED = ((1_000_000, 8), (700_000, 20), (350_000, 35), (160_000, 75))
#: The table: rows, workers, and columns.
ROWS, WORKERS, COLUMNS = 10**10, 64, (10, 20, 50, 100)
_REPEATS = 5
#: Parts of the runs that measure the time of a task, 1,024 rows each.
_GROUPS = (16, 400)


def gigabytes(n: int, d: int) -> float:
    """Of float32 cells with a response."""
    return 4e-9 * n * (d + 1)


def features(n: int, d: int) -> np.ndarray:
    """What the cost is linear in."""
    return np.array([gigabytes(n, d), n / 1e6, n * d**2 / 1e9])


def source_of(folder: Path, n: int, d: int) -> tuple[StreamSource, SecondMoment]:
    """A Parquet file and the query of a one-shot fit of it."""
    path = folder / f"{n}x{d}.parquet"
    if not path.is_file():
        rng = np.random.default_rng(1)
        with pq.ParquetWriter(path, rows_of(rng, 1, d).schema, compression="none", use_dictionary=False) as file:
            for first in range(0, n, 1 << 17):
                file.write_batch(rows_of(rng, min(1 << 17, n - first), d))
    names = [f"x{i}" for i in range(d)]
    fitted = model(d).fit_table(rows_table(d), "y", progress=False)
    return StreamSource(read_files(path), Encoder.of(names, "y", None)), SecondMoment(fitted.moments_.space)


def rows_table(d: int):  # type: ignore[no-untyped-def]
    """A small table, whose fit gives the space."""
    import pyarrow as pa

    return pa.Table.from_batches([rows_of(np.random.default_rng(4), 5_000, d)])


def seconds(source: StreamSource, query: SecondMoment, engine: Engine) -> tuple[float, float]:
    """The shortest wall and processor time of a pass."""
    found = []
    for _ in range(_REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        exact_total(query, PrivateRows(source, engine))
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    walls, cpus = zip(*found, strict=True)
    return min(walls), min(cpus)


def fitted_costs(runs: dict[tuple[int, int], float]) -> np.ndarray:
    """Coefficients that are not negative, by least squares of relative errors."""
    from scipy.optimize import nnls

    design = np.array([features(*size) / took for size, took in runs.items()])
    return np.asarray(nnls(design, np.ones(len(runs)))[0])


def cluster_costs(folder: Path) -> tuple[float, float, float]:
    """Seconds of the start of two local workers; and for each part with its share of reductions, beside its rows, of a
    worker and of the process that schedules.
    """
    from dpregress.rows import DaskEngine
    from dpregress.rows.dask_cluster import LOCAL, connected

    query = SecondMoment(model(1).fit_table(rows_table(1), "y", progress=False).moments_.space)
    part, files._PART = files._PART, 0  # every row group is a part
    started = time.perf_counter()
    with connected(LOCAL, 2) as client:
        start = time.perf_counter() - started
        found, rng = [], np.random.default_rng(1)
        for groups in _GROUPS:
            path = folder / f"{groups}.parquet"
            with pq.ParquetWriter(path, rows_of(rng, 1, 1).schema) as file:
                for _ in range(groups):
                    file.write_batch(rows_of(rng, 1 << 10, 1))
            source = StreamSource(read_files(path), Encoder.of(["x0"], "y", None))
            found.append(seconds(source, query, DaskEngine(client)))
    files._PART = part
    wall, cpu = np.subtract(found[1], found[0]) / (_GROUPS[1] - _GROUPS[0])
    return start, 2 * float(wall), float(cpu)


def report(scale: float, folder: Path) -> Iterator[str]:
    """The lines, as they become known."""
    yield f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; processor seconds, best of {_REPEATS}"
    took: dict[tuple[int, int], float] = {}
    for size in (*FITTED, *JUDGED):
        n, d = int(size[0] * scale), size[1]
        took[n, d] = seconds(*source_of(folder, n, d), ThreadedEngine(workers=1))[1]
    sizes = list(took)
    fitted, judged = sizes[: len(FITTED)], sizes[len(FITTED) :]
    costs = fitted_costs({size: took[size] for size in fitted})
    yield "s a GB: {:.3f}   s a million rows: {:.4f}   s a billion n d^2: {:.3f}".format(*costs)
    for name, chosen in (("fitted", fitted), ("judged", judged)):
        for size in chosen:
            said = float(features(*size) @ costs)
            run = f"{name}  n = {size[0]:>9,}  d = {size[1]:>3}"
            yield f"{run}  measured {took[size]:6.3f}  model {said:6.3f}  ratio {said / took[size]:.2f}"
    start, worker, scheduler = cluster_costs(folder)
    yield f"start of two Dask workers {start:.1f} s"
    yield f"a part beside its rows: {1e3 * worker:.1f} ms of a worker, {1e3 * scheduler:.1f} ms of the scheduler"
    yield f"\nOne pass over {ROWS:.0e} rows with {WORKERS} workers of one thread"
    yield "  d        GB   processor hours   seconds of a pass"
    for d in COLUMNS:
        work = float(features(ROWS, d) @ costs)
        parts = ROWS / (files._PART * Engine.chunk_rows(d + 2))
        seconds_of_pass = max((work + parts * worker) / WORKERS, parts * scheduler)
        yield f"{d:>3} {gigabytes(ROWS, d):>9,.0f} {work / 3600:>17.2f} {seconds_of_pass:>19.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="shrinks the runs")
    parser.add_argument("--folder", help="where the files go while this runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # unrecorded fits
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for line in report(options.scale, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()

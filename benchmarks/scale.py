"""Streaming fits: time against reading the same file, memory, and how both grow; as ratios in one run.

    python -m benchmarks.scale [--rows 20e6] [--long 1e8] [--peers 2e6] [--folder DIR] [--diffprivlib PYTHON]
    python -m benchmarks.scale --dask [--rows 20e6] [--folder DIR]

Claimed: one pass over 20M x 20 float32 Parquet takes at most 1.6 times what reading it through the same reader
and discarding it takes, below 400 MB; each further pass the same; time grows linearly in n and in n d^2.
diffprivlib needs an older scikit-learn: --diffprivlib names the interpreter of an environment that has both.
--dask: a pass of two Dask workers, once they are started, takes at most 1.5 times that of threads.
benchmarks.engines compares the totals of all engines, benchmarks.databases measures databases, and
benchmarks.cost_model says from runs what many rows cost on a cluster.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

D = 20
NAMES = [f"x{i}" for i in range(D)]
BETA = np.random.default_rng(0).normal(size=D)


def timed(action: Callable[[], object]) -> float:
    """Wall time in seconds."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def rows_of(rng: np.random.Generator, n: int, d: int = D) -> pa.RecordBatch:
    """float32 columns x0, .., and y."""
    x = rng.standard_normal((d, n), dtype=np.float32)
    y = BETA[: min(d, D)].astype(np.float32) @ x[:D] + rng.standard_normal(n, dtype=np.float32)
    return pa.RecordBatch.from_arrays([*map(pa.array, x), pa.array(y)], names=[*(f"x{i}" for i in range(d)), "y"])


def write(path: Path, n: int) -> None:
    """A Parquet file of n rows, a million a row group."""
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, rows_of(rng, 1).schema) as file:
        for first in range(0, n, 1 << 20):
            file.write_batch(rows_of(rng, min(1 << 20, n - first)), row_group_size=1 << 20)


class Generated:
    """n rows as an Arrow stream that is made up on the way: one batch again and again."""

    def __init__(self, n: int, d: int = D) -> None:
        self.n = n
        self._batch = rows_of(np.random.default_rng(2), 1 << 16, d)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        batches = (
            self._batch.slice(0, min(len(self._batch), self.n - first)) for first in range(0, self.n, len(self._batch))
        )
        return pa.RecordBatchReader.from_batches(self._batch.schema, batches).__arrow_c_stream__(requested_schema)


# ---------------------------------------------------------------- tasks, each in a process of its own


def model(d: int = D, *, labelled: bool = True):  # type: ignore[no-untyped-def]
    """A linear model with public rows, its sampler loaded."""
    from dpregress import GDP, DPLinearRegression, PublicMoments
    from dpregress.mechanisms import SecureSampler

    SecureSampler().add_gaussian(np.zeros(2), 1.0)
    batch = rows_of(np.random.default_rng(3), 20 * d + 200, d)
    columns = np.column_stack([column.to_numpy() for column in batch.columns]).astype(float)
    public = PublicMoments.from_rows(columns[:, :-1], columns[:, -1], names=batch.schema.names[:-1])
    facts = public if labelled else public.unlabelled()
    return DPLinearRegression(GDP(1.0), public=facts, recipe="one-shot")  # residual steps make several passes


def peak() -> float:
    """Largest resident memory of this process so far, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError("no VmHWM on this system")


def fits(path: str) -> dict[str, float]:
    """Best of five of reading, one pass, a fit with a pass over y before it, and of a pass over scores."""
    from dpregress import GDP, DPGLMRegressor
    from dpregress.rows import Engine
    from dpregress.rows.readers.files import read_files

    one, two = model(), model(labelled=False)
    columns, rows = [*NAMES, "y"], Engine.chunk_rows(D + 2)
    scored = DPGLMRegressor(GDP(3.0), family="gaussian", public=one.public)
    marks: list[tuple[float, float]] = []

    def mark(done: int, of: int) -> None:
        if done == of:
            marks.append((time.perf_counter(), time.process_time()))

    def discard() -> None:
        for _ in read_files(path).batches(columns, rows):
            pass

    def discard_threads() -> None:
        for _ in pq.ParquetFile(path).iter_batches(rows, columns=columns, use_threads=True):
            pass

    actions: dict[str, Callable[[], object]] = {
        "read": discard,
        "fit": lambda: one.fit_table(path, "y", progress=False),
        "two": lambda: two.fit_table(path, "y", progress=False),
    }
    best = dict.fromkeys([*actions, *(f"{name} cpu" for name in actions)], np.inf)
    for _ in range(5):
        for name, action in actions.items():
            before = time.process_time()
            best[name] = min(best[name], timed(action))
            best[f"{name} cpu"] = min(best[f"{name} cpu"], time.process_time() - before)
    memory = peak()
    scored.fit_table(path, "y", progress=mark)
    best["pass"], best["pass cpu"] = np.diff(marks[1:], axis=0).min(axis=0)
    return {**best, "peak": memory, "threads": timed(discard_threads), "off": float(np.abs(one.coef_ - BETA).max())}


def clusters(path: str) -> dict[str, float]:
    """Best of five fits in one pass on two threads and on two Dask workers, in turn, and whether both are equal."""
    from dpregress.rows import DaskEngine, Engine, ThreadedEngine
    from dpregress.rows.dask_cluster import LOCAL, connected

    fitted = model().set_params(random_state=0)
    warnings.simplefilter("ignore")  # noise from a seed
    before = time.perf_counter()
    with connected(LOCAL, 2) as client:
        engines: dict[str, Engine] = {"threads": ThreadedEngine(2), "dask": DaskEngine(client)}
        found = {"start": time.perf_counter() - before, **dict.fromkeys(engines, np.inf)}
        coefs = {}
        for _ in range(5):
            for name, engine in engines.items():
                taken = timed(lambda engine=engine: fitted.fit_table(path, "y", engine=engine, progress=False))  # type: ignore[misc]
                found[name], coefs[name] = min(found[name], taken), fitted.coef_
        return {**found, "equal": float(np.array_equal(coefs["threads"], coefs["dask"]))}


def in_memory(path: str) -> dict[str, float]:
    """The same rows held in memory: how far the exact sums of a streamed fit are from those."""
    from dpregress.mechanisms.base import exact_total
    from dpregress.queries import SecondMoment
    from dpregress.rows import ArraySource, Encoder, PrivateRows, StreamSource
    from dpregress.rows.readers.files import read_files

    x, y = arrays(path)
    fitted = model().fit(x, y)
    query = SecondMoment(fitted.moments_.space)
    streamed = exact_total(query, PrivateRows(StreamSource(read_files(path), Encoder.of(NAMES, "y", None))))
    held = exact_total(query, PrivateRows(ArraySource(x, y)))
    return {"difference": float(np.abs(streamed - held).max() / np.abs(held).max())}


def generated(size: str) -> dict[str, float]:
    """One pass over n rows of d columns that are made up on the way."""
    n, d = map(int, size.split("x"))
    table, fitted = Generated(n, d), model(d)
    fitted.fit_table(Generated(100_000, d), "y", progress=False)
    return {"seconds": timed(lambda: fitted.fit_table(table, "y", progress=False)), "peak": peak()}


def arrays(path: str) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(path)
    return np.column_stack([table[name].to_numpy() for name in NAMES]).astype(float), table["y"].to_numpy().astype(
        float
    )


def sklearn(path: str) -> dict[str, float]:
    from sklearn.linear_model import LinearRegression

    return {"seconds": timed(lambda: LinearRegression().fit(*arrays(path))), "peak": peak()}


def statsmodels(path: str) -> dict[str, float]:
    import statsmodels.api as sm

    def fit() -> None:
        x, y = arrays(path)
        sm.OLS(y, sm.add_constant(x)).fit()

    return {"seconds": timed(fit), "peak": peak()}


def duckdb(path: str) -> dict[str, float]:
    import duckdb as database

    names = [*NAMES, "y"]
    sums = [f"sum({a}::DOUBLE * {b})" for i, a in enumerate(names) for b in names[: i + 1]]
    query = f"SELECT count(*), {', '.join([*(f'sum({a}::DOUBLE)' for a in names), *sums])} FROM '{path}'"
    return {"seconds": timed(lambda: database.connect().sql(query).fetchall()), "peak": peak()}


def dpregress(path: str) -> dict[str, float]:
    fitted = model()
    return {"seconds": timed(lambda: fitted.fit_table(path, "y", progress=False)), "peak": peak()}


def diffprivlib(path: str) -> dict[str, float]:
    from diffprivlib.models import LinearRegression

    def fit() -> None:
        x, y = arrays(path)
        LinearRegression(epsilon=1.0, bounds_X=(-5.0, 5.0), bounds_y=(-30.0, 30.0)).fit(x, y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"seconds": timed(fit), "peak": peak()}


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "fits": fits, "clusters": clusters, "in_memory": in_memory, "generated": generated, "sklearn": sklearn,
    "statsmodels": statsmodels, "duckdb": duckdb, "dpregress": dpregress, "diffprivlib": diffprivlib,
}  # fmt: skip


def task(name: str, argument: object, python: str = sys.executable) -> dict[str, float]:
    """Run a task in a new process."""
    command = [python, "-m", "benchmarks.scale", "--task", name, str(argument)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


# ---------------------------------------------------------------- what is printed


def report(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The lines, as they become known."""
    n = int(float(options.rows))
    path = folder / "rows.parquet"
    write(path, n)
    found = task("fits", path)
    read = found["read"]
    yield f"n = {n:,}, d = {D}, float32 Parquet of {path.stat().st_size / 1e6:,.0f} MB"
    yield f"read through the same reader   {read:6.2f} s   1.00   ({found['read cpu']:.2f} s of CPU)"
    yield f"read, Arrow's own threads      {found['threads']:6.2f} s   {found['threads'] / read:.2f}"
    cpu = found["fit cpu"]
    fit = found["fit"]
    yield f"fit, one pass                  {fit:6.2f} s   {fit / read:.2f}   ({cpu:.2f} s of CPU; claimed 1.6)"
    yield f"the same CPU on two free cores {cpu / 2:6.2f} s   {cpu / 2 / found['read cpu']:.2f}"
    yield f"fit, and a pass over y         {found['two']:6.2f} s   {found['two'] / read:.2f}"
    cpu = found["pass cpu"]
    passed = found["pass"]
    yield f"each further pass (scores)     {passed:6.2f} s   {passed / read:.2f}   ({cpu:.2f} s of CPU; claimed 1.6)"
    yield f"the same CPU on two free cores {cpu / 2:6.2f} s   {cpu / 2 / found['read cpu']:.2f}"
    yield f"peak memory of the process     {found['peak']:6.0f} MB         (claimed 400)"
    yield f"largest error of a coefficient {found['off']:8.1e}"

    small = folder / "peers.parquet"
    write(small, int(float(options.peers)))
    yield f"streamed sums against in-memory ones: {task('in_memory', small)['difference']:.1e} relative"
    yield f"\nfrom a file of {int(float(options.peers)):,} rows   seconds   peak MB"
    for name in ("dpregress", "sklearn", "statsmodels", "duckdb", *(["diffprivlib"] if options.diffprivlib else [])):
        done = task(name, small, options.diffprivlib if name == "diffprivlib" else sys.executable)
        yield f"{name:<30} {done['seconds']:8.2f} {done['peak']:9.0f}"

    yield "\ngenerated rows, d = 20        seconds   ns a row   peak MB"
    long = int(float(options.long))
    for rows in (long // 100, long // 10, long):
        done = task("generated", f"{rows}x{D}")
        yield f"n = {rows:>13,} {done['seconds']:18.2f} {1e9 * done['seconds'] / rows:9.0f} {done['peak']:9.0f}"
    yield "\ngenerated rows, n d^2 = 5e9   seconds   ps a (row d^2)"
    for d in (10, 20, 50, 100, 200):
        rows = 5 * 10**9 // d**2
        done = task("generated", f"{rows}x{d}")
        yield f"d = {d:<4} n = {rows:>12,} {done['seconds']:12.2f} {1e12 * done['seconds'] / (rows * d * d):12.0f}"


def report_of_clusters(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Threads beside Dask."""
    n = int(float(options.rows))
    path = folder / "rows.parquet"
    write(path, n)
    found = task("clusters", path)
    yield f"n = {n:,}, d = {D}, float32 Parquet of {path.stat().st_size / 1e6:,.0f} MB, one pass, best of five"
    threads, dask = found["threads"], found["dask"]
    yield f"two threads                    {threads:6.2f} s   1.00"
    yield f"two Dask workers               {dask:6.2f} s   {dask / threads:.2f}   (claimed 1.5)"
    yield f"their start                    {found['start']:6.2f} s"
    yield f"coefficients equal bit for bit {'yes' if found['equal'] else 'NO'}"


def main() -> None:
    """Print the table, or run one task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--rows", "20e6"), ("--long", "1e8"), ("--peers", "2e6")):
        parser.add_argument(name, default=default)
    parser.add_argument("--folder", help="where the files go while this runs")
    parser.add_argument("--diffprivlib", metavar="PYTHON")
    parser.add_argument("--dask", action="store_true", help="only threads beside Dask")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, argument = options.task
        print(json.dumps(TASKS[name](argument)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for line in (report_of_clusters if options.dask else report)(options, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()

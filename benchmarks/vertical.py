"""Columns of the same people at several parties: the published algorithms beside the library's own.

    python -m benchmarks.vertical [synthetic|tables|speed] [Insurance|Bike|GPU] [repeats]

``synthetic``: mean ``||w - w*||`` of Figure 2 of Wu et al. (2022); d = 10, six parties, k = sqrt(n) / sigma for RMGM.
``tables``: test losses of their Table 1 on Insurance, Bike and GPU (DPREGRESS_DATA), their numbers beside; k of RMGM
is the best of five **on the test set**, as published: not private, and optimistic.
``speed``: mixing against dense blocks of signs in float32, and memory beside the input.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.command import answer_help
from benchmarks.one_shot import memory
from dpregress import ApproxDP, VerticalRegression
from dpregress.coordinates import WhitenedSpace
from dpregress.errors import SeededNoiseWarning
from dpregress.experiments.base import DEFAULT, PLAIN, TRIVIAL
from dpregress.experiments.wu_simulated import distances
from dpregress.experiments.wu_tables import (
    BGM,
    DELTA,
    DGM,
    EPSILONS,
    PUBLISHED,
    RMGM,
    SKETCHES,
    TABLES,
    scaled_table,
    split_columns,
)
from dpregress.mechanisms.sketching import sketch_matrix
from dpregress.papers.wu2022 import dgm_ols, rmgm_ols
from dpregress.queries import RowSketch
from dpregress.rows import ArraySource, ThreadedEngine, WhitenedRows

Rng = np.random.Generator
#: Tables of the data folder by their titles.
TITLES = {TABLES[name].title: name for name in ("insurance", "bike_sharing", "sgemm_gpu")}


def own(parties: list[np.ndarray], epsilon: float, rng: Rng, bounds: tuple[float, float]) -> VerticalRegression:
    """The library's recipe with seeded noise."""
    budget = ApproxDP(epsilon, DELTA, confirm_delta=True)  # the delta of the paper, at every n
    return VerticalRegression(budget, bounds=bounds, random_state=rng).fit_table(parties)


def synthetic(repeats: int) -> None:
    """Mean distance from the true coefficients, and how often it exceeds 0.1."""
    print(f"\nmean ||w - w*|| and share above 0.1, delta = {DELTA}, per-party epsilon; {repeats} repeats (n = 3e6: 2)")
    print(
        f"{'n':>8} {'eps':>4} {'zero':>6} {'OLS':>6} {'DGM':>13} {'BGM':>13} {'RMGM':>13} {'own':>13} {'own/RMGM':>9}"
    )
    for n in (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 3 * 10**6):
        for epsilon in EPSILONS:
            # more repeats where they cost little
            rounds = 2 if n > 10**6 else repeats if n > 10**5 else 4 * repeats
            rng = np.random.default_rng(n)
            found = np.array([list(_distances(n, epsilon, rng)) for _ in range(rounds)])
            means, above = found.mean(axis=0), (found > 0.1).mean(axis=0)
            cells = " ".join(f"{mean:7.3f} {share:5.2f}" for mean, share in zip(means[2:], above[2:], strict=True))
            print(
                f"{n:8.0e} {epsilon:4} {means[0]:6.3f} {means[1]:6.3f} {cells} {means[5] / means[4]:9.2f}", flush=True
            )


def _distances(n: int, epsilon: float, rng: Rng) -> Iterator[float]:
    """Zero, OLS, DGM, BGM, RMGM, own."""
    ((_, found),) = distances(n, (epsilon,), rng)
    return (found[method] for method in (TRIVIAL, PLAIN, DGM, BGM, RMGM, DEFAULT))


def tables(repeats: int) -> None:
    """Test losses on [0, 1] columns, 4:1 splits, five parties."""
    print(f"\ntest loss, columns in [0, 1], {repeats} splits, the paper's beside; k of RMGM chosen on the test set")
    for name, table in TITLES.items():
        if any(word in TITLES for word in sys.argv[1:]) and name not in sys.argv[1:]:
            continue
        joint = scaled_table(table)
        print(
            f"\n{name}: n = {len(joint) * 4 // 5}, d = {joint.shape[1] - 1}, m = 5; published OLS {PUBLISHED[name][0]}"
        )
        print(f"{'eps':>4} {'OLS':>8} {'mean':>8} | {'DGM med.':>9} {'RMGM':>8} {'BGM':>8} {'own':>8} | paper | excess")
        for place, epsilon in enumerate(EPSILONS, 1):
            losses = np.array([list(_losses(joint, epsilon, seed)) for seed in range(repeats)])
            ols, mean, _, bgm, ours = losses.mean(axis=0)[:5]
            dgm = float(np.median(losses[:, 2]))  # its mean is that of the worst split
            rmgm = float(losses.mean(axis=0)[5:].min())
            published = " ".join(f"{value:.4f}" for value in PUBLISHED[name][place])
            ratio = (ours - ols) / (rmgm - ols)
            print(
                f"{epsilon:4} {ols:8.4f} {mean:8.4f} | {dgm:9.4f} {rmgm:8.4f} {bgm:8.4f} {ours:8.4f} | "
                f"{published} | {ratio:.2f}",
                flush=True,
            )


def _losses(joint: np.ndarray, epsilon: float, seed: int) -> Iterator[float]:
    """OLS, the mean, DGM, BGM, own, then RMGM at every k."""
    rng = np.random.default_rng(seed)
    joint = joint[rng.permutation(len(joint))]
    n = len(joint) * 4 // 5
    train, x, y = joint[:n], joint[n:, :-1], joint[n:, -1]
    parties = split_columns(train, 5)
    shared = {"epsilon": epsilon, "delta": DELTA, "rng": rng}

    def loss(coef: np.ndarray, intercept: float = 0.0) -> float:
        return float(np.mean((x @ coef + intercept - y) ** 2))

    yield loss(np.linalg.lstsq(train[:, :-1], train[:, -1], rcond=None)[0])
    yield loss(np.zeros(x.shape[1]), train[:, -1].mean())
    yield loss(dgm_ols(parties, **shared))
    yield loss(dgm_ols(parties, debias=False, **shared))
    model = own(parties, epsilon, rng, (0.0, 1.0))
    yield float(np.mean((model.predict(x) - y) ** 2))
    for k in (k for k in SKETCHES if n * k < 6e8):
        yield loss(rmgm_ols(parties, k=k, **shared))


def speed(repeats: int) -> None:
    """CPU seconds of one thread: mixing alone against dense blocks, and the whole pass over the rows."""
    print(f"\nmixing d = 20 columns, CPU seconds of one thread, best of {repeats} in turn (dense at k = 10240: once)")
    header = ("n", "k", "dense", "sparse", "ratio", "Hadamard", "ratio", "whole pass", "MiB grown")
    print(" ".join(f"{name:>10}" for name in header))
    rng = np.random.default_rng(0)
    for n, k in ((10**6, 1024), (3 * 10**6, 10_240)):
        x = rng.uniform(-1, 1, size=(n, 20))
        space = WhitenedSpace(tuple(f"x{i}" for i in range(20)), np.eye(20), np.sqrt(20.0), np.zeros(20))
        sparse, hadamard = (
            RowSketch(space, sketch_matrix(name, n, k, rng.bytes(32))) for name in ("sparse", "hadamard")
        )
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        whole = _cpu(lambda: _pass(sparse, space, x))  # noqa: B023 - called here
        grown = (memory("VmHWM") - before) / 2**20
        times = np.full(3, np.inf)
        for turn in range(repeats):
            dense = _cpu(lambda: _dense(x, k, rng)) if turn == 0 or k < 10**4 else np.inf  # noqa: B023
            mixed = [_cpu(lambda query=query: _mixed(query, x)) for query in (sparse, hadamard)]  # noqa: B023
            times = np.minimum(times, [dense, *mixed])
        row = (times[0], times[1], times[0] / times[1], times[2], times[0] / times[2], whole, grown)
        print(f"{n:10.0e} {k:10} " + " ".join(f"{value:10.2f}" for value in row), flush=True)


def _cpu(action: Callable[[], object]) -> float:
    """CPU seconds of this process: other processes on the machine hardly count."""
    started = time.process_time()
    action()
    return time.process_time() - started


def _pass(query: RowSketch, space: WhitenedSpace, x: np.ndarray) -> np.ndarray:
    """Whitening, bounding, cutting to the grid and mixing, as a release does it."""
    row_map = WhitenedRows(space)
    engine = ThreadedEngine(workers=1)
    return np.asarray(engine.total(ArraySource(x), lambda rows: query.exact(row_map(rows)), columns=query.columns))


def _mixed(query: RowSketch, x: np.ndarray) -> np.ndarray:
    """Mixing alone, in the chunks of a pass."""
    step = ThreadedEngine.chunk_rows(query.columns)
    parts = (query.mixing.apply(x[start : start + step], start) for start in range(0, len(x), step))
    return sum(parts, np.zeros((query.mixing.k, x.shape[1])))


def _dense(x: np.ndarray, k: int, rng: Rng) -> np.ndarray:
    """``B x`` with B = 1 - 2 U, U of independent bits, in blocks of float32: the fastest dense way we know."""
    total, ones = np.zeros((k, x.shape[1])), np.zeros(x.shape[1])
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096].astype(np.float32)
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-k * len(part) // 8)), np.uint8), count=k * len(part))
        total += bits.reshape(k, len(part)).astype(np.float32) @ part
        ones += part.sum(axis=0, dtype=np.float64)
    return ones - 2 * total


PARTS = {"synthetic": (synthetic, 5), "tables": (tables, 20), "speed": (speed, 3)}


def main() -> None:
    """Run one part, or all of them."""
    warnings.simplefilter("ignore", SeededNoiseWarning)
    chosen = [name for name in sys.argv[1:] if name in PARTS] or list(PARTS)
    given = [int(word) for word in sys.argv[1:] if word.isdigit()]
    for name in chosen:
        part, repeats = PARTS[name]
        part(given[0] if given else repeats)


if __name__ == "__main__":
    answer_help(__doc__)
    main()

"""Speed and memory of linear fits in memory, as ratios in one run.

    python -m benchmarks.one_shot [n] [d]

The yardstick is what any whitened least squares has to do: ``X.T @ X`` and ``X @ W``. Claimed of one-shot: at
most 2 yardsticks, and memory grows by at most 0.3 of the input during the fit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.command import answer_help
from dpregress import GDP, DPLinearRegression, PublicMoments
from dpregress.mechanisms import SecureSampler


def best_of(action: Callable[[], object], repeats: int = 5) -> float:
    """Shortest wall time of an action, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def memory(field: str) -> int:
    """``VmRSS`` or ``VmHWM`` of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} on this system")


def main() -> None:
    """Print the ratios."""
    n, d = (int(float(value)) for value in (*sys.argv[1:], "1e6", "20")[:2])
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    y = x @ rng.normal(size=d) + rng.normal(size=n)
    w = rng.normal(size=(d, d))
    public = PublicMoments.from_rows(x[:1000], y[:1000])

    def fit(moments: PublicMoments, recipe: str = "one-shot") -> DPLinearRegression:
        return DPLinearRegression(GDP(1.0), public=moments, recipe=recipe).fit(x, y)

    SecureSampler().add_gaussian(np.zeros(d), 1.0)  # loads the sampler's library, which is not what is measured
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is in use now
    before = memory("VmRSS")
    fit(public)
    growth = memory("VmHWM") - before

    yardstick = best_of(lambda: x.T @ x) + best_of(lambda: x @ w)
    labelled = best_of(lambda: fit(public))
    unlabelled = best_of(lambda: fit(public.unlabelled()))
    residual = best_of(lambda: fit(public, "residual"))
    from_nothing = best_of(lambda: fit(public.unlabelled(), "residual"))

    print(f"n = {n}, d = {d}, input {x.nbytes / 2**20:.0f} MiB")
    print(f"X.T @ X + X @ W        {yardstick:.3f} s   1.00")
    print(f"fit, labelled public   {labelled:.3f} s   {labelled / yardstick:.2f}")
    print(f"fit, unlabelled        {unlabelled:.3f} s   {unlabelled / yardstick:.2f}   (one more pass, over y)")
    print(f"residual, labelled     {residual:.3f} s   {residual / yardstick:.2f}   (5 passes)")
    print(f"residual, unlabelled   {from_nothing:.3f} s   {from_nothing / yardstick:.2f}   (11 passes)")
    print(f"growth in memory       {growth / 2**20:.0f} MiB   {growth / x.nbytes:.3f} of the input")


if __name__ == "__main__":
    answer_help(__doc__)
    main()

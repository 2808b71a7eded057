"""Estimates, from public sizes, of the memory for a release; releases that do not fit are refused before the charge.

A fit that runs out of memory stays charged, and a release that can be made only once is then lost. The figures are
upper estimates, measured on the releases of this library: a released number takes up to 200 bytes besides its copies in
flight (the sampler's lists of numbers, and the text of a file), and so does an entry of a square matrix of the solver.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path

from dpregress.errors import InvalidInput

_PER_NUMBER, _PER_CELL, _PER_SAMPLED = 256, 256, 64
#: Bytes per number of the partial sums that each worker may have in flight.
_IN_FLIGHT = 2 * 8
#: Bytes that are kept free for everything else.
_SPARE = 64 << 20
#: The largest figure in a message; larger ones are not informative and may not fit a float.
_UNTOLD = 10**30
_MEMINFO = Path("/proc/meminfo")
#: The memory limit of a container and its current use, in both versions of control groups.
_GROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def check_release_fits(numbers: int, square: int, what: str, mend: str) -> None:
    """Refuse a release for which this machine has not enough memory.

    Parameters
    ----------
    numbers : int
        Length of the released vector.
    square : int
        Order of the largest square matrix that is computed from it; 0 for none.
    what : str
        Description of the release, for the message.
    mend : str
        How to make it smaller, for the message.

    Raises
    ------
    InvalidInput
        With both figures. Nothing is charged then.
    """
    workers = len(os.sched_getaffinity(0))
    _check(numbers * (_PER_NUMBER + _IN_FLIGHT * workers) + square * square * _PER_CELL, what, mend)


def check_moments_fit(columns: int, classes: int) -> None:
    """Refuse a fit whose Gram matrix, for these numbers of columns and classes, does not fit into memory."""
    square = columns * max(classes - 1, 1)
    what = f"a fit of {columns:,} columns" + (f" and {classes:,} classes" if classes > 2 else "")
    check_release_fits(columns * (columns + 1) // 2, square, what, "fit fewer columns or classes")


def check_squares_fit(order: int) -> None:
    """Refuse a fit whose second moment of scores, of this order, does not fit into memory."""
    what = f"the robust covariance of {order:,} coefficients"
    check_release_fits(order * (order + 1) // 2, order, what, 'ask for cov_type "model"')


def check_mixture_fits(rows: int, columns: Sequence[int]) -> None:
    """Refuse a length k of the sketch at which the widest party could not release it, or nobody could join sketches."""
    widest = max(columns)
    what = f"a row sketch of k = {rows:,} rows and {widest:,} columns"
    check_release_fits(rows * widest, sum(columns), what, "give a smaller k, or leave it out for the rule's")


def check_sample_fits(rows: int, columns: int, longest: int) -> None:
    """Refuse to sample more rows than fit into memory, as codes and as text of at most ``longest`` characters a row."""
    _check(rows * (_PER_SAMPLED * columns + 4 * longest), f"{rows:,} synthetic rows", "sample fewer --rows at a time")


def _check(needed: int, what: str, mend: str) -> None:
    left = available()
    if needed > left:
        raise InvalidInput(f"{what} would take about {_text(needed)} of memory, {_text(left)} are available: {mend}")


def _text(size: int) -> str:
    return f"{min(size, _UNTOLD) / 1e9:,.2g} GB"


def available() -> int:
    """Bytes that this process can still allocate, given the machine, its container and its own limit."""
    limits = [_of_machine()]
    for limit, used in _GROUPS:
        most, spent = _number(limit), _number(used)
        if most is not None:
            limits.append(most - (spent or 0))
    own = resource.getrlimit(resource.RLIMIT_AS)[0]
    if own != resource.RLIM_INFINITY:
        limits.append(own - _mapped())
    return max(min(limits) - _SPARE, 0)


def _of_machine() -> int:
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _mapped() -> int:
    """Bytes of address space in use by the process; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # not there, or "max"
        return None

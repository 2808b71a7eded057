"""How much memory a release will take, by public sizes alone: what does not fit is refused before it is charged.

A fit that runs out of memory is charged all the same, and a release that is made once can then never be made. The
figures are upper estimates, measured on the releases of this library: a released number takes up to 200 bytes beside
its copies in flight (the sampler's lists of numbers, and the text of a file), and so does a cell of a square matrix of
the solver.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path

from dpregress.errors import InvalidInput

_PER_NUMBER, _PER_CELL, _PER_SAMPLED = 256, 256, 64
#: Partial sums that each worker may have in flight, of 8 bytes a number.
_IN_FLIGHT = 2 * 8
#: What is kept free for everything else.
_SPARE = 64 << 20
#: Beyond it a figure tells nobody more, and no float may hold it.
_UNTOLD = 10**30
_MEMINFO = Path("/proc/meminfo")
#: The limit of a container, and what of it is used, in the two versions of control groups.
_GROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def check_release_fits(numbers: int, square: int, what: str, mend: str) -> None:
    """Refuse a release that this machine has no memory for.

    Parameters
    ----------
    numbers : int
        Length of the released vector.
    square : int
        Rows of the largest square matrix that is made of it; 0 for none.
    what : str
        What is released, for the message.
    mend : str
        What makes it smaller.

    Raises
    ------
    InvalidInput
        With both figures. Nothing is charged then.
    """
    workers = len(os.sched_getaffinity(0))
    _check(numbers * (_PER_NUMBER + _IN_FLIGHT * workers) + square * square * _PER_CELL, what, mend)


def check_moments_fit(columns: int, classes: int) -> None:
    """Refuse a fit of so many design columns, or classes, that memory does not hold its Gram matrix."""
    square = columns * max(classes - 1, 1)
    what = f"a fit of {columns:,} columns" + (f" and {classes:,} classes" if classes > 2 else "")
    check_release_fits(columns * (columns + 1) // 2, square, what, "fit fewer columns or classes")


def check_mixture_fits(rows: int, columns: Sequence[int]) -> None:
    """Refuse, by the length k of the mixture, what the widest party could not release, or nobody could join."""
    widest = max(columns)
    what = f"a row sketch of k = {rows:,} rows and {widest:,} columns"
    check_release_fits(rows * widest, sum(columns), what, "give a smaller k, or leave it out for the rule's")


def check_sample_fits(rows: int, columns: int, longest: int) -> None:
    """Refuse to sample more rows than memory holds, as codes and as text of ``longest`` characters a row at most."""
    _check(rows * (_PER_SAMPLED * columns + 4 * longest), f"{rows:,} synthetic rows", "sample fewer --rows at a time")


def _check(needed: int, what: str, mend: str) -> None:
    left = available()
    if needed > left:
        raise InvalidInput(f"{what} would take about {_text(needed)} of memory, {_text(left)} are available: {mend}")


def _text(size: int) -> str:
    return f"{min(size, _UNTOLD) / 1e9:,.2g} GB"


def available() -> int:
    """Bytes that this process may still take: of the machine, of its container, and by its own limit."""
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
    """Bytes of addresses that the process holds already; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # not there, or "max"
        return None

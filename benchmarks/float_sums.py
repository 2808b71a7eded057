"""An attack on running sums of floats, and on the exact sums: how far one row moves a sum of numbers in [0, 1].

    python -m benchmarks.float_sums

One row is 0 or 1, which moves the exact sum by 1: that is the sensitivity. Many other rows follow whose addition is
rounded down in one table and up in the other, because one sum has reached a power of two and the other has not
(Casacuberta, Shoemate, Vadhan, Wagaman 2022, "Widespread underestimation of sensitivity in differentially private
libraries and how to fix it").
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.command import answer_help
from dpregress.coordinates import Vector
from dpregress.coordinates.exact import TERM_BITS, Grid, column_sums, words_for

#: Binary digits of a number, and of the power of two, for each type of float.
FLOATS: dict[type[np.floating], tuple[int, int]] = {np.float32: (24, 11), np.float64: (53, 26)}
_CHUNK = 1 << 20


def table(kind: type[np.floating], first: float) -> Iterator[tuple[float, int]]:
    """Values and how often each follows: ``first``, ones up to a power of two 2^m, and small numbers.

    The spacing of floats is u below 2^m and 2u above, and the small numbers are 1.25 u: they add u below and 2u above.
    """
    digits, power = FLOATS[kind]
    yield first, 1
    yield 1.0, 2**power - 1
    yield 1.25 * 2.0 ** (power - digits), 2 ** (digits - power) - 1


def chunks(kind: type[np.floating], first: float) -> Iterator[Vector]:
    """The column in chunks."""
    for value, count in table(kind, first):
        for start in range(0, count, _CHUNK):
            yield np.full(min(_CHUNK, count - start), value)


def running_sum(kind: type[np.floating], first: float) -> float:
    """Row by row in floats, as ``SELECT sum(y)`` and a loop do it."""
    total = kind(0)
    for chunk in chunks(kind, first):
        total = np.add.accumulate(np.concatenate([[total], chunk.astype(kind)]), dtype=kind)[-1]
    return float(total)


def exact_sum(kind: type[np.floating], first: float) -> float:
    """The same rows on the public grid of numbers up to 1."""
    grid = Grid(1.0, words_for(rows(kind)), TERM_BITS)
    return sum(int(column_sums(grid.clipped(chunk)[:, None], grid)[0]) for chunk in chunks(kind, first)) * grid.step


def rows(kind: type[np.floating]) -> int:
    """The number of rows of a table."""
    return sum(count for _, count in table(kind, 0.0))


def main() -> None:
    """Print the distances between the sums of the two tables."""
    print(f"{'floats':<10}{'rows':>14}{'sensitivity':>14}{'running sum':>14}{'exact sum':>12}")
    for kind in FLOATS:
        running, exact = (add(kind, 1.0) - add(kind, 0.0) for add in (running_sum, exact_sum))
        print(f"{kind.__name__:<10}{rows(kind):>14,}{1:>14}{running:>14.6f}{exact:>12.6f}")


if __name__ == "__main__":
    answer_help(__doc__)
    main()

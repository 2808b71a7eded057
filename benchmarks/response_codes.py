"""Responses that are codes for missing ones, such as 9999, beyond their declared bounds.

    python -m benchmarks.response_codes [--tables gaussian,poisson,gamma] [--repeats 4] [--epsilons .3,1,3,10]
                                        [--public labelled,unlabelled,schema] [--jobs 2] [--out rows.csv]

10,000 private rows of four normal columns, and 400 public ones; a share of the responses of both are replaced by the
code (seed: 29, family, repeat). A figure is the deviance on 5,000 new rows without codes over that of the non-private
fit to the rows before they were replaced; so are those of the public-only fit and of the mean for everybody. One line
for each family, code, share and public knowledge: median and largest by epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.grid import Parts, fitted_rows
from benchmarks.random_tables import failed, run_named
from benchmarks.tables import GridTable
from dpregress.coordinates import Vector

#: Codes, with the shares of responses that they replace.
CODES = ((0.0, 0.0), (9_999.0, 0.003), (9_999.0, 0.01), (-999.0, 0.01), (999.0, 0.1))
_UPPER = {"gaussian": 60.0, "poisson": 60.0, "gamma": 120.0}
_PUBLIC, _PRIVATE, _NEW, _SLOPES = 400, 10_000, 5_000, (0.5, -0.4, 0.3, 0.0)

Random = np.random.Generator


def _frame(family: str, rng: Random, n: int) -> pd.DataFrame:
    x = rng.normal(size=(n, len(_SLOPES)))
    eta = x @ _SLOPES
    if family == "gaussian":
        y: Vector = 20 + 5 * eta + 3 * rng.normal(size=n)
    else:
        y = rng.poisson(np.exp(0.3 + eta)).astype(float) if family == "poisson" else rng.gamma(2, np.exp(1 + eta) / 2)
    least = 1e-3 if family == "gamma" else 0.0
    columns = {f"x{place}": x[:, place] for place in range(len(_SLOPES))}
    return pd.DataFrame({**columns, "y": y.clip(least, _UPPER[family])})


@dataclass(frozen=True)
class CodedParts(Parts):
    """Parts whose rows are judged as they were, and fitted with codes in place of some responses."""

    coded: Parts | None = None

    def library(self, way: str, epsilon: float, seed: Any) -> Vector:
        """Predictions of the library's fit to the coded rows."""
        assert self.coded is not None
        return self.coded.library(way, epsilon, seed)


def _parts(family: str, repeat: int, code: float, share: float) -> Parts:
    rng = np.random.default_rng([29, list(_UPPER).index(family), repeat])
    public, private, new = (_frame(family, rng, n) for n in (_PUBLIC, _PRIVATE, _NEW))
    bounds = {**{name: (-5.0, 5.0) for name in public if name != "y"}, "y": (0.0, _UPPER[family])}
    entry = GridTable(family, family, "y", lambda: private, bounds=bounds)

    def table(frame: pd.DataFrame) -> pa.Table:
        return pa.Table.from_pandas(frame, preserve_index=False)

    def coded(frame: pd.DataFrame) -> pa.Table:
        return table(frame.assign(y=np.where(rng.random(len(frame)) < share, code, frame.y)))

    plain = Parts(entry, entry.schema(private), table(public), table(private), table(new))
    return CodedParts(**vars(plain), coded=replace(plain, public=coded(public), private=coded(private)))


def run(job: tuple[str, int], epsilons: tuple[float, ...], ways: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of the grid for a repeat of all codes of a family."""
    family, repeat = job
    return [
        {**row, "code": code, "share": share}
        for code, share in CODES
        for row in fitted_rows(_parts(family, repeat, code, share), repeat, family, epsilons, ways)
    ]


def lines(rows: pd.DataFrame) -> Iterator[str]:
    """Medians and the worst repeats by family, code, public knowledge and epsilon."""
    for family, of_family in rows.groupby("table", sort=False):
        known = of_family[["public_only", "trivial"]].median()
        yield f"{family}: public only {known.public_only:.3f}, mean {known.trivial:.3f}"
        for (code, share, way), cells in of_family.groupby(["code", "share", "knows"], sort=False):
            found = "  ".join(f"{e:g}: {c.median():.3f}, {c.max():.3f}" for e, c in cells.groupby("epsilon").ratio)
            yield f"  {code:5g} {share:5g} {way:10} {found}"
    yield from failed(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the families that are asked for."""
    run_named(run, tuple(_UPPER), 4, lines, __doc__, arguments)


if __name__ == "__main__":
    main()

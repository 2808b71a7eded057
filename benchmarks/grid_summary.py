"""Figures of the cells of :mod:`benchmarks.grid`, and which cells hold what the grid is to show.

A cell is a table, what is public, and epsilon. A fit that failed or gave no answer counts as infinitely bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

CELL = ["table", "knows", "epsilon"]
#: What is known includes what stands to its right.
_LEVELS = ("labelled", "unlabelled", "schema")
#: At most these times the better of the public-only fit and the mean, in the median and in the worst split.
MEDIAN, WORST = 1.01, 1.05
#: Within this factor of the best private method.
NEAR = 1.01
#: A larger budget is worse when the mean of the paired log ratios is above this, and above three standard errors.
RISE, ERRORS = 0.001, 3.0


def figures(rows: pd.DataFrame) -> pd.DataFrame:
    """One line a cell: medians and worst of the library, what stands beside it, and the best private method.

    The best method is among the peers, and the library's own other ways, that know no more.
    """
    medians = rows.groupby(["table", "epsilon", "method", "knows"]).ratio.median()
    own = rows[rows.method == "library"]
    out = []
    for (table, knows, epsilon), cell in own.groupby(CELL, sort=False):
        others = {
            (method, known): value
            for (method, known), value in medians[table, epsilon].items()
            if _LEVELS.index(known) >= _LEVELS.index(knows) and (method, known) != ("library", knows)
        }
        best = min(others, key=lambda name: others[name], default=None)
        better = cell.ratio / np.minimum(cell.public_only, cell.trivial)
        out.append({
            "table": table, "knows": knows, "epsilon": epsilon, "n": int(cell.n.iloc[0]), "splits": len(cell),
            "median": cell.ratio.median(), "worst": cell.ratio.max(),
            "public_only": cell.public_only.median(), "trivial": cell.trivial.median(),
            "over_median": better.median(), "over_worst": better.max(),
            "auc_gap": (cell.plain_auc - cell.auc).median(), "mean_ratio": cell.mean_ratio.median(),
            "failed": int(np.isinf(cell.ratio).sum()),
            "error": next((text for text in cell.error if isinstance(text, str) and text), ""),
            "others": {_named(*method): value for method, value in others.items()},
            "best": "" if best is None else _named(*best),
            "best_median": math.inf if best is None else others[best],
        })  # fmt: skip
    return pd.DataFrame(out)


def _named(method: str, knows: str) -> str:
    return f"library, {knows}" if method == "library" else method


def lines(cells: pd.DataFrame) -> Iterator[str]:
    """One printed line a cell."""
    for cell in cells.itertuples():
        beside = ", ".join(f"{name} {_shown(value)}" for name, value in cell.others.items() if "library" not in name)
        extra = "" if math.isnan(cell.mean_ratio) else f" | mean {cell.mean_ratio:.3f}"
        extra += "" if math.isnan(cell.auc_gap) else f" | AUC gap {cell.auc_gap:.4f}"
        failed = f" | {cell.failed} of {cell.splits} failed: {cell.error[:90]}" if cell.failed else ""
        yield (
            f"{cell.table:10} n {cell.n:>7,} {cell.knows:10} epsilon {cell.epsilon:<4g} median {_shown(cell.median)} "
            f"worst {_shown(cell.worst)} | public only {_shown(cell.public_only)} trivial {_shown(cell.trivial)}"
            f"{' | ' + beside if beside else ''}{extra}{failed}"
        )


def rising(rows: pd.DataFrame) -> list[tuple[str, str, float, float, float]]:
    """Table, what is public, two budgets, and the factor by which the larger is worse beyond Monte Carlo error."""
    found = []
    own = rows[rows.method == "library"]
    for (table, knows), part in own.groupby(["table", "knows"], sort=False):
        logs = np.log(part.pivot(index="split", columns="epsilon", values="ratio"))
        for place, larger in enumerate(logs.columns):
            for smaller in logs.columns[:place]:
                with np.errstate(invalid="ignore"):
                    change = (logs[larger] - logs[smaller]).fillna(0.0)  # both failed: no change
                mean = float(change.mean())
                if not math.isfinite(mean):
                    worse, error = mean > 0 or math.isnan(mean), 0.0
                else:
                    error = float(change.std(ddof=1)) / math.sqrt(len(change)) if len(change) > 1 else 0.0
                    worse = mean > max(RISE, ERRORS * error)
                if worse:
                    found.append((table, knows, smaller, larger, math.exp(min(mean, 700.0))))
    return found


def summary(rows: pd.DataFrame) -> Iterator[str]:
    """What holds, and by name every cell where something does not."""
    cells = figures(rows)
    budgets = rows[rows.method == "library"].groupby(["table", "knows"]).epsilon.nunique()
    fewest, most = cells.splits.min(), cells.splits.max()
    splits = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    yield f"{len(cells)} cells of {cells.table.nunique()} tables, {splits} splits"
    typical, worst = cells[~(cells.over_median <= MEDIAN)], cells[~(cells.over_worst <= WORST)]
    yield f"at most {MEDIAN} x the better of public-only and trivial, median: {_of(cells, typical)}"
    yield from (f"    {_cell(cell)}: {_shown(cell.over_median)}" for cell in typical.itertuples())
    yield f"at most {WORST} x the better of public-only and trivial, worst split: {_of(cells, worst)}"
    yield from (f"    {_cell(cell)}: {_shown(cell.over_worst)}" for cell in worst.itertuples())
    compared = cells[cells.best != ""]
    behind = compared[~(compared["median"] <= NEAR * compared.best_median)]
    yield f"best or within {NEAR - 1:.0%} of the best private method that knows no more: {_of(compared, behind)}"
    yield from (
        f"    {_cell(cell)}: {_shown(cell.median)}, {cell.best} {_shown(cell.best_median)}"
        for cell in behind.itertuples()
    )
    up = rising(rows)
    several = int((budgets > 1).sum())
    broken = len({(table, knows) for table, knows, *_ in up})
    yield f"monotone in epsilon beyond {ERRORS:g} standard errors: {several - broken} of {several}"
    yield from (f"    {table}, {knows}: {low:g} to {high:g} x {_shown(by)}" for table, knows, low, high, by in up)
    failed = cells[cells.failed > 0]
    if len(failed):
        yield f"cells with fits that failed: {len(failed)}"
        yield from (f"    {_cell(cell)}: {cell.failed} of {cell.splits}: {cell.error}" for cell in failed.itertuples())


def _of(cells: pd.DataFrame, wrong: pd.DataFrame) -> str:
    return f"{len(cells) - len(wrong)} of {len(cells)}"


def _cell(cell: object) -> str:
    return f"{cell.table}, {cell.knows}, epsilon {cell.epsilon:g}"  # type: ignore[attr-defined]


def _shown(value: float) -> str:
    if not math.isfinite(value):
        return "none"
    return f"{value:.4f}" if value < 100 else f"{value:.2g}"

"""``python -m benchmarks.audit``: search, run, and write the table of docs/privacy/audit.md."""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.audit.attack import Audit, Pair, Tally, claimed
from benchmarks.audit.cells import CELLS
from benchmarks.audit.devices import DEVICES
from benchmarks.audit.search import FitAudit
from dpregress.accounting import PureDP
from dpregress.errors import SeededNoiseWarning

AUDITS: tuple[Audit, ...] = (*map(FitAudit, CELLS), *DEVICES)
_SEED = 17
#: Runs before the results are written; how many all cells have before any has more.
_BLOCK, _FIRST = 100, (100, 300, 1_000)
_BEGIN, _END = "<!-- begin: python -m benchmarks.audit -->", "<!-- end -->"
_OUT, _PAGE = Path("benchmarks/audit/audit.json"), Path("docs/privacy/audit.md")

Records = dict[str, dict[str, Any]]


def searched(audit: Audit) -> Pair:
    """The pair of a cell, the same every time."""
    return audit.search(_key(audit))


def tally(audit: Audit, pair: Pair, found: Tally, runs: int, seed: int = _SEED) -> Tally:
    """Add runs until there are this many."""
    attack = audit.attack(pair)
    rng = np.random.default_rng([seed, _key(audit), found.runs])
    while found.runs < runs:
        found.add(attack.run(rng))
    return found


def _key(audit: Audit) -> int:
    return zlib.crc32(audit.name.encode())


def measure(audits: Sequence[Audit], runs: int, seconds: float, out: Path) -> None:
    """Run all cells until each has so many runs or the time is over, and go on from what is written."""
    end, console = time.monotonic() + seconds, Console()
    records: Records = json.loads(out.read_text()) if out.exists() else {}
    for most in [*(each for each in _FIRST if each < runs), runs]:
        for audit in audits:
            record = records.setdefault(audit.name, {})
            if "pair" not in record:
                pair = searched(audit)
                record["pair"] = [None if row is None else row.tolist() for row in (pair.row, pair.other)]
            found = Tally(**record.get("tally", {}))
            while found.runs < most and time.monotonic() < end:
                found = tally(audit, _pair(record), found, min(found.runs + _BLOCK, most))
                record["tally"] = asdict(found)
                _write(records, out)
            console.print(f"{audit.name}: reach {found.reach:.3f}, {found.runs} runs")


def _pair(record: dict[str, Any]) -> Pair:
    row, other = (None if row is None else np.array(row) for row in record["pair"])
    assert row is not None
    return Pair(row, other)


def _write(records: Records, out: Path) -> None:
    """All or nothing, so that a run that is stopped can go on."""
    part = out.with_suffix(".part")
    part.write_text(json.dumps(records, indent=1) + "\n")
    os.replace(part, out)


def lines(records: Records) -> Iterator[str]:
    """The table, in Markdown."""
    yield "| fit | claim | exact reach | lower bound | runs | why not more |"
    yield "|---|---|---|---|---|---|"
    for audit in AUDITS:
        if "tally" in records.get(audit.name, {}):
            found, claim = Tally(**records[audit.name]["tally"]), claimed(audit.claim)
            name = "epsilon" if isinstance(audit.claim, PureDP) else "mu"
            yield (
                f"| {audit.name} | {name} = {claim:.3g} | {found.reach:.3f} | {found.bound(audit.claim) / claim:.2f} "
                f"| {found.runs:,} | {audit.reason} |"
            )


def rewrite(page: Path, records: Records) -> None:
    """Put the table between its marks."""
    before, rest = page.read_text(encoding="utf-8").split(_BEGIN)
    after = rest.split(_END)[1]
    page.write_text("\n".join([f"{before}{_BEGIN}", *lines(records), f"{_END}{after}"]), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--cells", help="names, with semicolons between them; default: all")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--out", type=Path, default=_OUT)
    parser.add_argument("--anew", action="store_true", help="forget earlier runs")
    parser.add_argument("--page", type=Path, help="write the table there, without further runs")
    given = parser.parse_args(arguments)
    if given.anew:
        given.out.unlink(missing_ok=True)
    if given.page is None:
        wanted = None if given.cells is None else given.cells.split(";")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            measure(
                [each for each in AUDITS if wanted is None or each.name in wanted], given.runs, given.seconds, given.out
            )
    else:
        rewrite(given.page, json.loads(given.out.read_text()))


if __name__ == "__main__":
    main()

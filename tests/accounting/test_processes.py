"""A ledger file under several processes, and under processes that are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from dpregress.accounting import GDP, SQLiteLedger

ATTEMPTS = """
import sys
from dpregress.accounting import GDP, SQLiteLedger
from dpregress.errors import BudgetExceeded

ledger = SQLiteLedger(sys.argv[1], "people")
granted = 0
for _ in range(25):
    try:
        ledger.reserve(GDP(1.0))
    except BudgetExceeded:
        continue
    granted += 1
print(granted)
"""

ONCE = """
import sys
from dpregress.accounting import GDP, SQLiteLedger
from dpregress.errors import ChargedBefore

ledger = SQLiteLedger(sys.argv[1], "people")
granted = 0
for release in range(25):
    try:
        ledger.reserve(GDP(1.0), note=str(release), once=True)
    except ChargedBefore:
        continue
    granted += 1
print(granted)
"""

CHARGES = """
import sys, time
from dpregress.accounting import GDP, SQLiteLedger

ledger = SQLiteLedger(sys.argv[1], "people")
for charge in range(int(sys.argv[2])):
    ledger.reserve(GDP(1.0), note=str(charge))
    print(charge, flush=True)
time.sleep(600)
"""


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Read that many lines, send SIGKILL, and return everything that was ever printed."""
    assert process.stdout is not None
    try:
        seen = [process.stdout.readline() for _ in range(lines)]
    finally:
        process.kill()
    with process:
        seen.extend(process.stdout)
    return [line.strip() for line in seen if line.endswith("\n")]


def notes(path: Path) -> list[str]:
    return [charge.note for charge in SQLiteLedger(path, "people").charges]


def test_a_race_for_a_budget_grants_exactly_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    SQLiteLedger.create(path, "people", GDP(10.0))
    racers = [run(ATTEMPTS, path) for _ in range(8)]
    granted = []
    for racer in racers:
        output, _ = racer.communicate()
        assert racer.returncode == 0
        granted.append(int(output))
    assert sum(granted) == 100
    assert len(SQLiteLedger(path, "people").charges) == 100


def test_a_charge_outlives_its_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    SQLiteLedger.create(path, "people", GDP(10.0))
    assert kill_after(run(CHARGES, path, 1), lines=1) == ["0"]
    assert notes(path) == ["0"]


def test_a_process_killed_while_charging_loses_nothing_it_acknowledged(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "ledger.db"
    SQLiteLedger.create(path, "people", GDP(1e3))
    lines = int(np.random.default_rng(seed).integers(5, 60))
    acknowledged = kill_after(run(CHARGES, path, 10_000), lines)
    assert len(acknowledged) >= lines
    kept = notes(path)
    assert kept[: len(acknowledged)] == acknowledged
    assert len(kept) <= len(acknowledged) + 1  # the one that was written but not yet acknowledged
    SQLiteLedger(path, "people").reserve(GDP(1.0))


def test_processes_charge_a_note_once_between_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = SQLiteLedger.create(path, "people", GDP(100.0))
    processes = [run(ONCE, path) for _ in range(3)]
    outputs = [process.communicate(timeout=100)[0] for process in processes]
    assert sum(map(int, outputs)) == 25
    assert sorted(int(charge.note) for charge in ledger.charges) == list(range(25))

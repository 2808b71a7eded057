"""Dask on a real cluster of processes: what fails, fails in one line and before the charge where it can."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import GDP, DPLinearRegression, MemoryLedger, Numeric, Schema, SQLiteLedger
from dpregress.errors import InvalidInput, SourceError
from dpregress.inputs.engines import engine_of
from dpregress.rows import ArraySource, DaskEngine, ThreadedEngine, dask_cluster, dask_engine
from dpregress.rows.readers import files
from tests.rows.on_workers import Logged, leaks, sums

SCHEMA = Schema({"a": Numeric(-5, 5), "b": Numeric(-5, 5), "y": Numeric(-9, 9)})
ROWS = 4000


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows in 10 row groups, each of which is a part."""
    monkeypatch.setattr(files, "_PART", 0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 2))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": x @ [1, 2] + rng.normal(size=ROWS), "id": np.arange(ROWS) // 3})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=400)
    return tmp_path / "rows.parquet"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up after two seconds."""
    monkeypatch.setattr(dask_engine, "_PATIENCE", 2.0)
    monkeypatch.setattr(dask_cluster, "_CONNECT", 2.0)


@pytest.fixture
def mortal() -> Iterator[Any]:
    """A client of two worker processes for one test."""
    with dask_cluster.connected(dask_cluster.LOCAL, 2) as client:
        yield client


def kill(*processes: int) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def fitted(path: Any, ledger: MemoryLedger, *, seed: int = 0, **options: Any) -> DPLinearRegression:
    model = DPLinearRegression(GDP(0.5), schema=SCHEMA, ledger=ledger, recipe="one-shot", random_state=seed)
    with pytest.warns(UserWarning, match="seed"):
        return model.fit_table(path, "y", ["a", "b"], **options)


@pytest.mark.parametrize("options", [{"unit": None}, {"unit": "id", "max_rows_per_unit": 2}], ids=["records", "units"])
def test_a_fit_is_the_same_as_on_threads(options: dict[str, Any], path: Path, dask_client: Any, seed: int) -> None:
    """Deterministic, as the noise is of the same seed."""
    one, other = (MemoryLedger(GDP(1.0), unit=options["unit"] or "record") for _ in range(2))
    seen: list[int] = []
    here = fitted(path, one, seed=seed, **options)
    options["progress"] = lambda done, _: seen.append(done)
    there = fitted(path, other, seed=seed, engine=dask_client, **options)
    np.testing.assert_array_equal(here.coef_, there.coef_)
    assert one.spent == other.spent
    assert seen.count(ROWS) >= 1
    assert max(seen) == ROWS
    assert dask_client.status == "running"


# ---------------------------------------------------------------- what is lost on the way


@pytest.mark.slow
def test_a_worker_killed_in_a_pass_changes_nothing(path: Path, mortal: Any) -> None:
    ledger, expected = MemoryLedger(GDP(1.0)), fitted(path, MemoryLedger(GDP(1.0)))
    victims = list(mortal.run(os.getpid).values())

    def progress(done: int, of: int) -> None:
        if victims and done >= of // 5:
            kill(victims.pop())
            victims.clear()

    found = fitted(path, ledger, engine=mortal, progress=progress)
    assert not victims
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert len(ledger.charges) == 1


@pytest.mark.slow
def test_a_task_that_runs_twice_counts_once(tmp_path: Path, mortal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed worker takes the sums along that nobody has added yet."""
    monkeypatch.setattr(DaskEngine, "chunk_rows", staticmethod(lambda _: 10))
    x = np.arange(210.0).reshape(-1, 3)
    victims = list(mortal.run(os.getpid).values())

    def progress(done: int, of: int) -> None:
        if done == of - 10:
            kill(victims[0])

    total = DaskEngine(mortal, progress=progress).total(ArraySource(x), Logged(tmp_path / "log"), columns=3)
    assert total.whole.tolist() == x.sum(axis=0).tolist()
    runs = (tmp_path / "log").read_text().split()
    assert set(runs) == set(map(str, range(0, 70, 10)))
    assert len(runs) > 7


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_without_workers_a_fit_ends_in_one_line_and_is_paid_once(path: Path, mortal: Any) -> None:
    ledger = MemoryLedger(GDP(1.0))
    victims = list(mortal.run(os.getpid).values())

    def progress(*_: int) -> None:
        while victims:
            kill(victims.pop())

    with pytest.raises(SourceError, match=r"^the Dask cluster lost .* stays charged$") as caught:
        DPLinearRegression(GDP(0.5), schema=SCHEMA, ledger=ledger).fit_table(
            path, "y", ["a", "b"], engine=mortal, progress=progress
        )
    assert caught.value.__context__ is None
    assert len(ledger.charges) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_lost_scheduler_ends_a_fit_in_one_line(path: Path, tmp_path: Path) -> None:
    ledger, program = MemoryLedger(GDP(1.0)), [sys.executable, "-P", "-m"]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(tmp_path / "s.json")]
    scheduler = subprocess.Popen([*program, "distributed.cli.dask_scheduler", *options], **quiet)
    worker = None
    try:
        options = ["--scheduler-file", str(tmp_path / "s.json"), "--no-nanny", "--no-dashboard", "--nthreads", "1"]
        worker = subprocess.Popen([*program, "distributed.cli.dask_worker", *options], **quiet)
        while not (tmp_path / "s.json").exists():
            time.sleep(0.1)
        time.sleep(0.5)
        address = re.findall(r"tcp://[\d.:]+", (tmp_path / "s.json").read_text())[0]
        with pytest.raises(SourceError, match=r"^the Dask cluster lost .* stays charged$"):
            DPLinearRegression(GDP(0.5), schema=SCHEMA, ledger=ledger).fit_table(
                path, "y", ["a", "b"], engine=address.replace("tcp", "dask"), progress=lambda *_: scheduler.kill()
            )
        assert len(ledger.charges) == 1
    finally:
        for process in (scheduler, worker):
            if process is not None:
                process.kill()
                process.wait()


# ---------------------------------------------------------------- what is refused, and what is not told


def refused(table: Any, engine: Any, said: str) -> None:
    """Before the charge."""
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match=said):
        DPLinearRegression(GDP(0.5), schema=SCHEMA, ledger=ledger).fit_table(table, "y", ["a", "b"], engine=engine)
    assert not ledger.charges


def test_workers_that_differ_are_refused(path: Path, dask_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "software", lambda: "Python 2.7")
    refused(path, dask_client, "this process has Python 2.7: install the same versions")


def test_two_kinds_of_workers_are_refused(path: Path, dask_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them reads a row would decide how it is rounded."""
    run = dask_client.run

    def two_kinds(*given: Any) -> dict[int, Any]:
        (seen, *_) = run(*given).values()
        return {0: seen, 1: seen._replace(arithmetic="another")}

    monkeypatch.setattr(dask_client, "run", two_kinds)
    refused(path, dask_client, "different processors or libraries")


def test_a_worker_of_another_kind_that_joins_later_ends_the_fit(dask_client: Any) -> None:
    engine = DaskEngine(dask_client, kind="another")
    with pytest.raises(SourceError, match="another kind joined during the fit"):
        engine.total(ArraySource(np.zeros((9, 3))), sums, columns=3)


def test_what_workers_do_not_see_is_refused(path: Path, dask_client: Any) -> None:
    import fsspec

    with fsspec.open("memory://dask.parquet", "wb") as file:
        file.write(path.read_bytes())
    refused("memory://dask.parquet", dask_client, "does not find .*dask.parquet as this process does")
    refused(pl.read_parquet(path).lazy(), dask_client, "the LazyFrame cannot be divided among workers: write it")


@pytest.mark.usefixtures("impatient")
def test_a_cluster_that_does_not_answer_is_refused(path: Path) -> None:
    refused(path, "dask://127.0.0.1:9", "the Dask scheduler at tcp://127.0.0.1:9 does not answer: start it")


@pytest.mark.parametrize("engine", ["spark", "dask://", "", 3, object])
def test_other_engines_are_refused(engine: Any, path: Path) -> None:
    refused(path, engine, "engine= takes an Engine, not")


def test_names_of_engines() -> None:
    for given, cluster in (("dask", "local"), ("dask://h:1", "tcp://h:1"), ("tls://h:1", "tls://h:1")):
        engine = engine_of(given)
        assert isinstance(engine, DaskEngine)
        assert engine.cluster == cluster
    assert engine_of(ThreadedEngine(2)) == ThreadedEngine(2)


def test_an_error_on_a_worker_says_nothing_of_the_rows(dask_client: Any) -> None:
    with pytest.raises(SourceError, match="failed on its rows") as caught:
        DaskEngine(dask_client).total(ArraySource(np.full((9, 3), 4711.0)), leaks, columns=3)
    assert caught.value.__context__ is None
    assert "4711" not in repr(dask_client.get_worker_logs()) + repr(dask_client.get_scheduler_logs())


def test_an_error_of_the_caller_is_the_callers_and_leaves_no_tasks(dask_client: Any) -> None:
    def progress(*_: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        DaskEngine(dask_client, progress=progress).total(ArraySource(np.zeros((9, 3))), sums, columns=3)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(map(bool, dask_client.who_has().values())):
        time.sleep(0.05)
    assert not any(map(bool, dask_client.who_has().values()))


def lost_part(parts: Callable[..., Any]) -> Callable[..., Any]:
    def some(self: ArraySource, rows: int) -> Iterator[Any]:
        first, _, *rest = parts(self, rows)
        yield from (first, *rest)

    return some


def test_rows_that_are_lost_or_repeated_are_noticed(dask_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DaskEngine, "chunk_rows", staticmethod(lambda _: 3))
    x, parts = np.zeros((12, 3)), ArraySource.parts
    wrong: list[Callable[..., Any]] = [
        lost_part(parts),
        lambda self, rows: list(parts(self, rows))[:-1],
        lambda self, rows: list(parts(self, rows))[:2] * 2,
    ]
    for each in wrong:
        monkeypatch.setattr(ArraySource, "parts", each)
        with pytest.raises(SourceError, match="lost or repeated rows"):
            DaskEngine(dask_client).total(ArraySource(x), sums, columns=3)


SCRIPT = """
from dpregress import GDP, DPLinearRegression, Numeric, Schema, SQLiteLedger
schema = Schema({"a": Numeric(-5, 5), "b": Numeric(-5, 5), "y": Numeric(-9, 9)})
model = DPLinearRegression(GDP(0.1), schema=schema, ledger=SQLiteLedger("budget.db", "rows"))
model.fit_table("rows.parquet", "y", ["a", "b"], engine="dask")
"""


@pytest.mark.slow
def test_a_script_without_a_guard_charges_once(path: Path) -> None:
    """Processes that Dask starts itself run the script of their parent again, and would charge again."""
    ledger = SQLiteLedger.create(path.parent / "budget.db", "rows", GDP(1.0))
    (path.parent / "fit.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "fit.py"], cwd=path.parent, check=True, timeout=120)
    assert len(ledger.charges) == 1

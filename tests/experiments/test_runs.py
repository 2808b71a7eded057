"""Experiments are run once, resumed where they were stopped, predicted, summed up and drawn."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress.datasets import keep
from dpregress.errors import InvalidInput
from dpregress.experiments.base import Claim, Experiment, Panel, Reading, settings_of
from dpregress.experiments.catalogue import EXPERIMENTS
from dpregress.experiments.findings import below, changes, flat
from dpregress.experiments.runner import RunSize, predicted, run_experiment
from dpregress.experiments.summaries import RunSummary, curves_of
from tests.support import run


@dataclass(frozen=True)
class Point:
    """A setting of the experiment of these tests."""

    n: int
    table: str = ""


def _simulate(setting: Point, rng: np.random.Generator) -> Iterator[Reading]:
    yield Reading("one", "", "paper", setting.n, float(np.exp(rng.normal() / 10)) / setting.n)
    yield Reading("one", "", "dpregress", setting.n, 0.5 / setting.n)


SMALL = Experiment(
    "small", "Nobody 2026", "Figure 0", "a test", (Panel("one", "n", "error", "log"),), settings_of(Point, n=(1, 2, 4)),
    settings_of(Point, n=(1, 2)), _simulate, 5, 2, lambda setting: float(setting.n),
    (Claim("The error falls.", changes("paper")), Claim("Ours is flat.", flat("dpregress", 1.1), "it is not")), (),
    table=lambda setting: setting.table,
)  # fmt: skip
ONE = RunSize(workers=1)


def rows_of(path: Path) -> list[tuple[str, int, str, float]]:
    rows = pq.read_table(path).to_pylist()
    return sorted((row["setting"], row["repeat"], row["method"], row["value"]) for row in rows)


def test_every_figure_and_table_of_the_papers_is_there() -> None:
    names = [f"cao-{figure}" for figure in range(1, 11)] + [f"wang-{figure}" for figure in range(1, 19)]
    names += ["wu-2", "wu-3", "wu-table-1", "ferrando-3", "ferrando-3-pgm", "ferrando-times", "ferrando-estimator"]
    assert set(EXPERIMENTS) == set(names)
    for experiment in EXPERIMENTS.values():
        assert experiment.claims
        assert experiment.choices
        keys = [repr(setting) for setting in experiment.settings]
        assert len(set(keys)) == len(keys)


def test_the_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "experiment", "list")
    assert done.code == 0
    for name in EXPERIMENTS:
        assert name in done.out


def test_the_list_fits_on_eighty_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("DPREGRESS_DATA", "/nowhere")  # data sets that are not here stand in brackets
    done = run(capsys, "experiment", "list")
    assert max(len(line.rstrip()) for line in done.out.splitlines()) <= 80
    assert "(acs_public_coverage)" in done.out
    assert {each.paper for each in EXPERIMENTS.values()} <= set(map(str.rstrip, done.out.splitlines()))


def test_the_command_runs_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a folder of tables, what needs one is left out and said so."""
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path / "none"))
    words = ("experiment", "run", "wu-3", "--quick", "--repeats", 1, "--out", tmp_path, "--workers", 1)
    done = run(capsys, *words)
    assert done.code == 0, done.err
    assert "without insurance" in done.out
    assert {path.name for path in tmp_path.iterdir()} == {"wu-3.parquet", "wu-3.json", "wu-3.png"}
    assert (tmp_path / "wu-3.png").read_bytes().startswith(b"\x89PNG")
    before = (tmp_path / "wu-3.parquet").stat().st_mtime_ns
    again = run(capsys, *words)
    assert "repeats to run" not in again.out
    assert (tmp_path / "wu-3.parquet").stat().st_mtime_ns == before
    assert run(capsys, *words, "--seed", 2).code == 2
    assert run(capsys, "experiment", "run", "cao-0").code == 2
    page = run(capsys, "experiment", "page", "--runs", tmp_path, "--out", tmp_path / "page.md")
    assert page.code == 0, page.err
    assert "wu-3" in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize("name", ["wu-3", "all"])
def test_a_file_in_place_of_the_folder_is_refused_first(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpregress.experiments.runner.run_experiment", None)
    (tmp_path / "here").write_text("kept")
    done = run(capsys, "experiment", "run", name, "--quick", "--out", tmp_path / "here")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: --out is a folder; {tmp_path / 'here'} is a file: name a folder\n"
    assert (tmp_path / "here").read_text() == "kept"


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """It ends with the rows of one that was not, and runs nothing twice."""
    calls = []

    def stopping(setting: Point, rng: np.random.Generator) -> Iterator[Reading]:
        calls.append(setting)
        if len(calls) == 8:
            raise KeyboardInterrupt
        yield from _simulate(setting, rng)

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_experiment(SMALL, whole, ONE, print)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(replace(SMALL, simulate=stopping), broken, ONE, print)
    assert len(rows_of(broken / "small.parquet")) == 2 * 7
    (broken / "small.part").write_text("half a file")
    run_experiment(replace(SMALL, simulate=stopping), broken, ONE, print)
    assert len(calls) == 15 + 1
    assert rows_of(broken / "small.parquet") == rows_of(whole / "small.parquet")


def test_a_run_that_was_killed_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """kill -9 leaves a whole file."""
    words = ["experiment", "run", "cao-3", "--quick", "--repeats", "400", "--workers", "1", "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-m", "dpregress", *words], stdout=subprocess.DEVNULL, env=os.environ)
    path = tmp_path / "cao-3.parquet"
    try:
        for _ in range(600):
            if path.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        assert path.exists()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    held = rows_of(path)
    assert held
    done = run(capsys, *words[:4], "--repeats", 1, "--workers", 1, "--out", tmp_path)
    assert done.code == 0, done.err
    assert set(held) <= set(rows_of(path))


def test_processes_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path / "none"))
    for workers in (1, 2):
        size = RunSize(quick=True, repeats=2, workers=workers)
        run_experiment(EXPERIMENTS["wu-3"], tmp_path / str(workers), size, print)
    assert rows_of(tmp_path / "1" / "wu-3.parquet") == rows_of(tmp_path / "2" / "wu-3.parquet")


def test_the_cost_is_predicted_before(tmp_path: Path) -> None:
    said: list[str] = []
    run_experiment(SMALL, tmp_path, ONE, said.append)
    assert said[0].startswith("small: 13 of 15 repeats to run, about ")  # two were run to predict the others
    seconds = {(repr(Point(1)), 0): 2.0, (repr(Point(2)), 0): 4.0}
    assert predicted(SMALL, SMALL.settings, seconds) == pytest.approx(2 + 4 + 8)


def test_a_quick_run_counts_towards_the_full_one(tmp_path: Path) -> None:
    quick = run_experiment(SMALL, tmp_path, replace(ONE, quick=True), print)
    assert quick.curves[0].x == (1.0, 2.0)
    assert quick.curves[0].count == (2, 2)
    said: list[str] = []
    full = run_experiment(SMALL, tmp_path, ONE, said.append)
    assert "11 of 15" in said[0]
    assert full.curves[0].count == (5, 5, 5)


def test_data_that_are_not_there_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path))
    absent = replace(SMALL, settings=(Point(1, "nowhere"),))
    with pytest.raises(InvalidInput, match="small needs nowhere"):
        run_experiment(absent, tmp_path, ONE, print)
    with pytest.raises(InvalidInput, match="no_such_package"):
        run_experiment(replace(SMALL, package="no_such_package"), tmp_path, ONE, print)


def test_a_run_with_other_rows_or_software_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path))
    one = replace(SMALL, settings=(Point(1, "here"),))

    def said(cells: list[int]) -> str:
        pq.write_table(pa.table({"a": cells}), tmp_path / "here.parquet")
        lines: list[str] = []
        run_experiment(one, tmp_path, ONE, lines.append)
        return "\n".join(lines)

    assert "5 repeats to run" in said([1])
    assert said([1]) == ""
    other = said([2])
    assert "starts anew, since the file was run with another here.parquet" in other
    assert "of 5 repeats to run" in other
    assert said([2]) == ""
    monkeypatch.setattr("dpregress.experiments.runner.__version__", "0.0")
    assert "starts anew, since the file was run with another software" in said([2])
    assert len(rows_of(tmp_path / "small.parquet")) == 2 * 5


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.parquet").write_text("something else")
    with pytest.raises(InvalidInput, match="not the file of a run"):
        run_experiment(SMALL, tmp_path, ONE, print)


def test_a_file_of_other_types_is_refused(tmp_path: Path) -> None:
    run_experiment(SMALL, tmp_path, ONE, print)
    held = pq.read_table(tmp_path / "small.parquet")
    text = held.set_column(held.column_names.index("value"), "value", pa.array(["a"] * held.num_rows))
    pq.write_table(text, tmp_path / "small.parquet")
    with pytest.raises(InvalidInput, match=r"small\.parquet has columns of other types"):
        run_experiment(SMALL, tmp_path, ONE, print)


def test_a_seed_is_one_that_the_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (-1, 2**63):
        done = run(capsys, "experiment", "run", "wu-3", "--quick", "--seed", seed, "--out", tmp_path)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "--seed" in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["json", "png"])
def test_what_a_run_writes_is_whole_or_not_there(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full in the middle of a file leaves the old one."""
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path / "none"))
    words = ("experiment", "run", "wu-3", "--quick", "--repeats", 1, "--out", tmp_path, "--workers", 1)
    assert run(capsys, *words).code == 0
    before = (tmp_path / f"wu-3.{kind}").read_bytes()

    def half(path: Path, *_: object, **__: object) -> None:
        with path.open("wb") as file:
            file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    if kind == "json":
        monkeypatch.setattr(Path, "write_text", half)
    else:
        monkeypatch.setattr("dpregress.experiments.plots.draw", lambda *of: half(of[2]))
    assert run(capsys, *words).code == 2
    assert (tmp_path / f"wu-3.{kind}").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"wu-3.parquet", "wu-3.json", "wu-3.png"}


def test_two_processes_keep_a_file_without_harm(tmp_path: Path) -> None:
    """One begins to write while the other has not ended: each has a file of its own until it is whole."""
    path = tmp_path / "a.json"

    def first(part: Path) -> None:
        part.write_text("first")
        keep(path, lambda other: other.write_text("second"))
        assert path.read_text() == "second"
        assert part.read_text() == "first"

    keep(path, first)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------- summaries and findings


def summary_of(values: dict[tuple[str, str], list[list[float]]]) -> RunSummary:
    """Means of curves in panel "one" at x = 1, 2, .. from repeats of each point."""
    rows = [
        {"panel": "one", "line": line, "method": method, "x": float(x), "value": value}
        for (method, line), points in values.items()
        for x, repeats in enumerate(points, 1)
        for value in repeats
    ]
    return RunSummary("small", True, 1, 2, 1.0, 60.0, (), curves_of(rows), {}, "dpregress 0")


def test_means_spreads_and_failures() -> None:
    (curve,) = summary_of({("a", ""): [[1.0, 3.0], [2.0, np.inf]]}).curves
    assert curve.mean == (2.0, 2.0)
    assert curve.sd == (pytest.approx(np.sqrt(2)), 0.0)
    assert curve.failed == (0, 1)
    assert curve.at(2.0) == np.inf


def test_the_best_variant_counts() -> None:
    (curve,) = summary_of({("a | 1", ""): [[3.0], [1.0]], ("a | 2", ""): [[2.0], [5.0]]}).curves
    assert (curve.method, curve.mean) == ("a", (2.0, 1.0))


def test_a_summary_is_read_as_it_was_written() -> None:
    summary = summary_of({("a", ""): [[1.0, 3.0], [2.0, np.inf]], ("b", "epsilon 1"): [[np.nan]]})
    text = summary.to_json()
    json.loads(text)
    assert RunSummary.from_json(text).to_json() == text


def test_findings_by_hand() -> None:
    summary = summary_of({("a", ""): [[4.0], [2.0], [1.0]], ("b", ""): [[5.0], [2.0], [0.5]]})
    assert below("a", "b")(summary).verdict == "no"  # 1 of 3
    assert below("b", "a", factor=1.3)(summary).verdict == "yes"
    assert below("a", "b", last=True)(summary).verdict == "no"
    assert changes("a")(summary).verdict == "yes"
    assert "factor of 4" in changes("a")(summary).seen
    assert changes("a", rises=True)(summary).verdict == "no"
    assert flat("a", 4.0)(summary).verdict == "yes"
    assert flat("a", 3.0)(summary).verdict == "no"
    assert below("a", "nothing")(summary).verdict == "not run"

"""Running an experiment: predicted first, in parallel, resumed where it was stopped, and summed up."""

from __future__ import annotations

import hashlib
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from dpregress.datasets import has_table, where_is
from dpregress.errors import InvalidInput
from dpregress.experiments.base import Experiment
from dpregress.experiments.catalogue import experiment_named
from dpregress.experiments.store import Row, RunFile
from dpregress.experiments.summaries import RunSummary, curves_of, points_of
from dpregress.version import __version__

#: Seconds between two writes of the file.
_EVERY = 10.0
#: A repeat predicted to take longer than this is not run to predict the others.
_LONGEST_PROBE = 60.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class RunSize:
    """How much of an experiment to run.

    Parameters
    ----------
    quick : bool
        The smaller settings and fewer repeats.
    repeats : int, optional
        In place of those of the experiment.
    seed : int
    workers : int
        Processes.
    """

    quick: bool = False
    repeats: int | None = None
    seed: int = 1
    workers: int = 2

    def repeats_of(self, experiment: Experiment) -> int:
        """How many repeats of each setting."""
        if self.repeats is not None:
            return self.repeats
        return experiment.quick_repeats if self.quick else experiment.repeats


@dataclass(frozen=True)
class Job:
    """One repeat of one setting."""

    setting: Any
    repeat: int
    seed: int


def measure_repeat(experiment: Experiment, job: Job) -> list[Row]:
    """The rows of one repeat: the same at the same seed, whatever else is run."""
    key = repr(job.setting)
    rng = np.random.default_rng([job.seed, zlib.crc32(experiment.name.encode()), zlib.crc32(key.encode()), job.repeat])
    started = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"), threadpool_limits(1):
        warnings.simplefilter("ignore")
        readings = list(experiment.simulate(job.setting, rng))
    spent = time.perf_counter() - started
    fixed = {
        "experiment": experiment.name, "setting": key, "repeat": job.repeat, "seed": job.seed, "seconds": spent,
    }  # fmt: skip
    return [{**fixed, **reading._asdict(), "x": float(reading.x)} for reading in readings]


def run_experiment(experiment: Experiment, out: Path, size: RunSize, say: Say) -> RunSummary:
    """Run what the file in ``out`` does not hold yet, and sum up all of it.

    Parameters
    ----------
    experiment : Experiment
    out : Path
        The folder of ``NAME.parquet``.
    size : RunSize
    say : callable
        Prints a line.

    Raises
    ------
    InvalidInput
        If no data set of the experiment is there, or an optional package is not.
    """
    if experiment.package and find_spec(experiment.package) is None:
        raise InvalidInput(f"{experiment.name} needs {experiment.package}: pip install 'dpregress[aim]'")
    asked, left_out = settings_here(experiment, size.quick)
    if not asked:
        needed = ", ".join(left_out)
        raise InvalidInput(f"{experiment.name} needs {needed}: see `dpregress datasets list`")
    out.mkdir(parents=True, exist_ok=True)
    held = RunFile(out / f"{experiment.name}.parquet", size.seed, _basis(experiment, asked))
    if held.changed:
        say(f"{experiment.name}: starts anew, since the file was run with another {' and another '.join(held.changed)}")
    repeats = size.repeats_of(experiment)
    done = held.seconds
    jobs = [Job(setting, repeat, size.seed) for repeat in range(repeats) for setting in asked]
    missing = [job for job in jobs if (repr(job.setting), job.repeat) not in done]
    if missing:
        missing = _probed(experiment, missing, held)
        left = predicted(experiment, [job.setting for job in missing], held.seconds)
        say(f"{experiment.name}: {len(missing):,} of {len(jobs):,} repeats to run, {_cost(left, size.workers)}")
        for name in left_out:
            say(f"{experiment.name}: without {name}, which is not here (dpregress datasets list)")
        _run(experiment, missing, held, size.workers)
    return _summary(experiment, asked, left_out, held, size)


def _basis(experiment: Experiment, settings: Sequence[Any]) -> dict[str, str]:
    """The software, and the checksum of the file of each table that settings read."""
    basis = {"software": f"dpregress {__version__}"}
    for name in sorted({experiment.table(setting) for setting in settings}):
        path = where_is(name) if name else None
        if path is not None:
            with path.open("rb") as file:
                basis[f"{name}.parquet"] = hashlib.file_digest(file, "sha256").hexdigest()
    return basis


def settings_here(experiment: Experiment, quick: bool) -> tuple[list[Any], tuple[str, ...]]:
    """The settings whose data are here, and the names of data sets that are not."""
    names = dict.fromkeys(experiment.table(setting) for setting in experiment.asked(quick))
    absent = tuple(name for name in names if name and not has_table(name))
    return [setting for setting in experiment.asked(quick) if experiment.table(setting) not in absent], absent


def predicted(experiment: Experiment, settings: Sequence[Any], seconds: dict[tuple[str, int], float]) -> float:
    """Seconds that repeats of settings will take: as measured, or by the weight of the setting."""
    texts = {repr(setting): experiment.weight(setting) for setting in (*experiment.quick, *experiment.settings)}
    known: dict[str, list[float]] = {}
    for (setting, _), each in seconds.items():
        if setting in texts:
            known.setdefault(setting, []).append(each)
    if not known:
        return math.nan
    weights = np.array([texts[setting] for setting in known])
    times = np.array([float(np.mean(each)) for each in known.values()])
    fixed = len(set(weights.tolist())) > 1  # seconds that every repeat takes
    start, slope = nnls(np.column_stack([np.full(len(weights), float(fixed)), weights]), times)[0]

    def one(setting: Any) -> float:
        own = known.get(repr(setting))
        return float(np.mean(own)) if own else start + slope * experiment.weight(setting)

    return float(sum(map(one, settings)))


def _cost(seconds: float, workers: int) -> str:
    wall = seconds / workers
    amount = f"{wall:.0f} s" if wall < 100 else f"{wall / 60:.0f} min" if wall < 6000 else f"{wall / 3600:.1f} h"
    return f"about {amount} on {workers} process{'es' if workers > 1 else ''}"


def _probed(experiment: Experiment, jobs: list[Job], held: RunFile) -> list[Job]:
    """Run the lightest repeat and, if it is not long, the heaviest, so that the others can be predicted."""
    light = min(jobs, key=lambda job: experiment.weight(job.setting))
    heavy = max(jobs, key=lambda job: experiment.weight(job.setting))
    measured = held.seconds
    if math.isnan(predicted(experiment, [heavy.setting], measured)):
        held.add(measure_repeat(experiment, light))
        jobs = [job for job in jobs if job is not light]
        if heavy is not light and predicted(experiment, [heavy.setting], held.seconds) < _LONGEST_PROBE:
            held.add(measure_repeat(experiment, heavy))
            jobs = [job for job in jobs if job is not heavy]
        held.write()
    return jobs


def _run(experiment: Experiment, jobs: Sequence[Job], held: RunFile, workers: int) -> None:
    written = time.monotonic()
    try:
        with _bar(experiment.name, len(jobs)) as advance:
            for rows in _measured(experiment, jobs, workers):
                held.add(rows)
                advance()
                if time.monotonic() - written > _EVERY:
                    held.write()
                    written = time.monotonic()
    finally:  # also of a run that is interrupted
        held.write()


def _measured(experiment: Experiment, jobs: Sequence[Job], workers: int) -> Iterator[list[Row]]:
    """Rows in the order in which repeats end; few are waiting at any time, so that an interruption is quick."""
    if workers == 1 or len(jobs) < 2:
        yield from (measure_repeat(experiment, job) for job in jobs)
        return
    left = iter(jobs)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(_by_name, experiment.name, job) for job in islice(left, 2 * workers)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                following = next(left, None)
                if following is not None:
                    running.add(pool.submit(_by_name, experiment.name, following))
                yield future.result()


def _by_name(name: str, job: Job) -> list[Row]:
    """In a worker process: an experiment holds functions that cannot be sent."""
    return measure_repeat(experiment_named(name), job)


def _summary(
    experiment: Experiment, asked: Sequence[Any], left_out: tuple[str, ...], held: RunFile, size: RunSize
) -> RunSummary:
    keys, repeats = {repr(setting) for setting in asked}, size.repeats_of(experiment)
    rows = [row for row in held.rows if row["setting"] in keys and row["repeat"] < repeats]
    scatter = {panel.name for panel in experiment.panels if panel.kind == "scatter"}
    seconds = {(row["setting"], row["repeat"]): row["seconds"] for row in rows}
    full = predicted(experiment, experiment.settings, seconds) * experiment.repeats
    return RunSummary(
        experiment.name, size.quick, size.seed, repeats, sum(seconds.values()), full, left_out,
        curves_of(row for row in rows if row["panel"] not in scatter),
        points_of(row for row in rows if row["panel"] in scatter), f"dpregress {__version__}",
    )  # fmt: skip


@contextmanager
def _bar(name: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar with the time left, on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("repeats,"),
        TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task(name, total=total)
        yield lambda: bar.advance(task)

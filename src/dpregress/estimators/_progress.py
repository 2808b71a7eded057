"""How far a pass over private rows has come, on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpregress.rows.engines import Progress

_PATIENCE = 2.0  # seconds before a progress bar appears


@contextmanager
def shown(progress: bool | Progress) -> Iterator[Progress | None]:
    """What an engine reports to: a bar for True, nothing for False, a callable as it is."""
    if progress is True:
        with progress_bar("reading private rows") as report:
            yield report
    else:
        yield progress or None


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """A callback that draws a bar once the passes have taken two seconds: rows a second, time left in this pass."""
    bar = _Bar(what)
    try:
        yield bar
    finally:
        bar.stop()


class _Bar:
    """The bar, which is not even made before it is needed."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._pass_started = time.monotonic()
        self._passes, self._before = 1, 0
        self._drawn: Any = None

    def __call__(self, done: int, rows: int) -> None:
        now = time.monotonic()
        if done < self._before:
            self._passes, self._pass_started = self._passes + 1, now
            if self._drawn is not None:
                self._drawn.reset(self._drawn.task_ids[0])
        self._before = done
        if now - self._started <= _PATIENCE:
            return
        if self._drawn is None:
            self._drawn = _drawn(self._what)
        self._drawn.update(
            self._drawn.task_ids[0],
            completed=done,
            total=rows,
            description=f"{self._what}, pass {self._passes}",
            speed=f"{done / max(now - self._pass_started, 1e-9):,.0f}",
        )

    def stop(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()


def _drawn(what: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows, {task.fields[speed]} a second,"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    bar.add_task(what, speed="")
    bar.start()
    return bar

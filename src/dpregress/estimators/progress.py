"""Progress of the passes over private rows, on a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpregress.errors import InvalidInput, one_line
from dpregress.rows.engines import Progress

_PATIENCE = 2.0  # seconds before a progress bar appears


def check_progress(progress: Any) -> None:
    """Refuse anything other than a boolean or a callable, before anything is charged."""
    if not isinstance(progress, bool) and not callable(progress):
        raise InvalidInput(f"progress= takes True, False or a callable, not {one_line(progress)}")


@contextmanager
def reported(progress: bool | Progress, passes: int) -> Iterator[Progress | None]:
    """The progress callback of an engine: a bar for True, nothing for False, or the given callable.

    Parameters
    ----------
    progress : bool or callable
    passes : int
        The largest number of passes: one for each release.
    """
    if progress is True:
        bar = _Bar("reading private rows", passes)
        try:
            yield bar
        finally:
            bar.stop()
    else:
        yield progress or None


class _Bar:
    """A bar that appears after two seconds: the pass, the rows of it, rows a second, the time left in this pass.

    On anything but a terminal nothing appears.
    """

    def __init__(self, what: str, passes: int) -> None:
        self._what = what
        self._most = passes
        self._started = time.monotonic()
        self._pass, self._done, self._rows, self._before = 1, 0, 0, 0
        self._drawn: Any = None
        self._lock = threading.RLock()
        self._timer = threading.Timer(max(_PATIENCE, 0.0), self._draw)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, done: int, rows: int) -> None:
        with self._lock:
            if self._done and done <= self._done:
                self._pass, self._before = self._pass + 1, self._before + self._rows
                if self._drawn is not None:
                    self._drawn.reset(self._drawn.task_ids[0])
            self._done, self._rows = done, rows
            if self._drawn is None and time.monotonic() - self._started > _PATIENCE:
                self._draw()
            self._update()

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            if self._drawn is not None:
                self._drawn.stop()
            self._drawn = None
            self._most = 0  # a timer that has begun comes too late

    def _draw(self) -> None:
        """Called by the timer too: so a fit that has not read a chunk yet shows that it is at work."""
        with self._lock:
            if self._drawn is None and self._most:
                self._drawn = _drawn()
                self._update()

    def _update(self) -> None:
        if self._drawn is not None:
            elapsed = max(time.monotonic() - self._started, 1e-3)
            self._drawn.update(
                self._drawn.task_ids[0],
                completed=self._done,
                total=self._rows or None,
                description=f"{self._what}, pass {self._pass} of at most {self._most}",
                speed=f"{(self._before + self._done) / elapsed:,.0f}",
            )


def _drawn() -> Any:
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
    bar.add_task("", speed="0", total=None)
    bar.start()
    return bar

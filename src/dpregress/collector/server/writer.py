"""One thread that writes: reports that arrive while it commits go into the next commit together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dpregress.collector.store import Arrival, Outcome, Store
from dpregress.errors import StoreError

#: The largest number of reports in a commit, and of those that wait for one.
_BATCH, _WAITING = 512, 20_000
#: Seconds until counts of refused reports are written, and until a failed store is opened again.
_IDLE, _PAUSE = 5.0, 1.0
#: After a commit of so many requests the writer waits so many seconds, so that the next one is not small.
_BUSY, _GATHER = 8, 0.004

Answer = asyncio.Future[list[Outcome]]


@dataclass
class Counters:
    """What the writer has done since it started, for metrics."""

    outcomes: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    commit_seconds: float = 0.0
    alarms: int = 0


class Writer:
    """Stores reports in groups, and answers after the commit.

    Parameters
    ----------
    opened : callable
        Opens the store; called in the writing thread, and again after a failure.
    hour : callable
        Hours since 1970.
    """

    def __init__(self, opened: Callable[[], Store], hour: Callable[[], int]) -> None:
        self._opened, self._hour = opened, hour
        self._waiting: deque[tuple[Sequence[Arrival], Answer]] = deque()
        self._reports = 0
        self._refused: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._ending = False
        self._failed = False
        self._thread = threading.Thread(target=self._work, name="collector-writer", daemon=True)
        self.counters = Counters()

    def start(self) -> None:
        """Start the thread, in the event loop that will wait for answers."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def put(self, arrivals: Sequence[Arrival]) -> list[Outcome]:
        """Store reports; returns after the commit.

        Raises
        ------
        StoreError
            If they could not be stored, or too many wait. Nothing was stored then, as far as is known.
        """
        answer: Answer = self._loop.create_future()
        with self._changed:
            if self._ending or self._reports >= _WAITING:
                raise StoreError("the collector is busy")
            self._waiting.append((arrivals, answer))
            self._reports += len(arrivals)
            self._changed.notify()
        return await answer

    def refuse(self, reason: str) -> None:
        """Count a report that was refused before it came here."""
        with self._changed:
            self._refused[reason] += 1
        self.counters.outcomes[reason] += 1

    @property
    def waiting(self) -> int:
        """Reports that wait for a commit."""
        return self._reports

    @property
    def ready(self) -> bool:
        """Whether reports can be stored, as far as is known."""
        return self._thread.is_alive() and not self._failed and not self._ending

    def close(self) -> None:
        """Commit what waits, and stop."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    # ------------------------------------------------------------ the thread

    def _work(self) -> None:
        store: Store | None = None
        while True:
            groups, refused, ended = self._taken()
            busy = len(groups) >= _BUSY
            try:
                if store is None:
                    store = self._opened()
                if groups or refused:
                    self._commit(store, groups, refused)
                self._failed = False
            except Exception as error:  # of the disk or the database: nothing was stored, and the client tries again
                self._failed = True
                with self._changed:
                    self._refused.update(refused)
                self._tell([(answer, error) for _, answer in groups])
                _closed(store)
                store = None
                time.sleep(0 if ended else _PAUSE)
            if ended:
                _closed(store)
                return
            if busy:
                time.sleep(_GATHER)

    def _taken(self) -> tuple[list[tuple[Sequence[Arrival], Answer]], Counter[str], bool]:
        """What the next commit holds, when there is something; True when nothing will follow."""
        with self._changed:
            if not self._waiting and not self._ending:
                self._changed.wait(_IDLE)
            groups: list[tuple[Sequence[Arrival], Answer]] = []
            size = 0
            while self._waiting and (not groups or size + len(self._waiting[0][0]) <= _BATCH):
                groups.append(self._waiting.popleft())
                size += len(groups[-1][0])
            self._reports -= size
            refused, self._refused = self._refused, Counter()
            return groups, refused, self._ending and not self._waiting

    def _commit(self, store: Store, groups: Sequence[tuple[Sequence[Arrival], Answer]], refused: Counter[str]) -> None:
        began = time.perf_counter()
        outcomes = store.add([each for arrivals, _ in groups for each in arrivals], self._hour(), refused)
        counters, answers, at = self.counters, [], 0
        for arrivals, answer in groups:
            answers.append((answer, outcomes[at : at + len(arrivals)]))
            at += len(arrivals)
        counters.commits += 1
        counters.commit_seconds += time.perf_counter() - began
        for outcome in outcomes:
            counters.outcomes[outcome.reason or ("stored" if outcome.status == 201 else "repeated")] += 1
            counters.alarms += outcome.alarming
        self._tell(answers)

    def _tell(self, answers: Sequence[tuple[Answer, list[Outcome] | Exception]]) -> None:
        if answers:
            self._loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: Sequence[tuple[Answer, list[Outcome] | Exception]]) -> None:
    for answer, found in answers:
        if answer.done():  # the client is gone; its report is stored
            continue
        if isinstance(found, Exception):
            answer.set_exception(StoreError("the reports could not be stored"))
        else:
            answer.set_result(found)


def _closed(store: Store | None) -> None:
    if store is not None:
        try:
            store.close()
        except Exception:  # a connection that has failed may refuse to be closed
            return

"""Sums over private rows on a Dask cluster.

The rows are divided into parts. Workers read a part each and add its chunks; sums of up to :data:`_FAN_IN` consecutive
parts are added on workers again, until one is left. The driver receives that one alone, and adds the noise.

Dask may run a task twice, and runs it again on another worker if one is lost. A task has no effect beside its result,
and Dask keeps one result a task. A sum says over which rows it is, and sums are joined only where one begins with the
row at which the other ends, so that the result is either over every row once or an error.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Self

from dpregress.coordinates.exact import ExactVector
from dpregress.errors import DPRegressError, InvalidInput, SourceError
from dpregress.rows.bounded import RawRows
from dpregress.rows.dask_cluster import LOCAL, arithmetic, connected, has_workers, software, working
from dpregress.rows.engines import Engine, IntegerSum, Progress, ThreadedEngine, Value
from dpregress.rows.readers.base import Reader
from dpregress.rows.readers.failures import raise_alone
from dpregress.rows.sources import Part, Source

#: Sums that are added in one task.
_FAN_IN = 8
#: Parts for each thread of the workers that wait or are summed at a time: more rows in memory are not in flight.
_AHEAD = 4
#: Seconds between looks at the cluster, and without any worker until a pass is given up.
_BEAT, _PATIENCE = 1.0, 60.0
_CHARGED = "a budget that was charged stays charged"
_LOST = f"the Dask cluster lost its scheduler or all of its workers: start it anew; {_CHARGED}"
_KILLED = f"a part of the rows ended its Dask workers again and again: give them more memory; {_CHARGED}"
_UNEVEN = f"the Dask cluster lost or repeated rows: start it anew; {_CHARGED}"


@dataclass(frozen=True)
class DaskEngine(Engine):
    """Computes sums on the workers of a Dask cluster (docs/scale.md).

    Workers need the same versions of Python and of this library, see the files by the same paths, and are all of one
    kind of processor: then a total does not depend on which of them reads a row.

    Parameters
    ----------
    cluster : str, distributed.Client or cluster of Dask
        The address of a scheduler, such as ``"tcp://10.0.0.5:8786"``; ``"local"`` for processes on this machine, which
        live as long as the fit; or a client or a cluster, which stays as it is.
    workers : int, optional
        Number of local processes. Default: the processors available to this one.
    progress : callable, optional
        Called with (rows done, rows in all).
    kind : str, optional
        What all workers have to say of their processors. Default: what those say that are there.

    Raises
    ------
    InvalidInput
        Before a fit charges: if no scheduler or worker answers, if workers differ, or do not see the files; for a
        source that cannot be divided, such as a query.
    SourceError
        After the charge: if the scheduler or all workers are lost.

    Examples
    --------
    >>> from dpregress.rows import DaskEngine
    >>> DaskEngine("tcp://10.0.0.5:8786").cluster
    'tcp://10.0.0.5:8786'
    """

    cluster: Any = LOCAL
    workers: int | None = None
    progress: Progress | None = None
    kind: str | None = None

    def reporting(self, progress: Progress) -> Self:
        return replace(self, progress=progress)

    @contextmanager
    def ready(self, source: Source, asks: Sequence[type] | None = None, pieces: int = 0) -> Iterator[Self]:  # noqa: ARG002
        parts = [part for reader in source.readers() for part in _ends(reader, self.chunk_rows(1))]
        with connected(self.cluster, self.workers) as client:
            yield replace(self, cluster=client, kind=_check_workers(client, parts))

    def total(self, source: Source, value: Value, *, columns: int) -> ExactVector:
        rows = self.chunk_rows(columns)
        with connected(self.cluster, self.workers) as client:
            kind = self.kind or _check_workers(client, ())
            return _Pass(client, _Work(value, rows, kind), self.progress, source.n).total(source.parts(rows)).result()


def _ends(reader: Reader, rows: int) -> list[Reader]:
    """The first part of a reader, which stands for all others; nothing is read but the names of files."""
    first = next(iter(reader.parts(rows)), None)
    return [] if first is None else [first]


def _check_workers(client: Any, parts: Sequence[Reader]) -> str:
    """The kind of all workers; refuse those that would compute something else, or nothing."""
    with working("the Dask workers do not answer, or lack dpregress: start them with the environment of this process"):
        found = client.run(_looked_around, parts)
    for said in found.values():
        if said.software != software():
            raise InvalidInput(
                f"a Dask worker has {said.software}, this process has {software()}: install the same versions on both"
            )
    if len({said.arithmetic for said in found.values()}) > 1:
        raise InvalidInput(
            "the Dask workers have different processors or libraries, which may round differently: use one kind"
        )
    missing = next((said.missing for said in found.values() if said.missing), None)
    if missing is not None:
        raise InvalidInput(
            f"a Dask worker does not find {missing} as this process does: give a path that is the same on all machines"
        )
    return str(next(iter(found.values())).arithmetic)


class _Seen(NamedTuple):
    """What a worker says of itself; nothing of it is private."""

    software: str
    arithmetic: str
    missing: str | None


def _looked_around(parts: Sequence[Reader]) -> _Seen:
    missing = None
    for part in parts:
        try:
            part.check_reached()
        except DPRegressError:
            missing = part.name
    return _Seen(software(), arithmetic(), missing)


# ---------------------------------------------------------------- tasks


@dataclass(frozen=True)
class _Work:
    """What a worker does with a part."""

    value: Value
    rows: int
    arithmetic: str


@dataclass(frozen=True)
class _Failed:
    """Why a part has no sum, in words that hold no cell. An error would take its task into the log of the worker."""

    said: str


@dataclass(frozen=True, repr=False)
class _Summed:
    """The sum over the rows from ``first_row`` on and before ``end``."""

    first_row: int
    end: int
    total: IntegerSum


@dataclass(frozen=True)
class _Moved:
    """A value of chunks of a part, whose rows are counted from the first of the whole."""

    value: Value
    first_row: int

    def __call__(self, chunk: RawRows) -> ExactVector:
        return self.value(replace(chunk, first_row=chunk.first_row + self.first_row))


def _sum_part(part: Part, work: _Work) -> _Summed | _Failed:
    if arithmetic() != work.arithmetic:
        return _Failed(f"a Dask worker of another kind joined during the fit: use workers of one kind; {_CHARGED}")
    try:
        value = _Moved(work.value, part.first_row)
        total = ThreadedEngine(workers=1).summed(part.rows, value, work.rows)
        return _Summed(part.first_row, part.first_row + part.rows.n, total)
    except DPRegressError as error:
        return _Failed(str(error))
    except Exception:  # its message may hold a cell
        return _Failed(f"a Dask worker failed on its rows: it may lack memory or a package; {_CHARGED}")


def _merge(parts: Sequence[_Summed | _Failed]) -> _Summed | _Failed:
    total, first_row, end = IntegerSum(), None, None
    for part in parts:
        if isinstance(part, _Failed):
            return part
        if end is not None and part.first_row != end:
            return _Failed(_UNEVEN)
        total.merge(part.total)
        first_row, end = part.first_row if first_row is None else first_row, part.end
    assert first_row is not None
    assert end is not None
    return _Summed(first_row, end, total)


def _given(work: _Work) -> _Work:
    """As a task, so that the cluster holds it once, and makes it again if it is lost."""
    return work


# ---------------------------------------------------------------- the pass


class _Pass:
    """One pass, as tasks that wait for no more parts than the workers have use for.

    Their names are random: Dask would name a task by a digest of its arguments, and these are rows.
    """

    def __init__(self, client: Any, work: _Work, progress: Progress | None, n: int) -> None:
        self._client, self._progress, self._n = client, progress, n
        self._name, self._tasks, self._rows = f"dpregress-{uuid.uuid4().hex}", 0, 0
        self._work = self._submit(_given, work)
        self._levels: list[list[Any]] = [[]]
        self._sums: dict[Any, int] = {}
        self._finished: SimpleQueue[Any] = SimpleQueue()

    def total(self, parts: Iterator[Part]) -> IntegerSum:
        """The sum over all parts.

        Raises
        ------
        SourceError
        """
        try:
            return self._checked(self._reduced(parts))
        finally:  # also after an error, so that the cluster stops working on what nobody will ask for
            for future in (*self._sums, *(future for level in self._levels for future in level), self._work):
                future.release()

    def _reduced(self, parts: Iterator[Part]) -> _Summed | _Failed:
        with working(_LOST, SourceError):
            most = _AHEAD * max(sum(self._client.nthreads().values()), 1)
        for part in parts:
            future = self._submit(_sum_part, part, self._work)
            self._watch(future, part.rows.n)
            self._add(future, 0)
            while len(self._sums) >= most:
                self._wait()
        rest = [future for level in reversed(self._levels) for future in level]
        while len(rest) > 1:
            rest = [self._submit(_merge, rest[i : i + _FAN_IN]) for i in range(0, len(rest), _FAN_IN)]
        (last,) = rest
        if last not in self._sums:
            self._watch(last, 0)
        while self._sums:
            self._wait()
        with working(_LOST, SourceError):
            found: _Summed | _Failed = last.result(timeout=_PATIENCE)
        return found

    def _submit(self, task: Any, *arguments: Any) -> Any:
        import dask

        self._tasks += 1
        quiet = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})
        with working(_LOST, SourceError), quiet:
            return self._client.submit(task, *arguments, key=f"{self._name}-{self._tasks}", pure=False)

    def _add(self, future: Any, level: int) -> None:
        """Take a sum over the next rows, and submit those that are complete."""
        if level == len(self._levels):
            self._levels.append([])
        held = self._levels[level]
        held.append(future)
        if len(held) == _FAN_IN:
            self._levels[level] = []
            self._add(self._submit(_merge, held), level + 1)

    def _watch(self, future: Any, rows: int) -> None:
        self._sums[future] = rows
        future.add_done_callback(self._finished.put)

    def _wait(self) -> None:
        """Wait until a task has ended, or the cluster has."""
        alive = time.monotonic()
        while True:
            try:
                future = self._finished.get(timeout=_BEAT)
            except Empty:
                alive = time.monotonic() if has_workers(self._client) else alive
                if time.monotonic() - alive > _PATIENCE:
                    raise_alone(SourceError(_LOST))
                continue
            if future.status != "finished":
                raise_alone(SourceError(_KILLED if future.status == "error" else _LOST))
            rows = self._sums.pop(future)
            self._rows += rows
            if rows and self._progress is not None:
                self._progress(self._rows, self._n)
            return

    def _checked(self, found: _Summed | _Failed) -> IntegerSum:
        if isinstance(found, _Failed):
            raise_alone(SourceError(found.said))
        if (found.first_row, found.end) != (0, self._n):
            raise_alone(SourceError(_UNEVEN))
        return found.total

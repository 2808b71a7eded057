"""Throughput of the collector: reports a second and latencies, beside a handler that does nothing.

``python -m benchmarks.collector`` starts a real collector and, on the same server software, a handler that reads the
body and answers; a load generator on the same cores sends to each in turn, over loopback. Reports are those of a study
of 20 columns by bounds alone (1.1 kB each), every one with its own invitation. ``--store postgresql://..`` takes an
empty database.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.collector.support import free_port

from dpregress.collector import Report, Study
from dpregress.collector.drafting import study_from_toml
from dpregress.collector.readout import read_out
from dpregress.collector.server.app import Collector, Settings
from dpregress.collector.server.serving import Address, http_server
from dpregress.collector.store import open_store

_COLUMNS = 20
_BATCH = 100


def description() -> str:
    """A study of 20 numbers."""
    head = """title = "Benchmark"
epsilon = 4.0
delta = 1e-6
users = 100000000
opens = 2020-01-01T00:00:00Z
closes = 2090-01-01T00:00:00Z
minimum = 1
family = "gaussian"
consent = "None."
response = "y"
"""
    names = [*(f"x{place}" for place in range(_COLUMNS)), "y"]
    return head + "".join(f"[questions.{name}]\nlower = -1\nupper = 1\n" for name in names)


def made_reports(study: Study, n: int, tokens: Sequence[bytes]) -> list[bytes]:
    """Reports of users whose row is 0, with noise from a seed."""
    rng = np.random.default_rng(0)
    scale = study.limits[1] / np.sqrt(study.query.size) / 2
    answers = rng.normal(0, scale, size=(n, study.query.size)).astype(np.int32)
    rows = zip(answers, tokens, strict=True)
    return [Report(study.digest, rng.bytes(16), token, row).encode() for row, token in rows]


# ------------------------------------------------------------------ servers, each in a process


async def _nothing(request: Request) -> Response:
    await request.body()
    return Response(b"{}", 201)


def _run(server: uvicorn.Server, ended: Event) -> None:
    async def watched() -> None:
        task = asyncio.create_task(server.serve())
        while not ended.is_set() and not task.done():
            await asyncio.sleep(0.1)
        server.should_exit = True
        await task

    asyncio.run(watched())


def run_collector(location: str, port: int, ended: Event) -> None:
    """A collector without limits by address."""
    with open_store(location) as store:
        study = store.study
    settings = Settings(bytes(32), rate=1e9, burst=1e9)
    _run(http_server(Collector(study, lambda: open_store(location), settings), Address(port=port)), ended)


def run_nothing(_: str, port: int, ended: Event) -> None:
    """A handler that reads the body and answers."""
    app = Starlette(routes=[Route("/api/reports", _nothing, methods=["POST"])])
    _run(uvicorn.Server(uvicorn.Config(app, port=port, access_log=False, log_level="warning", ws="none")), ended)


@contextmanager
def started(run: Callable[[str, int, Event], None], location: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own; its port and process id."""
    context = multiprocessing.get_context("spawn")
    port, ended = free_port(), context.Event()
    process = context.Process(target=run, args=(location, port, ended))
    process.start()
    try:
        asyncio.run(_reachable(port))
        assert process.pid is not None
        yield port, process.pid
    finally:
        ended.set()
        process.join(30)


async def _reachable(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise RuntimeError("the server did not start")


# ------------------------------------------------------------------ load


class Sender(asyncio.Protocol):
    """One connection that sends the next request when the last one was answered."""

    def __init__(self, requests: Iterator[bytes], times: list[float], done: asyncio.Future[None]) -> None:
        self.requests, self.times, self.done = requests, times, done
        self.held, self.began = b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.next()

    def next(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.transport.close()
            self.done.set_result(None)
            return
        self.began = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.held += data
        head, mark, body = self.held.partition(b"\r\n\r\n")
        if not mark:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        if head[9:12] not in (b"200", b"201"):
            raise RuntimeError(f"refused: {self.held!r}")
        self.times.append(time.perf_counter() - self.began)
        self.held = b""
        self.next()


def processor_seconds(process: int) -> float:
    """What a process has used of the processors, which does not depend on what else runs."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(
    server: tuple[int, int], path: str, bodies: Sequence[bytes], connections: int
) -> tuple[float, list[float], float]:
    """Send each body once over some connections; seconds in all, of each request, and of the server's processors."""
    port, process = server
    used = processor_seconds(process)
    head = "POST {} HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n"
    requests = iter([head.format(path, len(body)).encode() + body for body in bodies])
    loop, times, dones = asyncio.get_running_loop(), [], []
    began = time.perf_counter()
    for _ in range(connections):
        done = loop.create_future()
        dones.append(done)
        await loop.create_connection(lambda done=done: Sender(requests, times, done), "127.0.0.1", port)
    await asyncio.gather(*dones)
    return time.perf_counter() - began, times, processor_seconds(process) - used


def line(name: str, reports: int, seconds: float, times: Sequence[float], used: float) -> str:
    """A row of the table."""
    middle, tail = np.quantile(times, [0.5, 0.99]) * 1000
    return f"| {name} | {reports / seconds:,.0f} | {middle:.1f} | {tail:.1f} | {1000 * used / reports:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=15_000, help="single reports; twice as many in batches")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--store", help="an empty database [default: a SQLite file]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "study.toml").write_text(description(), encoding="utf-8")
        study = study_from_toml(Path(folder) / "study.toml")
        location, n = given.store or str(Path(folder) / "store.db"), 3 * given.reports
        tokens = [hashlib.sha256(b"%d" % place).digest() for place in range(n)]
        with open_store(location, study) as store:
            store.issue([hashlib.sha256(token).digest() for token in tokens])
        bodies = made_reports(study, n, tokens)
        single, rest = bodies[: given.reports], bodies[given.reports :]
        batches = [b"".join(rest[start : start + _BATCH]) for start in range(0, len(rest), _BATCH)]
        print(f"{len(bodies[0]):,} bytes a report, {given.connections} connections\n")
        print("| | reports/s | median ms | p99 ms | CPU ms a report |\n|---|---|---|---|---|")
        with started(run_nothing, location) as server:
            idle = asyncio.run(load(server, "/api/reports", single, given.connections))
            print(line("a handler that does nothing", len(single), *idle))
        with started(run_collector, location) as server:
            kept = asyncio.run(load(server, "/api/reports", single, given.connections))
            print(line("collector", len(single), *kept))
            many = asyncio.run(load(server, "/api/reports/batch", batches, 8))
            print(line(f"collector, {_BATCH} a request", len(rest), *many))
        print(f"\nratio to the handler that does nothing: {idle[0] / kept[0]:.2f}")
        with open_store(location) as store:
            began = time.perf_counter()
            totals = store.totals()
            summed = time.perf_counter()
            read_out(store)
            fitted = time.perf_counter()
            n = store.verify()
            checked = time.perf_counter()
        print(
            f"{totals.n:,} reports: sums read in {1000 * (summed - began):.1f} ms, "
            f"fit in {1000 * (fitted - summed):.0f} ms, all {n:,} verified in {checked - fitted:.1f} s"
        )


if __name__ == "__main__":
    main()

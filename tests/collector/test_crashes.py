"""kill -9 under a randomised client: nothing acknowledged is lost, nothing is counted twice.

Every report is unique and the client keeps its own copy, so the running sums equal the sum of the stored reports, each
once, or something was counted twice. Clients send new reports, repeat old ones, acknowledged or not, alone and in
batches, and never know whether a report arrived whose answer did not come.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from dpregress.collector import Report, Study
from dpregress.collector.store import open_store
from tests.collector.support import PostgreSQL, free_port, make_study, reports

NewStore = Callable[[], str]
_CLIENTS = 4


class Crashing:
    """A collector in a process of its own, which can be killed and started."""

    def __init__(self, location: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "tests.collector.crash_server", location, str(self.port)]
        self.parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self) -> int:
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write("start\n")
        self.parent.stdin.flush()
        child = int(self.parent.stdout.readline())
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                connection.request("GET", "/ready")
                if connection.getresponse().status == 200:
                    return child
            except OSError:
                pass
            finally:
                connection.close()
            time.sleep(0.02)
        raise AssertionError("the collector did not start")

    def end(self, child: int, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.parent.stdout is not None
        os.kill(child, how)
        assert self.parent.stdout.readline() == "ended\n"

    def close(self) -> None:
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.close()
        self.parent.wait(30)
        self.parent.stdout.close()


class Client:
    """Sends its reports in a random order, with repeats, until each is acknowledged."""

    def __init__(self, port: int, own: list[bytes], rng: np.random.Generator) -> None:
        self.port, self.own, self.rng = port, own, rng
        self.acknowledged: set[int] = set()
        self.refused: list[tuple[int, str]] = []
        self.stopping = False
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self) -> None:
        sent = 0
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        while not self.stopping or len(self.acknowledged) < sent:
            count = 1 if self.rng.random() < 0.6 else int(self.rng.integers(2, 20))
            fresh = list(range(sent, min(sent + count, len(self.own)))) if not self.stopping else []
            missing = [place for place in range(sent) if place not in self.acknowledged][:count]
            chosen = fresh if fresh and self.rng.random() < 0.7 else missing or fresh
            if sent and self.rng.random() < 0.2:
                chosen = [*chosen, int(self.rng.integers(sent))]
            if not chosen and self.stopping:
                break
            if not chosen:  # everything is acknowledged: repeat something
                chosen = [int(self.rng.integers(sent))]
            sent = max(sent, *(place + 1 for place in chosen))
            try:
                self.send(connection, chosen)
            except (OSError, http.client.HTTPException):  # whether it arrived, nobody knows
                connection.close()
                time.sleep(0.005)
        self.sent = sent
        connection.close()

    def send(self, connection: http.client.HTTPConnection, chosen: list[int]) -> None:
        batch = len(chosen) > 1
        path = "/api/reports/batch" if batch else "/api/reports"
        body = b"".join(self.own[place] for place in chosen)
        connection.request("POST", path, body, {"content-type": "application/octet-stream"})
        response = connection.getresponse()
        content = json.loads(response.read())
        if response.status == 503:
            time.sleep(0.01)
            return
        results = content["results"] if batch and response.status == 200 else [{**content, "status": response.status}]
        for place, result in zip(chosen, results, strict=True):
            if result["status"] in (200, 201):
                self.acknowledged.add(place)
            else:
                self.refused.append((result["status"], str(result)))


@contextmanager
def crashing(location: str) -> Iterator[Crashing]:
    made = Crashing(location)
    try:
        yield made
    finally:
        made.close()


def prepared(location: str, folder: Path, seed: int, n: int) -> tuple[Study, list[Report]]:
    study = make_study(folder, seed, enrolment="token")
    tokens = [hashlib.sha256(b"token %d" % place).digest() for place in range(n)]
    found = reports(study, seed, n, tokens)
    with open_store(location, study) as store:
        store.issue([hashlib.sha256(token).digest() for token in tokens])
    return study, found


def check_after_crashes(location: str, found: list[Report], clients: list[Client], acknowledged: int) -> None:
    """All that was acknowledged is stored; the sums hold every stored report exactly once."""
    for client in clients:
        assert client.refused == []
        assert len(client.acknowledged) >= client.sent
    with open_store(location) as store:
        n = store.verify()
        ids = {bytes(row[0]) for row in store.database.rows("SELECT id FROM reports")}
        totals = store.totals()
    kept = [report for report in found if report.id in ids]
    assert n == len(ids) == len(kept) == acknowledged
    expected = np.sum([report.answer.astype(np.int64) for report in kept], axis=0)
    np.testing.assert_array_equal(totals.total, expected)


def check_acknowledged(location: str, clients: list[Client]) -> None:
    """Right after a crash, before a repeated report could mend it: what was acknowledged is stored."""
    known = {client.own[place][36:52] for client in clients for place in client.acknowledged.copy()}
    with open_store(location) as store:
        assert known <= {bytes(row[0]) for row in store.database.rows("SELECT id FROM reports")}


def finish(clients: list[Client], acknowledged: int = 0) -> None:
    """Let clients send until so much is acknowledged, and then until they know of all that they sent."""
    limit = time.monotonic() + 180
    while sum(len(client.acknowledged) for client in clients) < acknowledged:
        assert time.monotonic() < limit
        time.sleep(0.05)
    for client in clients:
        client.stopping = True
    for client in clients:
        client.thread.join(120)
        assert not client.thread.is_alive()


def crash(location: str, folder: Path, seed: int, kills: int, n: int) -> None:
    _, found = prepared(location, folder, seed, n)
    rng = np.random.default_rng([seed, kills])
    with crashing(location) as server:
        child = server.start()
        parts = [found[start::_CLIENTS] for start in range(_CLIENTS)]
        clients = [
            Client(server.port, [report.encode() for report in part], np.random.default_rng([seed, place]))
            for place, part in enumerate(parts)
        ]
        for _ in range(kills):
            time.sleep(float(rng.exponential(0.15)))
            server.end(child)
            time.sleep(0.01)  # answers that are on their way arrive
            check_acknowledged(location, clients)
            child = server.start()
        finish(clients)
        server.end(child)
    check_after_crashes(location, found, clients, sum(len(client.acknowledged) for client in clients))


@pytest.mark.slow
def test_killed(new_store: NewStore, tmp_path: Path, seed: int) -> None:
    """30 kills on each store."""
    crash(new_store(), tmp_path, seed, kills=30, n=3_000)


@pytest.mark.nightly
def test_killed_a_thousand_times(new_store: NewStore, tmp_path: Path, seed: int) -> None:
    """1,000 kills on each store."""
    crash(new_store(), tmp_path, seed, kills=1_000, n=60_000)


@pytest.mark.slow
def test_stopped_gently(new_store: NewStore, tmp_path: Path, seed: int) -> None:
    """SIGTERM drains: whoever waits for an answer gets it."""
    location = new_store()
    _, found = prepared(location, tmp_path, seed, 400)
    with crashing(location) as server:
        child = server.start()
        bodies = [report.encode() for report in found]
        clients = [Client(server.port, bodies[start::2], np.random.default_rng([seed, start])) for start in range(2)]
        time.sleep(0.3)
        server.end(child, signal.SIGTERM)
        child = server.start()
        finish(clients, 400)
        server.end(child, signal.SIGTERM)
    check_after_crashes(location, found, clients, 400)


@pytest.mark.slow
def test_the_database_crashes(postgresql: PostgreSQL, tmp_path: Path, seed: int) -> None:
    """PostgreSQL stopped without notice and started again, five times, below a collector that stays."""
    location = postgresql.new_database()
    _, found = prepared(location, tmp_path, seed, 1_500)
    with crashing(location) as server:
        child = server.start()
        bodies = [report.encode() for report in found]
        clients = [Client(server.port, bodies[start::2], np.random.default_rng([seed, start])) for start in range(2)]
        for _ in range(5):
            time.sleep(0.2)
            postgresql.stop("immediate")
            postgresql.start()
        finish(clients, len(found))
        server.end(child)
    check_after_crashes(location, found, clients, len(found))

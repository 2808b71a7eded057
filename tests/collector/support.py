"""What the collector's tests share: a study, its reports, a PostgreSQL server, and a running service."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from dpregress.collector import Report, Study
from dpregress.collector.drafting import study_from_toml
from dpregress.collector.rehearsal import serving
from dpregress.collector.server.app import Collector, Settings
from dpregress.collector.store import Arrival, open_store
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import SeededSampler
from dpregress.mechanisms.randomness import random_bytes
from tests.support import missing

ADMIN_KEY = bytes(range(32))
DESCRIPTION = """
title = "Sleep and coffee"
epsilon = {epsilon}
delta = 1e-6
users = 20000
opens = 2026-01-01T00:00:00Z
closes = 2036-01-01T00:00:00Z
minimum = {minimum}
family = "binomial"
enrolment = "{enrolment}"
response = "tired"
consent = {{ en = "We ask you four questions.", de = "Wir stellen Ihnen vier Fragen." }}

[questions.age]
lower = 18
upper = 90
unit = "years"
text = {{ en = "How old are you?", de = "Wie alt sind Sie?" }}

[questions.coffee]
lower = 0
upper = 10
unit = "cups"
text = {{ en = "How many cups of coffee do you drink a day?", de = "Wie viele Tassen Kaffee trinken Sie am Tag?" }}

[questions.smoker]
levels = ["no", "yes"]
text = {{ en = "Do you smoke?", de = "Rauchen Sie?" }}
labels = {{ en = ["No", "Yes"], de = ["Nein", "Ja"] }}

[questions.tired]
levels = ["no", "yes"]
text = {{ en = "Were you tired this week?", de = "Waren Sie diese Woche müde?" }}
labels = {{ en = ["No", "Yes"], de = ["Nein", "Ja"] }}
"""
#: The coefficients of age, coffee and smoking in :func:`people`.
TRUTH = np.array([0.03, -0.3, 0.8])


def people(seed: int, n: int) -> tuple[Matrix, Vector]:
    """Rows of age, coffee and smoking, and whether each is tired, by a logistic model with the slopes ``TRUTH``."""
    rng = np.random.default_rng([seed, n, 21])
    x = np.column_stack([rng.uniform(18, 90, n), rng.uniform(0, 8, n), rng.random(n) < 0.5]).astype(float)
    return x, (rng.random(n) < 1 / (1 + np.exp(-(x - [54, 4, 0.5]) @ TRUTH))).astype(float)


def pilot(folder: Path, seed: int, n: int = 400) -> Path:
    """A file of public rows."""
    x, _ = people(seed, n)
    path = folder / "pilot.csv"
    pacsv.write_csv(pa.table({"age": x[:, 0], "coffee": x[:, 1], "smoker": np.where(x[:, 2] > 0, "yes", "no")}), path)
    return path


def make_study(
    folder: Path, seed: int, *, enrolment: str = "open", minimum: int = 5, epsilon: float = 4.0, n: int = 400
) -> Study:
    """A study whose public rows and description stand in the folder."""
    description = folder / "study.toml"
    description.write_text(DESCRIPTION.format(enrolment=enrolment, minimum=minimum, epsilon=epsilon), encoding="utf-8")
    return study_from_toml(description, pilot(folder, seed, n))


def reports(study: Study, seed: int, n: int, tokens: list[bytes] | None = None) -> list[Report]:
    """Reports of invented people, with seeded noise."""
    source, (x, y) = SeededSampler(np.random.default_rng([seed, 5])), people(seed, n)
    return [
        Report(
            study.digest,
            random_bytes(16),
            bytes(32) if tokens is None else tokens[place],
            study.answer(x[place], float(y[place]), source),
        )
        for place in range(n)
    ]


def arrival(report: Report, token: bytes | None = None) -> Arrival:
    """A report as it is stored."""
    return Arrival(report.id, token, report.answer.astype("<i4").tobytes())


# ------------------------------------------------------------------ PostgreSQL


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        found = str(folders[-1] / name) if folders else None
    if found is None or not Path(found).exists():
        missing(f"{name} of PostgreSQL")
    assert found is not None
    return found


class PostgreSQL:
    """A server of its own on a socket in a temporary folder; killed and started again at will."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dpregress-pg-"))
        self.data, self.number = self.folder / "data", 0
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self.folder, "postgres")
        self._run(_program("initdb"), "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N")
        self.start()

    def _run(self, *command: object) -> None:
        ours = [] if os.geteuid() != 0 else ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        subprocess.run([*ours, *map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self) -> None:
        options = f"-c fsync=off -c listen_addresses='' -c unix_socket_directories={self.folder}"
        self._run(_program("pg_ctl"), "-D", self.data, "-l", self.folder / "log", "-w", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run(_program("pg_ctl"), "-D", self.data, "-m", mode, "-w", "stop")

    def new_database(self) -> str:
        """The URL of an empty database."""
        import psycopg

        self.number += 1
        name = f"study{self.number}"
        with psycopg.connect(f"postgresql:///postgres?host={self.folder}&user=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql:///{name}?host={self.folder}&user=postgres"

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


# ------------------------------------------------------------------ a running service


@contextmanager
def running(study: Study, location: str | Path, **settings: Any) -> Iterator[int]:
    """A collector on a port of this machine, in a thread."""
    open_store(location, study, settings.get("holder")).close()
    settings = {"rate": 1e9, "burst": 1e9, **settings}
    collector = Collector(study, lambda: open_store(location), Settings(ADMIN_KEY, **settings))
    with serving(collector) as address:
        yield int(address.rpartition(":")[2])


def send(
    port: int, body: bytes, path: str = "/api/reports", method: str = "POST", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        told = {"content-type": "application/octet-stream", **headers}
        connection.request(method, path, body, told)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def get(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """A GET request."""
    return send(port, b"", path, "GET", **headers)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

"""A whole study on this machine: a real collector, real devices, invented answers."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dpregress.collector.readout import Readout, read_out
from dpregress.collector.server.app import Collector, Settings
from dpregress.collector.server.serving import Address, http_server
from dpregress.collector.simulation import InventedPeople, send_people
from dpregress.collector.store import open_store
from dpregress.collector.study import Study
from dpregress.collector.wire import TOKEN_BYTES
from dpregress.coordinates import Vector
from dpregress.errors import OutputError
from dpregress.mechanisms.randomness import random_bytes

#: Seconds in which a collector starts.
_START = 30.0


@contextmanager
def serving(collector: Collector) -> Iterator[str]:
    """A collector on a free port of this machine, in a thread; its address."""
    server = http_server(collector, Address(port=0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    limit = time.monotonic() + _START
    try:
        while not server.started:
            if not thread.is_alive() or time.monotonic() > limit:
                raise OutputError("the collector did not start on this machine")
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def rehearse(
    study: Study, users: int, store_file: Path, public: Any = None, seed: int | None = None
) -> tuple[Readout, Vector]:
    """Send reports of invented users over HTTP and fit them; the fit, and the true slopes.

    Parameters
    ----------
    study : Study
        With terms; it is rehearsed as if it were open and had no minimum count.
    users : int
    store_file : Path
        A new SQLite file.
    public : table, file or PublicMoments, optional
    seed : int, optional
        Of the answers. The noise is the operating system's.
    """
    assert study.terms is not None
    now = datetime.now(UTC).replace(microsecond=0)
    terms = replace(study.terms, opens=now - timedelta(hours=1), closes=now + timedelta(days=1), minimum=1)
    rehearsed = replace(study, terms=terms)
    tokens = None
    with open_store(store_file, rehearsed) as store:
        if terms.enrolment == "token":
            tokens = [random_bytes(TOKEN_BYTES) for _ in range(users)]
            store.issue([hashlib.sha256(token).digest() for token in tokens])
        settings = Settings(random_bytes(32), rate=1e9, burst=1e9)
        people = InventedPeople(terms, seed)
        with serving(Collector(rehearsed, lambda: open_store(store_file), settings)) as address:
            send_people(rehearsed, people, users, address, tokens)
        store.verify()
        return read_out(store, public=public), people.slopes

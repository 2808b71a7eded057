"""A whole study on this machine: a real collector, real devices, invented answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from dpregress.collector.drafting import study_model
from dpregress.collector.invitations import new_tokens, token_hashes
from dpregress.collector.readout import Readout, read_out
from dpregress.collector.server.app import Collector, Settings
from dpregress.collector.server.serving import Address, http_server
from dpregress.collector.shares.joining import read_joined
from dpregress.collector.shares.lists import close_list, load_list
from dpregress.collector.shares.noisy_sums import ShareSum, load_share_sum, release_share_sum
from dpregress.collector.simulation import InventedPeople, send_people, send_shares
from dpregress.collector.store import Store, open_store
from dpregress.collector.study import Study
from dpregress.coordinates import Vector
from dpregress.errors import OutputError
from dpregress.mechanisms.randomness import random_bytes
from dpregress.parties.documents import public_half

#: Seconds in which a collector starts.
_START = 30.0


@contextmanager
def serving(collector: Collector, port: int = 0) -> Iterator[str]:
    """A collector on this machine, in a thread; its address. The port 0 stands for a free one."""
    server = http_server(collector, Address(port=port))
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
        The public rows, which the invented users resemble.
    seed : int, optional
        Of the answers. The noise is the operating system's.
    """
    rehearsed, people, tokens = _rehearsed(study, users, public, seed)
    with open_store(store_file, rehearsed) as store:
        if tokens is not None:
            store.issue(token_hashes(tokens, None))
        settings = Settings(random_bytes(32), rate=1e9, burst=1e9)
        with serving(Collector(rehearsed, lambda: open_store(store_file), settings)) as address:
            send_people(rehearsed, people, users, address, tokens)
        store.verify()
        return read_out(store, public=public), people.slopes


def rehearse_two(
    study: Study, users: int, folder: Path, public: Any = None, seed: int | None = None
) -> tuple[Readout, Vector]:
    """The same with two collectors: shares to both over HTTP, lists, noisy sums, and the fit to these.

    Parameters
    ----------
    study : Study
        With two collectors, in whose place others with keys of their own are rehearsed.
    users : int
    folder : Path
        An empty folder, for two SQLite files and what collectors hand to each other.
    public : table, file or PublicMoments, optional
    seed : int, optional
        Of the answers. The noise is the operating system's.
    """
    keys = [random_bytes(32) for _ in study.holders]
    holders = tuple(replace(each, key=public_half(key)) for each, key in zip(study.holders, keys, strict=True))
    rehearsed, people, tokens = _rehearsed(replace(study, holders=holders), users, public, seed)
    files = [folder / f"{each.name}.db" for each in holders]
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(file, rehearsed, place)) for place, file in enumerate(files)]
        with ExitStack() as served:
            addresses = []
            for place, (store, file) in enumerate(zip(stores, files, strict=True)):
                if tokens is not None:
                    store.issue(token_hashes(tokens, place))
                settings = Settings(random_bytes(32), rate=1e9, burst=1e9, holder=place)
                collector = Collector(rehearsed, partial(open_store, file), settings)
                addresses.append(served.enter_context(serving(collector)))
            send_shares(rehearsed, people, users, addresses, tokens)
        for store in stores:
            store.verify()
        sums = _released(rehearsed, stores, keys, folder)
    return read_joined(rehearsed, sums, public=public), people.slopes


def _rehearsed(
    study: Study, users: int, public: Any, seed: int | None
) -> tuple[Study, InventedPeople, list[bytes] | None]:
    """The study as if it were open and had no minimum, with invented people and their tokens."""
    assert study.terms is not None
    known = None if public is None else study_model(study.terms, public).public
    now = datetime.now(UTC).replace(microsecond=0)
    terms = replace(study.terms, opens=now - timedelta(hours=1), closes=now + timedelta(days=1), minimum=1)
    tokens = new_tokens(users) if terms.enrolment == "token" else None
    return replace(study, terms=terms), InventedPeople(terms, seed, None if known is None else known.rows), tokens


def _released(study: Study, stores: list[Store], keys: list[bytes], folder: Path) -> list[ShareSum]:
    """The noisy sums of both collectors, who exchange signed lists as files."""
    lists, sums = [], []
    for place, (store, key) in enumerate(zip(stores, keys, strict=True)):
        path = folder / f"{place}.list"
        path.write_text(close_list(store, key), encoding="utf-8")
        lists.append(load_list(path, study))
    for place, (store, key) in enumerate(zip(stores, keys, strict=True)):
        path = folder / f"{place}.sum"
        path.write_text(release_share_sum(store, key, lists[1 - place]), encoding="utf-8")
        sums.append(load_share_sum(path, study))
    return sums

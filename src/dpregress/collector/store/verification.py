"""Whether a store holds what its audit log says was stored: every report, sum, token and note."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dpregress.collector.store import audit
from dpregress.collector.store.database import Database
from dpregress.collector.store.release import note_faults
from dpregress.collector.store.totals import Arrival, Buckets, Totals, arrival_pages, digest_of, kept_totals
from dpregress.collector.study import Study
from dpregress.errors import StoreError

_MEND = "restore a backup"
#: What cells of another type than was stored lead to.
_MALFORMED = (TypeError, ValueError, KeyError, AttributeError)


def store_faults(database: Database, study: Study, buckets: Buckets) -> tuple[int, list[str]]:
    """The number of reports, and everything that is wrong with a store, a line each with the mend.

    Parameters
    ----------
    database : Database
        Within a snapshot.
    study : Study
    buckets : Buckets
    """
    ((n,),) = database.rows("SELECT COUNT(*) FROM reports")
    faults: list[str] = []
    try:
        faults += note_faults(database)  # without the log nothing else can be checked
        faults += _count_faults(database, study, _stored_totals(database, buckets))
    except StoreError as error:
        faults.append(str(error))
    except _MALFORMED:
        faults.append(f"a cell of the store has another type than was stored: {_MEND}")
    return int(n), faults


def sum_of_tokens(hashes: Iterable[bytes]) -> str:
    """The sum of digests of hashed tokens, by which the audit log knows which were issued, in any order."""
    total = sum(int.from_bytes(hashlib.sha256(each).digest()) for each in hashes)
    return f"{total % (1 << 256):064x}"


def _count_faults(database: Database, study: Study, stored: Totals) -> Iterator[str]:
    """What does not follow from the reports."""
    try:
        same = kept_totals(database).same_as(stored)
    except ValueError:  # a sum of another length
        same = False
    if not same:
        yield f"the running sums are not those of the reports: {_MEND}"
    if study.terms is not None and study.terms.enrolment == "token":
        yield from _token_faults(database, stored.n)


def _token_faults(database: Database, n: int) -> Iterator[str]:
    """Tokens that nobody issued, issued ones that are missing, and used ones that are not those of the reports."""
    used = database.rows("SELECT COUNT(report) FROM tokens") + database.rows(
        "SELECT COUNT(*) FROM tokens JOIN reports ON tokens.report = reports.id AND tokens.hash = reports.token"
    )
    if [count for (count,) in used] != [n, n]:
        yield f"the used tokens are not those of the reports: {_MEND}"
    invited = [entry.event for entry in audit.entries(database) if entry.event.get("kind") == "invited"]
    issued = sum(int(str(event.get("sum", "0")), 16) for event in invited) % (1 << 256)
    if sum_of_tokens(bytes(each) for (each,) in database.rows("SELECT hash FROM tokens")) != f"{issued:064x}":
        yield f"the tokens are not those that were issued: {_MEND}"


def _stored_totals(database: Database, buckets: Buckets) -> Totals:
    """The sums of all reports, which are those that the audit log tells of; StoreError otherwise."""
    pending = (entry.event for entry in audit.entries(database) if entry.event.get("kind") == "stored")
    totals, n = buckets.summed([]), 0
    held: list[Arrival] = []
    event = next(pending, None)
    for numbers, found in arrival_pages(database):
        if numbers != list(range(n + 1, n + len(numbers) + 1)):
            raise StoreError(f"reports after number {n} are missing: {_MEND}")
        if any(len(each.answer) != buckets.payload.length for each in found):
            raise StoreError(f"one of the reports after number {n} has another length: {_MEND}")
        n += len(numbers)
        totals, held = totals + buckets.summed(found), held + found
        while event is not None and event["last"] <= n:
            held = _checked(event, held)
            event = next(pending, None)
    if held or event is not None or next(pending, None) is not None:
        raise StoreError(f"the reports and the audit log do not agree: {_MEND}")
    return totals


def _checked(event: Mapping[str, Any], held: list[Arrival]) -> list[Arrival]:
    """The reports after those of an entry, which are those that were stored."""
    width = event["last"] - event["first"] + 1
    if event["digest"] != digest_of(held[:width]):
        raise StoreError(f"reports {event['first']} to {event['last']} are not those that were stored: {_MEND}")
    return held[width:]

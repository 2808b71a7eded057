"""Whether a store holds what its audit log says was stored: every report, sum, token and note."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpregress.collector.store import audit
from dpregress.collector.store.release import note_faults
from dpregress.errors import StoreError

if TYPE_CHECKING:
    from dpregress.collector.store.reports import Arrival, Store, Totals

_MEND = "restore a backup"


def digest_of(arrivals: Sequence[Arrival]) -> str:
    """What the audit log holds of reports that were stored together."""
    found = hashlib.sha256()
    for each in arrivals:
        found.update(hashlib.sha256(each.id + (each.token or bytes(32)) + each.answer).digest())
    return found.hexdigest()


def store_faults(store: Store) -> tuple[int, list[str]]:
    """The number of reports, and everything that is wrong with a store, a line each with the mend.

    Parameters
    ----------
    store : Store
        Within a snapshot.
    """
    try:
        faults = note_faults(store.database)
    except StoreError as error:  # without the log nothing else can be checked
        return store.count, [str(error)]
    try:
        stored = _stored_totals(store)
    except StoreError as error:
        return store.count, [*faults, str(error)]
    return stored.n, [*faults, *_count_faults(store, stored)]


def _count_faults(store: Store, stored: Totals) -> Iterator[str]:
    """What does not follow from the reports."""
    try:
        same = store.totals().same_as(stored)
    except ValueError:  # a sum of another length
        same = False
    if not same:
        yield f"the running sums are not those of the reports: {_MEND}"
    used, terms = store.tokens()[1], store.study.terms
    if terms is not None and terms.enrolment == "token" and used != stored.n:
        yield f"the used tokens are not those of the reports: {_MEND}"


def _stored_totals(store: Store) -> Totals:
    """The sums of all reports, which are those that the audit log tells of; StoreError otherwise."""
    pending = (entry.event for entry in audit.entries(store.database) if entry.event.get("kind") == "stored")
    totals, n = store.summed([]), 0
    held: list[Arrival] = []
    event = next(pending, None)
    for numbers, found in store.pages():
        if numbers != list(range(n + 1, n + len(numbers) + 1)):
            raise StoreError(f"reports after number {n} are missing: {_MEND}")
        if any(len(each.answer) != store.payload.length for each in found):
            raise StoreError(f"one of the reports after number {n} has another length: {_MEND}")
        n += len(numbers)
        totals, held = totals + store.summed(found), held + found
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

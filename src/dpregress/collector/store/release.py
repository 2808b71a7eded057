"""What a store notes of the one release of its sum, and whether its audit log says the same."""

from __future__ import annotations

from dpregress.collector.store import audit
from dpregress.collector.store.database import Database
from dpregress.errors import StoreError
from dpregress.parties.documents import digest

#: The random name of a store in the ledger; the digest of the reports that were charged; the released text.
CLAIM, CHARGED, RELEASED = "claim", "charged", "released"
#: The first entry of the log.
_MADE = "made"


def check_release(database: Database, study: bytes) -> None:
    """Refuse a store whose study, or whose notes of its release, are not those of its audit log.

    Parameters
    ----------
    database : Database
    study : bytes
        The digest of the study that the store holds.

    Raises
    ------
    StoreError
        For another study than the one for which the store was made, and for a charge or a released sum that vanished,
        was changed, or appears in one of them only.
    """
    notes: dict[str, str] = dict(database.rows("SELECT name, value FROM meta"))
    logged: dict[str, list[object]] = {_MADE: [], CHARGED: [], RELEASED: []}
    for entry in audit.entries(database):
        kind = entry.event["kind"]
        if kind in logged:
            logged[kind].append(entry.event.get("study" if kind == _MADE else "digest"))
    if logged[_MADE] != [study.hex()]:
        raise StoreError("the audit log tells of another study than the store holds: restore a backup")
    kept = [digest(notes[RELEASED])] if RELEASED in notes else []
    if logged[RELEASED] != kept or len(logged[CHARGED]) != (CHARGED in notes):
        raise StoreError(
            "the audit log and the store do not agree on the released sum: restore a backup made after the read-out"
        )

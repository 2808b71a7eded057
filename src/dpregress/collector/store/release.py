"""What a store notes once, such as its closed list and its released sum, and whether its audit log says the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from dpregress.collector.store import audit
from dpregress.collector.store.database import Database
from dpregress.errors import StoreError
from dpregress.parties.documents import digest

#: The number of reports on the closed list.
SEALED = "sealed"
#: The random name of a store in the ledger; the digest of the reports that were charged; the released text.
CLAIM, CHARGED, RELEASED = "claim", "charged", "released"
#: Entries of the log: the first one; a claim was drawn; a copy of the store was made without it.
MADE, CLAIMED, UNCLAIMED = "made", "claimed", "unclaimed"

_EARLIER, _LATER = "restore a backup", "restore a backup made after the read-out"


def commitment(secret: str) -> str:
    """SHA-256 of a random note, by which the audit log knows it and does not tell it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def made_entry(notes: Mapping[str, str]) -> dict[str, Any]:
    """What the first entry of the log tells of the notes of a new store."""
    study = hashlib.sha256(notes["study"].encode()).hexdigest()
    return {"study": study, "salt": commitment(notes["salt"]), "holder": notes.get("holder")}


def note_faults(database: Database) -> list[str]:
    """What the notes of a store and its audit log do not agree about, a line each with the mend.

    Parameters
    ----------
    database : Database

    Raises
    ------
    StoreError
        For an audit log that was changed: nothing can be checked by it.
    """
    notes: dict[str, str] = dict(database.rows("SELECT name, value FROM meta"))
    logged: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in (MADE, SEALED, CHARGED, RELEASED)}
    claim = None
    for entry in audit.entries(database):
        kind = entry.event.get("kind")
        if kind in logged:
            logged[kind].append(entry.event)
        elif kind in (CLAIMED, UNCLAIMED):
            claim = entry.event.get("claim")
    return [
        *_made_faults(notes, logged[MADE]),
        *_list_faults(database, notes, [str(each.get("reports")) for each in logged[SEALED]]),
        *_once(CLAIM, notes, [] if claim is None else [claim], "the claim on the ledger", _LATER, commitment),
        *_once(CHARGED, notes, [each.get("digest") for each in logged[CHARGED]], "the charged reports", _LATER),
        *_once(RELEASED, notes, [each.get("digest") for each in logged[RELEASED]], "the released sum", _LATER, digest),
    ]


def check_notes(database: Database) -> None:
    """Raise StoreError if the notes of a store and its audit log do not agree; within a snapshot or a transaction."""
    faults = note_faults(database)
    if faults:
        raise StoreError(faults[0])


def _made_faults(notes: Mapping[str, str], logged: list[Mapping[str, Any]]) -> list[str]:
    """Faults of what was noted when the store was made."""
    told = dict(logged[0]) if len(logged) == 1 else {}
    found = made_entry({"study": "", "salt": "", **notes})
    words = {"study": "another study", "salt": "another salt", "holder": "another collector"}
    return [
        f"the audit log tells of {words[name]} than the store holds: {_EARLIER}"
        for name, value in found.items()
        if told.get(name, "none") != value
    ]


def _list_faults(database: Database, notes: Mapping[str, str], logged: list[str]) -> list[str]:
    """The fault of a closed list, beside which there are no other reports."""
    found = _once(SEALED, notes, logged, "the closed list", _EARLIER)
    ((n,),) = database.rows("SELECT COUNT(*) FROM reports")
    if not found and logged and logged != [str(n)]:
        return [f"the reports are not those of the closed list ({SEALED}): {_EARLIER}"]
    return found


def _once(
    name: str, notes: Mapping[str, str], logged: list[Any], what: str, mend: str, known_by: Any = str
) -> list[str]:
    """The fault of a note that is made at most once, or none."""
    kept = [known_by(notes[name])] if name in notes else []
    return [] if kept == logged else [f"the audit log and the store do not agree on {what} ({name}): {mend}"]

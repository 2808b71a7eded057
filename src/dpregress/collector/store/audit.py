"""A log in which every entry holds the hash of the one before: what happened cannot be rewritten unseen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpregress.collector.store.database import Database
from dpregress.errors import StoreError
from dpregress.json_files import MALFORMED, parsed
from dpregress.parties.documents import canonical

_START = bytes(32)
_PAGE = 5000


@dataclass(frozen=True)
class AuditEntry:
    """One entry.

    Parameters
    ----------
    number : int
        From 1.
    event : mapping
        What happened; ``kind`` and ``at`` are always there.
    chain : bytes
        SHA-256 of the chain before it and of the event.
    """

    number: int
    event: Mapping[str, Any]
    chain: bytes


def append(database: Database, kind: str, **details: Any) -> None:
    """Add an entry within the transaction that is open. Times are rounded down to the hour."""
    last = database.rows("SELECT n, chain FROM audit ORDER BY n DESC LIMIT 1")
    number, before = last[0] if last else (0, _START)
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:00:00Z")
    text = canonical({"kind": kind, "at": at, **details})
    database.insert("audit", ("n", "event", "chain"), [(number + 1, text.decode(), _linked(bytes(before), text))])


def entries(database: Database) -> Iterator[AuditEntry]:
    """All entries in order, checked.

    Raises
    ------
    StoreError
        For an entry that was changed, added or taken out.
    """
    before, expected = _START, 1
    for page in database.pages("n, event, chain", "audit", _PAGE):
        for number, text, chain in page:
            before = _linked(before, text.encode())
            if number != expected or bytes(chain) != before:
                raise StoreError(f"entry {expected} of the audit log was changed or removed: restore a backup")
            try:
                event = parsed(text)
            except MALFORMED as error:
                raise StoreError(f"entry {number} of the audit log cannot be read: restore a backup") from error
            yield AuditEntry(number, event, before)
            expected += 1


def _linked(before: bytes, text: bytes) -> bytes:
    return hashlib.sha256(before + text).digest()

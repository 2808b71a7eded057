"""Reports as they are stored, and their sums by bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.collector.store.database import Database
from dpregress.collector.store.payloads import Payload

#: Groups of reports by a keyed hash of their ids, for the jackknife.
BUCKETS = 64
#: The numbers of a stored sum.
SUM = np.dtype("<i8")
_PAGE = 2000


@dataclass(frozen=True)
class Arrival:
    """An admitted report as it is stored.

    Parameters
    ----------
    id : bytes
    token : bytes or None
        SHA-256 of the token; None with open enrolment.
    answer : bytes
        Little-endian 32-bit integers; in a study of two collectors a share.
    """

    id: bytes
    token: bytes | None
    answer: bytes


@dataclass(frozen=True, eq=False)
class Totals:
    """Reports and their sums by bucket.

    Parameters
    ----------
    counts : ndarray of int64, of shape (64,)
    sums : ndarray of int64, of shape (64, p)
    """

    counts: NDArray[np.int64]
    sums: NDArray[np.int64]

    @property
    def n(self) -> int:
        """All reports."""
        return int(self.counts.sum())

    @property
    def total(self) -> NDArray[np.int64]:
        """The sum of all reports, of shape (p,)."""
        return np.asarray(self.sums.sum(axis=0))

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.counts + other.counts, self.sums + other.sums)

    def same_as(self, other: Totals) -> bool:
        """Whether two are equal bit for bit."""
        return np.array_equal(self.counts, other.counts) and np.array_equal(self.sums, other.sums)


@dataclass(frozen=True, eq=False)
class Buckets:
    """How reports fall into buckets, and what they add there.

    Parameters
    ----------
    salt : bytes
        The key of the hash.
    payload : Payload
        What a report holds.
    """

    salt: bytes
    payload: Payload

    def summed(self, arrivals: Sequence[Arrival]) -> Totals:
        """Counts and sums of these reports by bucket."""
        buckets = [hashlib.sha256(self.salt + each.id).digest()[0] % BUCKETS for each in arrivals]
        sums = np.zeros((BUCKETS, self.payload.size), dtype=np.int64)
        np.add.at(sums, buckets, self.payload.integers([each.answer for each in arrivals]))
        return Totals(np.bincount(buckets, minlength=BUCKETS).astype(np.int64), sums)


def arrival_pages(database: Database) -> Iterator[tuple[list[int], list[Arrival]]]:
    """All reports with their numbers, in order, a page at a time."""
    for page in database.pages("n, id, token, answer", "reports", _PAGE):
        found = [Arrival(bytes(name), optional_bytes(token), bytes(answer)) for _, name, token, answer in page]
        yield [row[0] for row in page], found


def kept_totals(database: Database) -> Totals:
    """The running sums: a read of 64 rows, whatever the number of reports."""
    rows = database.rows("SELECT reports, total FROM sums ORDER BY bucket")
    sums = np.array([np.frombuffer(total, SUM) for _, total in rows], dtype=np.int64)
    return Totals(np.array([reports for reports, _ in rows], dtype=np.int64), sums)


def digest_of(arrivals: Sequence[Arrival]) -> str:
    """What the audit log holds of reports that were stored together."""
    found = hashlib.sha256()
    for each in arrivals:
        found.update(hashlib.sha256(each.id + (each.token or bytes(32)) + each.answer).digest())
    return found.hexdigest()


def optional_bytes(value: Any) -> bytes | None:
    """Bytes of a database, or None."""
    return None if value is None else bytes(value)

"""Which reports a collector holds: a signed list of their ids, after which it takes no more.

A report counts where both lists name it. The lists hold random ids and tell nothing of anybody's answers.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from dpregress.collector.shares.holder import ShareHolder
from dpregress.collector.store import Store, audit
from dpregress.collector.store.release import SEALED, check_notes
from dpregress.collector.study import Study
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.json_files import MALFORMED
from dpregress.parties.documents import check_signature, digest, load_document, public_half, signed, whole_in

_FORMAT = "dpregress.report-list/1"
_ID = 16
_PAGE = 5000


@dataclass(frozen=True, eq=False)
class ReportList:
    """The ids of the reports that one collector holds.

    Parameters
    ----------
    holder : int
        The place of the collector in the study.
    ids : tuple of bytes
        In increasing order.
    digest : str
        SHA-256 of the list without its signature.
    """

    holder: int
    ids: tuple[bytes, ...]
    digest: str


@dataclass(frozen=True, eq=False)
class AgreedReports:
    """The reports that both collectors hold.

    Parameters
    ----------
    ids : tuple of bytes
        In increasing order.
    lists : tuple of str
        The digests of both lists, in the order of the study.
    """

    ids: tuple[bytes, ...]
    lists: tuple[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of the ids and of the digests of the lists, in hexadecimal."""
        return hashlib.sha256("".join(self.lists).encode() + b"".join(self.ids)).hexdigest()


def close_list(store: Store, private_key: bytes) -> str:
    """Take no more reports, and sign the list of those that are there; the same list every time.

    Parameters
    ----------
    store : Store
        Of one of two collectors.
    private_key : bytes
        Its signing key.

    Raises
    ------
    NotAvailable
        Before the minimum count of the study.
    InvalidInput
        For the key of somebody else.
    StoreError
        If the store does not hold the reports that its audit log tells of.
    """
    holder = own_holder(store, private_key)
    assert store.study.terms is not None
    with store.database.transaction():
        check_notes(store.database)
        if store.sealed is None:
            n, minimum = store.count, store.study.terms.minimum
            if n < minimum:
                raise NotAvailable(f"{n:,} of {minimum:,} reports are there: no list is closed before the minimum")
            store.note(SEALED, str(n))
            audit.append(store.database, SEALED, reports=n)
    store.verify()
    ids = held_ids(store)
    return signed(_record(store.study, holder, ids), private_key)


def load_list(path: str | Path, study: Study) -> ReportList:
    """The checked list of one of the collectors of a study.

    Raises
    ------
    InvalidInput
        If the file is no list, of another study, or of nobody who is a collector of it; if it was changed, or its
        count is not that of its ids.
    """
    record = load_document(path, _FORMAT)
    holder = signed_by(record, study, str(path))
    try:
        joined = base64.b64decode(record["ids"], validate=True)
        n = whole_in(record["reports"], "the count of a list")
    except MALFORMED as error:
        raise InvalidInput(f"{path} is not a list of reports: ask for the file again") from error
    ids = tuple(joined[at : at + _ID] for at in range(0, len(joined), _ID))
    if len(joined) != _ID * n or list(ids) != sorted(set(ids)):
        raise InvalidInput(f"{path} states {n:,} reports, which are not the ids in it: ask this collector why")
    return ReportList(holder, ids, _unsigned_digest(record))


def signed_by(record: dict[str, object], study: Study, what: str) -> int:
    """The place of the collector of the study that signed a document.

    Raises
    ------
    InvalidInput
    """
    if record.get("study") != study.digest.hex():
        raise InvalidInput(f"{what} belongs to another study: refused")
    places = [place for place, each in enumerate(study.holders) if each.name == record.get("collector")]
    if not places:
        raise InvalidInput(f"{what} comes from nobody who is a collector of this study: refused")
    check_signature(record, study.holders[places[0]].key, what)
    return places[0]


def agree(lists: list[ReportList]) -> AgreedReports:
    """The reports that both lists name.

    Raises
    ------
    InvalidInput
        If both lists are of one collector.
    """
    ordered = sorted(lists, key=lambda each: each.holder)
    if [each.holder for each in ordered] != [0, 1]:
        raise InvalidInput("these lists are of one and the same collector: give that of the other one")
    common = set(ordered[0].ids) & set(ordered[1].ids)
    return AgreedReports(tuple(sorted(common)), (ordered[0].digest, ordered[1].digest))


def own_list(store: Store, private_key: bytes) -> ReportList:
    """The list that the collector of a store has closed; NotAvailable before."""
    holder = own_holder(store, private_key)
    if store.sealed is None:
        raise NotAvailable("close the list of this collector first: dpregress collect list")
    ids = held_ids(store)
    return ReportList(store.study.holders.index(holder), ids, digest(_record(store.study, holder, ids)))


def own_holder(store: Store, private_key: bytes) -> ShareHolder:
    """The collector of a store; InvalidInput if the store is of no such study, or the key of somebody else."""
    if store.holder is None:
        raise InvalidInput("the devices of this study add the noise: read it out with `dpregress collect fit`")
    holder = store.study.holders[store.holder]
    if public_half(private_key) != holder.key:
        raise InvalidInput(f"this is not the key of {holder.name!r}, whose store it is: give its own --key")
    return holder


def held_ids(store: Store) -> tuple[bytes, ...]:
    """The ids of all stored reports, in increasing order."""
    pages = store.database.pages("n, id", "reports", _PAGE)
    return tuple(sorted(bytes(name) for page in pages for _, name in page))


def _record(study: Study, holder: ShareHolder, ids: tuple[bytes, ...]) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "study": study.digest.hex(),
        "collector": holder.name,
        "reports": len(ids),
        "ids": base64.b64encode(b"".join(ids)).decode(),
    }


def _unsigned_digest(record: dict[str, object]) -> str:
    return digest({name: value for name, value in record.items() if name != "signature"})

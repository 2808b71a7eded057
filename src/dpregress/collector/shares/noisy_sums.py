r"""What one of two collectors releases: the sum of its shares with noise, once.

Let u_i be the integers of user i, ``a_i + b_i = u_i`` modulo 2^64 the shares, and Z the discrete Gaussian noise of the
study. A collector releases ``sum a_i + Z`` modulo 2^64 over the reports that both hold. To whoever knows all ``b_i``
this is ``sum u_i + Z`` plus a known number. Its sensitivity is that of the query of the study on its grid, so that one
release costs each user the price of the study. A second draw for the same reports would cost it again: there is none.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Ledger, MemoryLedger, Request, user_of
from dpregress.accounting.names import note_of
from dpregress.collector.shares.lists import AgreedReports, ReportList, agree, own_holder, own_list, signed_by
from dpregress.collector.shares.splitting import WORD, sum_of_shares
from dpregress.collector.store import Store, audit
from dpregress.collector.store.release import CHARGED, CLAIM, CLAIMED, RELEASED, check_notes, commitment
from dpregress.collector.study import Study
from dpregress.errors import ChargedBefore, InvalidInput, NotAvailable
from dpregress.json_files import MALFORMED
from dpregress.mechanisms import Sampler, SecureSampler
from dpregress.mechanisms.randomness import random_bytes
from dpregress.parties.documents import digest, load_document, signed, whole_in

_FORMAT = "dpregress.share-sum/1"
_PAGE = 2000


@dataclass(frozen=True, eq=False)
class ShareSum:
    """The noisy sum of one collector's shares.

    Parameters
    ----------
    holder : int
        The place of the collector in the study.
    n : int
        Reports that both collectors hold.
    agreed : str
        The digest of these reports.
    total : ndarray of uint64, of shape (p',)
        Modulo 2^64.
    """

    holder: int
    n: int
    agreed: str
    total: NDArray[np.uint64]


def release_share_sum(
    store: Store,
    private_key: bytes,
    other: ReportList,
    *,
    ledger: Ledger | None = None,
    sampler: Sampler | None = None,
) -> str:
    """The noisy sum of a collector's shares as a signed text. It is charged before noise is drawn, and kept before
    it is returned: whoever asks again gets the same text.

    Parameters
    ----------
    store : Store
        Whose list is closed.
    private_key : bytes
        The collector's signing key.
    other : ReportList
        That of the other collector.
    ledger : Ledger, optional
        Of the participants, charged once for a study. It refuses a second release even if an older copy of the store
        is used. A sum that was released without it is charged when it is asked for with it.
    sampler : Sampler, optional
        For tests; default: the operating system's randomness.

    Raises
    ------
    NotAvailable
        Before the list is closed, and where both collectors hold fewer reports than the minimum.
    InvalidInput
        If a sum was released with another list.
    ChargedBefore, BudgetExceeded, LedgerError
        When the ledger was charged for another copy of this store, does not hold enough, or counts something else.
    StoreError
        If the store does not hold the reports, the closed list or the released sum that its audit log tells of.
    """
    kept = store.noted(RELEASED)
    _check(store, released=kept is not None)
    reports = agree([own_list(store, private_key), other])
    if kept is None or ledger is not None:
        _charge(store, reports, ledger)
    if kept is None:
        noise = store.study.integer_noise.noise(store.study.query.size, sampler or SecureSampler())
        total = sum_of_shares([_exact(store, reports), noise.astype(np.uint64)])
        text = signed(_record(store, private_key, reports, total.astype(np.uint64)), private_key)
        with store.database.transaction():
            kept = store.noted(RELEASED)  # another process may have been faster
            if kept is None:
                store.note(RELEASED, text)
                audit.append(store.database, RELEASED, reports=len(reports.ids), digest=digest(text))
                kept = text
    if store.noted(CHARGED) != reports.digest:
        raise InvalidInput("this collector has released a sum with another list: there is no second release")
    return kept


def load_share_sum(path: str | Path, study: Study) -> ShareSum:
    """The checked sum of one of the collectors of a study.

    Raises
    ------
    InvalidInput
        For another file, one of another study or of somebody else, and one that was changed.
    """
    record = load_document(path, _FORMAT)
    holder = signed_by(record, study, str(path))
    try:
        total = np.frombuffer(base64.b64decode(record["total"], validate=True), WORD)
        n, agreed = whole_in(record["reports"], "the count of a sum"), record["agreed"]
    except MALFORMED as error:
        raise InvalidInput(f"{path} is not the sum of a collector: ask for the file again") from error
    if total.shape != (study.query.size,) or not isinstance(agreed, str):
        raise InvalidInput(f"{path} is not the sum of a collector of this study: ask for the file again")
    return ShareSum(holder, n, agreed, total.astype(np.uint64))


def _check(store: Store, *, released: bool) -> None:
    """Refuse a store that is not what its audit log tells: before the release all of it, afterwards its notes."""
    if not released:
        store.verify()
        return
    with store.database.snapshot():
        check_notes(store.database)


def _charge(store: Store, reports: AgreedReports, ledger: Ledger | None) -> None:
    """Charge the price of the study, for these reports and no others.

    The ledger's entry carries a random claim that this store holds and no backup of it. A command that was killed
    after the charge finds the claim in the ledger, and goes on when it is run again. Any other copy of the store is
    refused. The store notes the charge after the ledger has accepted it.
    """
    study = store.study
    assert study.terms is not None
    assert store.holder is not None
    if len(reports.ids) < study.terms.minimum:
        raise NotAvailable(
            f"both collectors hold {len(reports.ids):,} of {study.terms.minimum:,} reports: nothing is read out before "
            "the minimum"
        )
    if store.noted(CHARGED) not in (None, reports.digest):
        raise InvalidInput("this collector has charged a sum with another list: there is no second release")
    subject = f"the sum of {study.holders[store.holder].name} for study {study.digest.hex()}"
    note = f"{subject}, reports {reports.digest}, claim {_claim(store)}"
    if ledger is not None:
        user_of(ledger.account.unit)
    account = MemoryLedger(study.spend) if ledger is None else ledger
    others = [charge for charge in account.charges if charge.note.startswith(subject) and charge.note != note]
    if others and store.noted(RELEASED) is None:
        raise ChargedBefore(
            f"the ledger was charged for {subject} by another copy of this store, or for another list: restore a "
            "backup made after the read-out"
        )
    with suppress(ChargedBefore):  # by this store, and for these reports
        request = Request(formula=note_of(f"sums of {', '.join(study.names)}"))
        account.reserve(study.spend, note=note, once=True, request=request).draw(study.spend)
    with store.database.transaction():
        before = store.noted(CHARGED)
        if before is None:
            store.note(CHARGED, reports.digest)
            audit.append(
                store.database, CHARGED, reports=len(reports.ids), digest=reports.digest, price=study.spend.encode()
            )
    if before not in (None, reports.digest):
        raise InvalidInput("this collector has charged a sum with another list: there is no second release")


def _claim(store: Store) -> str:
    """The random name of this store in the ledger, drawn before its first charge; ChargedBefore for a copy."""
    with store.database.transaction():
        claim = store.noted(CLAIM)
        if claim is None and store.noted(CHARGED) is not None and store.noted(RELEASED) is None:
            raise ChargedBefore(
                "this is a copy of a store that was charged and had not kept its sum yet: go on with that store, or "
                "restore a backup made after its read-out"
            )
        if claim is None:
            claim = random_bytes(16).hex()
            store.note(CLAIM, claim)
            audit.append(store.database, CLAIMED, claim=commitment(claim))
    return claim


def _exact(store: Store, reports: AgreedReports) -> NDArray[np.uint64]:
    """The sum of the shares of these reports modulo 2^64. It must not leave the collector."""
    wanted, found = set(reports.ids), 0
    total = np.zeros(store.study.query.size, dtype=np.uint64)
    for page in store.database.pages("n, id, answer", "reports", _PAGE):
        shares = [bytes(share) for _, name, share in page if bytes(name) in wanted]
        if shares:
            total = total + store.payload.integers(shares).astype(np.uint64).sum(axis=0, dtype=np.uint64)
            found += len(shares)
    assert found == len(wanted)
    return total


def _record(store: Store, private_key: bytes, reports: AgreedReports, total: NDArray[np.uint64]) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "study": store.study.digest.hex(),
        "collector": own_holder(store, private_key).name,
        "reports": len(reports.ids),
        "agreed": reports.digest,
        "total": base64.b64encode(total.astype(WORD).tobytes()).decode(),
    }

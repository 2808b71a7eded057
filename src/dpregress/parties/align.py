"""Alignment of people between parties: keyed pseudonyms, a common order, and a commitment to it.

A pseudonym is HMAC-SHA-256 of the normalised identifiers under a key that parties share and the analyst
never has. Parties exchange sorted lists of pseudonyms. Each party learns which of its people the others hold, how many
they hold, and, since it has the key, whether they hold anybody whose identifiers it can guess. Identifiers with few
possible values, such as names or insurance numbers, can all be tried.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput
from dpregress.mechanisms.sketching import derived_key
from dpregress.parties.documents import MALFORMED, check_signature, keyed, load_document, signed
from dpregress.parties.keys import PartyKeys, committed
from dpregress.parties.plan import Agreement
from dpregress.rows.design.encoder import text_of

_FORMAT = "dpregress.vertical/1.pseudonyms"
_LENGTH = 16  # bytes of a pseudonym: a clash among 1e9 people has probability 1e-21
_PSEUDONYM = re.compile(f"[0-9a-f]{{{2 * _LENGTH}}}")


@dataclass(frozen=True, eq=False)
class Alignment:
    """The people, in the order in which every party sketches them.

    Attributes
    ----------
    pseudonyms : tuple of bytes
        Sorted; n of them.
    seed : bytes
        The seed of the sketch matrix, from the shares of all parties.
    commitment : str
        Keyed digest of the list: equal for all parties, and meaningless without the key.
    mock : bool
    """

    pseudonyms: tuple[bytes, ...]
    seed: bytes
    commitment: str
    mock: bool


def check_key(agreed: Agreement, key: bytes) -> None:
    """Refuse an alignment key other than the one to which the plan commits."""
    if committed(key) != agreed.plan.key_commitment:
        raise InvalidInput("this is not the alignment key that the plan commits to")


def pseudonyms_of(table: pa.Table, identifiers: Sequence[str], key: bytes) -> list[bytes | None]:
    """One a row; None where every identifier is missing.

    Text is compared in Unicode form NFKC, without case and outer spaces; a number as its text in the file.
    """
    cells = [[_text(cell) for cell in table.column(name).to_pylist()] for name in identifiers]
    found: list[bytes | None] = []
    for person in zip(*cells, strict=True):
        parts = [unicodedata.normalize("NFKC", cell).strip().casefold().encode() for cell in person]
        found.append(keyed(key, b"person", *parts)[:_LENGTH] if any(parts) else None)
    return found


def _text(cell: object) -> str:
    """A cell of a text file or a typed column as text; "" if it is empty."""
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else text_of(cell) or ""


def mock_pseudonyms(n: int, key: bytes) -> list[bytes | None]:
    """Invented people, the same at every party."""
    return [keyed(key, b"mock", str(i).encode())[:_LENGTH] for i in range(n)]


def pseudonym_file(
    agreed: Agreement, party: str, identity: PartyKeys, pseudonyms: Sequence[bytes | None], *, mock: bool
) -> str:
    """A party's list, sorted, with its share of the seed revealed: for the other parties, never for the analyst.

    Raises
    ------
    InvalidInput
        For other keys than those with which the party signed the plan.
    """
    if (identity.public_key, identity.commitment) != (agreed.public_keys[party], agreed.commitments[party]):
        raise InvalidInput(f"these are not the keys with which {party} signed the plan, or its seed share was changed")
    record = {
        "format": _FORMAT,
        "agreement": agreed.digest,
        "party": party,
        "mock": mock,
        "seed_share": identity.seed_share.hex(),
        "pseudonyms": sorted({one.hex() for one in pseudonyms if one is not None}),
    }
    return signed(record, identity.private_key)


def check_not_real(path: Path) -> None:
    """Refuse to replace a list of real people by invented ones."""
    if path.exists():
        try:
            real = load_document(path, _FORMAT).get("mock") is not True
        except InvalidInput:
            return  # a damaged file is nobody's list
        if real:
            raise InvalidInput(f"{path} holds real people: give invented ones another --exchange")


def align(agreed: Agreement, files: Mapping[str, str | Path], key: bytes) -> Alignment:
    """Combine the lists of the parties by the rule of the plan.

    Parameters
    ----------
    agreed : Agreement
    files : mapping of str to path-like
        By party.
    key : bytes
        The alignment key.

    Raises
    ------
    InvalidInput
        For a changed file, one of another agreement, a share that was not committed to, or another number of
        people than the plan has.
    """
    plan = agreed.plan
    check_key(agreed, key)
    records = {terms.name: _record(agreed, terms.name, files[terms.name]) for terms in plan.parties}
    mocks = {bool(record["mock"]) for record in records.values()}
    if len(mocks) != 1:
        raise InvalidInput("some parties aligned invented people and some real ones: align all with or without --mock")
    lists = [set(record["pseudonyms"]) for record in records.values()]
    people = sorted(set.intersection(*lists) if plan.people == "all" else set.union(*lists))
    if len(people) != plan.n:
        raise InvalidInput(
            f"the parties' tables hold {len(people)} such people, the plan says {plan.n}: agree on n and sign again"
        )
    pseudonyms = tuple(bytes.fromhex(one) for one in people)
    shares = b"".join(bytes.fromhex(records[terms.name]["seed_share"]) for terms in plan.parties)
    seed = derived_key(shares, b"dpregress/seed/1/" + agreed.digest.encode())
    commitment = keyed(key, b"people", agreed.digest.encode(), *pseudonyms).hex()
    return Alignment(pseudonyms, seed, commitment, mocks.pop())


def row_order(alignment: Alignment, pseudonyms: Sequence[bytes | None]) -> NDArray[np.intp]:
    """For each person the position of the first row about them, or -1 if there is none.

    Raises
    ------
    InvalidInput
        If a row would be used for two people: the budget counts each row once.
    """
    first: dict[bytes, int] = {}
    for row, one in enumerate(pseudonyms):
        if one is not None:
            first.setdefault(one, row)
    order = np.array([first.get(one, -1) for one in alignment.pseudonyms], dtype=np.intp)
    present = order[order >= 0]
    if len(np.unique(present)) != len(present):
        raise InvalidInput("the aligned people name one person twice: align again")
    return order


def in_order(x: Matrix, order: NDArray[np.intp]) -> Matrix:
    """Rows in the order of the people; a person without a row gets missing cells."""
    rows = x[np.maximum(order, 0)]
    rows[order < 0] = np.nan
    return np.asarray(rows)


def order_check(alignment: Alignment, key: bytes, pseudonyms: Sequence[bytes | None], order: NDArray[np.intp]) -> str:
    """A keyed digest of who stands in which row, computed from the rows that are sketched: equal for all parties.

    For a person without a row, the pseudonym of the list is used.
    """
    people = (
        (pseudonyms[row] or b"") if row >= 0 else listed
        for row, listed in zip(order.tolist(), alignment.pseudonyms, strict=True)
    )
    return keyed(key, b"order", alignment.commitment.encode(), *people).hex()


def _record(agreed: Agreement, party: str, path: str | Path) -> dict[str, Any]:
    record = load_document(path, _FORMAT)
    check_signature(record, agreed.public_keys[party], str(path))
    if record.get("agreement") != agreed.digest or record.get("party") != party:
        raise InvalidInput(f"{path} belongs to another agreement or party: ask {party} to align again")
    try:
        share = bytes.fromhex(record["seed_share"])
        mock, found = record["mock"], record["pseudonyms"]
    except MALFORMED as error:
        raise InvalidInput(f"{path} does not hold what a list of pseudonyms holds: {error}") from error
    if committed(share) != agreed.commitments[party]:
        raise InvalidInput(f"{path} reveals another seed share than {party} committed to: refused")
    if not isinstance(mock, bool) or not isinstance(found, list) or not all(map(_is_pseudonym, found)):
        raise InvalidInput(f"{path} must hold only pseudonyms, each of {2 * _LENGTH} digits 0-9a-f: refused")
    if any(one >= other for one, other in pairwise(found)):
        raise InvalidInput(f"the pseudonyms in {path} are not in ascending order, or one is repeated: refused")
    return record


def _is_pseudonym(value: object) -> bool:
    """Whether a pseudonym is in its unique spelling; another spelling would count as another person."""
    return isinstance(value, str) and _PSEUDONYM.fullmatch(value) is not None

"""A party's release: its ranges, its moments and its row sketch in one signed file, which is made only once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dpregress.accounting import (
    RECORD,
    ApproxDP,
    Composed,
    Ledger,
    MemoryLedger,
    PrivacyStatement,
    Relation,
    Request,
    decode,
)
from dpregress.accounting.names import note_of
from dpregress.coordinates import Matrix, Ranges, Vector, WhitenedSpace, decode_ends, encode_ends
from dpregress.coordinates.matrices import invertible
from dpregress.coordinates.svec import svec, unsvec
from dpregress.errors import ChargedBefore, InvalidInput, LedgerError
from dpregress.mechanisms.sketching import derived_key, keystream, sketch_matrix
from dpregress.parties.align import Alignment
from dpregress.parties.documents import (
    LARGEST_TERMS,
    MALFORMED,
    check_signature,
    load_document,
    packed,
    signed,
    text_in,
    truth_in,
    unpacked,
)
from dpregress.parties.keys import PartyKeys
from dpregress.parties.plan import Agreement, PartyTerms
from dpregress.parties.verify import check_determined
from dpregress.public import Categorical
from dpregress.public.whitening import start
from dpregress.releases import Isotropic, Moments, Sketch
from dpregress.rows import ArraySource, PrivateRows
from dpregress.rows.memory import check_mixture_fits
from dpregress.solvers.vertical.ranges import FoundRanges
from dpregress.solvers.vertical.release import PARTY_ROUNDS, PartyRelease, release_party
from dpregress.trust import Session, Vertical

_FORMAT = "dpregress.vertical/1.release"
ASSUMED_PUBLIC = (
    "the plan: parties, columns, bounds, levels, n and k",
    "that each of the n people has a row at each party, or a gap that counts as one",
)


@dataclass(frozen=True, eq=False)
class ReleaseFile:
    """A release as read from its file, after all checks.

    Attributes
    ----------
    party : str
    release : PartyRelease
    people, order : str
        Keyed digests of the people and of their order: equal for all parties.
    mock : bool
        Whether the rows are invented.
    """

    party: str
    release: PartyRelease
    people: str
    order: str
    mock: bool


def ledger_note(agreed: Agreement) -> str:
    """The note of the charge in a ledger."""
    return f"vertical release for {agreed.plan.study}, agreement {agreed.digest[:16]}"


def make_release(
    agreed: Agreement,
    party: str,
    identity: PartyKeys,
    alignment: Alignment,
    rows: Matrix,
    order: str,
    ledger: Ledger | None,
) -> str:
    """Charge the ledger, release the ranges, the moments and the mixture of aligned rows, and sign them.

    Parameters
    ----------
    agreed : Agreement
    party : str
    identity : Identity
    alignment : Alignment
    rows : ndarray of shape (n, d)
        Design columns in the order of the people. Private, unless invented.
    order : str
        The keyed digest of the rows' order.
    ledger : Ledger or None
        None only for invented rows.

    Raises
    ------
    InvalidInput, BudgetExceeded, LedgerError
        If the inputs or the budget do not allow the release; nothing is released then.
    """
    terms = agreed.plan.party(party)
    if rows.shape != (agreed.plan.n, len(terms.encoder.features)):
        raise InvalidInput(f"{party} has rows of shape {rows.shape}, which is not that of the plan")
    if ledger is None and not alignment.mock:
        raise InvalidInput("real rows are released against a ledger: give --ledger and --dataset")
    _check_release(agreed, party, identity)
    mixing = sketch_matrix(agreed.plan.mixing, agreed.plan.n, agreed.plan.k, alignment.seed)
    with _charged_once():
        session = Session.reserve(
            PrivateRows(ArraySource(rows)),
            terms.promise,
            trust=Vertical(),
            rounds=PARTY_ROUNDS,
            # invented rows belong to nobody: what they spend is counted nowhere
            ledger=MemoryLedger(terms.promise) if alignment.mock else ledger,
            # a delta above 1/n was confirmed when the plan was made
            budget=ApproxDP(terms.budget.epsilon0, terms.budget.delta0, confirm_delta=True),
            note=ledger_note(agreed),
            request=_request(terms),
            once=True,
        )
    release = release_party(session, first_space(terms), terms.promise, mixing, agreed.plan.numbers(terms))
    return signed(_encoded(agreed, party, alignment, order, release), identity.private_key)


def rehearse_release(agreed: Agreement, party: str, identity: PartyKeys, ledger: Ledger) -> NoReturn:
    """Check what :func:`make_release` checks before it reads rows, and charge nothing.

    Raises
    ------
    Rehearsed
        When the release would be charged.
    InvalidInput, BudgetExceeded, LedgerError
        When it would be refused.
    """
    _check_release(agreed, party, identity)
    terms, rehearsal = agreed.plan.party(party), ledger.rehearsal()
    with _charged_once():
        rehearsal.reserve(
            terms.promise,
            unit=RECORD,
            note=ledger_note(agreed),
            once=True,
            asked=terms.budget,
            request=_request(terms),
        )
    raise AssertionError("a rehearsal grants nothing")


def _check_release(agreed: Agreement, party: str, identity: PartyKeys) -> None:
    if identity.public_key != agreed.public_keys[party]:
        raise InvalidInput(f"these are not the keys with which {party} signed the plan")
    check_mixture_fits(agreed.plan.k, [len(each.encoder.features) for each in agreed.plan.parties])


def _request(terms: PartyTerms) -> Request:
    return Request(formula=note_of(f"moments and sketch of {', '.join(terms.encoder.features)}"))


@contextmanager
def _charged_once() -> Iterator[None]:
    """Refuse a second charge in words: to release again would be other noise on the same rows, for one charge."""
    try:
        yield
    except ChargedBefore as error:
        raise LedgerError(
            "this release was charged before and its file is not in --keys: restore the file, "
            "or agree on a new plan and pay again"
        ) from error


def first_space(terms: PartyTerms) -> WhitenedSpace:
    """A party's columns scaled by their bounds, after a constant."""
    features = terms.encoder.features
    return start(features, intercept=True, public=None, schema=terms.schema, row_bound=None).space


def mock_rows(agreed: Agreement, party: str) -> Matrix:
    """Invented rows: columns between their bounds and levels at random, from the agreement's digest alone."""
    terms = agreed.plan.party(party)
    n = agreed.plan.n
    key = derived_key(bytes.fromhex(agreed.digest), b"dpregress/mock/1/" + party.encode())
    columns: list[Vector] = []
    for place, column in enumerate(terms.columns.values()):
        words = keystream(key, place << 64, -(-n // 4)).view("<u4")[:n]
        share = words / 2.0**32
        if isinstance(column, Categorical):
            level = np.floor(share * len(column.levels))
            columns.extend((level == place).astype(np.float64) for place in range(1, len(column.levels)))
        else:
            assert column.bounds is not None
            columns.append(column.bounds[0] + share * (column.bounds[1] - column.bounds[0]))
    return np.column_stack(columns)


def read_release(agreed: Agreement, path: str | Path) -> ReleaseFile:
    """Read a release and check it against the agreement.

    Raises
    ------
    InvalidInput
        For a file that is cut off, changed, of another agreement, or does not match the plan.
    """
    record = load_document(path, _FORMAT, most=_largest(agreed))
    party = str(record.get("party"))
    terms = agreed.plan.party(party)
    check_signature(record, agreed.public_keys[party], str(path))
    if record.get("agreement") != agreed.digest:
        raise InvalidInput(f"{path} was made for another agreement than this plan and its signatures: refused")
    try:
        return _decoded(record, agreed, terms)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    except MALFORMED as error:
        raise InvalidInput(f"{path} does not hold what a release holds: {error}") from error


def _largest(agreed: Agreement) -> int:
    """Bytes that no release by this plan exceeds: base64 takes 11 for a number, a number of a space at most 32."""
    widest = max(len(terms.encoder.features) for terms in agreed.plan.parties) + 1
    return LARGEST_TERMS + 11 * (agreed.plan.k + widest) * widest + 2 * 32 * (widest + 4) * widest


def statement(agreed: Agreement, file: ReleaseFile) -> PrivacyStatement:
    """The guarantee of one party's release for its own columns."""
    terms = agreed.plan.party(file.party)
    return PrivacyStatement(
        budget=terms.budget,
        promise=terms.promise,
        events=Composed.of(file.release.events),
        relation=Relation.REPLACE_ONE,
        unit=RECORD.name,
        assumed_public=ASSUMED_PUBLIC,
        seeded=False,
        recorded=None,
    )


def _encoded(agreed: Agreement, party: str, alignment: Alignment, order: str, release: PartyRelease) -> dict[str, Any]:
    moments, mixture = release.moments, release.mixture
    assert isinstance(moments.noise, Isotropic)
    assert isinstance(mixture.noise, Isotropic)
    return {
        "format": _FORMAT,
        "agreement": agreed.digest,
        "study": agreed.plan.study,
        "party": party,
        "mock": alignment.mock,
        "people": alignment.commitment,
        "order": order,
        "n": moments.n,
        "k": mixture.k,
        **({} if release.found is None else {"ranges": _of_ranges(release.found)}),
        "moments": {
            "frame": moments.space.encode(),
            "total": packed(svec(moments.total)),
            "sigma": moments.noise.sigma,
            "events": [event.encode() for event in moments.events],
        },
        "mixture": {
            "frame": mixture.space.encode(),
            "total": packed(mixture.total),
            "sigma": mixture.noise.sigma,
            "unit": mixture.unit,
            "events": [event.encode() for event in mixture.events],
        },
    }


def _of_ranges(found: FoundRanges) -> dict[str, Any]:
    return {
        "ends": encode_ends(found.ranges.ends),
        "fill": found.ranges.fill.tolist(),
        "events": [event.encode() for event in found.events],
    }


def _found_ranges(record: Mapping[str, Any], columns: int) -> FoundRanges | None:
    part = record.get("ranges")
    if part is None:
        return None
    ranges = Ranges(decode_ends(part["ends"], columns), np.array(part["fill"], dtype=np.float64))
    return FoundRanges(ranges, tuple(decode(event) for event in part["events"]))


def _decoded(record: Mapping[str, Any], agreed: Agreement, terms: PartyTerms) -> ReleaseFile:
    plan = agreed.plan
    features = terms.encoder.features
    columns = len(features)
    if (record["n"], record["k"]) != (plan.n, plan.k):
        raise InvalidInput(f"n and k are {record['n']} and {record['k']}, the plan's {plan.n} and {plan.k}")
    parts = {}
    for name, length in (("moments", (columns + 1) * (columns + 2) // 2), ("mixture", plan.k * columns)):
        part = record[name]
        space = WhitenedSpace.decode(part["frame"])
        if space.features != features or not space.intercept:
            raise InvalidInput(f"the {name} are of other columns than the plan gives {terms.name}")
        if not invertible(space.slopes[1:]):
            raise InvalidInput(f"the coordinates of the {name} cannot be inverted")
        if not all(0 < float(part[key]) < math.inf for key in ("sigma", "unit") if key in part):
            raise InvalidInput(f"the scale of the noise in the {name} is not a positive number")
        total = unpacked(part["total"], length, f"the {name} in it")
        events = tuple(decode(event) for event in part["events"])
        parts[name] = (total, Isotropic(float(part["sigma"])), events, space)
    total, noise, events, space = parts["moments"]
    moments = Moments(unsvec(total, columns + 1), plan.n, noise, events, space)
    total, noise, events, space = parts["mixture"]
    mixture = Sketch(total, plan.n, noise, events, space, plan.k, float(record["mixture"]["unit"]))
    release = PartyRelease(moments, mixture, _found_ranges(record, columns))
    if not terms.promise.covers(Composed.of(release.events)):
        raise InvalidInput(f"it spends more than the plan allows {terms.name}")
    check_determined(plan, terms, release, first_space(terms))
    people, order = (text_in(record[key], key) for key in ("people", "order"))
    return ReleaseFile(terms.name, release, people, order, truth_in(record["mock"], "mock"))

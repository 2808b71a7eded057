"""The plan that parties sign: the columns of each party, the number of people, the budgets, and the row sketch."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpregress.accounting import GDP, ApproxDP, Composed, gaussian_promise
from dpregress.errors import InvalidInput, reason
from dpregress.mechanisms.sketching import MIXINGS
from dpregress.parties.documents import (
    LARGEST_TERMS,
    MALFORMED,
    check_signature,
    digest,
    fingerprint,
    fingerprint_in,
    known_in,
    load_document,
    number_in,
    read_bytes,
    signed,
    text_in,
    texts_in,
    truth_in,
    whole_in,
)
from dpregress.parties.keys import PartyKeys
from dpregress.public import Categorical, Numeric, Schema
from dpregress.rows import Encoder
from dpregress.solvers.vertical.ranges import range_spends
from dpregress.solvers.vertical.release import plan_deviation, plan_rows

_PLAN, _SIGNATURE = "dpregress.vertical/1.plan", "dpregress.vertical/1.signature"
#: The people in a study: only those in every table, or everybody, with gaps filled.
PEOPLE = ("all", "any")
#: The terms that people write; a plan file has two more.
_WRITTEN = ("study", "n", "identifiers", "people", "mixing", "k", "shared", "parties")
_LONGEST_MIXTURE = 2**31
#: The largest length of a party's name, which is part of file names.
_LONGEST_NAME = 100


@dataclass(frozen=True)
class PartyTerms:
    """The columns and the budget of one party.

    Attributes
    ----------
    name : str
    columns : mapping of str to Numeric or Categorical
    budget : ApproxDP
    key : str or None
        The fingerprint of its signing key; None if the plan does not name it.
    """

    name: str
    columns: Mapping[str, Numeric | Categorical]
    budget: ApproxDP
    key: str | None = None

    @property
    def schema(self) -> Schema:
        """Bounds and levels of its columns."""
        return Schema(dict(self.columns))

    @property
    def encoder(self) -> Encoder:
        """The encoder of its table."""
        return Encoder.of(tuple(self.columns), None, self.schema)

    @property
    def promise(self) -> GDP:
        """Its budget as one GDP event."""
        return gaussian_promise(self.budget)

    @property
    def numbers(self) -> dict[int, Numeric]:
        """Its numbers by their places among its design columns."""
        features = self.encoder.features
        return {features.index(name): column for name, column in self.columns.items() if isinstance(column, Numeric)}


@dataclass(frozen=True)
class StudyPlan:
    """The terms that all parties sign.

    Attributes
    ----------
    study : str
    n : int
        The number of people: public, and checked at the alignment.
    identifiers : tuple of str
        Columns of every party's table that identify the person.
    people : {"all", "any"}
        Only people in every table, or people in any table, with missing cells filled.
    mixing : str
    k : int
        The length of the sketch.
    key_commitment : str
        The commitment to the alignment key, which parties share and the analyst never has.
    shared : mapping of str to str
        By party, design columns of the same quantity, which reveal misalignment.
    parties : tuple of PartyTerms
    ranges : bool
        Whether parties look for the ranges of their numbers first; plans of earlier versions do not.
    """

    study: str
    n: int
    identifiers: tuple[str, ...]
    people: str
    mixing: str
    k: int
    key_commitment: str
    shared: Mapping[str, str]
    parties: tuple[PartyTerms, ...]
    ranges: bool = True

    def numbers(self, terms: PartyTerms) -> dict[int, Numeric]:
        """A party's columns whose ranges it looks for, by their places."""
        return terms.numbers if self.ranges else {}

    def party(self, name: str) -> PartyTerms:
        """One party's terms.

        Raises
        ------
        InvalidInput
            For a party that is not in the plan.
        """
        for terms in self.parties:
            if terms.name == name:
                return terms
        raise InvalidInput(f"no party {name!r} in the plan: it has {', '.join(terms.name for terms in self.parties)}")

    @property
    def deviation(self) -> float:
        """The largest predicted standard deviation of a correlation between parties, from public facts."""
        return plan_deviation(*_sizes(self.parties, self.ranges), self.n, self.k)

    @property
    def person(self) -> Composed:
        """The guarantee for a person over all parties."""
        return Composed.of(terms.promise for terms in self.parties)

    def encode(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": _PLAN,
            "study": self.study,
            "n": self.n,
            "identifiers": list(self.identifiers),
            "people": self.people,
            "mixing": self.mixing,
            "k": self.k,
            "key_commitment": self.key_commitment,
            "shared": dict(self.shared),
            **({"ranges": True} if self.ranges else {}),
            "parties": [
                {
                    "name": terms.name,
                    "epsilon": terms.budget.epsilon0,
                    "delta": terms.budget.delta0,
                    "columns": {name: _encoded(column) for name, column in terms.columns.items()},
                    "order": list(terms.columns),
                    **({} if terms.key is None else {"key": terms.key}),
                }
                for terms in self.parties
            ],
        }


@dataclass(frozen=True)
class Agreement:
    """A plan with every party's signature.

    Attributes
    ----------
    plan : Plan
    public_keys, commitments : mapping of str to str
        By party: its signing key, and its commitment to a share of the sketch seed.
    digest : str
        SHA-256 of the whole agreement, which every later file contains.
    """

    plan: StudyPlan
    public_keys: Mapping[str, str]
    commitments: Mapping[str, str]
    digest: str


def plan_from_toml(path: str | Path, *, key_commitment: str) -> StudyPlan:
    """Read an agreement as people write it, and fill in the length of the sketch by the public rule.

    Parameters
    ----------
    path : path-like
    key_commitment : str
        To the alignment key.

    Raises
    ------
    InvalidInput
        For a file that is not TOML, lacks a term, or contradicts itself.
    """
    try:
        terms = tomllib.loads(read_bytes(path, LARGEST_TERMS).decode("utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise InvalidInput(f"cannot read {path} as an agreement: {reason(error)}") from error
    known_in(terms, _WRITTEN, str(path))
    parties = terms.get("parties")
    if not isinstance(parties, dict):
        raise InvalidInput(f"{path} names no parties: write [parties.NAME] for each, with epsilon, delta and columns")
    record = {
        "format": _PLAN,
        "people": "all",
        "mixing": "sparse",
        "shared": {},
        "k": None,
        "ranges": True,
        "key_commitment": key_commitment,
        **terms,
        "parties": [{"name": name, **_table(party, f"{path}: parties.{name}")} for name, party in parties.items()],
    }
    return _plan(record, str(path))


def load_plan(path: str | Path) -> StudyPlan:
    """Read a plan file.

    Raises
    ------
    InvalidInput
    """
    return _plan(load_document(path, _PLAN, most=LARGEST_TERMS), str(path))


def signature_text(plan: StudyPlan, party: str, identity: PartyKeys) -> str:
    """A party's signature of the plan, with its public key and its commitment to a seed share, as a document."""
    _check_key(plan.party(party), identity.public_key, "these keys")
    record = {
        "format": _SIGNATURE,
        "plan": digest(plan.encode()),
        "party": party,
        "public_key": identity.public_key,
        "seed_commitment": identity.commitment,
    }
    return signed(record, identity.private_key)


def check_unsigned(plan: StudyPlan, party: str, identity: PartyKeys | None, path: Path) -> None:
    """Refuse to replace a signature of this plan that was made with other keys: it may be another institution's.

    None are keys that have yet to be made. Refuse other keys than the plan names, too.

    Raises
    ------
    InvalidInput
    """
    terms = plan.party(party)
    if identity is None and terms.key is not None:
        raise InvalidInput(f"the plan names {party}'s key {terms.key}: give the --keys that hold it")
    if identity is not None:
        _check_key(terms, identity.public_key, "these keys")
    if not path.exists():
        return
    try:
        found = _signature(path)
    except InvalidInput:
        return  # a damaged signature binds nobody
    own = None if identity is None else (identity.public_key, identity.commitment)
    if found["plan"] == digest(plan.encode()) and (found["public_key"], found["seed_commitment"]) != own:
        raise InvalidInput(f"{path} signs this plan for {party} with other keys: use those, or remove it first")


def agreement(plan: StudyPlan, signatures: Iterable[str | Path]) -> Agreement:
    """Check that every party has signed this plan.

    Parameters
    ----------
    plan : Plan
    signatures : iterable of path-like

    Raises
    ------
    InvalidInput
        For a missing, changed or repeated signature, or one of another plan.
    """
    records = {}
    for path in signatures:
        record = _signature(path)
        if record["plan"] != digest(plan.encode()):
            raise InvalidInput(f"{path} signs another plan than this one: ask {record['party']} to sign again")
        if record["party"] in records:
            raise InvalidInput(f"{record['party']} has signed twice: keep one signature")
        records[record["party"]] = record
    missing = [terms.name for terms in plan.parties if terms.name not in records]
    if missing or len(records) != len(plan.parties):
        raise InvalidInput(f"the plan is not signed by {', '.join(missing) or 'its parties alone'}")
    keys = {name: str(records[name]["public_key"]) for name in records}
    for terms in plan.parties:
        _check_key(terms, keys[terms.name], f"the signature of {terms.name}")
    commitments = {name: str(records[name]["seed_commitment"]) for name in records}
    whole = {"plan": plan.encode(), "keys": keys, "commitments": commitments}
    return Agreement(plan, keys, commitments, digest(whole))


def _check_key(terms: PartyTerms, public_key: str, what: str) -> None:
    """Refuse a key other than the one that the plan names, if it names one."""
    found = fingerprint(public_key)
    if terms.key not in (None, found):
        raise InvalidInput(f"{what}: the key is {found}, the plan names {terms.key}: refused")


def _signature(path: str | Path) -> dict[str, Any]:
    """A signature that verifies under the key in it, with all that it must hold."""
    record = load_document(path, _SIGNATURE, most=LARGEST_TERMS)
    check_signature(record, str(record.get("public_key")), str(path))
    if not all(isinstance(record.get(name), str) for name in ("plan", "party", "public_key", "seed_commitment")):
        raise InvalidInput(f"{path} does not hold what a signature holds: refused")
    return record


def _plan(record: Mapping[str, Any], where: str) -> StudyPlan:
    try:
        known_in(record, ("format", *_WRITTEN, "key_commitment", "ranges"), "a plan")
        parties = tuple(_terms(party) for party in record["parties"])
        _check_parties(parties)
        ranges = truth_in(record.get("ranges", False), "ranges")
        n, k = whole_in(record["n"], "n"), record["k"]
        if k is None:
            k = plan_rows(*_sizes(parties, ranges), n)
        plan = StudyPlan(
            study=text_in(record["study"], "study"),
            n=n,
            identifiers=texts_in(record["identifiers"], "identifiers"),
            people=text_in(record["people"], "people"),
            mixing=text_in(record["mixing"], "mixing"),
            k=whole_in(k, "k, which is left out for the rule's,", _LONGEST_MIXTURE),
            key_commitment=text_in(record["key_commitment"], "key_commitment"),
            shared={party: text_in(column, f"shared.{party}") for party, column in record["shared"].items()},
            parties=parties,
            ranges=ranges,
        )
        _check_terms(plan)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error
    except MALFORMED as error:
        raise InvalidInput(f"{where} lacks a term of a plan, or has it in another form: {error}") from error
    return plan


def _sizes(parties: Sequence[PartyTerms], ranges: bool) -> tuple[list[int], list[float]]:
    """The number of columns of each party, and the mu that ranges leave to it."""
    spends = [range_spends(terms.promise, terms.numbers if ranges else {})[1] for terms in parties]
    return [len(terms.encoder.features) for terms in parties], [spend.mu for spend in spends]


def _terms(party: Mapping[str, Any]) -> PartyTerms:
    name = text_in(party["name"], "the name of a party")
    known_in(party, ("name", "epsilon", "delta", "columns", "order", "key"), f"parties.{name}")
    columns = party["columns"]
    if not isinstance(columns, dict):
        raise InvalidInput(f"parties.{name}.columns is a table: write [parties.{name}.columns.NAME] for each column")
    order = texts_in(party.get("order", list(columns)), f"parties.{name}.order")
    if sorted(order) != sorted(columns):
        raise InvalidInput(f"the order of {name}'s columns names others than it has")
    budget = (number_in(party[key], f"parties.{name}.{key}") for key in ("epsilon", "delta"))
    key = None if "key" not in party else fingerprint_in(party["key"], f"parties.{name}.key")
    return PartyTerms(name, {column: _column(column, columns[column]) for column in order}, ApproxDP(*budget), key)


def _column(name: str, terms: Mapping[str, Any]) -> Numeric | Categorical:
    if set(terms) == {"levels"}:
        return Categorical(terms["levels"])
    if {"lower", "upper"} <= set(terms) <= {"lower", "upper", "unit"}:
        lower, upper = (number_in(terms[end], f"{end} of {name!r}") for end in ("lower", "upper"))
        return Numeric(lower, upper, text_in(terms.get("unit", ""), f"unit of {name!r}"))
    raise InvalidInput(f"column {name!r} takes lower and upper (and unit), or levels")


def _encoded(column: Numeric | Categorical) -> dict[str, Any]:
    if isinstance(column, Categorical):
        return {"levels": list(column.levels)}
    return {"lower": column.lower, "upper": column.upper, "unit": column.unit}


def _check_parties(parties: tuple[PartyTerms, ...]) -> None:
    names = [terms.name for terms in parties]
    if len(parties) < 2 or len(set(names)) != len(names):
        raise InvalidInput("a plan needs at least two parties with different names")
    if not all(name.replace("-", "").replace("_", "").isalnum() and len(name) <= _LONGEST_NAME for name in names):
        raise InvalidInput(
            f"names of parties are at most {_LONGEST_NAME} letters, digits, - and _: they become names of files"
        )
    features = [feature for terms in parties for feature in terms.encoder.features]
    repeated = {name for name in features if features.count(name) > 1}
    if repeated or not all(terms.columns for terms in parties):
        what = f"two parties hold {min(repeated)!r}: rename one" if repeated else "a party without columns"
        raise InvalidInput(what)


def _check_terms(plan: StudyPlan) -> None:
    if not plan.identifiers or len(set(plan.identifiers)) != len(plan.identifiers):
        raise InvalidInput("identifiers names the different columns that say who a row is about")
    if plan.people not in PEOPLE or plan.mixing not in MIXINGS:
        raise InvalidInput(f"people is one of {', '.join(PEOPLE)}, mixing one of {', '.join(MIXINGS)}")
    for terms in plan.parties:
        held = [name for name in plan.identifiers if name in terms.columns]
        if held:
            raise InvalidInput(f"{held[0]!r} says who a row is about: it cannot be a column of {terms.name} too")
    for party, column in plan.shared.items():
        if column not in plan.party(party).encoder.features:
            raise InvalidInput(f"shared column {column!r} is none of {party}'s")
    if len(plan.shared) == 1:
        raise InvalidInput("a shared column is held by at least two parties")


def _table(value: Any, where: str) -> dict[str, Any]:
    known_in(value, ("epsilon", "delta", "columns", "key"), where)
    return dict(value)

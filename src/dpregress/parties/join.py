"""Joining releases: all checks that the files allow, then the moments of all columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.accounting import ApproxDP, PrivacyStatement, compose_statements, decode
from dpregress.coordinates import WhitenedSpace, decode_ends, encode_ends, endless
from dpregress.coordinates.matrices import invertible
from dpregress.coordinates.svec import un_upper, upper
from dpregress.errors import InvalidInput
from dpregress.parties.documents import (
    MALFORMED,
    load_document,
    packed,
    text_in,
    texts_in,
    truth_in,
    unpacked,
    whole_in,
)
from dpregress.parties.plan import Agreement
from dpregress.parties.release import ReleaseFile, read_release, statement
from dpregress.releases import Entrywise, Moments
from dpregress.solvers.vertical.release import Joint, join_parties

_FORMAT = "dpregress.vertical/1.joint"
#: A shared column is flagged when its correlation lies this many standard deviations below 1.
_FLAG = 5.0


@dataclass(frozen=True, eq=False)
class JointRelease:
    """Moments of all columns of all parties, with their cost and possible problems.

    Attributes
    ----------
    study : str
    agreement : str
        The digest that every release contains.
    joint : Joint
    parties : tuple of str
    per_party : tuple of PrivacyStatement
        The guarantee of each release for its own columns.
    flags : tuple of str
        One line for each possible problem that cannot be proved.
    mock : bool
    """

    study: str
    agreement: str
    joint: Joint
    parties: tuple[str, ...]
    per_party: tuple[PrivacyStatement, ...]
    flags: tuple[str, ...]
    mock: bool

    @property
    def person(self) -> PrivacyStatement:
        """The guarantee for a person over all parties."""
        return compose_statements(self.per_party)


def join_releases(agreed: Agreement, paths: Sequence[str | Path]) -> JointRelease:
    """Check the releases of all parties against the agreement and each other, and join them.

    Raises
    ------
    InvalidInput
        For a release that is changed, cut off, repeated, missing, of another agreement, of other people, in
        another order, or of invented rows beside real ones.
    """
    files: dict[str, ReleaseFile] = {}
    for path in paths:
        file = read_release(agreed, path)
        if file.party in files:
            raise InvalidInput(f"{path} is a second release of {file.party}: give each party's once")
        files[file.party] = file
    names = [terms.name for terms in agreed.plan.parties]
    missing = [name for name in names if name not in files]
    if missing:
        raise InvalidInput(f"no release of {', '.join(missing)}: joining needs all of {', '.join(names)}")
    ordered = [files[name] for name in names]
    first = ordered[0]
    for file in ordered[1:]:
        if file.mock != first.mock:
            raise InvalidInput(f"{first.party} and {file.party} mix invented and real rows: release all the same way")
        if file.people != first.people:
            raise InvalidInput(f"{first.party} and {file.party} are about other people: align again")
        if file.order != first.order:
            raise InvalidInput(f"{first.party} and {file.party} hold people in another order: misaligned, refused")
    joint = join_parties([file.release for file in ordered])
    return JointRelease(
        study=agreed.plan.study,
        agreement=agreed.digest,
        joint=joint,
        parties=tuple(names),
        per_party=tuple(statement(agreed, file) for file in ordered),
        flags=_flags(agreed, joint),
        mock=first.mock,
    )


def joint_text(joined: JointRelease) -> str:
    """A joint release as JSON text."""
    moments = joined.joint.moments
    assert isinstance(moments.noise, Entrywise)
    record = {
        "format": _FORMAT,
        "study": joined.study,
        "agreement": joined.agreement,
        "mock": joined.mock,
        "parties": list(joined.parties),
        "privacy": [each.encode() for each in joined.per_party],
        "flags": list(joined.flags),
        "owners": list(joined.joint.owners),
        "ends": encode_ends(joined.joint.ends),
        "frame": moments.space.encode(),
        "n": moments.n,
        "total": packed(upper(moments.total)),
        "sigma": packed(upper(moments.noise.sigma)),
        "events": [event.encode() for event in moments.events],
    }
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def load_joint(path: str | Path) -> JointRelease:
    """Read a joint release.

    Raises
    ------
    InvalidInput
    """
    record = load_document(path, _FORMAT)
    try:
        return _decoded(record)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    except MALFORMED as error:
        raise InvalidInput(f"{path} does not hold what a joint release holds: {error}") from error


def _decoded(record: Mapping[str, Any]) -> JointRelease:
    space = WhitenedSpace.decode(record["frame"])
    if not (space.intercept and invertible(space.whitening)):
        raise InvalidInput("its coordinates cannot be inverted")
    length = space.order * (space.order + 1) // 2
    total, sigma = (un_upper(unpacked(record[key], length, key), space.order) for key in ("total", "sigma"))
    events = tuple(decode(event) for event in record["events"])
    moments = Moments(total, whole_in(record["n"], "n"), Entrywise.of_scales(sigma), events, space)
    parties, ends = texts_in(record["parties"], "parties"), record.get("ends")
    owners = tuple(record["owners"])
    if not all(type(owner) is int and 0 <= owner < len(parties) for owner in owners):
        raise InvalidInput("every column must belong to one of the parties")
    per_party = tuple(PrivacyStatement.decode(each) for each in record["privacy"])
    if not len(per_party) == len(parties) >= 1 or not all(isinstance(each.budget, ApproxDP) for each in per_party):
        raise InvalidInput("privacy says what each of the parties spent, within an epsilon and a delta")
    return JointRelease(
        study=text_in(record["study"], "study"),
        agreement=text_in(record["agreement"], "agreement"),
        joint=Joint(moments, owners, endless(len(owners)) if ends is None else decode_ends(ends, len(owners))),
        parties=parties,
        per_party=per_party,
        flags=texts_in(record["flags"], "flags"),
        mock=truth_in(record["mock"], "mock"),
    )


def _flags(agreed: Agreement, joint: Joint) -> tuple[str, ...]:
    """Pairs of shared columns whose released correlation is far below 1 or too uncertain."""
    names = joint.moments.space.features
    places = {party: 1 + names.index(column) for party, column in agreed.plan.shared.items()}
    colour = np.linalg.inv(joint.moments.space.slopes[1:])
    assert isinstance(joint.moments.noise, Entrywise)
    parties = list(places)
    found = []
    for i, one in enumerate(parties):
        for other in parties[:i]:
            a, b = (colour[places[party] - 1] / np.linalg.norm(colour[places[party] - 1]) for party in (one, other))
            correlation = float(a @ joint.moments.mean[1:, 1:] @ b)
            deviation = float(joint.moments.noise.sigma[places[one], places[other]]) / joint.moments.n
            if 1 - correlation > _FLAG * deviation:
                found.append(
                    f"the shared column correlates {correlation:.2f} (+- {deviation:.2f}) between {other} and {one}: "
                    "their rows are probably not of the same people"
                )
            elif _FLAG * deviation > 1:
                found.append(
                    f"the noise ({deviation:.2f}) hides whether the shared column of {other} and {one} agrees: "
                    "this check says nothing"
                )
    return tuple(found)

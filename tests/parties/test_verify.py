"""What a party may not sign: everything that the plan determines is computed anew, and keys are those agreed on."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.accounting import ApproxDP
from dpregress.errors import InvalidInput
from dpregress.parties import load_joint, load_plan
from dpregress.parties.documents import LARGEST_TERMS, fingerprint, fingerprint_in, packed, read_bytes
from dpregress.parties.keys import open_identity
from dpregress.parties.plan import PartyTerms
from dpregress.parties.release import first_space
from dpregress.parties.verify import _check_space
from dpregress.public import Categorical, Numeric
from tests.parties.study import PARTIES, write_study
from tests.parties.test_protocol import Capture, agree, join, ok, refused, released, resigned, step
from tests.support import run

Change = Callable[[dict[str, Any]], None]


def scaled(part: str, key: str, factor: float) -> Change:
    def change(record: dict[str, Any]) -> None:
        at = record[part]["frame"] if key in record[part]["frame"] else record[part]
        at[key] = (np.array(at[key]) * factor).tolist()

    return change


def ranges(**changed: Any) -> Change:
    return lambda record: record["ranges"].update(changed)


def other_split(record: dict[str, Any]) -> None:
    """The same total, spent otherwise: less noise in the mixture than the plan gives it."""
    record["moments"]["events"], record["mixture"]["events"] = record["mixture"]["events"], record["moments"]["events"]


#: What is said, and what its own party wrote and signed.
FORGED: dict[str, tuple[str, Change]] = {
    "no noise": ("the sketched rows state noise of scale 1e-09", lambda record: record["mixture"].update(sigma=1e-9)),
    "a little less noise": ("the sketched rows state noise", scaled("mixture", "sigma", 0.999)),
    "more noise": ("the sketched rows state noise", scaled("mixture", "sigma", 1e6)),
    "moments without noise": ("the moments state noise", lambda record: record["moments"].update(sigma=1e-9)),
    "a smaller ball": ("the radius of the sketched rows", scaled("mixture", "radius", 0.9)),
    "a larger ball for moments": ("the radius of the moments", scaled("moments", "radius", 2.0)),
    "an endless ball": ("the radius of the moments", lambda record: record["moments"]["frame"].update(radius=None)),
    "another unit": ("the unit of the sketched rows", scaled("mixture", "unit", 2.0)),
    "other coordinates": ("the coordinates of the sketched rows do not follow", scaled("mixture", "whitening", 1.001)),
    "other bounds": ("the coordinates of the moments do not follow", scaled("moments", "whitening", 1.001)),
    "another fill": ("the coordinates of the moments", lambda record: record["moments"]["frame"].update(fill=[2.9])),
    "another split": ("spend something other", other_split),
    "no events": ("spend something other", lambda record: record["moments"].update(events=[])),
    "a range beyond its bounds": ("reach beyond their bounds", ranges(ends=[[-5], [9e5]])),
    "a fill beyond its bounds": ("reach beyond their bounds", ranges(fill=[9e9])),
    "a range of nothing": ("the ranges are of other columns", ranges(ends=[[None], [None]])),
    "a range upside down": ("not those of 1 columns", ranges(ends=[[3.0], [2.0]])),
    "another range": ("the coordinates of the moments do not follow", ranges(ends=[[1], [2]], fill=[1.5])),
    "free ranges": ("the ranges spend something other", ranges(events=[])),
    "no ranges": ("if and only if the plan asks", lambda record: record.pop("ranges")),
    "another rule": ("of another kind", lambda record: record["mixture"]["frame"].update(weighting="features")),
}  # fmt: skip


@pytest.fixture
def study(tmp_path: Path, capsys: Capture, seed: int) -> tuple[Path, list[Path]]:
    """A study at an ordinary budget, released."""
    write_study(tmp_path, np.random.default_rng(seed))
    return tmp_path, released(capsys, tmp_path)


def test_no_party_decides_what_the_plan_decides(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    """Each is refused by ``inspect`` and by ``join``, whatever the numbers beside it; the honest file is not."""
    folder, files = study
    text = files[2].read_text()
    ok(capsys, "inspect", files[2], "--plan", folder / "shared/plan.json")
    for name, (said, change) in FORGED.items():
        files[2].write_text(text)
        resigned(folder, "insurer", files[2], change)
        assert said in refused(capsys, *join(folder, files)), name
        assert said in refused(capsys, "inspect", files[2], "--plan", folder / "shared/plan.json"), name
    files[2].write_text(text)
    ok(capsys, *join(folder, files))


@pytest.mark.parametrize("number", [1e300, -1e300, 1e308, 0.0, -1.0, 5e-324, 1e30])
@pytest.mark.parametrize("part", ["moments", "mixture"])
def test_totals_that_nobody_releases(study: tuple[Path, list[Path]], capsys: Capture, part: str, number: float) -> None:
    """What a party says it measured is its own to say; it is refused in one line or used, and never breaks anything."""
    folder, files = study

    def forge(record: dict[str, Any]) -> None:
        length = len(base64.b64decode(record[part]["total"])) // 8
        record[part]["total"] = packed(np.full(length, number))

    resigned(folder, "insurer", files[2], forge)
    for command in (join(folder, files), ("inspect", files[2], "--plan", folder / "shared/plan.json")):
        outcome = run(capsys, "vertical", *command)
        assert outcome.code in (0, 2)
        assert outcome.err.count("\n") == (1 if outcome.code else 0)


@pytest.mark.parametrize("mixing", ["dense", "hadamard"])
def test_every_mixing_is_verified(mixing: str, tmp_path: Path, capsys: Capture, seed: int) -> None:
    write_study(tmp_path, np.random.default_rng(seed), more=f'mixing = "{mixing}"\nk = 64')
    files = released(capsys, tmp_path)
    ok(capsys, *join(tmp_path, files))
    resigned(tmp_path, "lab", files[1], scaled("mixture", "sigma", 0.9))
    assert "the sketched rows state noise" in refused(capsys, *join(tmp_path, files))


def pinned(folder: Path, capsys: Capture) -> dict[str, str]:
    """Keys made first, and their fingerprints written into the terms."""
    found = {}
    for party in PARTIES:
        said = ok(capsys, "keys", "--keys", folder / f"{party}-keys")
        found[party] = said.split(": ")[1].strip()
        assert ok(capsys, "keys", "--keys", folder / f"{party}-keys") == said
    terms = (folder / "study.toml").read_text()
    for party, key in found.items():
        terms = terms.replace(f"[parties.{party}]\n", f'[parties.{party}]\nkey = "{key}"\n')
    (folder / "study.toml").write_text(terms)
    return found


def test_the_plan_names_keys(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Then nobody else can sign in a party's place, even where no signature is there yet."""
    write_study(tmp_path, np.random.default_rng(seed))
    keys = pinned(tmp_path, capsys)
    plan = tmp_path / "shared/plan.json"
    said = ok(capsys, "plan", tmp_path / "study.toml", "--key", tmp_path / "alignment.key", "--out", plan.parent)
    assert all(f"{party} {key}" in said for party, key in keys.items())
    sign = ("sign", plan, "--party", "lab", "--keys")
    assert "the plan names" in refused(capsys, *sign, tmp_path / "clinic-keys")
    assert "the plan names lab's key" in refused(capsys, *sign, tmp_path / "mallory-keys")
    assert not (tmp_path / "mallory-keys").exists()
    for party in PARTIES:
        said = ok(capsys, "sign", plan, "--party", party, "--keys", tmp_path / f"{party}-keys")
        assert keys[party] in said
    honest = (plan.parent / "lab.signature.json").read_text()
    ok(capsys, "keys", "--keys", tmp_path / "mallory-keys")
    mallory = open_identity(tmp_path / "mallory-keys")

    def forge(record: dict[str, Any]) -> None:
        record.update(public_key=mallory.public_key, seed_commitment=mallory.commitment)

    (tmp_path / "lab-keys").rename(tmp_path / "kept")
    (tmp_path / "mallory-keys").rename(tmp_path / "lab-keys")
    resigned(tmp_path, "lab", plan.parent / "lab.signature.json", forge)
    assert f"the plan names {keys['lab']}" in refused(capsys, *step(tmp_path, "align", "clinic"))
    (plan.parent / "lab.signature.json").write_text(honest)
    ok(capsys, *step(tmp_path, "align", "clinic"))


def test_fingerprints_are_printed_to_be_compared(study: tuple[Path, list[Path]], capsys: Capture) -> None:
    folder, files = study
    shown = ok(capsys, *join(folder, files)), ok(capsys, "inspect", files[0], "--plan", folder / "shared/plan.json")
    for said in shown:
        for party in PARTIES:
            key = fingerprint(open_identity(folder / f"{party}-keys").public_key)
            assert f"Key of {party}: {key} (not in the plan: compare it with the one {party} reports)" in said
    # a plan without keys is written as it always was: its digest, and so every signature of it, stays
    assert all("key" not in party for party in json.loads((folder / "shared/plan.json").read_text())["parties"])


@pytest.mark.parametrize("key", ["", "x", "12345", 3, None, True, [], "g" * 32, "0" * 33, "\x1b" * 32, "é" * 32])
def test_what_is_no_fingerprint(key: Any) -> None:
    with pytest.raises(InvalidInput, match="is the fingerprint of a key") as caught:
        fingerprint_in(key, "parties.lab.key")
    assert str(caught.value).isprintable()


def test_a_fingerprint_has_one_spelling() -> None:
    found = fingerprint("ab" * 32)
    for written in (found, found.upper(), found.replace("-", ""), found.replace("-", " "), f" {found}\n"):
        assert fingerprint_in(written, "key") == found


def test_documents_have_a_length(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Refused unparsed, in one line; what is read first is never more than the limit."""
    write_study(tmp_path, np.random.default_rng(seed))
    files = released(capsys, tmp_path)
    plan = tmp_path / "shared/plan.json"
    honest = files[0].read_text()
    files[0].write_text(honest + " " * (LARGEST_TERMS + (1 << 20)))
    assert "is longer than" in refused(capsys, *join(tmp_path, files))
    files[0].write_text(honest)
    for path in (plan, tmp_path / "shared/lab.signature.json"):
        text = path.read_text()
        path.write_text(text + " " * LARGEST_TERMS)
        assert f"longer than {LARGEST_TERMS:,} bytes" in refused(capsys, *join(tmp_path, files))
        path.write_text(text)
    terms = tmp_path / "study.toml"
    terms.write_text(terms.read_text() + "#" * LARGEST_TERMS)
    again = ("plan", terms, "--key", tmp_path / "alignment.key", "--out", tmp_path / "again")
    assert "is longer than" in refused(capsys, *again)
    with pytest.raises(InvalidInput, match="longer than 1,000 bytes"):
        read_bytes("/dev/zero", 1000)
    with pytest.raises(InvalidInput, match="longer than"):
        load_plan("/dev/zero")
    (tmp_path / "joint.json").symlink_to("/dev/null")
    with pytest.raises(InvalidInput, match="cut off"):
        load_joint(tmp_path / "joint.json")


def test_unpinned_plans_stay_readable(tmp_path: Path, capsys: Capture, seed: int) -> None:
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    assert [terms.key for terms in load_plan(tmp_path / "shared/plan.json").parties] == [None, None, None]


def _stated(upper: float) -> PartyTerms:
    columns = {"income": Numeric(0.0, upper), "smoker": Categorical(("no", "yes"))}
    return PartyTerms("clinic", columns, ApproxDP(1.0, 1e-6))


@pytest.mark.parametrize("upper", [1e6, 1e3, 1.0])
def test_coordinates_are_compared_in_each_columns_own_unit(upper: float) -> None:
    """A scale that is small beside another column's may not be stated larger: noise would seem smaller by as much."""
    space = first_space(_stated(upper)).with_response(None)
    _check_space("moments", space, space)
    for factor in (1.001, 40.0, 1 / 40):
        whitening = space.whitening.copy()
        whitening[:, 1] *= factor
        with pytest.raises(InvalidInput, match="do not follow"):
            _check_space("moments", replace(space, whitening=whitening), space)


def test_no_direction_of_nearly_equal_columns_is_left_out(seed: int) -> None:
    """Coordinates that blow up one direction hide no lie about another; roundings of another machine pass."""
    rng = np.random.default_rng(seed)
    first = first_space(_stated(1e6)).with_response(None)
    directions, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    honest = np.eye(3)
    honest[1:, 1:] = directions @ np.diag([1.0, 1e4]) @ directions.T
    space = first.rewhitened(honest, 2.0)
    forged = honest.copy()
    forged[1:, 1:] = directions @ np.diag([1.3, 1e4]) @ directions.T
    _check_space("mixture", first.rewhitened(honest * (1 + 1e-12 * rng.normal(size=(3, 3))), 2.0), space)
    with pytest.raises(InvalidInput, match="do not follow"):
        _check_space("mixture", first.rewhitened(forged, 2.0), space)

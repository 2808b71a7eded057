"""Documents that nobody honest writes: each is refused in one line, whatever is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.accounting import decode
from dpregress.errors import DPRegressError, InvalidInput
from dpregress.parties import load_joint, load_plan, read_release
from dpregress.parties.documents import LARGEST_COUNT, signed
from dpregress.parties.keys import open_identity
from dpregress.parties.plan import agreement, plan_from_toml
from dpregress.solvers.vertical.joint import solve_joint
from tests.parties.study import TERMS, write_study
from tests.parties.test_protocol import Capture, agree, ok, released
from tests.support import HUGE, spoilt


def terms_of(text: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    plan_from_toml(tmp_path / "study.toml", key_commitment="c")


def written(more: str = "") -> str:
    return TERMS.format(n=400, people="all", more=more, epsilon=1.0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[parties.lab]", "[parties.lab]\nunit = 'household'", "parties.lab has a term 'unit'"),
        ("[parties.lab]", "[parties.lab]\nname = 'clinic'", "parties.lab has a term 'name'"),
        ("[parties.lab]", "[parties.lab]\norder = ['dose', 'age_again']", "parties.lab has a term 'order'"),
        ('identifiers = ["person"]', 'identifiers = "person"', "identifiers is a list of texts"),
        ('levels = ["no", "yes"]', 'levels = "no"', "levels must be a list of texts"),
        ('unit = "years"', "unit = 3", "unit of 'age' is a text"),
        ("delta = 1e-6", "delta = true", "parties.clinic.delta is a finite number"),
        ("n = 400", f"n = {LARGEST_COUNT + 1}", "n is a whole number"),
        ("n = 400", "n = 400\nk = true", "is a whole number"),
        ("n = 400", "n = 400\ntypo = 3", "has a term 'typo'"),
    ],
)
def test_terms_that_no_plan_has(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = written()
    assert old in text
    with pytest.raises(InvalidInput) as refusal:
        terms_of(text.replace(old, new, 1), tmp_path)
    assert said in str(refusal.value)
    assert "study.toml" in str(refusal.value)


def test_columns_that_are_no_table(tmp_path: Path) -> None:
    text = written()
    start, end = text.index("[parties.insurer.columns.cost]"), len(text)
    with pytest.raises(InvalidInput, match=r"parties\.insurer\.columns is a table"):
        terms_of(text[:start] + 'columns = "cost"' + text[end:], tmp_path)


def test_the_largest_study(tmp_path: Path) -> None:
    terms_of(written().replace("n = 400", f"n = {LARGEST_COUNT}"), tmp_path)


def survives(read: Callable[[], Any], what: object) -> None:
    """Nothing but the library's own one-line refusals comes out."""
    said = ""
    try:
        read()
    except DPRegressError as refusal:
        said = str(refusal)
    assert "\n" not in said, what


def test_hostile_plans_and_joints(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """Every place of a plan and of a joint release, spoilt in every way; what is read can be used."""
    write_study(tmp_path, np.random.default_rng(seed))
    files = released(capsys, tmp_path)
    ok(capsys, "join", tmp_path / "shared/plan.json", *files, "--out", tmp_path / "public")
    path = tmp_path / "spoilt.json"
    for record in spoilt(json.loads((tmp_path / "shared/plan.json").read_text())):
        path.write_text(json.dumps(record))
        survives(lambda: (lambda plan: (plan.encode(), plan.deviation, plan.person))(load_plan(path)), record)
    for record in spoilt(json.loads((tmp_path / "public/joint.json").read_text())):
        path.write_text(json.dumps(record))
        survives(lambda: load_joint(path).person.describe(), record)
        survives(lambda: solve_joint(load_joint(path).joint, "cost", ["dose"]), record)


def test_hostile_signatures_and_releases(tmp_path: Path, capsys: Capture, seed: int) -> None:
    """The same of what a party signs: it may sign anything."""
    write_study(tmp_path, np.random.default_rng(seed))
    files = released(capsys, tmp_path)
    plan = load_plan(tmp_path / "shared/plan.json")
    signatures = [tmp_path / f"shared/{terms.name}.signature.json" for terms in plan.parties]
    agreed = agreement(plan, signatures)
    key = open_identity(tmp_path / f"{plan.parties[0].name}-keys").private_key
    for path, read in (
        (signatures[0], lambda: agreement(plan, signatures)),
        (files[0], lambda: read_release(agreed, files[0])),
    ):
        text = path.read_text()
        body = {key: value for key, value in json.loads(text).items() if key != "signature"}
        for record in spoilt(body):
            try:
                path.write_text(signed(record, key))
            except ValueError:  # not even its author can sign that
                path.write_text(json.dumps({**record, "signature": "00"}))
            survives(read, record)
        path.write_text(text)


def test_events_beyond_floats() -> None:
    with pytest.raises(InvalidInput, match="not a privacy event"):
        decode({"kind": "gdp", "mu": HUGE})


def test_an_agreement_is_needed(tmp_path: Path, capsys: Capture, seed: int) -> None:
    write_study(tmp_path, np.random.default_rng(seed))
    agree(capsys, tmp_path)
    for text in ("[" * 100_000, "\ufeff{}", '{"format": NaN}', "9" * 5000, ""):
        (tmp_path / "shared/plan.json").write_text(text)
        with pytest.raises(InvalidInput):
            load_plan(tmp_path / "shared/plan.json")

"""Study files with terms: immutable, hashed, signed; answers become rows by public rules; plans tell what to expect."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.collector import Study, device_report
from dpregress.collector.drafting import expected_errors, study_from_toml, study_model
from dpregress.collector.signing import check_study_signature, signature_beside, signature_path, study_signature
from dpregress.collector.simulation import InventedPeople
from dpregress.errors import DPRegressError, InvalidInput
from dpregress.mechanisms import SeededSampler
from dpregress.rows import RawRows
from tests.collector.support import DESCRIPTION, make_study, pilot
from tests.support import spoilt


@pytest.fixture
def study(tmp_path: Path, seed: int) -> Study:
    return make_study(tmp_path, seed, enrolment="token")


def changed(study: Study, change: Any) -> str:
    record = json.loads(study.text())
    change(record)
    return json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"


def test_a_study_survives_its_file(study: Study, tmp_path: Path) -> None:
    study.save(tmp_path / "s.json")
    found = Study.load(tmp_path / "s.json")
    assert found.text() == study.text()
    assert found.digest == hashlib.sha256((tmp_path / "s.json").read_bytes()).digest()
    assert found.terms is not None
    assert found.terms.encode() == study.terms.encode()
    assert found.names == ("age", "coffee", "smoker", "tired")
    assert found.terms.languages == ("en", "de")


CHANGES = {
    "a larger price": lambda r: r["spend"].update(epsilon=9.0),
    "a smaller budget": lambda r: r["terms"]["budget"].update(epsilon=1.0),
    "another threshold": lambda r: r["answer"]["cap"].update(gamma=0.1),
    "another bound": lambda r: r["answer"].update(bound=1e-3),
    "another column": lambda r: r["terms"]["columns"][2].update(level="no"),
    "another question": lambda r: r["terms"]["questions"][0].update(name="weight"),
    "two reports a user": lambda r: r["terms"].update(reports_per_subject=2),
    "no consent": lambda r: r["terms"].update(consent={"en": ""}),
    "a language without texts": lambda r: r["terms"].update(languages=["en", "de", "fr"]),
    "closed before it opens": lambda r: r["terms"].update(closes="2020-01-01T00:00:00Z"),
    "three levels of a response": lambda r: r["terms"]["questions"][3].update(levels=["a", "b", "c"]),
    "a number without bounds": lambda r: r["terms"]["questions"][0].pop("lower"),
    "another enrolment": lambda r: r["terms"].update(enrolment="none"),
    "no terms": lambda r: r.pop("terms"),
    "terms in an old file": lambda r: r.update(format="dpregress.study/1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_study_is_refused(change: str, study: Study) -> None:
    assert changed(study, lambda _: None) == study.text()
    with pytest.raises(InvalidInput) as refusal:
        Study.read(changed(study, CHANGES[change]))
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
def test_hostile_terms(study: Study, seed: int) -> None:
    """Every place of the terms spoilt in every way: refused in one line, or a study that devices can answer."""
    source = SeededSampler(np.random.default_rng(seed))
    record = json.loads(study.text())
    for terms in spoilt(record["terms"]):
        said, found = "", None
        try:
            wild = {**record, "terms": terms}
            found = Study.read(json.dumps(wild, sort_keys=True, separators=(",", ":")) + "\n")
        except DPRegressError as refusal:
            said = str(refusal)
        assert "\n" not in said, terms
        assert found is None or found.admits(found.answer(np.array([50.0, 2.5, 1.0]), 1.0, source)), terms


def test_answers_become_a_row(study: Study) -> None:
    """Numbers are clipped, levels are indicators, everything else is missing; nothing raises."""
    rows: list[tuple[list[object], list[float]]] = [
        ([44, "3.5", "yes", "no"], [44, 3.5, 1, 0]),
        (["200", -1, "no", "yes"], [90, 0, 0, 1]),
        (["x", None, "maybe", 7], [math.nan] * 4),
        ([object(), [], True, {}], [math.nan] * 4),
    ]
    for answers, row in rows:
        np.testing.assert_array_equal(study.row(answers), row)
        assert study.admits(device_report(answers, study).answer)


def test_values_stay_within_the_stated_bound(study: Study) -> None:
    """The value of any answers has a norm of at most the bound that the file states, up to rounding."""
    told = json.loads(study.text())["answer"]["bound"]
    for answers in ([18, 0, "no", "yes"], [90, 10, "yes", "no"], [1e9, -1e9, "yes", "yes"], [None] * 4):
        row = study.row(answers)
        value = study.query.value(study.query.row_map(RawRows(row[None, :-1], row[-1:])))
        assert np.linalg.norm(value) <= told * (1 + 1e-12)


def test_signatures(study: Study, tmp_path: Path, seed: int) -> None:
    path, key = tmp_path / "s.json", bytes(range(32))
    study.save(path)
    assert signature_beside(study, path) is None
    signature_path(path).write_text(study_signature(study, key), encoding="utf-8")
    signer = check_study_signature(study, signature_path(path))
    assert len(signer.split("-")) == 8
    assert json.loads(signature_beside(study, path) or b"")["study"] == study.digest.hex()
    other = make_study(tmp_path, seed, epsilon=2.0)
    with pytest.raises(InvalidInput, match="another study"):
        check_study_signature(other, signature_path(path))
    forged = json.loads(study_signature(other, key))
    forged["study"] = study.digest.hex()
    signature_path(path).write_text(json.dumps(forged), encoding="utf-8")
    with pytest.raises(InvalidInput, match="changed after it was signed"):
        signature_beside(study, path)


def test_only_the_public_rows_of_the_study(study: Study, tmp_path: Path, seed: int) -> None:
    assert study.terms is not None
    study_model(study.terms, pilot(tmp_path, seed))
    with pytest.raises(InvalidInput, match="not the public rows"):
        study_model(study.terms, pilot(tmp_path, seed + 1))


def test_expected_errors_fall_with_users(study: Study, tmp_path: Path, seed: int) -> None:
    """By the root of the number of users, where privacy noise and sampling are all there is."""
    errors = expected_errors(study, [10_000, 1_000_000], pilot(tmp_path, seed))
    assert errors.shape == (2, 3)
    np.testing.assert_allclose(errors[0] / errors[1], 10, rtol=0.02)


DESCRIPTIONS = {
    "no response": ('response = "tired"', "", "lacks response"),
    "an unknown response": ('response = "tired"', 'response = "weight"', "none of the questions"),
    "an unknown term": ('family = "binomial"', 'family = "binomial"\ncolour = 1', "colour"),
    "no bounds": ("lower = 18\nupper = 90\n", "", "needs public bounds"),
    "a family of numbers": ('family = "binomial"', 'family = "gamma"', "family must be one of"),
    "a missing translation": (', de = "Rauchen Sie?"', "", "every language"),
    "too few labels": ('labels = { en = ["No", "Yes"], de = ["Nein", "Ja"] }', 'labels = { en = ["No"] }', "language"),
    "too few users": ("users = 20000", "users = 0", "users"),
    "a time without a zone": ("opens = 2026-01-01T00:00:00Z", "opens = 2026-01-01T00:00:00", "opens is a time"),
}


@pytest.mark.parametrize("fault", DESCRIPTIONS)
def test_faulty_descriptions(fault: str, tmp_path: Path, seed: int) -> None:
    old, new, said = DESCRIPTIONS[fault]
    text = DESCRIPTION.format(enrolment="open", minimum=5, epsilon=4.0)
    assert old in text
    (tmp_path / "d.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidInput, match=said) as refusal:
        study_from_toml(tmp_path / "d.toml", pilot(tmp_path, seed))
    assert "\n" not in str(refusal.value)


def test_a_study_may_choose_its_message(tmp_path: Path, seed: int) -> None:
    text = DESCRIPTION.format(enrolment="open", minimum=5, epsilon=4.0)
    for recipe, spend in (("gaussian", "GDP"), ("unit-vector", "PureDP")):
        (tmp_path / "d.toml").write_text(f'recipe = "{recipe}"\n{text}', encoding="utf-8")
        assert type(study_from_toml(tmp_path / "d.toml", pilot(tmp_path, seed)).spend).__name__ == spend
    (tmp_path / "d.toml").write_text(f'recipe = "none"\n{text}', encoding="utf-8")
    with pytest.raises(InvalidInput, match="recipe must be one of"):
        study_from_toml(tmp_path / "d.toml", pilot(tmp_path, seed))


def test_studies_by_bounds_alone(tmp_path: Path) -> None:
    """Without public rows and with many users, the Gram matrix is asked for as well."""
    text = DESCRIPTION.format(enrolment="open", minimum=5, epsilon=4.0).replace("users = 20000", "users = 2000000")
    (tmp_path / "d.toml").write_text(text, encoding="utf-8")
    study = study_from_toml(tmp_path / "d.toml")
    assert study.question == "moments-in-parts"
    assert study.parts is not None
    assert study.parts.gram > 0
    assert Study.read(study.text()).digest == study.digest
    assert study.admits(device_report({"age": 1, "coffee": 2, "smoker": "no", "tired": "no"}, study).answer)


def test_invented_people_answer_as_public_rows_do(study: Study, tmp_path: Path, seed: int) -> None:
    """Levels and numbers of a design row are found again; a number beyond its bounds is the nearest one within."""
    assert study.terms is not None
    public = study_model(study.terms, pilot(tmp_path, seed)).public
    assert public is not None
    assert public.rows is not None
    people = InventedPeople(study.terms, seed, public.rows)
    known = {tuple(row) for row in public.rows.round(9)}
    for answers in people.answers(50):
        assert tuple(study.terms.row([*list(answers.values())[:-1], None])[:-1].round(9)) in known
    far = InventedPeople(study.terms, seed, public.rows + 1e6)
    assert next(far.answers(1))["age"] == study.terms.questions[0].ends[1]

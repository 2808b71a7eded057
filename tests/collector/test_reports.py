"""Studies and reports: read strictly, kept privately, summed exactly; devices and simulations have one law."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from dpregress import ApproxDP, LocalGLM, PublicMoments, SQLiteLedger
from dpregress.accounting import GDP, Composed, MemoryLedger, PureDP
from dpregress.collector import Report, Study, client, device_report
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import (
    BudgetExceeded,
    ChargedBefore,
    DPRegressError,
    InvalidInput,
    LedgerError,
    SeededNoiseWarning,
)
from dpregress.mechanisms import SeededSampler
from dpregress.rows import ArraySource, PrivateRows
from dpregress.trust import Local, Session
from tests.support import spoilt

NAMES = ("age", "dose")
MESSAGES = ("unit-vector", "gaussian", "joint")
every_message = pytest.mark.parametrize("message", MESSAGES)


def data(seed: int, n: int) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng([seed, n])
    x = rng.normal(size=(n, 2)) * [10.0, 1.0] + [40.0, 3.0]
    return x, (rng.random(n) < 1 / (1 + np.exp(-(x - [40.0, 3.0]) @ [0.1, -1.0]))).astype(float)


def model_of(message: str, seed: int, **more: Any) -> LocalGLM:
    public = PublicMoments.from_rows(data(seed, 400)[0], names=NAMES)
    return LocalGLM(ApproxDP(3.0, 1e-6), public=public, recipe=message, **more)


def study_of(message: str, seed: int) -> Study:
    return Study.of(model_of(message, seed).plan(NAMES, 50_000), "An example")


# ------------------------------------------------------------------ the study file


@every_message
def test_a_study_survives_its_file(message: str, seed: int, tmp_path: Path) -> None:
    study = study_of(message, seed)
    study.save(tmp_path / "study.json")
    found = Study.load(tmp_path / "study.json")
    assert found.text() == study.text()
    assert found.digest == study.digest
    assert len(found.digest) == 32
    assert found.space.same_as(study.space)
    assert found.spend == study.spend
    assert found.randomiser == study.randomiser


def changed(text: str, change: Any) -> str:
    record = json.loads(text)
    change(record)
    return json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"


CHANGES = {
    "less noise": lambda r: r["answer"].update(noise_scale=2**20 + 1),
    "a finer grid": lambda r: r["answer"].update(bits=r["answer"]["bits"] + 1),
    "another length": lambda r: r["answer"].update(length=4),
    "a larger price for the same noise": lambda r: r["spend"].update(mu=50.0),
    "a field more": lambda r: r.update(more=1),
    "a field less": lambda r: r.pop("title"),
    "another version": lambda r: r.update(format="dpregress.study/2"),
    "another question": lambda r: r.update(question="everything"),
    "a frame field more": lambda r: r["frame"].update(more=1),
    "no bound": lambda r: r["frame"]["response"].update(bound=None),
    "no radius": lambda r: r["frame"].update(radius=None),
    "text for numbers": lambda r: r["frame"].update(whitening="1"),
    "an infinite number": lambda r: r["frame"].update(radius=math.inf),
    "an unknown price": lambda r: r.update(spend={"kind": "free"}),
    "no title": lambda r: r.update(title=""),
    "a number for a title": lambda r: r.update(title=7),
    "a list": lambda r: r.update(space=[]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_study_is_refused(change: str, seed: int) -> None:
    text = study_of("gaussian", seed).text()
    assert changed(text, lambda _: None) == text
    with pytest.raises(InvalidInput):
        Study.read(changed(text, CHANGES[change]))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"format":1,"format":1}', "[" * 100_000, "x" * 20_000_000])
def test_other_text_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        Study.read(text)
    (tmp_path / "f").write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match="cannot be read"):
        Study.load(tmp_path / "f")


@every_message
def test_hostile_studies(message: str, seed: int) -> None:
    """Every place of a study spoilt in every way: refused in one line, or a study that devices can answer."""
    source = SeededSampler(np.random.default_rng(seed))
    for record in spoilt(json.loads(study_of(message, seed).text())):
        said, found = "", None
        try:
            found = Study.read(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")
        except DPRegressError as refusal:
            said = str(refusal)
        assert "\n" not in said, record
        assert found is None or found.admits(found.answer(np.array([50.0, 2.5]), 1.0, source)), record


# ------------------------------------------------------------------ reports


@every_message
def test_a_report_survives_the_wire(message: str, seed: int) -> None:
    study = study_of(message, seed)
    report = device_report([50.0, 2.5, 1.0], study, token=b"t" * 32)
    sent = report.encode()
    found = Report.decode(sent, study)
    assert (found.task, found.id, found.token) == (study.digest, report.id, b"t" * 32)
    np.testing.assert_array_equal(found.answer, report.answer)
    assert sent[84:] == report.answer.astype("<i4").tobytes()
    assert device_report([50.0, 2.5, 1.0], study).id != report.id


@every_message
def test_other_bytes_are_refused(message: str, seed: int) -> None:
    study, other = study_of(message, seed), study_of(message, seed + 1)
    sent = device_report([50.0, 2.5, 1.0], study).encode()
    wild = np.full(study.query.size, 2**31 - 1, dtype="<i4").tobytes()
    for data_, of in (
        (b"", study),
        (sent[:-1], study),
        (sent + b"\0", study),
        (b"DPR2" + sent[4:], study),
        (sent, other),
        (sent[:84] + wild, study),
    ):
        with pytest.raises(InvalidInput):
            Report.decode(data_, of)
    with pytest.raises(InvalidInput):
        device_report([50.0, 2.5, 1.0], study, token=b"short")


def test_honest_reports_are_let_in(seed: int) -> None:
    """Rows at the bound, 300 of each kind: one is refused with probability 1e-6 at most."""
    for message in MESSAGES:
        study = study_of(message, seed)
        for _ in range(300):
            answer = study.answer(np.array([1e9, -1e9]), 1e9, SeededSampler(np.random.default_rng(seed)))
            assert study.admits(answer)


@pytest.mark.parametrize("row", [["x", None, "1"], [np.nan, np.inf, np.nan], [10**400, 1e308, object()], [[], {}, ""]])
@every_message
def test_no_cell_is_refused(row: list[Any], message: str, seed: int) -> None:
    study = study_of(message, seed)
    assert study.admits(device_report(row, study).answer)


def test_a_row_has_the_studys_columns(seed: int) -> None:
    study = study_of("gaussian", seed)
    device_report({"dose": 1.0, "y": 0, "age": 40}, study)
    for row in ({"dose": 1.0, "y": 0}, {"dose": 1.0, "y": 0, "age": 40, "name": 1}, [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]):
        with pytest.raises(InvalidInput, match="this study asks for"):
            device_report(row, study)


class Counted:
    """A cell that says how often it was read."""

    def __init__(self) -> None:
        self.reads = 0

    def __float__(self) -> float:
        self.reads += 1
        return 1.0


@every_message
def test_a_ledger_pays_for_one_report(message: str, seed: int, tmp_path: Path) -> None:
    """Charged once for a study, before the row is looked at; another study is charged beside it."""
    study, other = study_of(message, seed), study_of(message, seed + 1)
    SQLiteLedger.create(tmp_path / "device.db", "mine", Composed.of([study.spend, other.spend]), unit="user")
    ledger = SQLiteLedger(tmp_path / "device.db", "mine")
    for wrong in ({"row": [1.0, 2.0]}, {"row": [1.0, 2.0, 1.0], "token": b"short"}):
        with pytest.raises(InvalidInput):
            device_report(study=study, ledger=ledger, **wrong)
    assert ledger.charges == ()
    device_report([50.0, 2.5, 1.0], study, ledger=ledger)
    assert [charge.event for charge in ledger.charges] == [study.spend]
    cell = Counted()
    with pytest.raises(ChargedBefore):
        device_report([50.0, 2.5, cell], study, ledger=SQLiteLedger(tmp_path / "device.db", "mine"))
    assert cell.reads == 0
    device_report([50.0, 2.5, cell], other, ledger=ledger)
    assert cell.reads == 1
    with pytest.raises(BudgetExceeded):
        device_report([50.0, 2.5, 1.0], study_of(message, seed + 2), ledger=ledger)
    with pytest.raises(LedgerError, match="one user"):
        device_report([1.0, 2.0, 1.0], study, ledger=MemoryLedger(study.spend, unit="hospital"))


def test_every_cell_takes_the_same_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, text, gaps and what cannot be read go through the same functions, and numbers stay what they are."""
    study = study_of("gaussian", seed)

    def traced(row: list[Any]) -> list[str]:
        calls: list[str] = []

        def call(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename == client.__file__:
                calls.append(f"{frame.f_code.co_name}:{frame.f_lineno}")

        sys.setprofile(call)
        try:
            device_report(row, study)
        finally:
            sys.setprofile(None)
        return calls

    rows: list[list[Any]] = [[1.0, 2.0, 1.0], [1.5, None, 1], ["x", "2", True], [10**400, math.nan, math.inf]]
    seen = [traced(row) for row in rows]
    assert all(one == seen[0] for one in seen)
    caught: list[Vector] = []
    monkeypatch.setattr(Study, "answer", lambda _, x, y, __: caught.append([*x, y]) or np.zeros(3, np.int32))
    rng = np.random.default_rng(seed)
    cells = [*rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200), 5e-324, 2.0**53 + 2, -0.0, 1e308]
    for cell in cells:
        device_report([cell, 3, np.float64(cell)], study)
    np.testing.assert_array_equal(np.array(caught), [[cell, 3, cell] for cell in cells])


# ------------------------------------------------------------------ one law


def summed(study: Study, x: Matrix, y: Vector, source: SeededSampler) -> np.ndarray:
    total = np.zeros(study.query.size, dtype=np.int64)
    for row, response in zip(x, y, strict=True):
        total += study.answer(row, response, source)
    return total


def entries_of(total: np.ndarray) -> Vector:
    """Independent entries of a release."""
    return total if total.ndim == 1 else total[np.triu_indices(len(total))]


@pytest.mark.slow
@every_message
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_devices_and_a_simulated_campaign_agree_in_law(message: str, seed: int) -> None:
    """Sums over 60 users, 80 of each kind: means and scales agree, each by a test of level 1e-7.

    The stated scale is compared with the squared differences of independent sums: chi-square for normal noise;
    sums of 60 unit vectors are nearly normal, for which a fifth is allowed.
    """
    x, y = data(seed, 60)
    repeats = 80
    study = study_of(message, seed)
    model = model_of(message, seed)
    model.random_state = np.random.default_rng(seed)
    message_plan = model.plan(NAMES, 50_000)
    simulated, devices = [], []
    for _ in range(repeats):
        source = SeededSampler(model.random_state)
        reservation = MemoryLedger(message_plan.spend).reserve(message_plan.spend)
        simulated.append(
            Session(Local(), PrivateRows(ArraySource(x, y)), source, reservation)(
                message_plan.query, message_plan.spend
            )
        )
        devices.append(study.release(summed(study, x, y, source), len(x)))
    first = devices[0]
    assert first.space.same_as(simulated[0].space)
    assert first.events == simulated[0].events
    assert math.isclose(first.noise.sigma, simulated[0].noise.sigma, rel_tol=1e-4)
    flat = [np.array([entries_of(release.total) for release in each]) for each in (simulated, devices)]
    private = getattr(first.noise, "private", 1.0)
    sigma = first.noise.sigma * math.sqrt(private)
    entries = flat[0].shape[1]
    spread = np.full(entries, sigma)
    if message == "joint":
        off = ~np.equal(*np.triu_indices(len(first.total)))
        spread[off] /= math.sqrt(2)
    squares = np.sum(((flat[0] - flat[1]) / spread) ** 2) / 2
    slack = 1.0 if message != "unit-vector" else 1.3
    freedom = entries * repeats
    assert chi2.ppf(5e-8, freedom) / slack <= squares <= chi2.isf(5e-8, freedom) * slack
    means = np.sum(((flat[0] - flat[1]).mean(axis=0) / spread) ** 2) * repeats / 2
    assert means <= chi2.isf(1e-7, entries) * slack


@every_message
def test_a_collected_campaign_is_fitted(message: str, seed: int) -> None:
    """400 devices by the operating system's noise; the fit is that of the release, at the study's price."""
    study = study_of(message, seed)
    x, y = data(seed, 400)
    sums = np.zeros(study.query.size, dtype=np.int64)
    for row, response in zip(x, y, strict=True):
        sums += Report.decode(device_report([*row, response], study).encode(), study).answer
    model = model_of(message, seed).fit_release(study.release(sums, 400), study.message_plan)
    assert np.isfinite(model.coef_).all()
    assert model.privacy_.promise == study.spend
    assert isinstance(study.spend, PureDP if message == "unit-vector" else GDP)
    assert model.predict(x).shape == (400,)
    with pytest.raises(InvalidInput, match="another study"):
        model.fit_release(model.release_, model_of(message, seed + 1).plan(NAMES, 400))
    with pytest.raises(InvalidInput, match="shape"):
        study.release(sums[:-1], 400)


def test_sums_are_exact_whatever_their_order(seed: int) -> None:
    study = study_of("gaussian", seed)
    source = SeededSampler(np.random.default_rng(seed))
    answers = [study.answer(*row, source).astype(np.int64) for row in zip(*data(seed, 50), strict=True)]
    assert np.array_equal(sum(answers), sum(reversed(answers)))


def test_a_seed_warns(seed: int) -> None:
    with pytest.warns(SeededNoiseWarning):
        model_of("auto", seed, random_state=0).fit(*data(seed, 100))

"""Files that the first version wrote are still read, and mean what they meant then.

``tests/golden/files`` was written by the package as it was before its modules were moved; ``expected.json`` holds what
that version made of them.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpregress import GDP, MarginalsRegression, PublicMoments, SQLiteLedger
from dpregress.collector import Study
from tests.support import run

FILES = Path(__file__).parent / "files"
EXPECTED: dict[str, Any] = json.loads((FILES / "expected.json").read_text())
MODELS = ("linear", "one-shot", "formula", "poisson", "logistic", "multinomial")


@pytest.mark.parametrize("name", MODELS)
def test_models_predict_as_before(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "predicted.csv"
    model = (FILES / f"{name}.model.json", FILES / "new.csv")
    said = run(capsys, "predict", *model, "--schema", FILES / "schema.toml", "--out", out)
    assert said.code == 0, said.err
    with out.open() as lines:
        found = list(csv.DictReader(lines))
    for row, expected in zip(found, EXPECTED[name], strict=True):
        for key, value in expected.items():
            try:
                assert float(row[key]) == pytest.approx(float(value), rel=1e-12)
            except ValueError:
                assert row[key] == value


@pytest.mark.parametrize("kind", ["unit-vector", "gaussian", "joint"])
def test_studies_keep_their_digest(kind: str) -> None:
    """Devices know a study by it."""
    assert Study.read((FILES / f"study-{kind}.json").read_text()).digest.hex() == EXPECTED[f"study-{kind}"]


@pytest.mark.parametrize("mechanism", ["one-shot", "residuals"])
def test_marginals_are_fitted_as_before(mechanism: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of earlier versions hold no tables for inference.

    Their coefficients are those of today's regression, which shrinks less than that of the first version did: its
    coefficients lie within two of today's errors.
    """
    file = FILES / f"marginals-{mechanism}.json"
    said = run(capsys, "marginals", "fit", file, "--target", "age", "--features", "plan,ill")
    assert said.code == 0, said.err
    assert "no basis for intervals" in said.out
    found = MarginalsRegression.from_release(file, "age", ["plan", "ill"])
    error = found.coefficients_.standard_error
    assert [found.intercept_, *found.coef_, *error] == pytest.approx(EXPECTED[f"marginals-{mechanism}-fit"], rel=2e-3)
    first = numbers(EXPECTED[f"marginals-{mechanism}"])
    assert found.coefficients_.n == first[0]
    assert (abs(found.coef_ - first[2 : 2 + 2 * len(found.coef_) : 2]) < 2 * error).all()


def test_a_joint_release_is_fitted_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "vertical", "fit", FILES / "vertical" / "joint.json", "--target", "y", "--out", tmp_path / "m")
    assert said.code == 0, said.err
    assert "300 people at 2 parties" in said.out


def test_a_release_agrees_with_its_plan(capsys: pytest.CaptureFixture[str]) -> None:
    folder = FILES / "vertical"
    for party in ("a", "b"):
        said = run(capsys, "vertical", "inspect", folder / f"{party}.release.json", "--plan", folder / "plan.json")
        assert said.code == 0, said.err


def test_a_ledger_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    shutil.copy(FILES / "ledger.db", path)
    ledger = SQLiteLedger(path, "people")
    assert len(ledger.charges) == len(MODELS)
    ledger.reserve(GDP(0.1))
    assert len(SQLiteLedger(path, "people").charges) == len(MODELS) + 1


def test_a_ledger_of_version_2_goes_on(tmp_path: Path) -> None:
    """Written by the package before ledgers named analysts and had policies."""
    path = tmp_path / "ledger.db"
    shutil.copy(FILES / "ledger-2.db", path)
    assert SQLiteLedger.datasets(path) == ("people", "coded")
    SQLiteLedger(path, "people").on_behalf(analyst="ann").reserve(GDP(0.1))
    first, second, third = SQLiteLedger(path, "people").charges
    assert [first.seeded, second.seeded, third.seeded] == [False, True, False]
    assert [first.note, second.event, third.request.analyst] == ["DPRidge of cost", GDP(0.5), "ann"]
    assert SQLiteLedger(path, "coded").account.unit == "person"


def test_public_moments_are_read() -> None:
    assert PublicMoments.load(FILES / "public.json").names == ("age", "years", "cost")


def numbers(text: str) -> list[float]:
    """Every number of a printed table, in order."""
    found = []
    for word in text.replace(",", "").split():
        try:
            found.append(float(word))
        except ValueError:
            continue
    return found

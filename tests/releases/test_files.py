"""Model files: what was fitted comes back, and nothing else is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import GDP, DPLinearRegression, PublicMoments
from dpregress.errors import InvalidInput
from dpregress.releases.files import load_model, model_text


@pytest.fixture(scope="module")
def model() -> DPLinearRegression:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = x @ [1.0, 2.0] + 0.1 * rng.normal(size=600)
    public = PublicMoments.from_rows(x[:100], y[:100], names=["age", "dose"])
    return DPLinearRegression(GDP(2.0), public=public).fit(x[100:], y[100:])


@pytest.fixture
def text(model: DPLinearRegression) -> str:
    return model_text(model.coefficients_, model.privacy_, model.moments_, software="dpregress test")


def test_coefficients_come_back(model: DPLinearRegression, text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    found, fitted = load_model(path), model.coefficients_
    assert (found.features, found.intercept, found.target, found.n) == (("age", "dose"), fitted.intercept, "y", 500)
    for field in ("coef", "privacy_error", "standard_error"):
        np.testing.assert_array_equal(getattr(found, field), getattr(fitted, field))


def test_a_model_without_moments_has_no_errors(model: DPLinearRegression, tmp_path: Path) -> None:
    unknown = np.full(2, np.nan)
    fitted = model.coefficients_
    plain = type(fitted)(fitted.features, fitted.coef, 0.0, "y", 5, unknown, unknown)
    path = tmp_path / "model.json"
    path.write_text(model_text(plain, model.privacy_, None, software="dpregress test"))
    assert np.isnan(load_model(path).standard_error).all()


def _without(key: str) -> Any:
    return lambda record: record.pop(key)


@pytest.mark.parametrize(
    "spoil",
    [
        _without("format"),
        _without("coef"),
        _without("features"),
        lambda record: record.update(format="dpregress.model/2"),
        lambda record: record.update(coef=[1.0]),
        lambda record: record.update(coef="much"),
        lambda record: record.update(coef=[[1.0], [2.0]]),
        lambda record: record.update(n="many"),
        lambda record: record.update(intercept=None),
    ],
)
def test_a_spoiled_file_is_refused(text: str, tmp_path: Path, spoil: Any) -> None:
    record = json.loads(text)
    spoil(record)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(record))
    with pytest.raises(InvalidInput) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"3", b"\xff\xfe", b"{}"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"model\.json"):
        load_model(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.json"):
        load_model(tmp_path / "none.json")

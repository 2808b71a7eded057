"""Model files: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress import GDP, DPRidge, PublicMoments
from dpregress.errors import InvalidInput
from dpregress.releases.model_files import load_model, load_moments, model_text
from dpregress.solvers import solve_moments


@pytest.fixture
def fitted(seed: int) -> DPRidge:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3000, 2)) * [1.0, 30.0] + [0.0, 500.0]
    y = x @ [1.0, 0.1] + rng.normal(size=3000)
    public = PublicMoments.from_rows(x[:100], y[:100])
    return DPRidge(GDP(2.0), alpha=5.0, public=public, recipe="one-shot").fit(x[100:], y[100:])


@pytest.fixture
def path(fitted: DPRidge, tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_text(model_text(fitted.coefficients_, fitted.privacy_, fitted.moments_, software="test"))
    return path


def test_coefficients_come_back(fitted: DPRidge, path: Path) -> None:
    model = load_model(path)
    assert model.features == fitted.coefficients_.features
    assert np.array_equal(model.coef, fitted.coef_)
    assert model.intercept == fitted.intercept_
    assert np.array_equal(model.standard_error, fitted.coefficients_.standard_error)


def test_moments_give_the_same_fit_and_any_other(fitted: DPRidge, path: Path) -> None:
    moments = load_moments(path)
    coef, _ = solve_moments(moments, alpha=5.0)
    assert np.allclose(moments.space.pull_back(coef)[0], fitted.coef_, rtol=1e-12)
    heavier, _ = solve_moments(moments, alpha=1e9)
    assert np.linalg.norm(moments.space.pull_back(heavier)[0]) < np.linalg.norm(fitted.coef_)
    assert moments.events == (fitted.privacy_.promise,)


def _spoil(record: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    return {**record, key: value}


def test_a_file_of_another_format_is_named_once(path: Path) -> None:
    path.write_text(json.dumps({"format": "dpregress.privacy/1"}))
    with pytest.raises(InvalidInput) as told:
        load_model(path)
    assert str(told.value).count("model.json") == 1
    assert "it is of format 'dpregress.privacy/1'" in str(told.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "dpregress.model/99"),
        ("coef", [1.0]),
        ("coef", "x"),
        ("features", None),
        ("intercept", []),
        ("n", "many"),
    ],
)
def test_spoiled_models_are_refused(path: Path, key: str, value: Any) -> None:
    path.write_text(json.dumps(_spoil(json.loads(path.read_text()), key, value)))
    with pytest.raises(InvalidInput, match=r"model\.json"):
        load_model(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("total", [[1.0]]),
        ("sigma", None),
        ("frame", {}),
        ("events", [{"kind": "os.system"}]),
        ("frame", {"features": ["a"], "whitening": [[1.0]], "radius": -1, "fill": [0], "intercept": False,
                   "response": None, "weighting": "row"}),
    ],
)  # fmt: skip
def test_spoiled_moments_are_refused(path: Path, key: str, value: Any) -> None:
    record = json.loads(path.read_text())
    path.write_text(json.dumps(_spoil(record, "moments", _spoil(record["moments"], key, value))))
    with pytest.raises(InvalidInput, match=r"model\.json"):
        load_moments(path)


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "3", "\x00"):
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(InvalidInput, match=r"model\.json"):
            load_model(tmp_path / "model.json")
    with pytest.raises(InvalidInput, match="nowhere"):
        load_model(tmp_path / "nowhere.json")


def test_a_recipe_without_joint_moments_says_so(fitted: DPRidge, tmp_path: Path) -> None:
    text = model_text(fitted.coefficients_, fitted.privacy_, None, software="test")
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(InvalidInput, match="no joint moments"):
        load_moments(tmp_path / "model.json")


def test_a_file_that_lacks_an_entry_says_which(path: Path) -> None:
    record = json.loads(path.read_text())
    del record["target"]
    path.write_text(json.dumps(record))
    with pytest.raises(InvalidInput, match=r"model.json is not a model file: it lacks the entry 'target'$"):
        load_model(path)

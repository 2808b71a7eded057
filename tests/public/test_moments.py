"""Public moments: from rows, from a published matrix, from a file; everything else is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpregress import PublicMoments
from dpregress.errors import InvalidInput

ROWS = np.random.default_rng(0).normal([1.0, 0.0, -2.0], size=(30, 3))
LABELS = ROWS @ [1.0, 2.0, 3.0]


def refused(call: Any, *arguments: Any, **more: Any) -> str:
    """The text of the InvalidInput that a call raises: one line."""
    with pytest.raises(InvalidInput) as caught:
        call(*arguments, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_moments_of_rows() -> None:
    public = PublicMoments.from_rows(ROWS, LABELS)
    np.testing.assert_allclose(public.second, np.mean([np.outer(row, row) for row in ROWS], axis=0))
    np.testing.assert_array_equal(public.second, public.second.T)
    assert public.mean is not None
    np.testing.assert_allclose(public.mean, ROWS.mean(axis=0))
    assert (public.n, public.names, public.labelled) == (30, ("x0", "x1", "x2"), True)
    assert not public.unlabelled().labelled
    assert public.unlabelled().rows is public.rows


@pytest.mark.parametrize("make", [pd.DataFrame, lambda rows, columns: pl.DataFrame(rows, schema=columns)])
def test_names_of_a_table_are_kept(make: Any) -> None:
    public = PublicMoments.from_rows(make(ROWS, columns=["age", "dose", "sex"]), pd.Series(LABELS))
    assert public.names == ("age", "dose", "sex")
    np.testing.assert_array_equal(public.second, PublicMoments.from_rows(ROWS).second)


def test_an_arrow_table_is_a_table_too() -> None:
    table = pa.table(dict(zip(["age", "dose", "sex"], ROWS.T, strict=True)))
    public = PublicMoments.from_rows(table)
    assert public.names == ("age", "dose", "sex")
    np.testing.assert_array_equal(public.second, PublicMoments.from_rows(ROWS).second)


def test_names_may_be_given() -> None:
    assert PublicMoments.from_rows(ROWS, names=["a", "b", "c"]).names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.array([[1.0, np.nan]]), "missing or non-finite"),
        (np.array([[1.0, np.inf]]), "missing or non-finite"),
        (np.empty((0, 3)), "at least one row"),
        (np.empty((3, 0)), "at least one row"),
        (np.arange(3.0), "at least one row"),
        ([["a", "b"]], "must be numbers"),
        ([[1.0, None]], "must be numbers|non-finite"),
        ([[1.0, 2.0], [3.0]], "must be numbers"),
    ],
    ids=str,
)
def test_bad_rows_are_refused(rows: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        PublicMoments.from_rows(rows)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:-1], "30 public rows need 30 labels"),
        (np.where(np.arange(30) == 3, np.nan, LABELS), "non-finite"),
        (["a"] * 30, "must be numbers"),
    ],
)
def test_bad_labels_are_refused(labels: Any, words: str) -> None:
    assert words in refused(PublicMoments.from_rows, ROWS, labels)


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "b"]])
def test_names_must_fit(names: list[str]) -> None:
    refused(PublicMoments.from_rows, ROWS, names=names)


def test_a_published_matrix_will_do() -> None:
    whole = PublicMoments.from_rows(ROWS)
    published = PublicMoments.from_matrix(whole.second, n=30, mean=whole.mean)
    np.testing.assert_array_equal(published.augmented(True), whole.augmented(True))
    assert published.rows is None


@pytest.mark.parametrize(
    "second",
    [
        np.ones((2, 3)),
        np.ones(4),
        np.array([[1.0, 2.0], [0.0, 1.0]]),
        np.full((2, 2), np.nan),
        [["a"]],
        [[1.0], [1.0, 2.0]],
    ],
    ids=str,
)
def test_a_matrix_that_is_no_second_moment_is_refused(second: Any) -> None:
    refused(PublicMoments.from_matrix, second, n=10)


def test_counts_and_means_must_fit() -> None:
    refused(PublicMoments.from_matrix, np.eye(2), n=0)
    refused(PublicMoments.from_matrix, np.eye(2), n=5, mean=np.zeros(3))
    refused(PublicMoments.from_matrix, np.eye(2), n=5, mean=[0.0, np.nan])


def test_selecting_reorders_everything() -> None:
    public = PublicMoments.from_rows(ROWS, LABELS, names=["a", "b", "c"])
    chosen = public.select(["c", "a"])
    again = PublicMoments.from_rows(ROWS[:, [2, 0]], LABELS, names=["c", "a"])
    assert chosen.names == ("c", "a")
    for field in ("second", "mean", "rows", "labels"):
        np.testing.assert_allclose(getattr(chosen, field), getattr(again, field))
    assert "no column 'z'" in refused(public.select, ["a", "z"])
    refused(public.select, ["a", "a"])


def test_an_intercept_needs_the_means() -> None:
    whole = PublicMoments.from_rows(ROWS)
    joint = np.column_stack([np.ones(30), ROWS])
    np.testing.assert_allclose(whole.augmented(True), joint.T @ joint / 30)
    np.testing.assert_array_equal(whole.augmented(False), whole.second)
    assert "needs the public means" in refused(PublicMoments.from_matrix(np.eye(2), n=5).augmented, True)


# ------------------------------------------------------------------ files


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "public.json"
    PublicMoments.from_rows(ROWS, LABELS, names=["a", "b", "c"]).save(path)
    return path


def test_a_file_keeps_moments_and_no_rows(saved: Path) -> None:
    loaded = PublicMoments.load(saved)
    whole = PublicMoments.from_rows(ROWS, names=["a", "b", "c"])
    assert (loaded.names, loaded.n, loaded.rows, loaded.labels) == (whole.names, 30, None, None)
    np.testing.assert_array_equal(loaded.second, whole.second)
    assert loaded.mean is not None
    np.testing.assert_array_equal(loaded.mean, whole.mean)
    assert set(json.loads(saved.read_text())) == {"format", "n", "names", "mean", "second_moment"}


def test_unknown_means_stay_unknown(tmp_path: Path) -> None:
    path = tmp_path / "public.json"
    PublicMoments.from_matrix(np.eye(2), n=5).save(path)
    assert PublicMoments.load(path).mean is None


@pytest.mark.parametrize(
    "change",
    [
        {"format": "dpregress.public-moments/2"},
        {"n": None},
        {"n": "many"},
        {"n": 0},
        {"names": 3},
        {"names": ["a", "b"]},
        {"mean": [1.0]},
        {"mean": ["a", "b", "c"]},
        {"second_moment": [[1.0]]},
        {"second_moment": [["a"]]},
        {"second_moment": "secret"},
        {"second_moment": [[float("nan")] * 3] * 3},
        {"mean": [float("inf")] * 3},
    ],
    ids=str,
)
def test_a_spoiled_file_is_refused(saved: Path, change: dict[str, Any]) -> None:
    saved.write_text(json.dumps({**json.loads(saved.read_text()), **change}))
    refused(PublicMoments.load, saved)


@pytest.mark.parametrize("key", ["format", "n", "names", "mean", "second_moment"])
def test_a_file_without_a_part_is_refused(saved: Path, key: str) -> None:
    record = json.loads(saved.read_text())
    del record[key]
    saved.write_text(json.dumps(record))
    assert str(saved) in refused(PublicMoments.load, saved)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"null", b"{}", b"\xff\xfe\x00", b"a,b\n1,2\n"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "public.json"
    path.write_bytes(content)
    assert str(path) in refused(PublicMoments.load, path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    refused(PublicMoments.load, tmp_path / "none.json")
    refused(PublicMoments.load, tmp_path)

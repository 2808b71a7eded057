"""``public=`` as a table or file of public rows: the same fit as with their moments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpregress import (
    GDP,
    ApproxDP,
    Categorical,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    LocalGLM,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.errors import InvalidInput
from dpregress.rows import Encoder
from dpregress.rows.readers.files import to_table

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
RNG = np.random.default_rng(0)
N = 2_000
ROWS = pd.DataFrame(
    {
        "age": RNG.uniform(18, 80, size=N),
        "plan": RNG.choice(["free", "basic", "full"], size=N),
        "visits": RNG.poisson(3.0, size=N).astype(float),
    }
)
SCHEMA = Schema({"age": Numeric(18, 80), "plan": Categorical(("free", "basic", "full")), "visits": Numeric(0, 20)})
PUBLIC, PRIVATE = ROWS[:300], ROWS[300:]
X = Encoder.of(["age", "plan"], None, SCHEMA).x(to_table(PUBLIC))
NAMES = ("age", "plan=basic", "plan=full")
LABELLED = PublicMoments.from_rows(X, PUBLIC["visits"], names=NAMES)


def fitted(kind: Any, public: Any, **more: Any) -> Any:
    model = kind(GDP(1.0), public=public, schema=SCHEMA, random_state=0, **more)
    return model.fit_table(PRIVATE, "visits")


@pytest.mark.parametrize("kind", [DPLinearRegression, DPPoissonRegressor])
def test_rows_are_their_moments(kind: Any, tmp_path: Path) -> None:
    PUBLIC.to_csv(tmp_path / "public.csv", index=False)
    expected = fitted(kind, LABELLED)
    shuffled = PUBLIC[["visits", "plan", "age"]].assign(note="hello")
    for public in (PUBLIC, shuffled, pl.from_pandas(PUBLIC), pa.Table.from_pandas(PUBLIC), tmp_path / "public.csv"):
        found = fitted(kind, public)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
        assert found.privacy_.assumed_public == expected.privacy_.assumed_public
    in_memory = kind(GDP(1.0), public=PUBLIC, schema=SCHEMA, random_state=0)
    in_memory.fit(PRIVATE[["age", "plan"]], PRIVATE["visits"])
    np.testing.assert_allclose(in_memory.coef_, expected.coef_, rtol=1e-9)


def test_without_the_response_rows_are_unlabelled(tmp_path: Path) -> None:
    unlabelled = PublicMoments.from_rows(X, names=NAMES)
    unlabelled.save(tmp_path / "moments.json")
    for public, moments in (
        (PUBLIC.drop(columns="visits"), unlabelled),
        (tmp_path / "moments.json", PublicMoments.load(tmp_path / "moments.json")),  # without the norms of rows
    ):
        found = fitted(DPLinearRegression, public)
        np.testing.assert_allclose(found.coef_, fitted(DPLinearRegression, moments).coef_, rtol=1e-9)
        assert "their responses" not in " ".join(found.privacy_.assumed_public)


def test_classes_of_public_rows() -> None:
    table = PRIVATE.assign(visits=np.where(PRIVATE["visits"] > 2, "many", "few"))
    public = PUBLIC.assign(visits=np.where(PUBLIC["visits"] > 2, "many", "few"))
    moments = PublicMoments.from_rows(X, (public["visits"] == "many").astype(float), names=NAMES)
    schema = Schema({name: SCHEMA.columns[name] for name in ("age", "plan")})
    found, expected = (
        DPLogisticRegression(GDP(1.0), public=given, schema=schema, classes=("few", "many"), random_state=0).fit_table(
            table, "visits"
        )
        for given in (public, moments)
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


def test_an_array_has_the_columns_of_the_public_rows() -> None:
    public = pd.DataFrame({"a": RNG.normal(size=200), "y": RNG.normal(size=200), "b": RNG.normal(size=200)})
    model = DPLinearRegression(GDP(1.0), public=public, random_state=0).fit(RNG.normal(size=(500, 2)), np.ones(500))
    assert model.coefficients_.features == ("a", "b")
    with pytest.raises(InvalidInput, match="X has 3 columns, the public rows have 2"):
        model.fit(RNG.normal(size=(500, 3)), np.ones(500))


def test_a_local_campaign_from_public_rows() -> None:
    def message_plan(public: Any) -> Any:
        return LocalGLM(ApproxDP(1.0, 1e-6), family="gaussian", public=public, schema=SCHEMA).plan(
            NAMES, 10_000, target="visits"
        )

    found, expected = message_plan(PUBLIC), message_plan(LABELLED)
    assert found.space.features == NAMES
    np.testing.assert_allclose(found.space.radius, expected.space.radius, rtol=1e-9)


def test_gaps_are_left_out_aloud() -> None:
    gaps = PUBLIC.copy()
    gaps.loc[gaps.index[0], "age"] = np.nan
    with pytest.warns(UserWarning, match="1 public row"):
        assert "299 public rows" in " ".join(fitted(DPLinearRegression, gaps).privacy_.assumed_public)


@pytest.mark.parametrize(
    ("public", "words"),
    [
        (PUBLIC.drop(columns="plan"), "no column 'plan'"),
        (PUBLIC.assign(age="old"), "column 'age' of the public table holds text"),
        (X, "public= takes a PublicMoments, or a table or file of public rows, not a ndarray"),
        ("nowhere.csv", "no file nowhere.csv"),
    ],
    ids=["column", "text", "array", "file"],
)
def test_unusable_public_rows_are_refused(public: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fitted(DPLinearRegression, public)

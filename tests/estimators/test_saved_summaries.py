"""A saved model prints what the model printed that was saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpregress
from dpregress import (
    GDP,
    ApproxDP,
    DPLinearRegression,
    LocalGLM,
    MarginalsRegression,
    Numeric,
    PublicMoments,
    Schema,
    VerticalRegression,
    release_moments,
)
from dpregress.errors import InvalidInput
from tests.registry import FITS, FitEntry

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")


def check_the_same(model: Any, folder: Path) -> str:
    """All forms of both summaries; the text."""
    model.save(folder)
    saved = dpregress.load(folder)
    for level in (0.95, 0.8):
        assert str(saved.summary(level=level)) == str(model.summary(level=level))
    for form in ("to_html", "to_latex"):
        assert getattr(saved.summary(), form)() == getattr(model.summary(), form)()
    return str(saved.summary())


def test_a_damaged_file_is_said_to_be_one(tmp_path: Path) -> None:
    DPLinearRegression(GDP(1.0), schema=BOUNDS, random_state=1).fit_table(columns()).save(tmp_path)
    file = tmp_path / "model.json"
    text = file.read_text()
    file.write_text(text[:300])
    with pytest.raises(InvalidInput, match=r"model\.json is cut short or damaged: copy it again from the folder"):
        dpregress.load(tmp_path)
    file.write_text(json.dumps({**json.loads(text), "n": -1}))
    with pytest.raises(InvalidInput, match="its number of rows is invalid: the file is damaged"):
        dpregress.load(tmp_path)


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("entry", FITS, ids=str)
def test_every_estimator(entry: FitEntry, seeded: bool, tmp_path: Path) -> None:
    given = {"random_state": 1} if seeded else {"ledger": entry.ledger(GDP(9.0))}
    model = entry.fit(np.random.default_rng(3), **given)
    text = check_the_same(model, tmp_path)
    assert f"{entry.kind.__name__} of " in text.splitlines()[0]
    assert ("no protection" in text) == seeded


def columns(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"x0": rng.uniform(0, 1, n), "x1": rng.gamma(1.0, 1.0, n).clip(0, 50)})
    return table.assign(y=table["x0"] + rng.normal(size=n))


BOUNDS = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 50), "y": Numeric(-10, 10)})


def test_public_tables_ranges_shuffled_messages_and_parties(tmp_path: Path) -> None:
    table = columns()
    x, y = table[["x0", "x1"]].to_numpy(), table["y"].to_numpy()
    linear = DPLinearRegression(GDP(2.0), schema=BOUNDS, public=table[:300], random_state=1)
    linear.fit_table(table[300:], "y", diagnose=0.1)
    users = LocalGLM(ApproxDP(1.0, 1e-6), family="gaussian", schema=BOUNDS, random_state=1).fit(x, y)
    coded = MarginalsRegression(ApproxDP(2.0, 1e-6), schema=BOUNDS, random_state=1).fit_table(table, "y")
    parties = VerticalRegression(ApproxDP(2.0, 1e-6), schema=BOUNDS, random_state=1)
    parties.fit([table[["x0"]], table[["x1"]]], table["y"])
    released = DPLinearRegression.from_moments(
        release_moments(table, privacy=GDP(1.0), schema=BOUNDS, random_state=1), "y"
    )
    for model, words in (
        (linear, "Public table: 300 rows, condition number"),
        (users, "If shuffled: epsilon"),
        (coded, "Coefficients are those of numbers within these ranges"),
        (parties, "Each of 2 parties promises this for its own columns."),
        (parties, "For a person over all parties, nominally: mu"),
        (released, "DPLinearRegression of y"),
    ):
        assert words in check_the_same(model, tmp_path)


def test_a_fit_without_estimates(tmp_path: Path) -> None:
    table = columns()
    public = PublicMoments.from_rows(table[["x0", "x1"]][:200].to_numpy(), table["y"][:200].to_numpy())
    paper = DPLinearRegression(GDP(2.0), public=public, recipe="paper", random_state=1)
    paper.fit(table[["x0", "x1"]].to_numpy()[200:], table["y"].to_numpy()[200:])
    assert "no basis for intervals" in check_the_same(paper, tmp_path)


def test_slopes_that_noise_hides_are_not_identified(tmp_path: Path) -> None:
    """Their errors were those of a prior, and a privacy s.e. of 1e-10."""
    x = np.random.default_rng(0).uniform(size=(3000, 2))
    schema = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1)})
    model = LocalGLM(ApproxDP(1.0, 1e-6), schema=schema, random_state=1).fit(x, x[:, 0] > 0.5)
    assert not model.coef_.any()
    text = check_the_same(model, tmp_path)
    for name in ("x0", "x1"):
        row = next(line for line in text.splitlines() if line.startswith(name))
        assert row.split() == [name, "-", "not", "identified"]
    assert model.coefficients_._repr_html_().count("not identified") == 2
    assert np.isnan(model.summary().to_frame().loc["x0", "privacy s.e."])


def test_files_of_earlier_versions_have_no_name_of_the_model(tmp_path: Path) -> None:
    table = columns()
    model = MarginalsRegression(ApproxDP(2.0, 1e-6), schema=BOUNDS, random_state=1).fit_table(table, "y")
    model.save(tmp_path)
    path = tmp_path / "model.json"
    record = json.loads(path.read_text())
    assert set(record["summary"]) == {"model", "before", "after"}
    path.write_text(json.dumps({key: value for key, value in record.items() if key != "summary"}))
    text = str(dpregress.load(path).summary())
    assert text.startswith("saved model of y")
    assert "numbers within these ranges" in text


@pytest.mark.parametrize(
    "part",
    [
        {"model": 3},
        {"before": ["a", None]},
        {"after": 7},
        {"party": {"budget": 1}},
        {"party": "all"},
        "DPRidge",
        [],
        ["model"],
    ],
)
def test_a_summary_that_is_none_is_refused(part: Any, tmp_path: Path) -> None:
    table = columns()
    DPLinearRegression(GDP(2.0), schema=BOUNDS, random_state=1).fit_table(table, "y").save(tmp_path)
    path = tmp_path / "model.json"
    record = json.loads(path.read_text())
    record["summary"] = {**record["summary"], **part} if isinstance(part, dict) else part
    path.write_text(json.dumps(record))
    with pytest.raises(InvalidInput) as caught:
        dpregress.load(path)
    assert "\n" not in str(caught.value)


def test_notes_of_a_file_are_no_markup_and_not_obeyed(tmp_path: Path) -> None:
    DPLinearRegression(GDP(2.0), schema=BOUNDS, random_state=1).fit_table(columns(), "y").save(tmp_path)
    path = tmp_path / "model.json"
    record = json.loads(path.read_text())
    record["summary"] = {"model": "<b>\x1b[2J", "before": ["<i>\x1b[31m"], "after": ["\x07"]}
    path.write_text(json.dumps(record))
    found = dpregress.load(path).summary()
    for text in (str(found), found.to_html(), found.to_latex()):
        assert not {"\x1b", "\x07"} & set(text)
    assert not any(tag in found.to_html() for tag in ("<b>", "<i>"))


@pytest.mark.parametrize("entry", FITS, ids=str)
def test_rows_that_are_no_table_are_refused_in_one_line(entry: FitEntry, tmp_path: Path) -> None:
    model = entry.fit(np.random.default_rng(3), ledger=entry.ledger(GDP(9.0)))
    model.save(tmp_path)
    for rows in ({"clinic": np.ones((2, 2))}, None):
        with pytest.raises(InvalidInput, match=r"are one array, data frame|neither a path nor a table"):
            dpregress.load(tmp_path).predict(rows)
    assert dpregress.load(tmp_path).df_resid == model.df_resid

"""``dpregress schema`` and fits by what it drafts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import Categorical, Numeric, Schema
from dpregress.curator.drafting import suggested_bounds
from tests.support import run

DICTIONARY = """Variable;Type;Min;Max;Values;Units;Missing;Fill;Description
age;integer;0;110;;years;indicator;40;Age at visit
sex;factor;;;f|m|x;;level;;
note;string;;;;;;;free text
ok;bool;;;;;;;
weight;;;;;;;;
"""


def test_a_dictionary_becomes_a_schema(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "dictionary.csv").write_text(DICTIONARY)
    done = run(capsys, "schema", "init", "dictionary.csv", "--out", "made/new.toml")
    assert done.code == 0, done.err
    assert Schema.from_toml("made/new.toml").columns == {
        "age": Numeric(0, 110, "years", "indicator", 40),
        "sex": Categorical(("f", "m", "x"), "level"),
        "ok": Categorical(("false", "true")),
        "weight": Numeric(),
    }
    assert "# Age at visit\n[age]" in Path("made/new.toml").read_text()
    assert "--overwrite" in run(capsys, "schema", "init", "dictionary.csv", "--out", "made/new.toml").err
    assert run(capsys, "schema", "init", "dictionary.csv", "--out", "made/new.toml", "--overwrite").code == 0


def test_a_domain_becomes_a_schema(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "domain.json").write_text('{"sex": 2, "age group": ["0-9", "10+"]}')
    assert run(capsys, "schema", "init", "domain.json", "--out", "new.toml").code == 0
    assert Schema.from_toml("new.toml").columns == {
        "sex": Categorical(("0", "1")), "age group": Categorical(("0-9", "10+")),
    }  # fmt: skip


@pytest.mark.usefixtures("tables")
def test_public_rows_become_a_draft_whose_bounds_are_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table(
        {
            "age": [18.0, 80.0, None, 30.0],
            "job": ["b", "a", "b", None],
            "code": pa.array(["x", "y", "x", "y"]).dictionary_encode(),
            "when": pa.array([0, 1, 2, 3], pa.timestamp("s")),
            "same": ["q"] * 4,
            'odd "=\n': [1, 2, 3, 4],
            "flag": [True, False, True, True],
        }
    )
    pq.write_table(table, "rows.parquet")
    done = run(capsys, "schema", "init", "rows.parquet", "--out", "new.toml")
    assert done.code == 0, done.err
    assert "PUBLIC" in done.out
    text = Path("new.toml").read_text()
    assert Schema.from_toml("new.toml").columns == {
        "age": Numeric(), "job": Categorical(("b", "a")), "code": Categorical(("x", "y")), "flag": Numeric(),
    }  # fmt: skip
    for line in ("# lower = 0.0\n# upper = 150.0", '# missing = "level"  # 1 of', "# when is of type timestamp"):
        assert line in text
    mended = "\n".join(line.removeprefix("# ") if line.startswith("# lower") or line.startswith("# upper") else line
                       for line in text.splitlines())  # fmt: skip
    Path("new.toml").write_text(mended)
    assert Schema.from_toml("new.toml").columns["age"] == Numeric(0, 150)


@pytest.mark.parametrize(
    "seen", [(18, 80), (-3, 7), (-9, -2), (5, 5), (0, 0), (-4, -4), (1e-9, 3e-9), (1e12, 3e12), (-1e300, 1e300)]
)
def test_suggested_bounds_hold_what_was_seen(seen: tuple[float, float]) -> None:
    lower, upper = suggested_bounds(*seen)
    assert lower <= seen[0] <= seen[1] <= upper
    assert lower < upper


@pytest.mark.parametrize(
    ("seen", "drafted"),
    [
        ((-124.4, -114.1), (-140, -100)),  # longitudes stay away from 0, and so do latitudes and years
        ((32.5, 42.0), (23, 52)),
        ((1990, 2020), (1960, 2050)),
        ((18, 80), (0, 150)),  # not across 0
        ((-80, -18), (-150, 0)),
        ((-3, 7), (-20, 20)),
    ],
)
def test_suggested_bounds_reach_zero_only_where_it_is_near(
    seen: tuple[float, float], drafted: tuple[float, float]
) -> None:
    assert suggested_bounds(*seen) == drafted


def test_check_says_what_each_column_becomes(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "new.toml").write_text(
        '[age]\nlower = 0\nupper = 110\nunit = "years"\nmissing = "indicator"\n[job]\nlevels = ["a", "?"]\n[w]\n'
    )
    shown = run(capsys, "schema", "check", "new.toml", "--public", "public.csv")
    assert shown.code == 0, shown.err
    for words in (
        "0 to 110 years", "age=missing", "job=?", "Level '?' of 'job' is read as a missing cell",
        "outside the schema (read as numbers): bmi, cost", "not in public.csv: job, w",
        "as features, these columns need public rows that have them: w",
    ):  # fmt: skip
        assert words in " ".join(shown.out.split()), words


@pytest.fixture
def gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Private rows with gaps and levels that the public rows do not show; the effect of a gap is 5, of job c 3."""
    rng = np.random.default_rng(0)
    size = 40_000
    age, job = rng.uniform(20, 80, size), rng.choice(["a", "b", "c", "zzz"], size)
    missing = rng.random(size) < 0.3
    age[:300], job[:300], missing[:300] = rng.uniform(20, 80, 300), rng.choice(["a", "b"], 300), False
    y = 0.1 * np.where(missing, 50, age) + 5 * missing + 3 * (job == "c") - 2 * (job == "zzz") + rng.normal(size=size)
    shown = np.where(missing, "", age.round(3).astype(str))
    lines = [f"{a},{j},{v:.4f}" for a, j, v in zip(shown, job, y, strict=True)]
    (tmp_path / "public.csv").write_text("\n".join(["age,job,y", *lines[:300]]) + "\n")
    (tmp_path / "private.csv").write_text("\n".join(["age,job,y", *lines[300:]]) + "\n")
    (tmp_path / "schema.toml").write_text(
        '[age]\nlower = 0\nupper = 100\nmissing = "indicator"\nfill = 50\n'
        '[job]\nlevels = ["a", "b", "c"]\nmissing = "level"\n[y]\nlower = 0\nupper = 20\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("gaps")
@pytest.mark.parametrize("public", [(), ("--public", "public.csv", "--ignore-public-labels"), ("--public", "m.json")])
def test_gaps_and_unseen_levels_have_their_own_effects(
    capsys: pytest.CaptureFixture[str], public: tuple[str, ...]
) -> None:
    """With public rows that show neither, and without any. The noise at this budget is far below the tolerance.

    Every coefficient's error is below 0.1 in standard deviation; 0.8 is beyond 8 of them (failure below 1e-14).
    """
    made = run(capsys, "public", "public.csv", "--features", "age,job", "--schema", "schema.toml", "-o", "m.json")
    assert made.code == 0, made.err
    budget = ("--epsilon", 8, "--delta", 1e-6)
    done = run(capsys, "fit", "private.csv", "--target", "y", *budget, "--schema", "schema.toml", *public)
    assert done.code == 0, done.err
    model = json.loads(Path("dpregress-out/model.json").read_text())
    assert model["features"] == ["age", "age=missing", "job=b", "job=c", "job=missing"]
    assert model["fill"][0] == 50
    np.testing.assert_allclose(model["coef"], [0.1, 5, 0, 3, -2], atol=0.8)
    predicted = run(
        capsys, "predict", "dpregress-out/model.json", "private.csv", "--schema", "schema.toml", "-o", "p.csv"
    )
    assert predicted.code == 0, predicted.err


def test_public_rows_with_declared_gaps_are_kept(gaps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (gaps / "gaps.csv").write_text("age,job\n30,a\n,b\n50,\n")
    done = run(capsys, "public", "gaps.csv", "--schema", "schema.toml", "-o", "m.json")
    assert done.code == 0, done.err
    record = json.loads(Path("m.json").read_text())
    assert record["n"] == 3
    np.testing.assert_allclose(record["mean"], [130 / 3, 1 / 3, 1 / 3, 0, 1 / 3])

"""``fit_table``: one result whatever holds the rows, and a charge that stays where reading fails."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpregress import (
    GDP,
    Categorical,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    MemoryLedger,
    Numeric,
    Schema,
    load,
    release_moments,
)
from dpregress.errors import InvalidInput, SourceError
from dpregress.estimators import progress
from dpregress.rows import ThreadedEngine
from tests.rows.tables import KEPT

RNG = np.random.default_rng(0)
N = 3_000
TABLE = pa.table(
    {
        "age": RNG.uniform(18, 80, size=N),
        "level": RNG.choice(["low", "mid", "high", "?"], size=N),
        "gaps": pa.array(np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)), from_pandas=True),
        "y": RNG.poisson(3.0, size=N),
    }
)
SCHEMA = Schema(
    {
        "age": Numeric(18, 80),
        "level": Categorical(["low", "mid", "high"]),
        "gaps": Numeric(-4, 4),
        "y": Numeric(0, 20),
    }
)


def fitted(source: Any, **more: Any) -> DPLinearRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeded noise
        return DPLinearRegression(GDP(1.0), schema=SCHEMA, recipe="one-shot", random_state=1).fit_table(
            source, "y", **more
        )


EXPECTED = fitted(TABLE)


@pytest.mark.parametrize("kind", KEPT)
def test_every_kind_of_table_gives_the_same_release(kind: str, tmp_path: Path) -> None:
    """Bit for bit: chunks do not depend on how rows are kept, and y is what it was."""
    found = fitted(KEPT[kind](TABLE, tmp_path), features=["age", "level", "gaps"])
    assert found.moments_ is not None
    assert EXPECTED.moments_ is not None
    np.testing.assert_array_equal(found.moments_.total, EXPECTED.moments_.total)
    np.testing.assert_array_equal(found.coef_, EXPECTED.coef_)
    assert found.coefficients_.n == N


def test_several_passes_over_a_file_equal_those_in_memory(tmp_path: Path) -> None:
    def steps(source: Any) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPGLMRegressor(GDP(1.0), family="poisson", schema=SCHEMA, random_state=1)
            return model.fit_table(source, "y", ["age", "level", "gaps"]).coef_

    np.testing.assert_array_equal(steps(KEPT["pattern of Parquet files"](TABLE, tmp_path)), steps(TABLE))


def test_the_target_is_y_by_default_and_the_rest_are_features() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = DPLinearRegression(GDP(1.0), schema=SCHEMA, recipe="one-shot", random_state=1).fit_table(TABLE)
    np.testing.assert_array_equal(found.coef_, EXPECTED.coef_)


@pytest.mark.parametrize("workers", [1, 3])
def test_an_engine_of_ones_own(tmp_path: Path, workers: int) -> None:
    source = KEPT["Parquet"](TABLE, tmp_path)
    np.testing.assert_array_equal(fitted(source, engine=ThreadedEngine(workers=workers)).coef_, EXPECTED.coef_)
    with pytest.raises(InvalidInput, match="engine= takes an Engine, not an int"):
        fitted(source, engine=2)


def test_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    fitted(TABLE, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (N, N)
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    fitted(TABLE)
    assert capsys.readouterr().err == ""  # not a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")
    fitted(TABLE, progress=False)
    assert capsys.readouterr().err == ""
    fitted(TABLE)
    assert "reading private rows, pass 1" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="progress= takes True, False or a callable"):
        fitted(TABLE, progress="yes")


def test_the_bar_waits_and_counts_passes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.reported(True, 2) as report:
        assert report is not None
        report(1, 10)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    with progress.reported(True, 2) as report:
        assert report is not None
        for done in (5, 10, 5, 10):
            report(done, 10)
    said = capsys.readouterr().err
    assert "reading private rows, pass 2 of at most 2" in said
    assert "a second" in said


@pytest.mark.parametrize("chunks", [1, 2])
def test_the_rate_counts_the_time_in_which_rows_were_read(monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    """Chunks of a pass that come at once must not make the rate infinite; a pass may have one chunk."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_drawn", lambda: drawn)
    updates: list[dict[str, Any]] = []

    class Drawn:
        task_ids = (0,)

        def update(self, task: int, **said: Any) -> None:  # noqa: ARG002
            updates.append(said)

        def reset(self, task: int) -> None: ...

        def stop(self) -> None: ...

    drawn = Drawn()
    with progress.reported(True, 3) as report:
        assert report is not None
        for _ in range(3):
            now[0] += 10.0
            for chunk in range(chunks):
                report((chunk + 1) * 1_000 // chunks, 1_000)
    assert updates[-1]["description"] == "reading private rows, pass 3 of at most 3"
    assert updates[-1]["speed"] == "100"
    assert updates[-1]["completed"] == updates[-1]["total"] == 1_000


def test_fit_has_a_bar_before_the_first_rows_are_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    x, y = TABLE.select(["age", "gaps"]).to_pandas(), TABLE["y"].to_pandas()
    model = DPLinearRegression(GDP(1.0), schema=SCHEMA)
    model.fit(x, y, progress=False)
    assert capsys.readouterr().err == ""
    model.fit(x, y)
    assert "pass 1 of at most" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="progress= takes True, False or a callable"):
        model.fit(x, y, progress="yes")  # type: ignore[arg-type]
    with progress.reported(True, 2) as report:
        assert report is not None
        report._timer.join(10.0)  # type: ignore[attr-defined]  # the timer draws it without a report
    assert "pass 1 of at most 2" in capsys.readouterr().err


def charged(ledger: MemoryLedger, source: Any, **more: Any) -> None:
    DPLinearRegression(GDP(1.0), schema=SCHEMA, ledger=ledger).fit_table(source, "y", **more)


def test_a_file_that_fails_in_the_middle_stays_charged(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, row_group_size=500)
    content = bytearray(path.read_bytes())
    page = pq.read_metadata(path).row_group(3).column(0).data_page_offset
    content[page : page + 60] = bytes(60)
    path.write_bytes(content)
    ledger = MemoryLedger(GDP(2.0))
    with pytest.raises(SourceError, match=r"cannot be read to its end.*a budget that was charged stays charged"):
        charged(ledger, path)
    assert len(ledger.charges) == 1
    assert sorted(tmp_path.iterdir()) == [path]  # no sum and no row was put anywhere


def test_a_file_that_changes_between_passes_stays_charged(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age,y\n" + "30,2\n" * 50)
    ledger = MemoryLedger(GDP(2.0))

    def shorten(done: int, of: int) -> None:
        if done == of:
            path.write_text("age,y\n" + "30,2\n" * 49)

    model = DPGLMRegressor(GDP(1.0), family="poisson", schema=SCHEMA, ledger=ledger)
    with pytest.raises(SourceError, match=r"has changed while it was read.*stays charged"):
        model.fit_table(path, "y", progress=shorten)
    assert len(ledger.charges) == 1


def test_what_cannot_be_a_table_is_refused_before_any_charge(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(TABLE, whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-100])
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"age": ["x"], "level": ["low"], "gaps": [0.1], "y": [1]}), other)
    ledger = MemoryLedger(GDP(2.0))
    for source in (cut, [whole, cut], [whole, other], TABLE.to_reader(), tmp_path / "*.nothing", [], 3):
        with pytest.raises(InvalidInput) as caught:
            charged(ledger, source)
        assert "\n" not in str(caught.value)
    assert ledger.charges == ()


def test_a_fitted_table_is_predicted_for_as_it_is() -> None:
    """Columns are found by name, whatever else the table holds and in any order; so they are by a saved model."""
    when = pa.array(np.arange(N).astype("datetime64[D]"))
    wide = pa.table({"when": when, **{name: TABLE[name] for name in reversed(TABLE.schema.names)}})
    narrow = TABLE.select(["age", "level", "gaps"])
    model = fitted(wide, features=["age", "level", "gaps"])
    np.testing.assert_array_equal(model.predict(wide), model.predict(narrow))
    with pytest.raises(InvalidInput, match="no column 'level'"):
        model.predict(wide.drop_columns(["level"]))


def test_a_saved_model_predicts_for_a_table_with_other_columns(tmp_path: Path) -> None:
    EXPECTED.save(tmp_path)
    found = load(tmp_path / "model.json")
    when = pa.array(np.arange(N).astype("datetime64[D]"))
    np.testing.assert_array_equal(found.predict(TABLE.append_column("when", when)), EXPECTED.predict(TABLE))


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_response_that_is_named_like_a_column_is_not_that_column() -> None:
    """A sum of columns has the name of the first: its bounds and its public values are none of the response's."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=4_000), "y": rng.normal(size=4_000)})
    y = rows.a * 20 + rng.normal(size=4_000)
    schema = Schema({"a": Numeric(-5, 5), "y": Numeric(-5, 5)})
    model = DPLinearRegression(GDP(2.0), schema=schema, random_state=0)
    found, right = (model.fit(rows, each).coef_[0] for each in (y.rename("a"), y.rename("b")))
    assert found == right
    assert found == pytest.approx(20, abs=1)
    assert DPLinearRegression(GDP(2.0), schema=schema, random_state=0).fit(rows, y.to_numpy()).coef_[0] == right
    arrow = pa.Table.from_pandas(rows, preserve_index=False)
    assert DPLinearRegression(GDP(2.0), schema=schema, random_state=0).fit(arrow, y.to_numpy()).coef_[0] == right


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(pd.date_range("2020", periods=50, tz="UTC")),
        pd.Series(pd.date_range("2020", periods=50)),
        pd.Series(pd.period_range("2020", periods=50, freq="D")),
        pd.Series(pd.timedelta_range("1s", periods=50)),
        pd.Series(pd.date_range("2020", periods=50)).astype("date32[pyarrow]"),
        pa.array(np.arange(50).astype("datetime64[D]")),
    ],
    ids=lambda values: str(getattr(values, "dtype", "arrow")),
)
def test_times_are_no_numbers(values: Any) -> None:
    """Nothing is charged."""
    ledger = MemoryLedger(GDP(1.0))
    with pytest.raises(InvalidInput, match="holds no numbers"):
        DPLinearRegression(GDP(1.0), row_bound=3.0, ledger=ledger).fit(np.ones((50, 2)), values)
    assert not ledger.charges


def test_complex_columns_are_refused_where_they_are_asked_for() -> None:
    rows = pd.DataFrame({"a": RNG.normal(size=50), "z": np.ones(50) * 1j, "y": RNG.normal(size=50)})
    ledger = MemoryLedger(GDP(1.0))
    model = DPLinearRegression(GDP(0.5), row_bound=3.0, ledger=ledger)
    with pytest.raises(InvalidInput, match=r"'z' is of type .*: it must hold numbers or text"):
        model.fit_table(rows, "y")
    assert not ledger.charges
    schema = Schema({"a": Numeric(-5, 5), "y": Numeric(-5, 5)})
    model = DPLinearRegression(GDP(0.5), schema=schema, ledger=ledger).fit_table(rows, "y", ["a"])
    assert len(model.predict(rows)) == 50


def test_of_unknown_columns_only_declared_ones_are_suggested() -> None:
    """The names of a file without a first line of names are cells."""
    table = pd.DataFrame({"age": [20.0, 30.0], "cost": [1.0, 2.0]})
    for schema, mend in (
        (Schema({"age": Numeric(0, 90), "cost": Numeric(0, 9)}), "did you mean 'cost'?"),
        (Schema({"age": Numeric(0, 90), "costly": Numeric(0, 9)}), "check its names"),
        (None, "check its names"),
    ):
        model = DPLinearRegression(GDP(1.0), schema=schema, row_bound=1.0 if schema is None else None)
        with pytest.raises(InvalidInput) as refused:
            model.fit_table(table, "costs", ["age"])
        assert str(refused.value) == f"no column 'costs' in the table, which has 2 columns: {mend}"


@pytest.mark.parametrize("kind", [DPLinearRegression, DPLogisticRegression])
def test_what_is_given_in_place_of_names_is_told(kind: Any) -> None:
    ledger = MemoryLedger(GDP(1.0))
    table = pd.DataFrame({"age": [20.0, 30.0], "sex": ["m", "f"], "ill": [0.0, 1.0]})
    schema = Schema({"age": Numeric(0, 90), "ill": Numeric(0, 1)})
    for arguments, said in (
        ((table[["age"]], table["ill"]), r"takes the name of the response, not a Series: fit\(X, y\) takes arrays"),
        ((table,), r"no column 'y' in the table: name the response, as in fit_table\(table, 'cost'\)"),
        ((table, "ill"), "column 'sex' is text: declare its levels in the schema, or leave it out"),
    ):
        with pytest.raises(InvalidInput, match=said):
            kind(GDP(1.0), schema=schema, ledger=ledger).fit_table(*arguments)
    with pytest.raises(InvalidInput, match="column 'sex' is text"):
        kind(GDP(1.0), schema=schema, formula="ill ~ age + sex", ledger=ledger).fit_table(table)
    with pytest.raises(InvalidInput, match="column 'sex' is text"):
        release_moments(table, schema=schema, privacy=GDP(1.0), ledger=ledger)
    assert not ledger.charges

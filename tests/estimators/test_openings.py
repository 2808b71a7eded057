"""How often a fit opens its files: each once for what is public, the private ones once more in every pass."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpregress import GDP, DPLinearRegression, DPLogisticRegression, MemoryLedger, Numeric, Schema
from dpregress.cli.main import cli
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SeededSampler, randomness
from dpregress.rows.readers import parquet as parquet_reader

#: The type of the response decides on the classes: its file must not be opened for that alone.
MODELS = {"y": DPLinearRegression, "label": DPLogisticRegression}
SCHEMA = Schema({"a": Numeric(-5, 5), "b": Numeric(-5, 5), "y": Numeric(-20, 20)})


def write(path: Path, rows: int) -> Path:
    rng = np.random.default_rng(rows)
    table = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    table["y"] = table.a - table.b + rng.normal(size=rows)
    table["label"] = (table.y > 0).astype(int)
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return path


@pytest.fixture(params=["csv", "parquet"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Private rows and public ones."""
    return write(tmp_path / f"rows.{request.param}", 1200), write(tmp_path / f"pilot.{request.param}", 60)


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often tables have been opened, by their names: by Python, or by Arrow, which opens paths itself."""
    found: Counter[str] = Counter()
    opened, parquet_file = Path.open, parquet_reader.pq.ParquetFile

    def by_python(path: Path, *args: Any, **options: Any) -> BinaryIO:
        if path.suffix in (".csv", ".parquet"):
            found[path.stem] += 1
        return opened(path, *args, **options)

    def by_arrow(source: Any, **options: Any) -> Any:
        if isinstance(source, Path):
            found[source.stem] += 1
        return parquet_file(source, **options)

    monkeypatch.setattr(Path, "open", by_python)
    monkeypatch.setattr(parquet_reader.pq, "ParquetFile", by_arrow)
    return found


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("known", ["public", "schema"])
@pytest.mark.parametrize("formula", [None, " ~ a + b"], ids=["columns", "formula"])
def test_a_fit_opens_its_files_as_often_as_it_reads_them(
    files: tuple[Path, Path], openings: Counter[str], target: str, known: str, formula: str | None
) -> None:
    """Public: types, rows. Private: types and number of rows together, then the passes."""
    passes = 0

    def count(done: int, of: int) -> None:
        nonlocal passes
        passes += done == of

    side: dict[str, Any] = {"public": files[1]} if known == "public" else {"schema": SCHEMA}
    model = MODELS[target](GDP(1.0), formula=None if formula is None else target + formula, **side)
    named = () if formula else (target, ["a", "b"])
    model.fit_table(files[0], *named, progress=count)
    assert passes >= 3
    assert openings == Counter(rows=1 + passes, **({"pilot": 2} if known == "public" else {}))


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("formula", [False, True])
def test_so_does_the_command(
    files: tuple[Path, Path],
    openings: Counter[str],
    target: str,
    formula: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the same noise in both: a score that contradicts public rows, by chance, has a histogram before the next."""
    monkeypatch.setattr(randomness, "SecureSampler", lambda: SeededSampler(np.random.default_rng(1)))
    rows, pilot = files
    model = MODELS[target](GDP(1.0), public=pilot).fit_table(rows, target, ["a", "b"])
    passes = openings["rows"] - 1
    assert np.isfinite(model.coef_).all()
    openings.clear()
    said = ["--formula", f"{target} ~ a + b"] if formula else ["--target", target, "--features", "a,b"]
    family = "gaussian" if target == "y" else "binomial"
    command = ["fit", rows, *said, "--public", pilot, "--family", family, "--epsilon", 4, "--delta", 1e-6]
    cli.main([str(word) for word in (*command, "--out", tmp_path / "out")], standalone_mode=False)
    assert openings["pilot"] == 2
    assert openings["rows"] == 1 + passes


def test_arrays_with_a_public_file_open_it_twice(files: tuple[Path, Path], openings: Counter[str]) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    DPLinearRegression(GDP(1.0), public=files[1]).fit(X, X @ [1.0, -1.0, 0.5])
    assert openings == Counter(pilot=2)


@pytest.mark.parametrize("kind", ["file", "relation"])
def test_private_rows_are_no_public_ones_though_they_were_opened_before(files: tuple[Path, Path], kind: str) -> None:
    rows: Any = files[0] if kind == "file" else duckdb.from_arrow(pa.table({"a": [0.5, 1.0], "label": [0, 1]}))
    ledger = MemoryLedger(GDP(1.0))
    for model in MODELS.values():
        with pytest.raises(InvalidInput, match="is the private table itself"):
            model(GDP(1.0), public=rows, ledger=ledger).fit_table(rows, "label")
    assert ledger.charges == ()

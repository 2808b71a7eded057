"""Sources: the same rows in the same chunks, whatever they are kept in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpregress.coordinates.exact import ExactVector
from dpregress.errors import InvalidInput
from dpregress.rows import ArraySource, Encoder, PrivateRows, RawRows, Source, TableSource, ThreadedEngine
from dpregress.rows.readers.files import to_table

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(1_000, 3)), RNG.normal(size=1_000)
X[3, 1] = np.nan
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y)

SOURCES: dict[str, object] = {
    "pandas": FRAME,
    "Polars": pl.from_pandas(FRAME),
    "Arrow": pa.table(FRAME),
    "Arrow in pieces": pa.concat_tables([pa.table(FRAME[:300]), pa.table(FRAME[300:])]),
    "columns in another order": FRAME[["y", "c", "a", "b"]],
    "text": FRAME.astype(str),
}


def source_of(table: object) -> Source:
    return TableSource(to_table(table), Encoder.of(NAMES, "y", None))


def sums(source: Source) -> list[float]:
    def value(rows: RawRows) -> ExactVector:
        assert rows.y is not None
        clean = np.nan_to_num(rows.x)
        sums = np.concatenate([(clean.T @ clean).ravel(), rows.y @ clean])
        return ExactVector(np.rint(2.0**20 * sums).astype(np.int64), 2.0**-20)

    return list(np.asarray(ThreadedEngine().total(source, value, columns=4)))


@pytest.mark.parametrize("kind", SOURCES)
def test_tables_give_the_rows_and_sums_of_an_array(kind: str) -> None:
    table, array = source_of(SOURCES[kind]), ArraySource(X, Y)
    assert table.n == array.n == 1_000
    for found, expected in zip(table.chunks(256), array.chunks(256), strict=True):
        assert found.first_row == expected.first_row
        np.testing.assert_array_equal(found.x, expected.x)
        np.testing.assert_array_equal(found.y, expected.y)
    # sums over rows depend on how these lie in memory, in their last bits
    assert sums(table) == sums(ArraySource(np.asfortranarray(X), Y))
    np.testing.assert_allclose(sums(table), sums(array), rtol=1e-12)


def test_chunks_can_be_walked_through_again() -> None:
    source = source_of(FRAME)
    assert [len(chunk.x) for chunk in source.chunks(300)] == [300, 300, 300, 100]
    assert [chunk.first_row for chunk in source.chunks(300)] == [0, 300, 600, 900]


def test_an_array_may_have_no_response() -> None:
    assert all(chunk.y is None for chunk in ArraySource(X).chunks(300))
    assert all(chunk.y is None for chunk in TableSource(pa.table(FRAME), Encoder.of(NAMES, None, None)).chunks(300))


@pytest.mark.parametrize(("x", "y"), [(X[0], None), (X, Y[:-1]), (X, X), (X[None], None)])
def test_other_shapes_are_refused(x: np.ndarray, y: np.ndarray | None) -> None:
    with pytest.raises(InvalidInput, match="must have shape"):
        ArraySource(x, y)


def test_private_rows_know_their_number() -> None:
    assert PrivateRows(ArraySource(X, Y)).n == 1_000

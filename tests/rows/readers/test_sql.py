"""Queries to PostgreSQL, against a server of the tests' own where the server's programs are installed."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.errors import InvalidInput, SourceError
from dpregress.rows import Encoder, SQLQuery, StreamSource
from dpregress.rows.sources import reader_of
from tests.rows.leaks import everything_said
from tests.rows.servers import run


def made(url: str, table: str) -> None:
    run(url, *(statement.format(t=table) for statement in MADE))


MADE = (
    "SET lock_timeout = '5s'",
    "CREATE TABLE {t} AS SELECT i::float8 / 7 AS a, (i % 5)::numeric / 2 AS half, 'l' || i % 3 AS level, i AS y "
    "FROM generate_series(0, 999) AS g(i)",
    "UPDATE {t} SET a = NULL WHERE y = 3",
)


def source(url: str, query: str) -> StreamSource:
    encoder = Encoder.of(["a", "half"], "y", None)
    reader = reader_of(SQLQuery(url, query))
    encoder.check_types(reader.schema)
    return StreamSource(reader, encoder)


def test_rows_of_a_query(postgresql_url: str) -> None:
    made(postgresql_url, "read")
    found = source(postgresql_url, "SELECT * FROM read ORDER BY y;")
    assert found.n == 1_000
    run(postgresql_url, "DELETE FROM read WHERE y > 10")  # not seen: the passes are one transaction
    for _ in range(2):
        (chunk,) = found.chunks(2_000)
        np.testing.assert_array_equal(chunk.y, np.arange(1_000))
        np.testing.assert_array_equal(chunk.x[:, 1], np.arange(1_000) % 5 / 2)
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(chunk.x[:, 0])), [3])
    assert source(postgresql_url, "SELECT * FROM read ORDER BY y;").n == 11


def test_what_is_refused(postgresql_url: str) -> None:
    made(postgresql_url, "refused")
    with pytest.raises(InvalidInput, match="the query cannot be planned") as caught:
        source(postgresql_url, "SELECT nothing FROM refused")
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput, match="the query cannot be planned"):
        source(postgresql_url, "DELETE FROM refused RETURNING *")


def test_a_query_that_fails_on_a_cell_does_not_show_it(postgresql_url: str) -> None:
    made(postgresql_url, "failing")
    failing = source(
        postgresql_url, "SELECT CASE WHEN y = 900 THEN 'a31337' ELSE '1' END::int AS a, half, y FROM failing"
    )
    with pytest.raises(SourceError, match="stays charged") as caught:
        list(failing.chunks(100))
    assert "31337" not in everything_said(caught.value)

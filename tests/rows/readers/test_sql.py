"""Queries to PostgreSQL, against a server of this test's own where the server's programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.errors import InvalidInput, SourceError
from dpregress.rows import Encoder, SQLQuery, StreamSource
from dpregress.rows.sources import reader_of
from tests.rows.leaks import everything_said

INITDB = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)


def _user() -> dict[str, Any]:
    """The server refuses to run as root; the user it comes with will do."""
    if os.getuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user of its own")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a new, empty server that listens on a socket in its own folder."""
    if INITDB is None:
        pytest.skip("PostgreSQL's initdb is not installed")
    who = _user()
    folder = tempfile.mkdtemp(prefix="pg-", dir="/tmp")
    if who:
        os.chown(folder, who["user"], who["group"])
    programs = Path(INITDB).resolve().parent
    data = f"{folder}/data"

    def call(program: str, *arguments: str) -> None:
        command = [str(programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **who)

    try:
        call("initdb", "-D", data, "-U", "curator", "--auth=trust", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        call("pg_ctl", "-D", data, "-w", "-o", options, "-l", f"{folder}/log", "start")
        try:
            yield f"postgresql://curator@/postgres?host={folder}"
        finally:
            call("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def made(url: str, table: str) -> None:
    run(url, *(statement.format(t=table) for statement in MADE))


def run(url: str, *statements: str) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


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


def test_rows_of_a_query(server: str) -> None:
    made(server, "read")
    found = source(server, "SELECT * FROM read ORDER BY y;")
    assert found.n == 1_000
    run(server, "DELETE FROM read WHERE y > 10")  # not seen: the passes are one transaction
    for _ in range(2):
        (chunk,) = found.chunks(2_000)
        np.testing.assert_array_equal(chunk.y, np.arange(1_000))
        np.testing.assert_array_equal(chunk.x[:, 1], np.arange(1_000) % 5 / 2)
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(chunk.x[:, 0])), [3])
    assert source(server, "SELECT * FROM read ORDER BY y;").n == 11


def test_what_is_refused(server: str) -> None:
    made(server, "refused")
    with pytest.raises(InvalidInput, match="the query cannot be planned") as caught:
        source(server, "SELECT nothing FROM refused")
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput, match="the query cannot be planned"):
        source(server, "DELETE FROM refused RETURNING *")


def test_a_query_that_fails_on_a_cell_does_not_show_it(server: str) -> None:
    made(server, "failing")
    failing = source(server, "SELECT CASE WHEN y = 900 THEN 'a31337' ELSE '1' END::int AS a, half, y FROM failing")
    with pytest.raises(SourceError, match="stays charged") as caught:
        list(failing.chunks(100))
    assert "31337" not in everything_said(caught.value)

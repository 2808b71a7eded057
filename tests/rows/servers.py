"""Servers of tests: PostgreSQL where its programs are installed, and Spark Connect."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

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


@contextmanager
def running_postgresql() -> Iterator[str]:
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


def run(url: str, *statements: str) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def running_spark() -> Iterator[Any]:
    """A session of Spark Connect with Sail, which needs no Java, or of classic Spark where that is installed."""
    if find_spec("pysail") is None and find_spec("py4j") is not None and shutil.which("java"):
        with _classic_spark() as session:
            yield session
        return
    spark = pytest.importorskip("pysail.spark", reason="neither pysail nor classic pyspark with Java is installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the newest pandas, which nothing here uses
        from pyspark.sql import SparkSession

        main = sys.modules["__main__"]
        if not hasattr(main, "__file__"):  # a worker of pytest-xdist, which pyspark takes for its own doctests
            main.__file__ = __file__
        server = spark.SparkConnectServer()
        server.start(background=True)
        session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
        try:
            yield session
        finally:
            session.stop()
            server.stop()


@contextmanager
def _classic_spark() -> Iterator[Any]:
    """A local session of classic Spark, with its tables in a folder of its own."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
        try:
            yield session
        finally:
            session.stop()

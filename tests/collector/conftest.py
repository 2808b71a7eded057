"""Fixtures of the collector's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.collector.support import PostgreSQL


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server of the test session; skipped where none is installed."""
    server = PostgreSQL()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Locations of new stores, on each database."""
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        return server.new_database
    made: list[Path] = []

    def new() -> str:
        made.append(tmp_path / f"store{len(made)}.db")
        return str(made[-1])

    return new

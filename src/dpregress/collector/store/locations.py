"""Opening a store by its location: a file, or the URL of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from dpregress.collector.store.database import Database
from dpregress.collector.store.postgresql import PostgreSQLDatabase
from dpregress.collector.store.reports import Store
from dpregress.collector.store.sqlite import SQLiteDatabase
from dpregress.collector.study import Study
from dpregress.display import shown
from dpregress.errors import DPRegressError, StoreError, reason

_URL = ("postgresql://", "postgres://")


def open_store(location: str | Path, study: Study | None = None, holder: int | None = None) -> Store:
    """The store at a location.

    Parameters
    ----------
    location : str or Path
        A SQLite file, or ``postgresql://..``.
    study : Study, optional
        The store is made for it if there is none yet; without a study, a store must be there.
    holder : int, optional
        With a study of two collectors, which of them it is.

    Raises
    ------
    StoreError
        If it cannot be opened, or holds another study.
    """
    where = shown(location)
    if not is_url(location) and study is None and not Path(location).exists():
        raise StoreError(f"there is no store {where}: start the collector first, or check the name")
    database = None
    try:
        database = _database(location)
        return Store(database, where, study, holder)
    except Exception as error:  # the drivers' own errors, whose text may hold the password
        if database is not None:
            database.close()
        if isinstance(error, DPRegressError):
            raise
        told = f": {reason(error)}" if not is_url(location) else ", check the URL and that the server runs"
        raise StoreError(f"cannot open the store {where}{told}") from None


def is_url(location: str | Path) -> bool:
    """Whether a location is that of a server."""
    return str(location).startswith(_URL)


def _database(location: str | Path) -> Database:
    if not is_url(location):
        return SQLiteDatabase(Path(location))
    return PostgreSQLDatabase(str(location))

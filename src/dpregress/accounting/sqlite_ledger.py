"""A ledger in an SQLite file, shared by processes."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from dpregress.accounting.entries import Account, Charge, Policy, Request
from dpregress.accounting.events import Event, Relation, decode
from dpregress.accounting.ledger import Ledger, now
from dpregress.accounting.names import check_name
from dpregress.accounting.unit import Unit
from dpregress.errors import LedgerError, type_of
from dpregress.json_files import MALFORMED

_APPLICATION_ID = 0x64707267  # "dprg" in the file's header: tells a ledger from any other SQLite file


_VERSION = 3
#: What each version added to the files of the one before. Reading changes nothing; the next charge upgrades the file.
_ADDED: dict[int, tuple[str, ...]] = {
    2: ("ALTER TABLE charge ADD COLUMN seeded INTEGER",),
    3: (
        *(f"ALTER TABLE charge ADD COLUMN {field.name} TEXT" for field in fields(Request)),
        "ALTER TABLE charge ADD COLUMN software TEXT",
        "ALTER TABLE dataset ADD COLUMN policy TEXT",
    ),
}
_REQUEST = [field.name for field in fields(Request)]
_COLUMNS = ("event", "note", "charged", "seeded", *_REQUEST, "software")
#: The columns of a charge that files of earlier versions lack, by version.
_LACKING = {1: {"seeded", *_REQUEST, "software"}, 2: {*_REQUEST, "software"}, 3: set[str]()}

_WITH_POLICY = 3

#: The tables of version 1.
_SCHEMA = """
CREATE TABLE dataset (
    name TEXT PRIMARY KEY, budget TEXT NOT NULL, relation TEXT NOT NULL, unit TEXT NOT NULL, opened TEXT NOT NULL);
CREATE TABLE charge (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL REFERENCES dataset(name), event TEXT NOT NULL,
    note TEXT NOT NULL, charged TEXT NOT NULL);
CREATE TRIGGER charge_is_final BEFORE UPDATE ON charge BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER charge_stays BEFORE DELETE ON charge BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER charge_is_new BEFORE INSERT ON charge WHEN EXISTS (SELECT 1 FROM charge WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER budget_is_final BEFORE UPDATE ON dataset BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER budget_stays BEFORE DELETE ON dataset BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER budget_is_new BEFORE INSERT ON dataset WHEN EXISTS (SELECT 1 FROM dataset WHERE name = NEW.name)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""


class SQLiteLedger(Ledger):
    """A ledger in a file, safe between processes. It pickles as its path.

    A charge is checked, written and synced to disk in one transaction before any noise is drawn. A crash can
    therefore lose a result but never a charge.

    Parameters
    ----------
    path : path-like
        A file that :meth:`create` made.
    dataset : str
        The data set whose budget is charged.

    Raises
    ------
    LedgerError
        If there is no such file, it is not a ledger, or it holds no budget of that name.
    """

    def __init__(self, path: str | Path, dataset: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise LedgerError(f"a ledger is given by the path of its file, not by {type_of(path)}")
        self.path = Path(path)
        self._place = self.path.absolute()  # stays right when the process changes its folder
        self.dataset = dataset
        with self._transaction() as connection:
            self._account = self._read_account(connection)

    @classmethod
    def create(
        cls,
        path: str | Path,
        dataset: str,
        budget: Event,
        *,
        relation: Relation = Relation.REPLACE_ONE,
        unit: str = "record",
        policy: Policy | None = None,
        exist_ok: bool = False,
    ) -> SQLiteLedger:
        """Open a budget for ``dataset`` in the file at ``path``, which is created if it does not exist.

        Parameters
        ----------
        path : path-like
        dataset : str
        budget : Event
        relation : Relation
        unit : str
        policy : Policy, optional
            Rules that every charge must keep; they are stored with the budget and never change.
        exist_ok : bool, default=False
            If the data set already has the same budget, use it with all its charges: for scripts that run more than
            once.

        Raises
        ------
        LedgerError
            When the data set already has a budget, or with ``exist_ok`` another budget or policy: a budget is opened
            once and never changed.
        """
        if str(path) == ":memory:":
            raise LedgerError("a ledger in memory is MemoryLedger(budget): a file has another name than :memory:")
        path = Path(path)
        name, whose = check_name(dataset, "the name of a data set"), check_name(unit, "the name of a unit")
        account = Account(name, budget, relation, whose, policy or Policy())  # refuse before a file is created
        if not _holds(path.parent.is_dir):
            raise LedgerError(f"there is no folder {path.parent}: create it first")
        with _transaction(path, write=True, create=True) as connection:
            if not _is_ledger(connection):
                _make_ledger(connection, path)
            _upgrade(connection)
            known = connection.execute("SELECT 1 FROM dataset WHERE name = ?", (dataset,)).fetchone()
            if known and not exist_ok:
                raise LedgerError(f"{path} already holds a budget for {dataset!r}: a budget is opened once")
            if not known:
                rules = json.dumps(account.policy.encode())
                row = (account.dataset, json.dumps(budget.encode()), relation.value, account.unit, now(), rules)
                connection.execute(
                    "INSERT INTO dataset (name, budget, relation, unit, opened, policy) VALUES (?, ?, ?, ?, ?, ?)", row
                )
        ledger = cls(path, dataset)
        if ledger.account != account:
            raise LedgerError(
                f"{path} holds another budget or policy for {dataset!r}: a budget is opened once and never changed"
            )
        return ledger

    @staticmethod
    def datasets(path: str | Path) -> tuple[str, ...]:
        """The names of all data sets with a budget in the file."""
        with _transaction(Path(path)) as connection:
            return tuple(row[0] for row in connection.execute("SELECT name FROM dataset ORDER BY rowid"))

    @property
    def account(self) -> Account:
        return self._account

    @property
    def charges(self) -> tuple[Charge, ...]:
        with self._transaction() as connection:
            return self._read_charges(connection)

    @property
    def location(self) -> str | None:
        return str(self.path)

    @property
    def _identity(self) -> object:
        try:
            file = self._place.stat()  # one file may have several paths
        except OSError as error:
            raise LedgerError(f"cannot use {self.path} as a ledger: {error}") from error
        return (file.st_dev, file.st_ino, self.dataset)

    def _append(
        self, charge: Charge, *, unit: Unit | None = None, asked: Event | None = None, once: bool = False
    ) -> None:
        with self._transaction(write=True) as connection:
            if self._read_account(connection) != self._account:
                raise LedgerError(f"{self.path} holds another budget for {self.dataset!r} than when it was opened")
            self._refuse(self._read_charges(connection), charge, unit=unit, asked=asked, once=once)
            _upgrade(connection)
            row = {
                "dataset": self.dataset,
                "event": json.dumps(charge.event.encode()),
                "note": charge.note,
                "charged": charge.charged,
                "seeded": charge.seeded,
                **asdict(charge.request),
                "software": charge.software,
            }
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO charge ({', '.join(row)}) VALUES ({places})", tuple(row.values()))

    def _transaction(self, *, write: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return _transaction(self._place, write=write, shown=self.path)

    def _read_account(self, connection: sqlite3.Connection) -> Account:
        policy = "policy" if _version(connection) >= _WITH_POLICY else "NULL"
        query = f"SELECT name, budget, relation, unit, {policy} FROM dataset WHERE name = ?"
        row = connection.execute(query, (self.dataset,)).fetchone()
        if row is None:
            raise LedgerError(
                f"{self.path} holds no budget for {self.dataset!r}: "
                f"open one with `dpregress ledger new {self.path} --dataset {self.dataset} --epsilon .. --delta ..`"
            )
        rules = Policy() if row[4] is None else Policy.decode(json.loads(row[4]))
        return Account(row[0], decode(json.loads(row[1])), Relation(row[2]), row[3], rules)

    def _read_charges(self, connection: sqlite3.Connection) -> tuple[Charge, ...]:
        lacking = _LACKING[_version(connection)]
        chosen = ", ".join("NULL" if name in lacking else name for name in _COLUMNS)
        rows = connection.execute(f"SELECT {chosen} FROM charge WHERE dataset = ? ORDER BY id", (self.dataset,))
        return tuple(map(_charge, rows))

    def __reduce__(self) -> Any:
        return (_reopened, (self._place, self.dataset, self.request, self._rehearses))


def _is_ledger(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _upgrade(connection: sqlite3.Connection) -> None:
    """Add what the file's version lacks, within the caller's transaction."""
    for version in range(_version(connection) + 1, _VERSION + 1):
        for statement in _ADDED[version]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={version}")


def _make_ledger(connection: sqlite3.Connection, path: Path) -> None:
    """The tables of version 1 in an empty file, which are upgraded like those of an old file."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise LedgerError(f"{path} is a database that is not a ledger: choose another file")
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
    connection.execute("PRAGMA user_version=1")


def _charge(row: tuple[Any, ...]) -> Charge:
    """A line of the table as a charge; what its version did not record is empty."""
    event, note, charged, seeded, *request, software = row
    asked = Request(*("" if field is None else field for field in request))
    return Charge(decode(json.loads(event)), note, charged, None if seeded is None else bool(seeded), asked, software)


def _reopened(path: Path, dataset: str, request: Request, rehearses: bool) -> SQLiteLedger:
    """The ledger that was pickled."""
    return SQLiteLedger(path, dataset)._handle(request=request, _rehearses=rehearses)


def _holds(question: Callable[[], bool]) -> bool:
    """The answer about a path; False for a path that the system cannot have."""
    try:
        return question()
    except (OSError, ValueError):
        return False


@contextmanager
def _transaction(
    path: Path, *, write: bool = False, create: bool = False, shown: Path | None = None
) -> Iterator[sqlite3.Connection]:
    """A transaction (exclusive to write), synced on commit; every failure becomes one :class:`LedgerError`."""
    shown = shown or path
    if not create and not _holds(path.is_file):
        raise LedgerError(
            f"there is no ledger at {shown}: make one with `dpregress ledger new {shown} --dataset NAME ..`"
        )
    try:
        connection = sqlite3.connect(path, timeout=60, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous=EXTRA")  # also the folder, or a power cut may bring the journal back
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if not create and not _is_ledger(connection):
                raise LedgerError(f"{shown} is not a dpregress ledger")
            if _is_ledger(connection) and _version(connection) not in _LACKING:
                raise LedgerError(
                    f"{shown} is a ledger of version {_version(connection)}, this program reads up to {_VERSION}"
                )
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # an open transaction is rolled back
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise LedgerError(f"cannot use {shown} as a ledger: {error}") from error
    except MALFORMED as error:  # a row that this program cannot have written
        raise LedgerError(f"{shown} is damaged: {error}") from error

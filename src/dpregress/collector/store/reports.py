"""The reports of one study: each counted once, sums kept beside them, everything in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from dpregress.collector.store import audit
from dpregress.collector.store.database import Database
from dpregress.collector.store.payloads import payload_of
from dpregress.collector.store.release import CLAIM, MADE, RELEASED, SEALED, UNCLAIMED, made_entry
from dpregress.collector.store.sqlite import SQLiteDatabase
from dpregress.collector.store.totals import (
    BUCKETS,
    SUM,
    Arrival,
    Buckets,
    Totals,
    digest_of,
    kept_totals,
    optional_bytes,
)
from dpregress.collector.store.verification import store_faults, sum_of_tokens
from dpregress.collector.study import Study
from dpregress.errors import StoreError
from dpregress.mechanisms.randomness import random_bytes

_LAYOUT = "2"
_PAGE = 2000
_TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tokens (hash {blob} PRIMARY KEY, report {blob})",
    "CREATE TABLE IF NOT EXISTS reports (n BIGINT PRIMARY KEY, id {blob} NOT NULL UNIQUE, token {blob} UNIQUE, "
    "answer {blob} NOT NULL)",
    "CREATE TABLE IF NOT EXISTS sums (bucket INTEGER PRIMARY KEY, reports BIGINT NOT NULL, total {blob} NOT NULL)",
    "CREATE TABLE IF NOT EXISTS arrivals (hour BIGINT PRIMARY KEY, reports BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS refused (reason TEXT PRIMARY KEY, reports BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS audit (n BIGINT PRIMARY KEY, event TEXT NOT NULL, chain {blob} NOT NULL)",
)


@dataclass(frozen=True)
class Outcome:
    """What became of a report: an HTTP status, and the reason of a refusal."""

    status: int
    reason: str | None = None

    @property
    def alarming(self) -> bool:
        """Whether the operator should look at it."""
        return self.reason == "changed-report"


STORED, REPEATED = Outcome(201), Outcome(200)
_CHANGED, _USED, _UNKNOWN = Outcome(409, "changed-report"), Outcome(409, "used-token"), Outcome(403, "unknown-token")
_SEALED = Outcome(403, "late")


class Store:
    """The reports, tokens, sums and log of one study. One thread uses it at a time.

    Parameters
    ----------
    database : Database
    where : str
        Its location, for messages.
    study : Study or None
        Made for it if the database is empty; None opens what is there.
    holder : int, optional
        Which of two collectors of the study this is; an existing store knows.
    """

    def __init__(self, database: Database, where: str, study: Study | None, holder: int | None = None) -> None:
        self.database, self.where = database, where
        with database.transaction():
            for statement in _TABLES:
                database.run(statement.format(blob=database.blob))
            known: dict[str, str] = dict(database.rows("SELECT name, value FROM meta"))
            if not known:
                if study is None:
                    raise StoreError(f"{where} holds no study yet: start the collector first")
                known = self._make(study, holder)
        if known.get("layout") != _LAYOUT:
            raise StoreError(f"{where} was written by another version: use that one")
        try:
            self.study = Study.read(known["study"])
            salt = bytes.fromhex(known["salt"])
            self.holder = int(known["holder"]) if "holder" in known else None
            self.payload = payload_of(self.study, self.holder)
        except (KeyError, ValueError) as error:
            raise StoreError(f"the study, salt or holder noted in {where} was damaged: restore a backup") from error
        self._buckets = Buckets(salt, self.payload)
        self._last: Totals | None = None
        if study is not None and (study.digest, holder) != (self.study.digest, self.holder):
            raise StoreError(f"{where} holds another study, or belongs to its other collector: choose another --store")

    def _make(self, study: Study, holder: int | None) -> dict[str, str]:
        payload_of(study, holder)  # refuses a holder that the study does not have
        meta = {"layout": _LAYOUT, "study": study.text(), "salt": random_bytes(16).hex()}
        meta |= {} if holder is None else {"holder": str(holder)}
        self.database.insert("meta", ("name", "value"), list(meta.items()))
        zeros = np.zeros(study.query.size, dtype=SUM).tobytes()
        self.database.insert("sums", ("bucket", "reports", "total"), [(each, 0, zeros) for each in range(BUCKETS)])
        audit.append(self.database, MADE, **made_entry(meta))
        return meta

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    # ------------------------------------------------------------ writing

    def add(
        self, arrivals: Sequence[Arrival], hour: int = 0, refused: Mapping[str, int] | None = None
    ) -> list[Outcome]:
        """Store reports in one transaction; when it returns, they are on the disk.

        Parameters
        ----------
        arrivals : sequence of Arrival
            Admitted by public rules.
        hour : int
            Hours since 1970 in UTC.
        refused : mapping of str to int, optional
            Reports refused before, by reason.
        """
        try:
            return self._add(arrivals, hour, refused)
        except BaseException:
            self._last = None  # what was written may be undone
            raise

    def _add(self, arrivals: Sequence[Arrival], hour: int, refused: Mapping[str, int] | None) -> list[Outcome]:
        with self.database.transaction():
            outcomes = self._outcomes(arrivals)
            stored = [each for each, outcome in zip(arrivals, outcomes, strict=True) if outcome is STORED]
            if stored:
                self._keep(stored, hour)
            counted = dict(refused or {})
            for arrival, outcome in zip(arrivals, outcomes, strict=True):
                if outcome.reason is not None:
                    counted[outcome.reason] = counted.get(outcome.reason, 0) + 1
                if outcome.alarming:
                    audit.append(self.database, "alarm", reason=outcome.reason, report=arrival.id.hex())
            self._count("refused", "reason", counted)
        return outcomes

    def _outcomes(self, arrivals: Sequence[Arrival]) -> list[Outcome]:
        """What becomes of each, in order; of equal ids or tokens in one batch the first one counts."""
        if not arrivals:
            return []
        found = self.database.matching("id, token, answer", "reports", "id", [each.id for each in arrivals])
        known = {bytes(id_): (optional_bytes(token), bytes(answer)) for id_, token, answer in found}
        asked = [each.token for each in arrivals if each.token is not None]
        used: dict[bytes, bool] = {}
        if asked and self._unused(asked) == len(set(asked)):
            used = dict.fromkeys(asked, False)
        elif asked:
            rows = self.database.matching("hash, report", "tokens", "hash", asked)
            used = {bytes(hash_): report is not None for hash_, report in rows}
        outcomes, sealed = [], self.sealed is not None
        for each in arrivals:
            outcome = STORED
            if each.id in known:
                outcome = REPEATED if known[each.id] == (each.token, each.answer) else _CHANGED
            elif sealed:
                outcome = _SEALED
            elif each.token is not None and each.token not in used:
                outcome = _UNKNOWN
            elif each.token is not None and used[each.token]:
                outcome = _USED
            else:
                known[each.id] = (each.token, each.answer)
                if each.token is not None:
                    used[each.token] = True
            outcomes.append(outcome)
        return outcomes

    def _unused(self, tokens: Sequence[bytes]) -> int:
        """How many of these tokens are known and unused: in one row, for the usual case that all are."""
        ((unused,),) = self.database.matching("COUNT(*) - COUNT(report)", "tokens", "hash", tokens)
        return int(unused)

    def _keep(self, stored: Sequence[Arrival], hour: int) -> None:
        """Insert new reports, use their tokens, and add them to the sums."""
        first = self.count + 1
        rows = [(first + place, each.id, each.token, each.answer) for place, each in enumerate(stored)]
        self.database.insert("reports", ("n", "id", "token", "answer"), rows)
        used = [(each.token, each.id) for each in stored if each.token is not None]
        self.database.put(
            "tokens", ("hash", "report"), used, "ON CONFLICT (hash) DO UPDATE SET report = excluded.report"
        )
        batch = self._buckets.summed(stored)
        now = self._known_totals(first - 1) + batch
        changes = [
            (int(bucket), int(now.counts[bucket]), now.sums[bucket].astype(SUM).tobytes())
            for bucket in np.flatnonzero(batch.counts)
        ]
        changed = "ON CONFLICT (bucket) DO UPDATE SET reports = excluded.reports, total = excluded.total"
        self.database.put("sums", ("bucket", "reports", "total"), changes, changed)
        self._last = now
        self._count("arrivals", "hour", {hour: len(stored)})
        audit.append(self.database, "stored", first=first, last=first + len(stored) - 1, digest=digest_of(stored))

    def _known_totals(self, n: int) -> Totals:
        """The sums of the n reports so far: those that were written last, unless somebody else has written since."""
        return self._last if self._last is not None and self._last.n == n else self.totals()

    def _count(self, table: str, key: str, counted: Mapping[Any, int]) -> None:
        """Add to counts."""
        added = f"ON CONFLICT ({key}) DO UPDATE SET reports = {table}.reports + excluded.reports"
        self.database.put(table, (key, "reports"), [*counted.items()], added)

    def issue(self, hashes: Sequence[bytes]) -> None:
        """Admit the holders of tokens with these SHA-256 hashes, once each."""
        with self.database.transaction():
            self.database.insert("tokens", ("hash", "report"), [(each, None) for each in hashes])
            audit.append(self.database, "invited", tokens=len(hashes), sum=sum_of_tokens(hashes))

    def admit(self, hashes: Sequence[bytes]) -> int:
        """Admit the holders of tokens with these hashes, whether they are known or not; how many are new."""
        with self.database.transaction():
            known = {bytes(each) for (each,) in self.database.matching("hash", "tokens", "hash", hashes)}
            new = [each for each in dict.fromkeys(hashes) if each not in known]
            self.database.insert("tokens", ("hash", "report"), [(each, None) for each in new])
            if new:
                audit.append(self.database, "invited", tokens=len(new), sum=sum_of_tokens(new))
        return len(new)

    def note(self, name: str, value: str) -> None:
        """Keep a text about the store within the open transaction. It cannot be replaced."""
        self.database.insert("meta", ("name", "value"), [(name, value)])

    def noted(self, name: str) -> str | None:
        """A text about the store, or None."""
        found = self.database.rows("SELECT value FROM meta WHERE name = ?", [name])
        return str(found[0][0]) if found else None

    @property
    def sealed(self) -> int | None:
        """The number of reports at which one of two collectors closed its list; None before."""
        found = None if self.holder is None else self.noted(SEALED)
        if found is not None and not (found.isascii() and found.isdecimal()):
            raise StoreError(f"the count of the closed list in {self.where} was damaged: restore a backup")
        return None if found is None else int(found)

    def record(self, kind: str, **details: Any) -> None:
        """Add an entry to the audit log."""
        with self.database.transaction():
            audit.append(self.database, kind, **details)

    # ------------------------------------------------------------ reading

    @property
    def count(self) -> int:
        """Reports stored."""
        return int(self.database.rows("SELECT COALESCE(MAX(n), 0) FROM reports")[0][0])

    def totals(self) -> Totals:
        """The running sums: a read of 64 rows, whatever the number of reports."""
        return kept_totals(self.database)

    def arrivals(self) -> dict[int, int]:
        """Reports by hour since 1970."""
        return {int(hour): int(reports) for hour, reports in self.database.rows("SELECT * FROM arrivals ORDER BY hour")}

    def refused(self) -> dict[str, int]:
        """Refused reports by reason."""
        rows = self.database.rows("SELECT reason, reports FROM refused ORDER BY reason")
        return {reason: int(reports) for reason, reports in rows}

    def tokens(self) -> tuple[int, int]:
        """Tokens issued, and used."""
        ((issued, used),) = self.database.rows("SELECT COUNT(*), COUNT(report) FROM tokens")
        return int(issued), int(used)

    def faults(self) -> tuple[int, list[str]]:
        """The number of reports, and everything that is wrong with the store, a line each.

        Every sum is recomputed from the stored reports, and the whole audit log is read.
        """
        with self.database.snapshot():
            return store_faults(self.database, self.study, self._buckets)

    def verify(self) -> int:
        """Recompute every sum and the whole log from the stored reports; the number of reports.

        Raises
        ------
        StoreError
            If anything differs in a single bit.
        """
        n, faults = self.faults()
        if faults:
            raise StoreError(faults[0])
        return n

    def backup(self, path: Path) -> int:
        """Copy everything, as of one moment, into a new SQLite file, and verify the copy; the number of reports.

        A copy that does not hold the released sum does not hold the claim on the ledger's charge for it either.

        Raises
        ------
        StoreError
            If the file exists, or the copy is not what was stored.
        """
        if path.exists():
            raise StoreError(f"{path} already exists: choose another --out")
        other = SQLiteDatabase(path)
        with self.database.snapshot(), other.transaction():
            for statement in _TABLES:
                other.run(statement.format(blob=other.blob))
            for table, columns in _COPIED.items():
                _copy(self.database, other, table, columns)
            if self.noted(CLAIM) is not None and self.noted(RELEASED) is None:
                other.run("DELETE FROM meta WHERE name = ?", [CLAIM])
                audit.append(other, UNCLAIMED)
        with Store(other, str(path), None) as made:
            return made.verify()


_COPIED = {
    "meta": ("name", "value"),
    "tokens": ("hash", "report"),
    "reports": ("n", "id", "token", "answer"),
    "sums": ("bucket", "reports", "total"),
    "arrivals": ("hour", "reports"),
    "refused": ("reason", "reports"),
    "audit": ("n", "event", "chain"),
}


def _copy(source: Database, target: Database, table: str, columns: Sequence[str]) -> None:
    if columns[0] == "n":
        for page in source.pages(", ".join(columns), table, _PAGE):
            target.insert(table, columns, page)
    else:
        target.insert(table, columns, source.rows(f"SELECT {', '.join(columns)} FROM {table}"))

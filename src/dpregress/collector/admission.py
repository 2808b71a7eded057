"""The public rules by which a report is let in: its bytes, the study's times, and the size of its numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from dpregress.collector.store import Arrival, Outcome
from dpregress.collector.store.payloads import payload_of
from dpregress.collector.study import Study
from dpregress.collector.terms import Terms
from dpregress.collector.wire import ANSWER, HEADER, split_header
from dpregress.errors import InvalidInput

#: Every reason for which a report may be refused, and what is told to the sender.
REASONS = {
    "unknown-token": "no invitation has this token: use the link of your invitation",
    "early": "the study is not open yet: send the same report when it is",
    "late": "the study is closed",
    "wrong-study": "this report answers another study",
    "slow": "the request took too long to arrive: send the same report again",
    "used-token": "this invitation has been used for another report",
    "changed-report": "a report with this id is stored with other bytes: keep the first one",
    "too-long": "the body is longer than the reports that may be sent at once",
    "wrong-type": "send a report as application/octet-stream",
    "wrong-size": "a report of this study has another length",
    "wrong-version": "these bytes are not a report of this version",
    "out-of-law": "no honest device sends numbers of this size",
    "rate": "too many requests from this address: send the same report again later",
    "busy": "the collector is busy: send the same report again later",
}
_EARLY, _LATE = Outcome(403, "early"), Outcome(403, "late")
_SIZE, _VERSION = Outcome(422, "wrong-size"), Outcome(422, "wrong-version")
_STUDY, _LAW = Outcome(404, "wrong-study"), Outcome(422, "out-of-law")


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class Admission:
    """Decides on bytes alone, before anything is stored.

    Parameters
    ----------
    study : Study
        With terms.
    clock : callable
        Returns the time in UTC.
    holder : int, optional
        Which of two collectors of the study admits shares.
    """

    def __init__(self, study: Study, clock: Callable[[], datetime] = utc_now, holder: int | None = None) -> None:
        self.study, self.terms, self.clock = study, checked_terms(study), clock
        self._payload, self._shares = payload_of(study, holder), holder is not None
        self.length = HEADER + self._payload.length
        self._tokens = self.terms.enrolment == "token"

    @property
    def state(self) -> str:
        """``"early"``, ``"open"`` or ``"closed"``."""
        now = self.clock()
        return "early" if now < self.terms.opens else "open" if now < self.terms.closes else "closed"

    @property
    def hour(self) -> int:
        """Hours since 1970."""
        return int(self.clock().timestamp()) // 3600

    def check(self, data: bytes) -> Arrival | Outcome:
        """The report as it is stored, or why it is refused."""
        if len(data) != self.length:
            return _SIZE
        magic, task, name, token = split_header(data)
        if magic != self._payload.magic:
            return _VERSION
        if task != self.study.digest:
            return _STUDY
        state = self.state
        if state != "open":
            return _EARLY if state == "early" else _LATE
        answer = data[HEADER:]
        if not self._shares and not self.study.admits(np.frombuffer(answer, ANSWER)):
            return _LAW
        return Arrival(name, hashlib.sha256(token).digest() if self._tokens else None, answer)


def checked_terms(study: Study) -> Terms:
    """The terms of a study; InvalidInput if it has none."""
    if study.terms is None:
        raise InvalidInput("this study has no terms: make one that a collector can run with `dpregress study new`")
    return study.terms

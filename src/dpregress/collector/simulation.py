"""Invented users who answer through the real wire: a rehearsal of a study."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpregress.collector.client import device_report, device_shares
from dpregress.collector.sending import Connection
from dpregress.collector.study import Study
from dpregress.collector.terms import Question, Terms
from dpregress.collector.wire import TOKEN_BYTES
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import OutputError
from dpregress.mechanisms.randomness import sampling_generator
from dpregress.public import Categorical

_BATCH = 100
#: Slopes of invented people: per half range of a number, and of a level; of logarithms of rates; of a linear model in
#: half ranges of y.
_SLOPE, _RATE, _LINEAR, _SPREAD = 1.0, 0.5, 0.2, 0.1


@dataclass(frozen=True, eq=False)
class InventedPeople:
    """People who answer at random, with a response that follows the model of the study.

    Each resembles a public row, since a fit by moment equations takes public rows to be of the people who answer. Where
    the study alone is known, their answers have the means of its public moments and, within the bounds, the same
    standard deviations. Without these, numbers are uniform between their bounds and levels are equally frequent.

    Parameters
    ----------
    terms : Terms
    seed : int or None
    rows : ndarray of shape (m, d) or None
        Public rows, in design columns.
    """

    terms: Terms
    seed: int | None = None
    rows: Matrix | None = None

    @property
    def slopes(self) -> Vector:
        """The true slopes of the design columns, in original units."""
        signs = np.where(np.arange(len(self.terms.questions) - 1) % 2 == 0, 1.0, -1.0)
        lower, upper = self.terms.response.ends
        scale = {"gaussian": _LINEAR * (upper - lower) / 2, "poisson": _RATE}.get(self.terms.family, _SLOPE)
        found = []
        for question, sign in zip(self.terms.questions[:-1], signs, strict=True):
            half = 1.0 if isinstance(question.column, Categorical) else (question.ends[1] - question.ends[0]) / 2
            found += [sign * scale / half] * len(question.columns)
        return np.array(found)

    def answers(self, users: int) -> Iterator[dict[str, object]]:
        """Answers of each user, by question."""
        rng = sampling_generator(self.seed)
        laws, last, slopes = self._laws(), self.terms.response, self.slopes
        middle = np.concatenate([law.mean for law in laws]) if self.rows is None else self.rows.mean(axis=0)
        for _ in range(users):
            row = (
                {law.question.name: law.draw(rng) for law in laws} if self.rows is None else self._like(self.rows, rng)
            )
            x = self.terms.row([*row.values(), None])[:-1]
            yield {**row, last.name: self._response(float((x - middle) @ slopes), rng)}

    def _like(self, rows: Matrix, rng: np.random.Generator) -> dict[str, object]:
        """The answers of somebody who resembles one of these rows."""
        asked = self.terms.questions[:-1]
        ends = np.cumsum([len(question.columns) for question in asked])[:-1]
        cells = np.split(rows[rng.integers(len(rows))], ends)
        return {question.name: _answered(question, each) for question, each in zip(asked, cells, strict=True)}

    def _laws(self) -> list[_AnswerLaw]:
        """The laws of the answers, in the order of the questions."""
        public, found, place = self.terms.public, [], 0
        for question in self.terms.questions[:-1]:
            width = len(question.columns)
            columns = slice(place, place + width)
            mean = None if public is None or public.mean is None else public.mean[columns]
            second = None if public is None else np.diag(public.second)[columns]
            found.append(_AnswerLaw.of(question, mean, second))
            place += width
        return found

    def _response(self, predictor: float, rng: np.random.Generator) -> object:
        lower, upper = self.terms.response.ends
        if self.terms.family == "gaussian":
            half = (upper - lower) / 2
            return float((lower + upper) / 2 + predictor + _SPREAD * half * rng.standard_normal())
        if self.terms.family == "poisson":
            return float(min(rng.poisson((upper - lower) / 8 * np.exp(predictor)), upper))
        happens = bool(rng.random() < expit(predictor))
        column = self.terms.response.column
        return column.levels[int(happens)] if isinstance(column, Categorical) else float(happens)


@dataclass(frozen=True, eq=False)
class _AnswerLaw:
    """The law of the answers to one question.

    Parameters
    ----------
    question : Question
    mean : ndarray
        Of its design columns.
    half : float
        Of a number: half the width of its uniform law.
    """

    question: Question
    mean: Vector
    half: float

    @classmethod
    def of(cls, question: Question, mean: Vector | None, second: Vector | None) -> _AnswerLaw:
        """The law with these moments of the design columns, or the usual one."""
        if isinstance(question.column, Categorical):
            levels = len(question.column.levels)
            return cls(question, np.full(levels - 1, 1 / levels) if mean is None else np.clip(mean, 0, 1), 0.0)
        lower, upper = question.ends
        if mean is None or second is None:
            return cls(question, np.array([(lower + upper) / 2]), (upper - lower) / 2)
        middle = np.clip(mean, lower, upper)
        wide = math.sqrt(3 * max(float(second[0] - mean[0] ** 2), 0.0))
        return cls(question, middle, min(wide, float(middle[0]) - lower, upper - float(middle[0])))

    def draw(self, rng: np.random.Generator) -> object:
        """An answer."""
        if not isinstance(self.question.column, Categorical):
            return float(self.mean[0] + self.half * rng.uniform(-1, 1))
        levels = self.question.column.levels
        place = int(np.searchsorted(np.cumsum(self.mean), rng.random(), "right"))  # the first level is in no column
        return levels[(place + 1) % len(levels)]


def _answered(question: Question, cells: Vector) -> object:
    """The answer that these design columns of a question stand for; beyond its bounds, the nearest one within."""
    if isinstance(question.column, Categorical):
        return question.column.levels[int(np.argmax(np.append(cells, 0.5)) + 1) % len(question.column.levels)]
    return float(np.clip(cells[0], *question.ends))


def send_people(study: Study, people: InventedPeople, users: int, url: str, tokens: list[bytes] | None = None) -> int:
    """Report for invented users over HTTP, with the noise of real devices; the number of reports stored.

    Parameters
    ----------
    study : Study
    people : InventedPeople
    users : int
    url : str
        The collector.
    tokens : list of bytes, optional
        One for each user.

    Raises
    ------
    OutputError
        If the collector does not answer, or refuses.
    """
    sender = _Batches(url)
    with sender.connection:
        for place, answers in enumerate(people.answers(users)):
            token = bytes(TOKEN_BYTES) if tokens is None else tokens[place]
            sender.add(device_report(answers, study, token=token).encode())
        sender.finish()
    return sender.stored


def send_shares(
    study: Study, people: InventedPeople, users: int, urls: Sequence[str], tokens: list[bytes] | None = None
) -> int:
    """Send both shares of invented users' answers over HTTP, each to its own collector; the number of users.

    Parameters
    ----------
    study : Study
        With two collectors.
    people : InventedPeople
    users : int
    urls : sequence of str
        The collectors, in the order of the study.
    tokens : list of bytes, optional
        One for each user.

    Raises
    ------
    OutputError
        If a collector does not answer, or refuses.
    """
    senders = [_Batches(url) for url in urls]
    with senders[0].connection, senders[1].connection:
        for place, answers in enumerate(people.answers(users)):
            token = bytes(TOKEN_BYTES) if tokens is None else tokens[place]
            for sender, share in zip(senders, device_shares(answers, study, token=token), strict=True):
                sender.add(share.encode())
        for sender in senders:
            sender.finish()
    return min(sender.stored for sender in senders)


class _Batches:
    """Reports on their way to one collector, a batch at a time."""

    def __init__(self, url: str) -> None:
        self.connection, self.stored = Connection(url), 0
        self._waiting: list[bytes] = []

    def add(self, report: bytes) -> None:
        """Send a report, with others."""
        self._waiting.append(report)
        if len(self._waiting) == _BATCH:
            self.finish()

    def finish(self) -> None:
        """Send what waits; OutputError if a report is refused."""
        if not self._waiting:
            return
        status, told = self.connection.send(b"".join(self._waiting), "/api/reports/batch")
        results = told.get("results", [])
        stored = sum(each["status"] in (200, 201) for each in results)
        if status != 200 or stored < len(self._waiting):
            reasons = {each["reason"] for each in results} - {None} or {str(told.get("reason"))}
            raise OutputError(f"the collector refused reports: {', '.join(sorted(reasons))}")
        self.stored += stored
        self._waiting = []

"""The terms of a study: what participants are asked, what they are told, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.accounting import ApproxDP
from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, check_choice, one_line
from dpregress.parties.documents import known_in, number_in, text_in, texts_in, whole_in
from dpregress.public import Categorical, Numeric, PublicMoments, Schema
from dpregress.rows.design.encoder import text_of, to_numbers

ENROLMENTS = ("token", "open")
FAMILIES = ("gaussian", "binomial", "poisson")
_FIELDS = (
    "version", "budget", "opens", "closes", "enrolment", "reports_per_subject", "minimum", "family", "languages",
    "consent", "questions", "columns", "public",
)  # fmt: skip
_TIME = "%Y-%m-%dT%H:%M:%SZ"
#: Characters of a consent text.
_LONGEST_CONSENT = 20_000


@dataclass(frozen=True)
class Question:
    """One question: a number within bounds, or a choice between levels.

    Parameters
    ----------
    name : str
        The column.
    column : Numeric or Categorical
        A number needs bounds.
    text : mapping of str to str
        The wording in each language.
    labels : mapping of str to tuple of str
        The wording of each level in each language; empty for a number.
    """

    name: str
    column: Numeric | Categorical
    text: Mapping[str, str]
    labels: Mapping[str, tuple[str, ...]]

    @property
    def columns(self) -> tuple[tuple[str, str | None], ...]:
        """Design columns with the level for which each is 1; None for a number."""
        if isinstance(self.column, Numeric):
            return ((self.name, None),)
        return tuple(zip(self.column.design(self.name), self.column.levels[1:], strict=True))

    @property
    def ends(self) -> tuple[float, float]:
        """Public bounds of the answer as a response."""
        return (0.0, 1.0) if isinstance(self.column, Categorical) else self.column.bounds or (0.0, 1.0)

    def encode(self) -> dict[str, Any]:
        """Plain values, for files."""
        shared = {"name": self.name, "text": dict(self.text)}
        if isinstance(self.column, Categorical):
            labels = {language: list(each) for language, each in self.labels.items()}
            return {**shared, "kind": "choice", "levels": list(self.column.levels), "labels": labels}
        lower, upper = self.ends
        return {**shared, "kind": "number", "lower": float(lower), "upper": float(upper), "unit": self.column.unit}

    @classmethod
    def decode(cls, record: Any) -> Question:
        """Read back what :meth:`encode` wrote."""
        if isinstance(record, dict) and record.get("kind") == "choice":
            known_in(record, ("name", "text", "kind", "levels", "labels"), "a question")
            column: Numeric | Categorical = Categorical(texts_in(record["levels"], "levels"))
            labels = {language: texts_in(each, "labels") for language, each in record["labels"].items()}
        else:
            known_in(record, ("name", "text", "kind", "lower", "upper", "unit"), "a question")
            check_choice("kind", record["kind"], ("number", "choice"))
            lower, upper = (number_in(record[end], end) for end in ("lower", "upper"))
            column, labels = Numeric(lower, upper, text_in(record["unit"], "unit")), {}
        text = {language: text_in(each, "the text of a question") for language, each in record["text"].items()}
        return cls(text_in(record["name"], "the name of a question"), column, text, labels)


@dataclass(frozen=True)
class Terms:
    """The public terms of a study beside its statistics.

    Parameters
    ----------
    version : int
    budget : ApproxDP
        What participants are told that a report costs them.
    opens, closes : datetime
        In UTC; reports outside are refused.
    enrolment : {"token", "open"}
        Whether a report needs an invitation, which counts once.
    minimum : int
        Reports before which nothing is read out.
    family : {"gaussian", "binomial", "poisson"}
        The model that will be fitted.
    consent : mapping of str to str
        The wording in each language; the first language is the default.
    questions : tuple of Question
        Features in the order of the design, then the response.
    public : PublicMoments or None
        Of the design columns.

    Raises
    ------
    InvalidInput
        For terms that contradict each other.
    """

    version: int
    budget: ApproxDP
    opens: datetime
    closes: datetime
    enrolment: str
    minimum: int
    family: str
    consent: Mapping[str, str]
    questions: tuple[Question, ...]
    public: PublicMoments | None

    def __post_init__(self) -> None:
        check_choice("enrolment", self.enrolment, ENROLMENTS)
        check_choice("family", self.family, FAMILIES)
        if not self.opens < self.closes:
            raise InvalidInput("a study closes after it opens: give opens before closes")
        if not self.languages or any(not 0 < len(text) <= _LONGEST_CONSENT for text in self.consent.values()):
            raise InvalidInput(f"a study needs a consent text of 1 to {_LONGEST_CONSENT:,} characters in each language")
        if len(self.questions) < 2:
            raise InvalidInput("a study asks for at least one feature and a response")
        for question in self.questions:
            self._check(question)
        levels = self.response.column.levels if isinstance(self.response.column, Categorical) else ("0", "1")
        if len(levels) != 2:
            raise InvalidInput(f"the response {self.response.name!r} is a number or a choice between two levels")
        if self.family == "binomial" and self.response.ends != (0.0, 1.0):
            raise InvalidInput(
                f"family = binomial takes a response {self.response.name!r} between 0 and 1, or a choice"
            )
        _ = self.schema

    def _check(self, question: Question) -> None:
        if isinstance(question.column, Numeric) and question.column.bounds is None:
            raise InvalidInput(f"question {question.name!r} needs public bounds: give lower and upper")
        wanted = len(question.column.levels) if isinstance(question.column, Categorical) else 0
        spoken = set(self.languages)
        if set(question.text) != spoken or set(question.labels) != (spoken if wanted else set()):
            raise InvalidInput(f"question {question.name!r} needs its text in every language of the consent")
        if any(len(labels) != wanted for labels in question.labels.values()):
            raise InvalidInput(f"question {question.name!r} needs one label for each of its {wanted} levels")

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages, the default first."""
        return tuple(self.consent)

    @property
    def response(self) -> Question:
        """The question whose answer is explained."""
        return self.questions[-1]

    @property
    def columns(self) -> tuple[tuple[str, str, str | None], ...]:
        """Design columns: name, question, and the level for which the column is 1."""
        asked = self.questions[:-1]
        return tuple((name, question.name, level) for question in asked for name, level in question.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the design columns."""
        return tuple(name for name, _, _ in self.columns)

    @property
    def schema(self) -> Schema:
        """The features as a schema."""
        return Schema({question.name: question.column for question in self.questions[:-1]})

    def row(self, answers: Sequence[object]) -> Vector:
        """Answers, in the order of the questions, as design columns and the response; NaN where there is none.

        Numbers are clipped to their bounds. Every answer is read by way of its text, so that none decides which
        steps are taken.
        """
        values: list[float] = []
        for question, answer in zip(self.questions, answers, strict=True):
            text, last = text_of(answer), question is self.response
            if isinstance(question.column, Numeric):
                found = float(to_numbers(pa.array([text], pa.large_string()))[0])
                values.append(float(np.clip(found, *question.ends)))
                continue
            known = 1.0 if text in question.column.levels else np.nan
            values += [known * (text == level) for level in question.column.levels[1:]] if not last else []
            values += [known * (text == question.column.levels[1])] if last else []
        return np.array(values)

    def encode(self) -> dict[str, Any]:
        """Plain values, for files."""
        public = None
        if self.public is not None:
            mean = None if self.public.mean is None else self.public.mean.tolist()
            public = {
                "n": self.public.n,
                "names": list(self.public.names),
                "mean": mean,
                "second_moment": self.public.second.tolist(),
            }
        return {
            "version": self.version,
            "budget": {"epsilon": self.budget.epsilon0, "delta": self.budget.delta0},
            "opens": self.opens.strftime(_TIME),
            "closes": self.closes.strftime(_TIME),
            "enrolment": self.enrolment,
            "reports_per_subject": 1,
            "minimum": self.minimum,
            "family": self.family,
            "languages": list(self.languages),
            "consent": dict(self.consent),
            "questions": [question.encode() for question in self.questions],
            "columns": [{"question": question, "level": level} for _, question, level in self.columns],
            "public": public,
        }

    @classmethod
    def decode(cls, record: Any) -> Terms:
        """Read back what :meth:`encode` wrote.

        Raises
        ------
        InvalidInput
            For terms that are incomplete or contradict each other. Other errors of malformed files pass.
        """
        known_in(record, _FIELDS, "the terms of a study")
        budget, languages = record["budget"], texts_in(record["languages"], "languages")
        consent = {language: record["consent"][language] for language in languages}
        if not all(isinstance(text, str) for text in consent.values()):
            raise InvalidInput("consent is a text in each language")
        return cls(
            whole_in(record["version"], "version"),
            ApproxDP(number_in(budget["epsilon"], "epsilon"), number_in(budget["delta"], "delta")),
            time_in(record["opens"], "opens"),
            time_in(record["closes"], "closes"),
            record["enrolment"],
            whole_in(record["minimum"], "minimum"),
            record["family"],
            consent,
            tuple(map(Question.decode, record["questions"])),
            _moments(record["public"]),
        )


def time_in(value: Any, what: str) -> datetime:
    """A time in UTC to the second, as a text ``2026-12-01T00:00:00Z`` or a datetime; InvalidInput for anything else."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(microsecond=0)
    try:
        return datetime.strptime(value, _TIME).replace(tzinfo=UTC)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} is a time such as 2026-12-01T00:00:00Z, not {one_line(value)}") from error


def _moments(record: Any) -> PublicMoments | None:
    if record is None:
        return None
    known_in(record, ("n", "names", "mean", "second_moment"), "public moments")
    names = texts_in(record["names"], "names of public columns")
    return PublicMoments.from_matrix(
        record["second_moment"], n=whole_in(record["n"], "n of the public rows"), mean=record["mean"], names=names
    )

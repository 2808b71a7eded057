"""Study files: everything that a device needs to answer, all of it public."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpregress.accounting import GDP, Event, PureDP, decode, integer_gaussian_promise
from dpregress.collector.shares.holder import ShareHolder, check_holders
from dpregress.collector.terms import Terms
from dpregress.coordinates import Vector, WhitenedSpace
from dpregress.display import shown
from dpregress.errors import DPRegressError, InvalidInput, reason
from dpregress.estimators.saving import write_whole
from dpregress.json_files import MALFORMED
from dpregress.mechanisms import IntegerGaussian, Sampler, UnitVector
from dpregress.mechanisms.unit_vector import UNIT_BITS, check_epsilon
from dpregress.models import GaussianFamily
from dpregress.public.columns import is_plain
from dpregress.queries import ClippedScore, CrossMoment, RowQuery, SecondMoment
from dpregress.releases import Isotropic, MessageParts, NoiseLaw, Release
from dpregress.rows import RawRows
from dpregress.rows.design.encoder import text_of, to_numbers
from dpregress.solvers.local.message_plan import MessagePlan

#: Without terms, with them, and with terms and two collectors.
_BARE_FORMAT, _FORMAT, _SHARED_FORMAT = "dpregress.study/1", "dpregress.study/2", "dpregress.study/3"
_TOLD: Mapping[str, set[str]] = {_BARE_FORMAT: set(), _FORMAT: {"terms"}, _SHARED_FORMAT: {"terms", "collectors"}}
#: Decimals of a cap's threshold in a file, which do not depend on how it was optimised.
_CAP_DIGITS = 6
#: The largest size of a study file.
_LARGEST_TEXT = 1 << 24
_LARGEST_TITLE = 200
#: The probability that the report of an honest device exceeds the bound and is refused.
_REFUSED = 1e-9

_QUESTIONS = ("cross-moment", "second-moment", "moments-in-parts")
_FRAME_FIELDS = {"features", "whitening", "radius", "fill", "intercept", "response", "weighting"}
_RESPONSE_FIELDS = {"name", "centre", "scale", "bound", "cross"}


@dataclass(frozen=True, eq=False)
class Study:
    """One question to every user: the coordinates and bounds of a row, what is asked of it, and its price.

    The grid and the noise follow from these and stand in the file for whoever reads it elsewhere; a file in which
    they are not those that keep the promise is refused, so a device need not trust the sender.

    Parameters
    ----------
    title : str
        A title for users.
    question : {"cross-moment", "second-moment", "moments-in-parts"}
    space : WhitenedSpace
        With a bounded response.
    spend : PureDP or GDP
        What an answer costs its user: a unit vector, or Gaussian noise.
    terms : Terms, optional
        What participants are asked and told; a collector needs them.
    holders : tuple of ShareHolder
        Two collectors that hold shares of exact answers and add the noise; empty where devices add it.
    parts : MessageParts, optional
        Of moments in parts.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import ApproxDP, LocalGLM, PublicMoments
    >>> public = PublicMoments.from_rows(np.random.default_rng(0).normal(size=(200, 2)))
    >>> message_plan = LocalGLM(ApproxDP(1.0, 1e-6), public=public).plan(("x0", "x1"), n=10_000)
    >>> study = Study.of(message_plan, "An example")
    >>> Study.read(study.text()).digest == study.digest
    True
    """

    title: str
    question: str
    space: WhitenedSpace
    spend: Event
    terms: Terms | None = None
    holders: tuple[ShareHolder, ...] = ()
    parts: MessageParts | None = None

    def __post_init__(self) -> None:
        if not 0 < len(self.title) <= _LARGEST_TITLE or not is_plain(self.title):
            raise InvalidInput(f"a study needs a title of one line, of at most {_LARGEST_TITLE} characters")
        if self.question not in _QUESTIONS:
            raise InvalidInput(f"a study asks for one of {', '.join(_QUESTIONS)}, not {self.question!r}")
        if (self.parts is None) == (self.question == "moments-in-parts"):
            raise InvalidInput("a study has parts if it asks for moments in parts")
        if self.space.response is None or math.isinf(self.space.radius) or math.isinf(self.space.response.bound):
            raise InvalidInput("a study needs bounds on rows and on the response")
        names: list[Any] = [*self.space.features, self.space.response.name]
        if len(set(names)) < len(names) or not all(isinstance(name, str) and is_plain(name) for name in names):
            raise InvalidInput("features and response of a study need different names, each a text of one line")
        _ = self.randomiser  # refuses prices that nothing keeps
        if self.terms is not None:
            _check_terms(self.terms, self)
        if self.holders:
            check_holders(self.holders)
            if self.terms is None or not isinstance(self.spend, GDP):
                raise InvalidInput("a study of two collectors needs terms, and a price in GDP")
            if self.question != "second-moment":
                raise InvalidInput("a study of two collectors asks for the second moment")

    @classmethod
    def of(
        cls, message_plan: MessagePlan, title: str, terms: Terms | None = None, holders: Sequence[ShareHolder] = ()
    ) -> Self:
        """The study that asks what a message plan asks."""
        if len(holders) != message_plan.collectors:
            raise InvalidInput(f"this plan is for {message_plan.collectors} collectors, not {len(holders)}")
        query = message_plan.query
        parts = query.parts if isinstance(query, CrossMoment) else None
        plain = "second-moment" if isinstance(query, SecondMoment) else "cross-moment"
        question = plain if parts is None else "moments-in-parts"
        return cls(title, question, message_plan.space, message_plan.spend, terms, tuple(holders), parts)

    @property
    def names(self) -> tuple[str, ...]:
        """What a user is asked: the questions of the terms, otherwise the features and the response."""
        if self.terms is not None:
            return tuple(question.name for question in self.terms.questions)
        assert self.space.response is not None
        return (*self.space.features, self.space.response.name)

    def row(self, answers: Sequence[object]) -> Vector:
        """Answers, in the order of :attr:`names`, as the row that :meth:`answer` takes, the response last."""
        if self.terms is not None:
            return self.terms.row(answers)
        return to_numbers(pa.array([text_of(each) for each in answers], pa.large_string()))

    @cached_property
    def query(self) -> RowQuery[Any]:
        """What is asked of a row."""
        if self.parts is not None:
            return CrossMoment(self.space, self.parts)
        if self.question == "second-moment":
            return SecondMoment(self.space)
        return ClippedScore(self.space, GaussianFamily, np.zeros(self.space.order), _bound(self.space))

    @cached_property
    def randomiser(self) -> UnitVector | IntegerGaussian:
        """How an answer is made private."""
        if isinstance(self.spend, PureDP):
            check_epsilon(self.spend.epsilon0)
            return UnitVector(self.spend)
        if not isinstance(self.spend, GDP):
            raise InvalidInput(f"an answer costs PureDP or GDP, not {self.spend}")
        return IntegerGaussian.for_query(self.query, self.spend)

    @property
    def message_plan(self) -> MessagePlan:
        """What a solver needs to know of it."""
        return MessagePlan(self.query, self.spend, math.nan, collectors=len(self.holders))

    @property
    def bits(self) -> int:
        """Answers are multiples of ``2^-bits``."""
        return UNIT_BITS if isinstance(self.randomiser, UnitVector) else self.randomiser.bits

    def answer(self, x: Vector, y: float, sampler: Sampler) -> NDArray[np.int32]:
        """One user's randomised answer, of shape (query.size,).

        Parameters
        ----------
        x : ndarray of shape (d,)
            In the order of ``space.features``; what is not finite counts as the space's fill value.
        y : float
        sampler : Sampler
        """
        if self.holders:
            raise InvalidInput("devices split the answers of this study into shares: dpregress.collector.device_shares")
        value = self._value(x, y)
        if isinstance(self.randomiser, UnitVector):
            return self.randomiser.message(value, self.query.contribution(), sampler)
        return self.randomiser.message(value, sampler)

    def exact_steps(self, x: Vector, y: float) -> NDArray[np.int64]:
        """One user's answer in steps of the grid, without noise, of shape (query.size,): only shares of it may be sent.

        Parameters
        ----------
        x : ndarray of shape (d,)
        y : float
        """
        if not self.holders:
            raise InvalidInput("devices add noise to the answers of this study: dpregress.collector.device_report")
        return self.integer_noise.steps(self._value(x, y))

    @property
    def integer_noise(self) -> IntegerGaussian:
        """The grid, and the noise on it, of a study whose price is in GDP."""
        if isinstance(self.randomiser, UnitVector):
            raise InvalidInput("a study of unit vectors has no noise on a grid")
        return self.randomiser

    def _value(self, x: Vector, y: float) -> Vector:
        row = RawRows(np.asarray(x, dtype=np.float64)[None, :], np.array([y], dtype=np.float64))
        return self.query.value(self.query.row_map(row))

    def admits(self, answer: NDArray[np.int32]) -> bool:
        """Whether an honest device could have sent it, by public numbers alone; wrongly refused once in 10^9."""
        least, most = self.limits
        return least <= math.sqrt(float(np.square(answer, dtype=np.float64).sum())) <= most

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest norm of an admitted answer, in steps of the grid."""
        room = math.sqrt(self.query.size)
        if isinstance(self.randomiser, UnitVector):
            return 2.0**UNIT_BITS - room, 2.0**UNIT_BITS + room
        far = room + math.sqrt(-2 * math.log(_REFUSED))
        return 0.0, math.ldexp(self.query.contribution(), self.bits) + far * self.randomiser.scale

    @property
    def step(self) -> float:
        """What a step of the grid is worth in the sum of users' values."""
        return self._law(1)[0]

    def release(self, total: NDArray[np.int64], n: int) -> Release:
        """The sum of n answers as a release, for :meth:`LocalGLM.fit_release`.

        Parameters
        ----------
        total : ndarray of int64, of shape (query.size,)
        n : int
        """
        if total.shape != (self.query.size,) or n < 1:
            raise InvalidInput(f"a sum of answers has shape {(self.query.size,)} and at least one of them")
        step, noise = self._law(n)
        released: Release = self.query.read(np.asarray(total * step), n=n, noise=noise, events=(self.spend,))
        return released

    def _law(self, n: int) -> tuple[float, NoiseLaw]:
        """What a step is worth, and the noise of n answers."""
        if isinstance(self.randomiser, UnitVector):
            unit, noise = self.randomiser.law(self.query, n)
            return math.ldexp(unit, -UNIT_BITS), noise
        step = math.ldexp(1.0, -self.bits)
        return step, Isotropic(math.sqrt(len(self.holders) or n) * self.randomiser.scale * step)

    # ------------------------------------------------------------ files

    def text(self) -> str:
        """The study as JSON, the same characters every time."""
        randomiser = self.randomiser
        scale = None if isinstance(randomiser, UnitVector) else randomiser.scale
        answer: dict[str, Any] = {"length": self.query.size, "bits": self.bits, "noise_scale": scale}
        record: dict[str, Any] = {
            "format": _BARE_FORMAT,
            "title": self.title,
            "question": self.question,
            "frame": self.space.encode(),
            "spend": self.spend.encode(),
            "answer": answer,
        }
        if self.parts is not None:
            record["parts"] = self.parts.encode()
        if self.terms is not None:
            answer |= {"bound": self.query.contribution(), "cap": self._cap}
            record |= {"format": _FORMAT, "terms": self.terms.encode()}
        if self.holders:
            record |= {"format": _SHARED_FORMAT, "collectors": [each.encode() for each in self.holders]}
        return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"

    @property
    def _cap(self) -> dict[str, float] | None:
        """The cap of a unit vector, for devices that do not optimise it."""
        if not isinstance(self.randomiser, UnitVector):
            return None
        cap = self.randomiser.cap(self.query.size)
        return {"epsilon": cap.epsilon, "gamma": round(cap.gamma, _CAP_DIGITS)}

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of :meth:`text`: what reports name the study by."""
        return hashlib.sha256(self.text().encode()).digest()

    def save(self, path: str | Path) -> None:
        """Write :meth:`text` to a file, whole or not at all; OutputError if that cannot be done."""
        write_whole({Path(path): self.text()})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote; InvalidInput for a file that is no study."""
        try:
            return cls.read(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{shown(path)} cannot be read: {reason(error)}") from error

    @classmethod
    def read(cls, text: str) -> Self:
        """A study from its text.

        Raises
        ------
        InvalidInput
            For anything else than exactly the fields of a study, and for noise that does not keep its promise.
        """
        if len(text) > _LARGEST_TEXT:
            raise InvalidInput("this text is too long for a study")
        try:
            record = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
            found = record.get("format") if isinstance(record, dict) else None
            told = _TOLD.get(found, set()) if isinstance(found, str) else set()
            asked = {"parts"} if isinstance(record, dict) and record.get("question") == "moments-in-parts" else set()
            _exactly(record, {"format", "title", "question", "frame", "spend", "answer"} | told | asked)
            if found not in _TOLD:
                raise InvalidInput(f"this is of format {found!r}, not {_FORMAT!r}")
            _exactly(record["frame"], _FRAME_FIELDS)
            _exactly(record["frame"]["response"], _RESPONSE_FIELDS)
            if not (isinstance(record["title"], str) and isinstance(record["question"], str)):
                raise InvalidInput("title and question of a study are texts")
            space, spend = WhitenedSpace.decode(record["frame"]), decode(record["spend"])
            terms = Terms.decode(record["terms"]) if "terms" in told else None
            holders = tuple(map(ShareHolder.decode, record["collectors"])) if "collectors" in told else ()
            parts = MessageParts.decode(record["parts"]) if asked else None
            study = cls(record["title"], record["question"], space, spend, terms, holders, parts)
        except MALFORMED as error:
            if isinstance(error, DPRegressError):
                raise
            raise InvalidInput(f"this is not a study: {error}") from error
        if study.text() != text:
            raise InvalidInput("this study is not written as its contents ask for: its noise or its grid was changed")
        return study


def _check_terms(terms: Terms, study: Study) -> None:
    """Refuse terms about other columns, and a report that costs more than participants are told."""
    response = study.space.response
    assert response is not None
    lower, upper = terms.response.ends
    if terms.features != study.space.features or terms.response.name != response.name:
        raise InvalidInput("the questions of a study are not about the columns of its frame")
    if (response.centre, response.scale) != ((lower + upper) / 2, (upper - lower) / 2) or response.bound != 1:
        raise InvalidInput("the bounds of the response in the questions are not those of the frame")
    if terms.public is not None and terms.public.names != study.space.features:
        raise InvalidInput("the public moments of a study are not about the columns of its frame")
    told: Event | None = PureDP(terms.budget.epsilon0)
    if isinstance(study.spend, GDP):
        told = integer_gaussian_promise(terms.budget, study.query.size)
    if told is None or told.mu < study.spend.mu * (1 - 1e-9):
        raise InvalidInput("a report of this study costs more than its terms say")


def _bound(space: WhitenedSpace) -> float:
    assert space.response is not None
    return space.response.bound


def _exactly(record: Any, names: set[str]) -> None:
    if not isinstance(record, dict) or set(record) != names:
        raise InvalidInput(f"this is not a study: it needs exactly the fields {', '.join(sorted(names))}")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise InvalidInput("this is not a study: a field is there twice")
    return dict(pairs)


def _refuse_constant(name: str) -> float:
    raise InvalidInput(f"this is not a study: {name} is not a number")

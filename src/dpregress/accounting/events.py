r"""Privacy events: what a release costs, and what a budget allows.

An event says how much a mechanism can reveal about one unit. The same objects state promises (a budget, a
reservation), so that :meth:`Event.covers` answers whether something is within a budget.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from dpregress.accounting import convert
from dpregress.errors import InvalidInput, one_line

#: Sums of squares of floats may exceed their exact value by this relative amount and still count as equal.
SLACK = 1e-12


class Relation(StrEnum):
    """Which two data sets count as neighbours."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-or-remove-one"


@dataclass(frozen=True, repr=False)
class Event(ABC):
    """One privacy guarantee. ``mu`` and ``rho`` are infinite where no finite value exists."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def mu(self) -> float:
        """Smallest mu for which this is mu-GDP."""

    @property
    @abstractmethod
    def rho(self) -> float:
        """Smallest known rho for which this is rho-zCDP."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Smallest known epsilon at ``delta``."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Smallest known delta at ``epsilon``."""

    @abstractmethod
    def covers(self, spent: Event) -> bool:
        """Whether ``spent`` is within this event as a budget."""

    @property
    @abstractmethod
    def gaussian_mu(self) -> float:
        """The largest mu of a Gaussian mechanism that keeps within this event as a budget."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The numbers that identify the event, for files."""

    def __add__(self, other: Event) -> Composed:
        return Composed.of((self, other))

    def __mul__(self, times: int) -> Composed:
        return Composed.of((self,) * times)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.parameters().items())})"

    def encode(self) -> dict[str, Any]:
        """A plain dictionary that :func:`decode` reads back."""
        return {"kind": self.kind, **self.parameters()}


def _total(values: Iterable[float]) -> float:
    """The sum; infinite where it is beyond floats."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _positive(name: str, value: float) -> float:
    if not convert.is_positive(value):
        raise InvalidInput(f"{name} must be positive and finite, not {one_line(value)}")
    return float(value)


@dataclass(frozen=True, init=False, repr=False)
class GDP(Event):
    r"""mu-Gaussian differential privacy: no test tells neighbours apart better than N(0,1) from N(mu,1).

    Parameters
    ----------
    mu : float
        Positive and finite. Composition is ``mu^2 = sum mu_i^2``; k rows of one person cost ``k mu``.

    References
    ----------
    Dong, Roth, Su (2022), Gaussian differential privacy, Theorems 1 and 4, Corollary 1.

    Examples
    --------
    >>> from dpregress import GDP
    >>> round(GDP(1.0).epsilon(1e-6), 3)
    4.887
    """

    _mu: float
    kind: ClassVar[str] = "gdp"

    def __init__(self, mu: float) -> None:
        object.__setattr__(self, "_mu", _positive("mu", mu))

    @property
    def mu(self) -> float:
        return self._mu

    @property
    def rho(self) -> float:
        return self.mu * self.mu / 2

    @property
    def gaussian_mu(self) -> float:
        return self.mu

    def epsilon(self, delta: float) -> float:
        return convert.gdp_epsilon(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        return convert.gdp_delta(self.mu, epsilon)

    def covers(self, spent: Event) -> bool:
        return spent.mu <= self.mu * (1 + SLACK)

    def parameters(self) -> dict[str, float]:
        return {"mu": self.mu}


@dataclass(frozen=True, init=False, repr=False)
class ZCDP(Event):
    """rho-zero-concentrated differential privacy (Bun, Steinke 2016).

    Parameters
    ----------
    rho : float
        Positive and finite. A Gaussian mechanism at mu costs ``rho = mu^2 / 2``.

    Examples
    --------
    >>> from dpregress import ZCDP
    >>> ZCDP(0.5).gaussian_mu
    1.0
    """

    _rho: float
    kind: ClassVar[str] = "zcdp"

    def __init__(self, rho: float) -> None:
        object.__setattr__(self, "_rho", _positive("rho", rho))

    @property
    def rho(self) -> float:
        return self._rho

    @property
    def mu(self) -> float:
        return math.inf

    @property
    def gaussian_mu(self) -> float:
        return 2 * math.sqrt(self.rho / 2)  # twice the largest rho is no number

    def epsilon(self, delta: float) -> float:
        return convert.zcdp_epsilon(self.rho, delta)

    def delta(self, epsilon: float) -> float:
        return convert.zcdp_delta(self.rho, epsilon)

    def covers(self, spent: Event) -> bool:
        return spent.rho <= self.rho * (1 + SLACK)

    def parameters(self) -> dict[str, float]:
        return {"rho": self.rho}


@dataclass(frozen=True, init=False, repr=False)
class PureDP(Event):
    """epsilon-differential privacy, with delta = 0.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    """

    epsilon0: float
    kind: ClassVar[str] = "pure"

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "epsilon0", _positive("epsilon", epsilon))

    @property
    def mu(self) -> float:
        return convert.pure_mu(self.epsilon0)

    @property
    def rho(self) -> float:
        return self.epsilon0 * self.epsilon0 / 2  # Bun, Steinke 2016, Proposition 1.4

    @property
    def gaussian_mu(self) -> float:
        return 0.0  # no Gaussian mechanism is purely private

    def epsilon(self, delta: float) -> float:
        convert.check_delta(delta)
        # delta of randomised response at eps' <= eps0 is (e^eps0 - e^eps') / (1 + e^eps0)
        gap = (1 - delta) - delta * math.exp(-self.epsilon0)  # times exp(eps0), kept out for large eps0
        return max(0.0, self.epsilon0 + math.log(gap)) if gap > 0 else 0.0

    def delta(self, epsilon: float) -> float:
        return -math.expm1(min(epsilon - self.epsilon0, 0.0)) / (1 + math.exp(-self.epsilon0))

    def covers(self, spent: Event) -> bool:
        return pure_epsilon(spent) <= self.epsilon0 * (1 + SLACK)

    def parameters(self) -> dict[str, float]:
        return {"epsilon": self.epsilon0}


@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(Event):
    """(epsilon, delta)-differential privacy.

    As a budget it is converted exactly into the largest mu of a Gaussian mechanism that satisfies it. As an event
    that was spent, its epsilon and delta compose by adding up.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        Strictly between 0 and 1. A fit to n records refuses a delta above 1/n, unless it is confirmed.
    confirm_delta : bool, default=False
        Allow fits at this delta, however few records there are (docs/privacy/ledger.md).

    Examples
    --------
    >>> from dpregress import ApproxDP
    >>> round(ApproxDP(1.0, 1e-6).gaussian_mu, 4)
    0.2367
    """

    epsilon0: float
    delta0: float
    confirmed: bool = field(compare=False)
    kind: ClassVar[str] = "approx"

    def __init__(self, epsilon: float, delta: float, *, confirm_delta: bool = False) -> None:
        convert.check_epsilon_delta(epsilon, delta)
        object.__setattr__(self, "epsilon0", float(epsilon))
        object.__setattr__(self, "delta0", float(delta))
        object.__setattr__(self, "confirmed", bool(confirm_delta))

    @property
    def mu(self) -> float:
        return math.inf

    @property
    def rho(self) -> float:
        return math.inf

    @property
    def gaussian_mu(self) -> float:
        return convert.gdp_mu(self.epsilon0, self.delta0)

    def epsilon(self, delta: float) -> float:
        convert.check_delta(delta)
        return self.epsilon0 if delta >= self.delta0 else math.inf

    def delta(self, epsilon: float) -> float:
        return self.delta0 if epsilon >= self.epsilon0 else 1.0

    def covers(self, spent: Event) -> bool:
        within_curve = spent.mu <= self.gaussian_mu * (1 + SLACK)
        return within_curve or spent.delta(self.epsilon0 * (1 + SLACK)) <= self.delta0 * (1 + SLACK)

    def parameters(self) -> dict[str, float]:
        return {"epsilon": self.epsilon0, "delta": self.delta0}


@dataclass(frozen=True, repr=False)
class Composed(Event):
    """Several events about the same people: the total of a fit, or of all charges of a ledger.

    ``mu`` and ``rho`` compose over all parts. For (epsilon, delta) there are three bounds, of which the smallest is
    used: the GDP curve or the zCDP curve of the parts that have one, plus the summed epsilon and delta of the other
    parts; and, where all parts are pure, the sum of their epsilons with delta = 0 (basic composition).

    References
    ----------
    Dwork, Roth (2014), The algorithmic foundations of differential privacy, Corollary 3.15, for the sum of epsilons.
    """

    parts: tuple[Event, ...]
    kind: ClassVar[str] = "composed"

    @classmethod
    def of(cls, events: Iterable[Event]) -> Composed:
        """Compose events; nested compositions are flattened, so that every event counts once."""
        flat: list[Event] = []
        for event in events:
            flat.extend(parts_of(event))
        return cls(tuple(flat))

    @property
    def mu(self) -> float:
        return math.hypot(*(part.mu for part in self.parts))

    @property
    def rho(self) -> float:
        return _total(part.rho for part in self.parts)

    @property
    def gaussian_mu(self) -> float:
        return min((part.gaussian_mu for part in self.parts), default=0.0)

    def _curves(self) -> Iterable[tuple[Event | None, float, float]]:
        """For each kind of curve: that of the parts that have one, and the summed epsilon and delta of the others."""
        for attribute, make in (("mu", GDP), ("rho", ZCDP)):
            with_curve = [part for part in self.parts if math.isfinite(getattr(part, attribute))]
            rest = [part for part in self.parts if not math.isfinite(getattr(part, attribute))]
            if all(isinstance(part, ApproxDP) for part in rest):
                value = getattr(Composed(tuple(with_curve)), attribute)
                curve = make(value) if value > 0 else None
                yield (
                    curve,
                    _total(part.epsilon0 for part in rest if isinstance(part, ApproxDP)),
                    math.fsum(part.delta0 for part in rest if isinstance(part, ApproxDP)),
                )

    def epsilon(self, delta: float) -> float:
        convert.check_delta(delta)
        best = pure_epsilon(self)
        for curve, more_epsilon, more_delta in self._curves():
            if delta > more_delta or (curve is None and delta >= more_delta):
                best = min(best, more_epsilon + (curve.epsilon(delta - more_delta) if curve else 0.0))
        return best

    def delta(self, epsilon: float) -> float:
        if epsilon >= pure_epsilon(self):
            return 0.0
        best = 1.0
        for curve, more_epsilon, more_delta in self._curves():
            if epsilon >= more_epsilon:
                best = min(best, more_delta + (curve.delta(epsilon - more_epsilon) if curve else 0.0))
        return best

    def covers(self, spent: Event) -> bool:
        left = list(self.parts)
        for part in parts_of(spent):
            if part not in left:
                return False
            left.remove(part)
        return True

    def parameters(self) -> dict[str, Any]:
        return {"parts": [part.encode() for part in self.parts]}


def parts_of(event: Event) -> tuple[Event, ...]:
    """The events of a composition; of another event, itself."""
    return event.parts if isinstance(event, Composed) else (event,)


def pure_epsilon(event: Event) -> float:
    """The sum of the epsilons; infinite if any part is not pure."""
    return _total(part.epsilon0 if isinstance(part, PureDP) else math.inf for part in parts_of(event))


def group(event: Event, rows: int) -> Event:
    """The guarantee for ``rows`` rows of one person: k mu (Dong, Roth, Su 2022, Theorem 6), or k epsilon of a pure one.

    Examples
    --------
    >>> group(GDP(0.5), 3).mu
    1.5
    >>> group(PureDP(0.5), 3)
    PureDP(epsilon=1.5)
    """
    if rows < 1:
        raise InvalidInput(f"a person has at least one row, not {rows}")
    if isinstance(event, PureDP):
        return PureDP(rows * event.epsilon0)
    if not math.isfinite(event.mu):
        raise InvalidInput("a group bound needs an event with a finite mu")
    return GDP(rows * event.mu)


#: The only kinds a file may name.
_KINDS: Mapping[str, type[Event]] = {cls.kind: cls for cls in (GDP, ZCDP, PureDP, ApproxDP)}


def decode(record: Mapping[str, Any]) -> Event:
    """The event that :meth:`Event.encode` wrote; InvalidInput for anything else."""
    try:
        fields = dict(record)
        kind = fields.pop("kind")
        if kind == Composed.kind:
            return Composed(tuple(decode(part) for part in fields["parts"]))
        return _KINDS[kind](**{name: float(value) for name, value in fields.items()})
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"not a privacy event: {record!r}") from error

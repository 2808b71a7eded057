"""What one fit promises, in a form that people and programs can read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpregress.accounting.events import GDP, Composed, Event, Relation, decode, group
from dpregress.accounting.unit import Unit
from dpregress.errors import InvalidInput, SeededNoise


@dataclass(frozen=True)
class PrivacyStatement:
    """The guarantee of one fit: its unit, its neighbours, its events, and what was taken as public.

    Attributes
    ----------
    budget : Event
        What the caller allowed.
    promise : Event
        What was charged before the first draw.
    events : Composed
        What was drawn: one event a release, as it counts for one unit.
    relation : Relation
    unit : str
        Whose contribution the guarantee hides.
    assumed_public : tuple of str
        Everything the method used without paying for it.
    seeded : bool
        True when the noise came from a seed. There is no privacy against whoever knows the seed, so ``mu``,
        ``record_mu``, ``epsilon`` and ``for_rows`` raise; ``promise`` holds what the same fit would cost without it.
    recorded : str or None
        The ledger file that holds the charge, or None.
    max_rows_per_unit : int or None
        The largest number of rows of one unit that count; None where the unit is a record.
    """

    budget: Event
    promise: Event
    events: Composed
    relation: Relation
    unit: str
    assumed_public: tuple[str, ...]
    seeded: bool
    recorded: str | None
    max_rows_per_unit: int | None = None

    @property
    def mu(self) -> float:
        """Total mu of the fit (Gaussian differential privacy), for one unit."""
        return self._kept().mu

    @property
    def record_mu(self) -> float:
        """Total mu for replacing one row by any other, its id included: 2 mu / k where k rows of a unit count.

        The factor 2 is for the id: the row leaves one unit and joins another, and in each of them another row may
        start or stop to count. Where the id stays the same, mu / k holds (docs/privacy/units.md).
        """
        return self._row_mu(self._kept())

    def epsilon(self, delta: float) -> float:
        """Total epsilon at ``delta``.

        Raises
        ------
        SeededNoise
            For a fit with ``random_state``; ``promise.epsilon(delta)`` is the nominal one.
        """
        return self._kept().epsilon(delta)

    def for_rows(self, rows: int) -> Event:
        """The guarantee for a person with ``rows`` rows (with several units, where a unit is no record): k mu."""
        return group(self._kept(), rows)

    def _kept(self) -> Event:
        """The promise, where it is kept."""
        if self.seeded:
            raise SeededNoise(
                "the noise of this fit came from a seed, which gives no protection from those who know it: fit with "
                "random_state=None, or take the nominal total from privacy_.promise, as promise.epsilon(delta)"
            )
        return self.promise

    def _row_mu(self, promise: Event) -> float:
        return promise.mu if self.max_rows_per_unit is None else 2 * promise.mu / self.max_rows_per_unit

    def describe(self) -> str:
        """The guarantee in one sentence."""
        parts = self.budget.parts if isinstance(self.budget, Composed) else (self.budget,)
        budgets = (", ".join(f"{name} = {value:g}" for name, value in part.parameters().items()) for part in parts)
        parameters = " + ".join(budgets)
        seeded = "no protection, because the noise came from a seed; nominally " if self.seeded else ""
        unit = Unit(self.unit, self.max_rows_per_unit).describe()
        row = "" if self.max_rows_per_unit is None else f" ({self._row_mu(self.promise):.4g} for any one row)"
        mu = self.promise.mu
        total = f"mu = {mu:.4g}" if math.isfinite(mu) else f"rho = {self.promise.rho:.4g}"
        return f"{seeded}{parameters} for {self.relation.value} neighbours, one {unit}; {total} in total{row}"

    def encode(self) -> dict[str, Any]:
        """Plain values, for JSON; totals of seeded noise are null."""
        return {
            "unit": self.unit,
            "max_rows_per_unit": self.max_rows_per_unit,
            "unit_mu": None if self.seeded else _known(self.mu),
            "record_mu": None if self.seeded else _known(self.record_mu),
            "relation": self.relation.value,
            "budget": self.budget.encode(),
            "promise": self.promise.encode(),
            "events": [event.encode() for event in self.events.parts],
            "assumed_public": list(self.assumed_public),
            "seeded": self.seeded,
            "recorded": None if self.recorded is None else Path(self.recorded).name,
        }

    @classmethod
    def decode(cls, record: Mapping[str, Any]) -> PrivacyStatement:
        """Read back what :meth:`encode` wrote."""
        unit = Unit(str(record["unit"]), record.get("max_rows_per_unit"))  # refuses what is no unit
        return cls(
            budget=decode(record["budget"]),
            promise=decode(record["promise"]),
            events=Composed(tuple(decode(event) for event in record["events"])),
            relation=Relation(record["relation"]),
            unit=unit.name,
            assumed_public=tuple(str(fact) for fact in record["assumed_public"]),
            seeded=bool(record["seeded"]),
            recorded=record["recorded"],
            max_rows_per_unit=unit.rows,
        )


def compose_statements(statements: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """The guarantee of several fits on the same people: what each spent, composed.

    Raises
    ------
    InvalidInput
        For fits about different units or neighbours.
    """
    first = statements[0]
    if len(statements) == 1:
        return first
    if len({(statement.unit, statement.max_rows_per_unit, statement.relation) for statement in statements}) > 1:
        raise InvalidInput("fits for different units or neighbours have no guarantee together")
    total = GDP(Composed.of(statement.promise for statement in statements).mu)
    return PrivacyStatement(
        budget=total,
        promise=total,
        events=Composed.of(statement.events for statement in statements),
        relation=first.relation,
        unit=first.unit,
        assumed_public=tuple(dict.fromkeys(fact for statement in statements for fact in statement.assumed_public)),
        seeded=any(statement.seeded for statement in statements),
        recorded=first.recorded if all(statement.recorded for statement in statements) else None,
        max_rows_per_unit=first.max_rows_per_unit,
    )


def _known(mu: float) -> float | None:
    """A number for JSON; None where a guarantee is in no Gaussian terms."""
    return mu if math.isfinite(mu) else None

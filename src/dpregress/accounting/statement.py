"""The guarantee of one fit, readable by people and programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpregress.accounting.events import GDP, Composed, Event, Relation, decode, group
from dpregress.accounting.unit import Unit
from dpregress.accounting.wording import describe
from dpregress.display import ShownInShort, html_table, plain
from dpregress.errors import InvalidInput, SeededNoise


@dataclass(frozen=True, repr=False)
class PrivacyStatement(ShownInShort):
    """The guarantee of one fit: its unit, neighbours and events, and what was assumed to be public.

    Attributes
    ----------
    budget : Event
        What the caller allowed.
    promise : Event
        What was charged before the first draw.
    events : Composed
        What was drawn: one event for each release, as it counts for one unit.
    relation : Relation
    unit : str
        Whose data the guarantee protects.
    assumed_public : tuple of str
        Everything that the method used as public, without spending budget.
    seeded : bool
        True if the noise came from a seed. There is no privacy against anyone who knows the seed, so ``mu``,
        ``record_mu``, ``epsilon`` and ``for_rows`` raise; ``promise`` is the cost of the same fit without a seed.
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

    def _in_short(self) -> str:
        protected = "no protection: seeded; nominally " if self.seeded else ""
        return f"{protected}{self.promise_in_mu} for {self.relation.value} neighbours, one {plain(self.unit)}"

    @property
    def mu(self) -> float:
        """Total mu of the fit (Gaussian differential privacy), for one unit."""
        return self._kept().mu

    @property
    def record_mu(self) -> float:
        """Total mu for replacing one row, including its id: 2 mu / k where k rows of a unit count.

        The factor 2 is due to the id: the row leaves one unit and joins another, and in each of them another row may
        start or stop counting. For replacements that keep the id, the total is mu / k (docs/privacy/units.md).
        """
        return self._row_mu(self._kept())

    def epsilon(self, delta: float) -> float:
        """Total epsilon at ``delta``.

        Raises
        ------
        SeededNoise
            For a fit with ``random_state``; ``promise.epsilon(delta)`` is the nominal value.
        """
        return self._kept().epsilon(delta)

    def for_rows(self, rows: int) -> Event:
        """The guarantee for a person with ``rows`` rows (or ``rows`` units, if the unit is not a record): k mu."""
        return group(self._kept(), rows)

    def _kept(self) -> Event:
        """The promise; raises if the noise was seeded."""
        if self.seeded:
            raise SeededNoise(
                "the noise of this fit came from a seed and gives no protection against anyone who knows it: fit with "
                "random_state=None, or take the nominal total from privacy_.promise, as promise.epsilon(delta)"
            )
        return self.promise

    def _row_mu(self, promise: Event) -> float:
        return promise.mu if self.max_rows_per_unit is None else 2 * promise.mu / self.max_rows_per_unit

    @property
    def promise_in_mu(self) -> str:
        """The promise in mu, or in rho where there is no finite mu; nominal if the noise was seeded."""
        mu = self.promise.mu
        return f"mu = {mu:.4g}" if math.isfinite(mu) else f"rho = {self.promise.rho:.4g}"

    def describe(self) -> str:
        """The guarantee in one sentence."""
        seeded = "no protection, because the noise came from a seed; nominally " if self.seeded else ""
        unit = Unit(self.unit, self.max_rows_per_unit).describe()
        row = "" if self.max_rows_per_unit is None else f" ({self._row_mu(self.promise):.4g} for any one row)"
        budget, total = describe(self.budget), self.promise_in_mu
        return f"{seeded}{budget} for {self.relation.value} neighbours, one {unit}; {total} in total{row}"

    def _repr_html_(self) -> str:
        """The guarantee, and what it assumes, as a table."""
        return html_table(
            ("guarantee", ""),
            [
                ("total", self.describe()),
                ("releases", str(len(self.events.parts))),
                ("taken as public", "; ".join(self.assumed_public)),
                ("recorded in", "no ledger" if self.recorded is None else Path(self.recorded).name),
            ],
        )

    def encode(self) -> dict[str, Any]:
        """Plain values for JSON; totals are null if the noise was seeded."""
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
        seeded, recorded = record["seeded"], record["recorded"]
        if not isinstance(seeded, bool) or not isinstance(recorded, str | None):
            raise InvalidInput("it does not say whether the noise was seeded, or where the charge was recorded")
        return cls(
            budget=decode(record["budget"]),
            promise=decode(record["promise"]),
            events=Composed(tuple(decode(event) for event in record["events"])),
            relation=Relation(record["relation"]),
            unit=unit.name,
            assumed_public=tuple(str(fact) for fact in record["assumed_public"]),
            seeded=seeded,
            recorded=recorded,
            max_rows_per_unit=unit.rows,
        )


def compose_statements(statements: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """The composed guarantee of several fits on the same people.

    Raises
    ------
    InvalidInput
        For fits with different units or neighbours.
    """
    first = statements[0]
    if len(statements) == 1:
        return first
    if len({(statement.unit, statement.max_rows_per_unit, statement.relation) for statement in statements}) > 1:
        raise InvalidInput("fits with different units or neighbours cannot be composed")
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
    """The number for JSON; None where there is no finite mu."""
    return mu if math.isfinite(mu) else None

"""Whose data a guarantee hides: a record, or everything of one unit of which at most k rows count."""

from __future__ import annotations

from dataclasses import dataclass

from dpregress.accounting.calibrate import gaussian_promise
from dpregress.accounting.events import GDP
from dpregress.errors import InvalidInput, LedgerError


@dataclass(frozen=True)
class Unit:
    """The unit of a guarantee.

    Parameters
    ----------
    name : str
        What a ledger calls it: "record", or the column of the ids.
    rows : int or None
        k, the largest number of its rows that count; None for a record.

    Raises
    ------
    InvalidInput
        For a k that is no whole number of at least 1, or a column called "record".

    Examples
    --------
    >>> Unit("person_id", 4).per_record(GDP(1.0))
    GDP(mu=0.25)
    """

    name: str = "record"
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.rows is None:
            return
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or not 1 <= self.rows < 2**53:
            raise InvalidInput(f"max_rows_per_unit must be a whole number of at least 1, not {str(self.rows)[:20]}")
        if self.name in ("", RECORD.name):
            raise InvalidInput(f"a column called {self.name!r} cannot name the unit: rename it, to person_id say")

    @property
    def most(self) -> int:
        """How many rows one unit can change in any sum."""
        return 1 if self.rows is None else self.rows

    def per_record(self, promise: GDP) -> GDP:
        """What noise that hides one row may spend, so that ``most`` rows are hidden by the promise: mu / k.

        Raises
        ------
        InvalidInput
            When so little is left for a row that noise cannot be drawn safely.
        """
        return promise if self.most == 1 else gaussian_promise(GDP(promise.mu / self.most))

    def check(self, counted: str) -> None:
        """Refuse a ledger that counts something else.

        Raises
        ------
        LedgerError
        """
        if counted == self.name:
            return
        if self.rows is None:
            mend = f"open a budget of its own for records, or fit with unit={counted!r} where that is offered"
        elif self.name == UNNAMED and counted != RECORD.name:
            mend = f"ids have the name of their Series, or of their column: fit_table(.., unit={counted!r})"
        else:
            mend = f"open a budget of its own with `dpregress ledger new FILE --dataset NAME --unit {self.name} ..`"
        raise LedgerError(f"this ledger counts a {counted}; this fit protects a {self.name}: {mend}")

    def describe(self) -> str:
        """``record``, or ``person_id (all its rows, of which at most 4 count)``."""
        if self.rows is None:
            return self.name
        count = f"at most {self.rows} count" if self.rows > 1 else "at most 1 counts"
        return f"{self.name} (all its rows, of which {count})"

    def assumed_public(self) -> tuple[str, ...]:
        """What the rule that drops rows takes as known, in words."""
        if self.rows is None:
            return ()
        return (f"the largest number of rows of one {self.name} that count, {self.rows}",)


RECORD = Unit()
#: What ids without a name are called.
UNNAMED = "unit"
#: What ledgers call somebody who holds one row, their own.
_USER = ("record", "user")


def user_of(counted: str) -> Unit:
    """The user of a message about their own row, as a ledger calls them.

    Raises
    ------
    LedgerError
        For a ledger that counts something else.
    """
    if counted not in _USER:
        raise LedgerError(f"this ledger counts a {counted}; a message protects one user: open one with unit='user'")
    return Unit(counted)

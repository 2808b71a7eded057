"""The unit of privacy: one record, or all rows of one unit, of which at most k count."""

from __future__ import annotations

from dataclasses import dataclass

from dpregress.accounting.calibrate import gaussian_promise
from dpregress.accounting.events import GDP
from dpregress.errors import InvalidInput, LedgerError, one_line


@dataclass(frozen=True)
class Unit:
    """The unit of a guarantee.

    Parameters
    ----------
    name : str
        Its name in a ledger: "record", or the column that holds the ids.
    rows : int or None
        k, the largest number of its rows that count; None for a record.

    Raises
    ------
    InvalidInput
        If k is not a whole number of at least 1, or if the column is called "record".

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
            raise InvalidInput(f"max_rows_per_unit must be a whole number of at least 1, not {one_line(self.rows)}")
        if self.name in ("", RECORD.name):
            raise InvalidInput(f"a column called {self.name!r} cannot be the unit: rename it, for example to person_id")

    @property
    def most(self) -> int:
        """The largest number of rows that one unit can change in a sum."""
        return 1 if self.rows is None else self.rows

    def per_record(self, promise: GDP) -> GDP:
        """The event that noise for one row may spend so that the promise protects ``most`` rows: mu / k.

        Raises
        ------
        InvalidInput
            When mu / k is so small that noise cannot be drawn safely.
        """
        return promise if self.most == 1 else gaussian_promise(GDP(promise.mu / self.most))

    def check(self, counted: str) -> None:
        """Refuse a ledger that counts another unit.

        Raises
        ------
        LedgerError
        """
        if counted == self.name:
            return
        if self.rows is None:
            mend = f"open a separate budget for records, or fit with unit={counted!r} where that is offered"
        elif self.name == UNNAMED and counted != RECORD.name:
            mend = f"name the ids, by the name of their Series or by fit_table(.., unit={counted!r})"
        else:
            mend = f"open a separate budget with `dpregress ledger new FILE --dataset NAME --unit {self.name} ..`"
        raise LedgerError(f"the unit of this ledger is {counted}, and the unit of this fit is {self.name}: {mend}")

    def describe(self) -> str:
        """``record``, or ``value of person_id, with all its rows, of which only 4 are used``."""
        if self.rows is None:
            return self.name
        count = f"only {self.rows} are used" if self.rows > 1 else "only 1 is used"
        return f"value of {self.name}, with all its rows, of which {count}"

    def assumed_public(self) -> tuple[str, ...]:
        """What the rule that drops rows assumes to be public, in words."""
        if self.rows is None:
            return ()
        return (f"the largest number of rows of one {self.name} that count, {self.rows}",)


RECORD = Unit()
#: The name of a unit whose ids have no name.
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

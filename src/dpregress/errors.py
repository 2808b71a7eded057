"""The errors a caller can meet.

::

    DPRegressError
    ├── InvalidInput (ValueError)     a public fact is wrong: the call, a file's shape, the public table
    │   ├── UnboundedData             a bound that must be public is missing
    │   ├── NotAvailable              a quantity that this fit does not have, or has not yet
    │   └── SchemaError               the schema contradicts itself or the table's columns
    ├── PrivacyError                  the answer would break the guarantee
    │   ├── BudgetExceeded            the ledger or the reservation does not hold enough
    │   ├── PolicyViolation           the ledger's policy does not allow the charge
    │   ├── NotAnswered               this trust model cannot answer that query
    │   ├── UnsafeNoise               a noise scale at which the sampler would return the data itself
    │   └── SeededNoise               a fit whose noise came from a seed has no guarantee to report
    ├── SourceError                   private rows could not be read to their end; what was charged stays charged
    ├── OutputError                   results could not be written; what was charged stays charged
    ├── LedgerError                   no such ledger or budget, or a file that is not a ledger
    │   └── ChargedBefore             a release that is made only once was charged before
    └── StoreError                    the reports of a collector cannot be read or written, or are not what was stored

None of them ever depends on the value of a private cell: an error is an output too.
"""

import numbers
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

#: Characters of a value that a message shows.
_LONGEST = 80
#: Types of what is one name or one number.
_SINGLE = (str, numbers.Number)


class DPRegressError(Exception):
    """Base of every error raised on purpose by dpregress."""


class InvalidInput(DPRegressError, ValueError):
    """A public fact is wrong: an argument, a file's shape, the public table."""


class UnboundedData(InvalidInput):
    """A bound that must come from public facts is missing; the library never reads it from private rows."""


class NotAvailable(InvalidInput, AttributeError):
    """A quantity that this fit does not have; an AttributeError too, so that ``hasattr`` and ``dir`` say no."""


class SchemaError(InvalidInput):
    """The schema contradicts itself or the columns of the table."""


class PrivacyError(DPRegressError):
    """Answering would break the privacy guarantee."""


class BudgetExceeded(PrivacyError):
    """The ledger, or the reservation drawn from it, does not hold enough budget."""


class PolicyViolation(PrivacyError):
    """The policy of the ledger does not allow the charge; nothing was charged."""


class NotAnswered(PrivacyError):
    """The trust model in use cannot answer this query; nothing was charged."""


class UnsafeNoise(PrivacyError):
    """The noise scale is one at which a sampler would return the data itself."""


class SeededNoise(PrivacyError):
    """The noise of the fit came from a seed, so there is no guarantee to report against anyone who knows the seed."""


class SourceError(DPRegressError):
    """Private rows could not be read to their end, or changed between passes; what was charged stays charged."""


class OutputError(DPRegressError):
    """Results could not be written; what was charged stays charged."""


class LedgerError(DPRegressError):
    """The ledger or budget does not exist or exists already, or the file is not a ledger."""


class ChargedBefore(LedgerError):
    """A release that is made only once was charged before; nothing was charged again."""


class StoreError(DPRegressError):
    """The reports of a collector cannot be read or written, or are not what was stored."""


class SeededNoiseWarning(UserWarning):
    """The noise came from a seed: anyone who knows the seed can subtract it. For tests and simulations only."""


class UnrecordedSpendingWarning(UserWarning):
    """Several private fits of one loop or search are charged to no ledger, so nothing adds up what they spend."""


class SelectedRowsWarning(UserWarning):
    """A query selects rows, and their number is published exactly: it may depend on private cells."""


class NoScaleWarning(UserWarning):
    """No coefficients match the released moments, so a stated rule chose the nearest. This reveals noise only."""


def type_of(value: object) -> str:
    """The type of a value, for messages: ``a float``, ``an int``."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def abridged(value: object) -> str:
    """A public value in one line that is not long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a repr is any code; that of a whole number refuses too many digits
        return type_of(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}.."


def one_line(value: object) -> str:
    """An argument that a user gave, for messages: a single name or number as it is, of anything else the type.

    Whoever gives private rows where a name or a number is expected finds none of their cells in the error.

    Examples
    --------
    >>> one_line("robust"), one_line(0.5), one_line([31.0, 7.0])
    ("'robust'", '0.5', 'a list')
    """
    return abridged(value) if value is None or isinstance(value, _SINGLE) else type_of(value)


def did_you_mean(name: str, names: Iterable[str], otherwise: str) -> str:
    """The mend for an unknown name: the public one that it is most like, else what to do.

    Examples
    --------
    >>> did_you_mean("costs", ["age", "cost"], "check its names")
    "did you mean 'cost'?"
    """
    close = get_close_matches(name, list(names), n=1)
    return f"did you mean {one_line(close[0])}?" if close else otherwise


def check_choice(name: str, given: object, choices: Iterable[str], meant: Mapping[str, str] | None = None) -> None:
    """Refuse anything but one of these words as a parameter; ``meant`` has those of other libraries.

    Raises
    ------
    InvalidInput
    """
    offered = tuple(choices)
    if not isinstance(given, str) or given not in offered:
        known = (meant or {}).get(given) if isinstance(given, str) else None
        mend = "" if known is None else f": write {name}={known!r}"
        raise InvalidInput(f"{name} must be one of {', '.join(offered)}, not {one_line(given)}{mend}")


def reason(error: Exception) -> str:
    """What went wrong with a public file, in one line and without the system's number for it."""
    return (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())

"""The errors a caller can meet.

::

    DPRegressError
    ├── InvalidInput (ValueError)     a public fact is wrong: the call, a file's shape, the public table
    │   ├── UnboundedData             a bound that must be public is missing
    │   └── SchemaError               the schema contradicts itself or the table's columns
    ├── PrivacyError                  the answer would break the promise
    │   ├── BudgetExceeded            the ledger or the reservation does not hold enough
    │   ├── NotAnswered               this trust model cannot answer that query
    │   ├── UnsafeNoise               a noise scale at which the sampler would return the data itself
    │   └── SeededNoise               a total is asked of a fit whose noise came from a seed: it has none
    ├── SourceError                   private rows could not be read to their end; what was charged stays charged
    ├── OutputError                   results could not be written; what was charged stays charged
    └── LedgerError                   no such ledger or budget, or a file that is not one
        └── ChargedBefore             what is released once was charged before

None of them ever depends on the value of a private cell: an error is an output too.
"""


class DPRegressError(Exception):
    """Base of every error raised on purpose by dpregress."""


class InvalidInput(DPRegressError, ValueError):
    """A public fact is wrong: an argument, a file's shape, the public table."""


class UnboundedData(InvalidInput):
    """A bound that must come from public facts is missing; the library never reads it from private rows."""


class SchemaError(InvalidInput):
    """The schema contradicts itself or the columns of the table."""


class PrivacyError(DPRegressError):
    """Answering would break the promise that was made."""


class BudgetExceeded(PrivacyError):
    """The ledger, or the reservation drawn from it, does not hold enough budget."""


class NotAnswered(PrivacyError):
    """The trust model in use cannot answer this query; nothing was charged."""


class UnsafeNoise(PrivacyError):
    """A noise scale at which a sampler would hand back the data itself."""


class SeededNoise(PrivacyError):
    """A total is asked of a fit whose noise came from a seed: against whoever knows the seed it has none."""


class SourceError(DPRegressError):
    """Private rows could not be read to their end, or changed between passes; what was charged stays charged."""


class OutputError(DPRegressError):
    """Results could not be written; what was charged stays charged."""


class LedgerError(DPRegressError):
    """A ledger or a budget that does not exist, exists already, or a file that is not a ledger."""


class ChargedBefore(LedgerError):
    """A release that is made once was charged before; nothing was charged again."""


class SeededNoiseWarning(UserWarning):
    """The noise came from a seed: whoever knows it can subtract the noise. For tests and simulations only."""


class SelectedRowsWarning(UserWarning):
    """A query selects rows, and the number that it selects is published exactly: it may tell of private cells."""


class NoScaleWarning(UserWarning):
    """Released moments fit no coefficients of the model: a stated rule chose the nearest. It tells of noise only."""


def type_of(value: object) -> str:
    """What a value is, for messages: ``a float``, ``an int``."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def reason(error: Exception) -> str:
    """What went wrong with a public file, in one line and without the system's number for it."""
    return (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())

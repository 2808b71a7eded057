"""Reading JSON from untrusted files: whatever they hold, the worst outcome is a one-line error."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from dpregress.errors import InvalidInput

#: The errors that decoding raises when a file does not hold what it should.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


_SURROGATE = re.compile(r"\\u[dD][89A-Fa-f]")


def finite_or_null(values: Iterable[float]) -> list[float | None]:
    """Numbers for JSON, which has no others than finite ones: null in place of those."""
    return [float(value) if math.isfinite(value) else None for value in values]


#: What is wrong with a file of this library that holds what it never writes, and the mend.
DAMAGED = "the file is damaged, so copy it again from where it was written"


class NotJSON(InvalidInput):
    """A text that is no JSON, such as a part of a file."""


def parsed(text: str) -> Any:
    """The value of a JSON text, all of whose numbers are finite float64 numbers.

    Raises
    ------
    InvalidInput
        If the text is not JSON or is nested too deeply, a number is too large for float64, or a surrogate is unpaired.
    """
    try:
        found = json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_whole)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()  # raises for an unpaired surrogate, which no file can hold
        return found
    except RecursionError as error:
        raise InvalidInput("it is nested too deeply") from error
    except InvalidInput:
        raise
    except ValueError as error:
        raise NotJSON(f"it is not JSON: {error}") from error


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidInput("it holds a number that is too large or not finite")
    return value


def _whole(text: str) -> int:
    _number(text)
    return int(text)

"""JSON that others wrote, read so that nothing in it can end in more than one line of refusal."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from dpregress.errors import InvalidInput

#: What decoding a file raises that holds other things than it should.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


_SURROGATE = re.compile(r"\\u[dD][89A-Fa-f]")


def parsed(text: str) -> Any:
    """The value of a JSON text whose numbers can all be computed with.

    Raises
    ------
    InvalidInput
        For text that is no JSON or is nested too deeply, for a number that float64 has not, and for half a character.
    """
    try:
        found = json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_whole)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()  # refuses half a character, which no file can hold
        return found
    except RecursionError as error:
        raise InvalidInput("it is nested too deeply") from error
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(f"it is not JSON: {error}") from error


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidInput("it holds a number that cannot be computed with")
    return value


def _whole(text: str) -> int:
    _number(text)
    return int(text)

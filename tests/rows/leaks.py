"""What an exception says, to whoever sees its traceback or looks into what it came from."""

from __future__ import annotations

import traceback
from collections.abc import Iterator


def chain(error: BaseException | None, seen: set[int] | None = None) -> Iterator[BaseException]:
    """The error and everything it came from, also what a traceback does not print."""
    seen = set() if seen is None else seen
    if error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        yield from chain(error.__cause__, seen)
        yield from chain(error.__context__, seen)


def everything_said(error: BaseException) -> str:
    """Messages, notes and arguments of the error and of everything it came from, and the traceback."""
    words = [text for each in chain(error) for text in (str(each), repr(each.args), *getattr(each, "__notes__", []))]
    return "\n".join([*words, *traceback.format_exception(error)])

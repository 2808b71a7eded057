"""Errors of other libraries while they read private rows, reported without any contents of the rows.

Their messages, and those of their causes, may quote a cell, a header that is a record, or a password. Only text that
the caller wrote is repeated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from dpregress.errors import DPRegressError, InvalidInput, SourceError

#: Messages of engines about a word of a query; they are repeated if the query contains this word.
_NAMED = re.compile(
    r"(?:no such (?:column|table|function|module): |ambiguous column name: |[Tt]able with name "
    r"|Referenced (?:column|table) "
    r"|[Ff]unction with name |column |relation |function |syntax error at or near |near )"
    r"(?P<quote>[\"']?)(?P<word>[\w.]+)(?P=quote)"
    r"(?: does not exist| not found|: syntax error)?"
)
#: Messages of a server before it reads rows.
_UNREACHED = re.compile(
    "password authentication failed|no password supplied|could not translate host name|Connection refused|"
    "Connection timed out|timeout expired|Name or service not known|too many connections|SSL"
)


def raise_alone(error: DPRegressError) -> NoReturn:
    """Raise an error without the one being handled as its cause or context."""
    try:
        raise error from None
    except DPRegressError:
        error.__context__ = None
        raise


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn any error while private rows are read into one line, because the cause may quote a cell."""
    try:
        yield
    except SourceError:
        raise
    except Exception:
        raise_alone(SourceError(f"{name} cannot be read to its end: it is damaged, or a query on it fails"))


@contextmanager
def planning(what: str, written: str = "") -> Iterator[None]:
    """Turn any error before rows are read into one line that quotes only what the caller wrote.

    An engine may read cells for planning: if a file has no header, the names of its columns are a record.

    Parameters
    ----------
    what : str
        A description of what failed.
    written : str
        The text that the caller wrote, such as a query.
    """
    try:
        yield
    except DPRegressError as error:
        raise_alone(type(error)(f"{what}: {error}"))
    except Exception as error:
        raise_alone(InvalidInput(f"{what}: {told(error, written)}"))


def told(error: Exception, written: str = "") -> str:
    """The kind of failure, with the part of its message that the caller wrote."""
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return os.strerror(error.errno)
    found = _NAMED.search(str(error))
    if found is not None and found["word"] in re.findall(r"[\w.]+", written):
        return found.group()
    return type(error).__name__


def unreached(error: Exception) -> str:
    """The reason why a server cannot be reached, from a fixed list of messages."""
    found = _UNREACHED.search(str(error))
    return found.group() if found else told(error)

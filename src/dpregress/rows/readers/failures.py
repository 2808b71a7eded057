"""What goes wrong in other libraries while they read private rows, told without a word of what the rows hold.

Their messages may quote a cell, a header that is a record, or a password; so may the errors that an error came from.
Of all this only what the caller wrote is repeated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from dpregress.errors import DPRegressError, InvalidInput, SourceError

#: What engines say of a name or a word in a query; it is repeated where the query has that word.
_NAMED = re.compile(
    r"(?:no such (?:column|table|function|module): |ambiguous column name: |[Tt]able with name "
    r"|Referenced (?:column|table) "
    r"|[Ff]unction with name |column |relation |function |syntax error at or near |near )"
    r"(?P<quote>[\"']?)(?P<word>[\w.]+)(?P=quote)"
    r"(?: does not exist| not found|: syntax error)?"
)
#: What a server says before it has read a row.
_UNREACHED = re.compile(
    "password authentication failed|no password supplied|could not translate host name|Connection refused|"
    "Connection timed out|timeout expired|Name or service not known|too many connections|SSL"
)


def raise_alone(error: DPRegressError) -> NoReturn:
    """Raise an error that keeps nothing of the one being handled: neither as its cause nor as its context."""
    try:
        raise error from None
    except DPRegressError:
        error.__context__ = None
        raise


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn whatever goes wrong while private rows are read into one line: the cause may quote a cell."""
    try:
        yield
    except SourceError:
        raise
    except Exception:
        raise_alone(SourceError(f"{name} cannot be read to its end: it is damaged, or a query on it fails"))


@contextmanager
def planning(what: str, written: str = "") -> Iterator[None]:
    """Turn whatever goes wrong before rows are read into one line that quotes nothing but what the caller wrote.

    An engine reads cells to plan: where a file has no header, the names of its columns are a record.

    Parameters
    ----------
    what : str
        What failed.
    written : str
        What the caller wrote, such as a query.
    """
    try:
        yield
    except DPRegressError as error:
        raise_alone(type(error)(f"{what}: {error}"))
    except Exception as error:
        raise_alone(InvalidInput(f"{what}: {told(error, written)}"))


def told(error: Exception, written: str = "") -> str:
    """What kind of failure this is, and the words about it that stand in what the caller wrote."""
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return os.strerror(error.errno)
    found = _NAMED.search(str(error))
    if found is not None and found["word"] in re.findall(r"[\w.]+", written):
        return found.group()
    return type(error).__name__


def unreached(error: Exception) -> str:
    """Why a server cannot be reached, in a fixed choice of words."""
    found = _UNREACHED.search(str(error))
    return found.group() if found else told(error)

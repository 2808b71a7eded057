"""Names and notes in a ledger: single lines of printable text."""

from __future__ import annotations

import unicodedata

from dpregress.errors import InvalidInput

_LONGEST_NAME, _LONGEST_NOTE = 200, 1000


def check_name(name: object, what: str) -> str:
    """The name, if it is not empty, has no surrounding blanks and is printable on one line.

    Raises
    ------
    InvalidInput

    Examples
    --------
    >>> check_name("claims-2026", "the name of a data set")
    'claims-2026'
    """
    if not isinstance(name, str):
        raise InvalidInput(f"{what} must be text, not {type(name).__name__}")
    if not name.strip():
        raise InvalidInput(f"{what} is empty: give one (is a shell variable unset?)")
    if len(name) > _LONGEST_NAME:
        raise InvalidInput(f"{what} has at most {_LONGEST_NAME} characters, not {len(name)}: give a shorter one")
    if name != name.strip() or not name.isprintable():
        raise InvalidInput(f"{what} has blanks around it, or characters that cannot be printed: {name!a}")
    if not unicodedata.is_normalized("NFC", name):
        raise InvalidInput(f"{what} has letters and accents apart, {name!a}: write them as one character")
    return name


def check_line(text: object, what: str) -> None:
    """Raise InvalidInput unless the text is a single printable line; it may be empty.

    Raises
    ------
    InvalidInput
    """
    if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST_NOTE:
        raise InvalidInput(f"{what} is one printable line of at most {_LONGEST_NOTE} characters")


def note_of(text: str) -> str:
    r"""A text as a note: unprintable characters are escaped, and a long text is cut off.

    Examples
    --------
    >>> note_of("DPRidge of cost\n")
    'DPRidge of cost\\n'
    """
    shown = "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)
    return shown if len(shown) <= _LONGEST_NOTE else shown[: _LONGEST_NOTE - 2] + ".."

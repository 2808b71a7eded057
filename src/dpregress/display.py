"""Untrusted text, made safe to show: URLs without credentials, names without control characters, HTML escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape

#: In place of the error of a coefficient about which too little is known, and in place of its estimate.
UNIDENTIFIED, NO_ESTIMATE = "not identified", "-"
#: Ends of intervals are shown to the third digit of the error, so that whether they hold 0 is seen.
OF_ENDS = 3
#: Significant digits of an error, and the most of any other number.
_OF_ERRORS, _MOST_DIGITS = 2, 6
#: Smaller p-values are shown as below it.
_LEAST_P = 0.0001
_MASK = "***"
#: ``scheme://``, also with fewer slashes: a path collapses two into one, and people forget them.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/{0,3}")
#: URLs may be chained, as in ``zip://rows.csv::https://host/rows.zip``.
_CHAINED = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.\-]+://)")
_VALUE = re.compile(r"([?&;])([\w.~\-]+)=[^?&;#]*")
_HOST = re.compile(r"[\w.~%\-]*(:\d*)?|\[[0-9A-Fa-f:.%]*\](:\d*)?")


def shown(location: object) -> str:
    """A path or URL in the form in which messages, reports and files show it.

    In a URL, the user and password, the values of the query and the fragment become ``***``, because each may be a
    credential. If the parts of a URL cannot be told apart, only the scheme is shown.

    Examples
    --------
    >>> from dpregress.display import shown
    >>> shown("https://ann:secret@host/rows.csv?X-Amz-Signature=token&v=2")
    'https://***@host/rows.csv?X-Amz-Signature=***&v=***'
    >>> shown("rows.csv")
    'rows.csv'
    """
    return "::".join(map(_shown_part, _CHAINED.split(str(location))))


def _shown_part(url: str) -> str:
    found = _SCHEME.match(url)
    if found is None:
        return url
    scheme, rest = found.group(), url[found.end() :]
    place, mark, query = re.match(r"([^?#]*)([?#]?)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
    if "@" in query:  # a query that holds an address, or a password that holds a question mark
        return f"{scheme}{_MASK}"
    user, at, place = place.rpartition("@")
    host, slash, path = place.partition("/")
    if not _HOST.fullmatch(host):  # such as a user and a password without a host
        return f"{scheme}{_MASK}"
    begun = f"{scheme}{_MASK if user else ''}{at}{host}{slash}{_VALUE.sub(_masked, path)}"
    return begun + (_query(query) if mark == "?" else f"#{_MASK}" if mark else "")


def _masked(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={_MASK}"


def _query(query: str) -> str:
    """Names of a query's parameters, which say what it asks for, without their values."""
    asked, hash_, _ = query.partition("#")
    parts = [part.partition("=") for part in re.split("[&;]", asked)]
    names = [f"{name}={_MASK}" if equals and re.fullmatch(r"[\w.~\-]+", name) else _MASK for name, equals, _ in parts]
    return f"?{'&'.join(names)}" + (f"#{_MASK}" if hash_ else "")


def plain(text: str) -> str:
    r"""Text that is safe to print on a terminal: unprintable characters become escapes such as ``\x1b``.

    The name of a column comes from a file and may hold control characters, which a terminal would obey.
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def short_label(text: str, longest: int) -> str:
    """Text for the margin of a picture: one printable line of at most so many characters."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return printable if len(printable) <= longest else printable[: longest - 2] + ".."


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table as HTML, in which no text is markup."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head = f"<thead>{line('th', header)}</thead>" if any(header) else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{head}<tbody>{''.join(line('td', row) for row in rows)}</tbody></table>"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """A table as plain text: names on the left, numbers on the right."""
    lines = [tuple(map(plain, line)) for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [
        "  ".join([f"{line[0]:{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    return "\n".join([*([plain(title)] if title else []), *(line.rstrip() for line in aligned)])


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first of some names, with two dots for the others."""
    return ", ".join(map(plain, names[:most])) + (", .." if len(names) > most else "")


def some_and_more(names: Sequence[str], most: int = 5) -> str:
    """The first of some names in a sentence, and how many there are besides."""
    return ", ".join(map(plain, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def how_many(number: int, one: str, several: str = "") -> str:
    """How many of what: ``1 row``, ``2,000 rows``; the plural may be given.

    Examples
    --------
    >>> from dpregress.display import how_many
    >>> how_many(1, "other file"), how_many(2, "branch", "branches")
    ('1 other file', '2 branches')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def to_its_error(value: float, error: float | None, digits: int = _OF_ERRORS) -> str:
    """A number to the decimal place of a digit of its error, the second, if it has one; six digits at most."""
    exact = f"{value:.{_MOST_DIGITS}g}"
    if error is None or not (math.isfinite(error) and math.isfinite(value) and error > 0):
        return exact
    decimals = max(digits - 1 - _magnitude(error), 0)
    significant = decimals + 1 + (_magnitude(value) if value else 0)
    if significant > _MOST_DIGITS:
        return exact
    if decimals > _MOST_DIGITS:
        return f"{value:.{max(significant - 1, 0)}e}"
    return f"{round(value, decimals) + 0.0:.{decimals}f}"  # no sign before a 0


def _magnitude(value: float) -> int:
    """The power of ten of the first digit, once the number is rounded to two."""
    return int(f"{value:.{_OF_ERRORS - 1}e}".partition("e")[2])


def p_value(value: float) -> str:
    """A p-value to four decimals; smaller ones are below a bound."""
    return f"<{_LEAST_P}" if value < _LEAST_P else f"{value:.4f}"


def p_equals(value: float) -> str:
    """A p-value in a sentence: ``p = 0.0312``, or ``p < 0.0001``."""
    return f"p < {_LEAST_P}" if value < _LEAST_P else f"p = {value:.4f}"


class ShownInShort:
    """What is shown in one line, arrays by their shapes; ``print`` has more where there is a table to see."""

    def __repr__(self) -> str:
        said = self._in_short()
        return f"<{type(self).__name__}{said and ' '}{said}>"

    def _repr_html_(self) -> str:
        """In a notebook, what ``print`` shows."""
        return f"<pre>{escape(str(self))}</pre>"

    def _in_short(self) -> str:
        """What is shown of it."""
        shapes = {name: getattr(value, "shape", ()) for name, value in vars(self).items() if name[0] != "_"}
        return ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in shapes.items() if shape)

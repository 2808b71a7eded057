"""Summaries of fits: a block of facts, tables of coefficients and notes, as text, HTML, LaTeX and data frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Any

import numpy as np

from dpregress.display import NO_ESTIMATE, OF_ENDS, UNIDENTIFIED, html_table, p_value, plain, to_its_error

_WIDTH = 100
_GAP = "  "
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}", "]": "{]}",
}  # fmt: skip
_RATIO, _P_VALUE, _END = re.compile(r"[tz]"), re.compile(r"P>\|[tz]\|"), re.compile(r"\[.*|.*\]")
#: Columns of errors; the first of a table decides to how many decimals its row is shown.
_ERRORS = ("std err", "std. error", "privacy s.e.")
#: Under a table with a coefficient that is not identified.
_NOT_IDENTIFIED = (
    "Not identified: neither the releases nor public facts determine such a coefficient. Report it as such,",
    "not as 0. Possible causes: too few rows or too small a budget; a constant or duplicated column; a rare",
    "level; declared levels, classes or bounds that do not match the data (check with `dpregress check`).",
)


class _Shown:
    """A text that is also HTML and LaTeX, under the names that statsmodels has as well."""

    def to_html(self) -> str:
        raise NotImplementedError

    def to_latex(self) -> str:
        raise NotImplementedError

    def as_text(self) -> str:
        """The same as ``str``, under the name that statsmodels has for it."""
        return str(self)

    def as_html(self) -> str:
        """:meth:`to_html`, under the name that statsmodels has for it."""
        return self.to_html()

    def as_latex(self) -> str:
        """:meth:`to_latex`, under the name that statsmodels has for it."""
        return self.to_latex()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.to_html()


@dataclass(frozen=True, repr=False)
class FactsTable(_Shown):
    """What was fitted, to how many rows, for which budget.

    Parameters
    ----------
    title : str
    facts : tuple of (str, str)
    """

    title: str
    facts: tuple[tuple[str, str], ...]

    def texts(self) -> list[list[str]]:
        """Names and what they are, one fact a row."""
        return [[name, plain(text)] for name, text in self.facts]

    def to_html(self) -> str:
        """The table in HTML."""
        return html_table(("", ""), self.texts(), plain(self.title))

    def to_latex(self) -> str:
        """The table as a ``tabular``."""
        return _tabular("ll", self.texts())

    def to_frame(self) -> Any:
        """A pandas DataFrame of texts."""
        import pandas as pd

        names, texts = zip(*self.texts(), strict=True)
        return pd.DataFrame({"": texts}, index=list(names))

    def __str__(self) -> str:
        return "\n".join(_two_columns(self.facts))


@dataclass(frozen=True, repr=False)
class SummaryTable(_Shown):
    """Coefficients, one row each.

    Parameters
    ----------
    title : str
        Empty for a table by itself.
    columns : tuple of str
    names : tuple of str
    rows : tuple of tuple of float or None
        None is an empty cell.
    identified : tuple of bool
        The other rows show that they are not.
    """

    title: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[float | None, ...], ...]
    identified: tuple[bool, ...]

    def texts(self) -> list[list[str]]:
        """The rows as text, with the names first."""
        found = []
        for name, row, known in zip(self.names, self.rows, self.identified, strict=True):
            cells = _numbers(self.columns, row) if known else [NO_ESTIMATE, UNIDENTIFIED, *("" for _ in row[2:])]
            found.append([plain(name), *cells])
        return found

    def to_html(self) -> str:
        """The table in HTML."""
        return html_table(("", *self.columns), self.texts(), plain(self.title))

    def to_latex(self) -> str:
        """The table as a ``tabular``."""
        return _tabular("l" + "r" * len(self.columns), self.texts(), ["", *self.columns])

    def to_frame(self) -> Any:
        """A pandas DataFrame of numbers."""
        import pandas as pd

        values = np.array([[np.nan if value is None else value for value in row] for row in self.rows], dtype=float)
        return pd.DataFrame(values, index=list(self.names), columns=list(self.columns))

    def __str__(self) -> str:
        return "\n".join([*([plain(self.title)] if self.title else []), *_aligned(self)])


@dataclass(frozen=True, repr=False)
class Summary(_Shown):
    """A fitted model for print, notebooks and papers.

    Parameters
    ----------
    title : str
    facts : tuple of (str, str)
        What was fitted, to how many rows, for which budget.
    estimates : tuple of SummaryTable
        The coefficients; one table, or one for each class.
    notes : tuple of str
        Lines below the tables; the guarantee is one of them.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    estimates: tuple[SummaryTable, ...]
    notes: tuple[str, ...]

    @property
    def tables(self) -> tuple[FactsTable | SummaryTable, ...]:
        """As in statsmodels: the facts, then the coefficients (of several classes one table each)."""
        return (FactsTable(self.title, self.facts), *self.estimates)

    def to_frame(self) -> Any:
        """The numbers as a pandas DataFrame; for several classes the first index is the class."""
        import pandas as pd

        frames = [table.to_frame() for table in self.estimates]
        return frames[0] if len(frames) == 1 else pd.concat(frames, keys=[table.title for table in self.estimates])

    def to_html(self) -> str:
        """Tables in HTML, without styles of their own."""
        notes = escape(plain(" ".join(self.notes)))
        return "".join(table.to_html() for table in self.tables) + f"<p>{notes}</p>"

    def to_latex(self) -> str:
        """A ``tabular`` for each table, with the notes as comments above."""
        parts = [f"% {plain(line)}" for line in (self.title, *self.notes)]
        for table in self.estimates:
            if table.title:
                parts.append(f"% {plain(table.title)}")
            parts.append(table.to_latex())
        return "\n".join(parts) + "\n"

    def __str__(self) -> str:
        blocks = [_aligned(table) for table in self.estimates]
        facts = _two_columns(self.facts)
        width = max(len(line) for line in (*facts, *(line for block in blocks for line in block)))
        lines = [plain(self.title), "=" * width, *facts]
        for table, (head, *body) in zip(self.estimates, blocks, strict=True):
            lines += ["-" * width, *([plain(table.title)] if table.title else []), head, "-" * width, *body]
        return "\n".join([*lines, "=" * width, *map(plain, self.notes)])


def unidentified_note(tables: Sequence[SummaryTable]) -> tuple[str, ...]:
    """What it means that a coefficient is not identified, and what can be done; nothing where all are."""
    return () if all(known for table in tables for known in table.identified) else _NOT_IDENTIFIED


def _numbers(columns: Sequence[str], row: Sequence[float | None]) -> list[str]:
    """The cells of a row, with no more decimals than its standard error supports."""
    error = next((value for column, value in zip(columns, row, strict=True) if column in _ERRORS), None)
    cells = []
    for column, value in zip(columns, row, strict=True):
        if value is None:
            cells.append("")
        elif _P_VALUE.fullmatch(column):
            cells.append(p_value(value))
        elif _RATIO.fullmatch(column):
            cells.append(f"{value:.3f}" if abs(value) < 1e4 else f"{value:.6g}")
        elif _END.fullmatch(column):
            cells.append(to_its_error(value, error, OF_ENDS))
        else:
            cells.append(to_its_error(value, value if column in _ERRORS else error))
    return cells


def _aligned(table: SummaryTable) -> list[str]:
    """A header and rows of one width; a name that leaves no room for its numbers has a line of its own."""
    lines = [["", *table.columns], *table.texts()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    room = max(_WIDTH - sum(widths[1:]) - len(_GAP) * len(widths[1:]), 12)
    widths[0] = max((len(line[0]) for line in lines if len(line[0]) <= room), default=0)
    found = []
    for name, *cells in lines:
        numbers = _GAP.join(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        if len(name) > room:
            found.append(name)
            name = ""
        found.append(f"{name:{widths[0]}}{_GAP}{numbers}".rstrip())
    return found


def _two_columns(facts: Sequence[tuple[str, str]]) -> list[str]:
    """Facts in two columns where they are short, else one below the other."""
    width = max(len(name) for name, _ in facts) + 1
    texts = [f"{name + ':':{width}} {plain(text)}" for name, text in facts]
    half = (len(texts) + 1) // 2
    left, right = texts[:half], texts[half:]
    first = max(map(len, left))
    if first + len(_GAP) + max(map(len, right), default=0) > _WIDTH:
        return texts
    return [f"{one:{first}}{_GAP}{other}".rstrip() for one, other in zip_longest(left, right, fillvalue="")]


def _tabular(columns: str, rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Rows as a ``tabular`` with these columns, below a header if there is one."""
    lines = [" & ".join(map(_latex, line)) + r" \\" for line in rows]
    head = [" & ".join(map(_latex, header)) + r" \\", r"\hline"] if header else []
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\hline", *head, *lines, r"\hline", r"\end{tabular}"])


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)

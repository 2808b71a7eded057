"""What commands share: tables and lines on the terminal, tables as CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from dpregress.display import plain

if TYPE_CHECKING:
    import pyarrow as pa

    from dpregress.inference import Diagnosis

#: The files in the folder of a fit.
FIT_FILES = ("model.json", "privacy.json", "report.html")
#: What begins a formula in some spreadsheet, also in its full-width form, or hides such a beginning.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")

#: Longer names in the first column are broken where the terminal is narrow.
_LONGEST_NAME = 24


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, text: int = 1) -> None:
    """A table with its first ``text`` columns left-aligned.

    Lines break between words: on a terminal that is too narrow for that they are longer than it is wide.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    cells = [[plain(cell) for cell in row] for row in (header, *rows)]
    console = Console(highlight=False, markup=False, emoji=False)
    table = Table(title=plain(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    space = 3 * len(header) + 1  # blanks around cells, and the lines between
    widths = _widths(list(zip(*cells, strict=True)), console.width - space)
    for position, (name, width) in enumerate(zip(cells[0], widths, strict=True)):
        table.add_column(name, justify="left" if position < text else "right", overflow="fold", width=width)
    for row in cells[1:]:
        table.add_row(*row)
    console.width = max(console.width, sum(widths) + space)
    console.print(table)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths of columns that break no word, and no line either as far as there is room."""
    words = [max((len(word) for cell in column for word in cell.split()), default=1) for column in columns]
    widths = [min(words[0], _LONGEST_NAME), *words[1:]]
    wanted = [max(map(len, column)) - width for column, width in zip(columns, widths, strict=True)]
    for position in sorted(range(len(columns)), key=wanted.__getitem__):
        widths[position] += min(wanted[position], max(room - sum(widths), 0))
    return widths


def print_lines(text: str) -> None:
    """Lines that are safe to print already, broken nowhere."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(text, soft_wrap=True)


def number(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"


def say(text: str) -> None:
    """A line on the terminal, in which no name from a file is obeyed as a command of the terminal."""
    click.echo(plain(text))


def print_diagnosis(found: Diagnosis) -> None:
    """The numbers of a diagnosis with their standard errors."""
    from dpregress.estimators.saving import pictures_of

    rows = [[name, number(value), f"{error:.2g}"] for name, value, error in pictures_of(found).facts]
    print_table("How well the model fits", ["", "estimate", "std. error"], rows)


def csv_of(table: pa.Table) -> str:
    """A table as CSV, in which no text from a file is a formula to a spreadsheet."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    def harmless(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        coded = column.combine_chunks().dictionary_encode()
        return pa.array(map(no_formula, coded.dictionary.to_pylist()), pa.large_string()).take(coded.indices)

    names = [no_formula(name) for name in table.schema.names]
    sink = pa.BufferOutputStream()
    pacsv.write_csv(pa.table([harmless(column) for column in table.columns], names=names), sink)
    return str(sink.getvalue().to_pybytes().decode())


def no_formula(text: str) -> str:
    """A cell of text that a spreadsheet takes as text: what could begin a formula is put behind an apostrophe.

    Numbers stay as they are, negative ones too.
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text

"""What commands share: tables on the terminal, delayed progress, files that appear whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dpregress.errors import InvalidInput, OutputError, reason

#: Longer names in the first column are broken where the terminal is narrow.
_LONGEST_NAME = 24


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table with its first column left-aligned.

    Lines break between words: on a terminal that is too narrow for that they are longer than it is wide.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    frame = 3 * len(header) + 1  # blanks around cells, and the lines between
    widths = _widths(list(zip(header, *rows, strict=True)), console.width - frame)
    for position, (name, width) in enumerate(zip(header, widths, strict=True)):
        table.add_column(name, justify="left" if position == 0 else "right", overflow="fold", width=width)
    for row in rows:
        table.add_row(*row)
    console.width = max(console.width, sum(widths) + frame)
    console.print(table)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths of columns that break no word, and no line either as far as there is room."""
    words = [max((len(word) for cell in column for word in cell.split()), default=1) for column in columns]
    widths = [min(words[0], _LONGEST_NAME), *words[1:]]
    wanted = [max(map(len, column)) - width for column, width in zip(columns, widths, strict=True)]
    for position in sorted(range(len(columns)), key=wanted.__getitem__):
        widths[position] += min(wanted[position], max(room - sum(widths), 0))
    return widths


def number(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"


def check_out(folder: Path, names: Sequence[str], *, overwrite: bool) -> None:
    """Refuse, before anything is charged, a folder that cannot be written to or whose files would be lost."""
    try:
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"--out {folder} is a file: name a folder")
        for name in names:
            if (folder / name).is_dir():
                raise InvalidInput(f"{folder / name} is a folder: choose another --out")
            if (folder / name).exists() and not overwrite:
                raise InvalidInput(f"{folder / name} is there already: choose another --out, or add --overwrite")
        made = _make(folder)
        try:
            with tempfile.TemporaryDirectory(prefix=".dpregress-", dir=folder):
                pass
        finally:
            for parent in made:
                parent.rmdir()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"cannot write to {folder}: {reason(error)}; choose another --out") from error


def write_all(folder: Path, texts: Mapping[str, str], *, private: bool = False) -> None:
    """Write every file beside its place first, then move all into place.

    Private files are their owner's alone, and so is a folder that is made for them.

    Raises
    ------
    OutputError
        When the disk refuses; no file of these is half-written then, and no empty folder stays.
    """
    made: list[Path] = []
    try:
        made = _make(folder, mode=0o700 if private else 0o777)
        with tempfile.TemporaryDirectory(prefix=".dpregress-", dir=folder) as staging:
            for name, text in texts.items():
                (Path(staging) / name).touch(mode=0o600 if private else 0o666)
                (Path(staging) / name).write_text(text, encoding="utf-8", errors="replace")
            for name in texts:
                (Path(staging) / name).replace(folder / name)
        made = []
    except (OSError, ValueError) as error:
        raise OutputError(
            f"cannot write to {folder}: {reason(error)}; if a budget was charged, it stays charged"
        ) from error
    finally:
        with suppress(OSError):  # what is not empty stays
            for parent in made:
                parent.rmdir()


def _make(folder: Path, *, mode: int = 0o777) -> list[Path]:
    """Make a folder and its parents; those that were made, innermost first."""
    missing = []
    at = folder
    while not at.exists():
        missing.append(at)
        at = at.parent
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    return missing

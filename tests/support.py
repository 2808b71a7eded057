"""What tests share: tables and tools that may be missing, and the command line in this process."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpregress.accounting import Event
from dpregress.cli import main
from dpregress.models import Family
from dpregress.queries import Counted, Query


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run ``dpregress ARGUMENTS`` in this process."""
    capsys.readouterr()
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return Outcome(code, out, err)


def kinds(questions: Sequence[tuple[Query[Any], Event]]) -> list[type[Query[Any]]]:
    """What was asked, without the count of usable rows beside it."""
    return [type(query.query) if isinstance(query, Counted) else type(query) for query, _ in questions]


def missing(what: str) -> None:
    """Skip, or fail where everything is required."""
    if os.environ.get("DPREGRESS_REQUIRE_ALL"):
        pytest.fail(f"{what} is required here")
    pytest.skip(f"{what} is not here")


def statsmodels_family(family: Family) -> Any:
    """The same family with the same link, of statsmodels; a new link is added here."""
    try:
        import statsmodels.api as sm
    except ImportError:
        missing("statsmodels")
    links = sm.families.links
    link = {
        "identity": links.Identity, "log": links.Log, "logit": links.Logit, "probit": links.Probit,
        "inverse": links.InversePower,
    }[family.link.name]()  # fmt: skip
    return getattr(sm.families, family.distribution.name.title().replace("-", ""))(link=link)


def data_file(name: str) -> Path:
    """A table of the data folder."""
    folder = os.environ.get("DPREGRESS_DATA")
    path = Path(folder or "/nonexistent") / f"{name}.parquet"
    if not path.is_file():
        missing(f"{name}.parquet (DPREGRESS_DATA)")
    return path


def tool(name: str) -> str:
    """The path of a program."""
    found = shutil.which(name)
    if found is None:
        missing(name)
    assert found is not None
    return found


def write_csv(path: Path, columns: Sequence[str], *values: np.ndarray) -> Path:
    """A CSV file of numbers."""
    lines = [",".join(columns)]
    lines += [",".join(repr(float(cell)) for cell in row) for row in zip(*values, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


HUGE = 10**400
#: What no term of any document is.
WILD: tuple[Any, ...] = (HUGE, -HUGE, 1e999, True, None, "", "x", "\ud800", "\x1b[2J", [], [[]], {}, [HUGE], -1, 0, 1.5)


def places(record: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, outermost first; of a list the first item stands for all."""
    if isinstance(record, dict):
        inner = [(key, value) for key, value in record.items()]
    else:
        inner = list(enumerate(record[:1])) if isinstance(record, list) else []
    return [*([path] if path else []), *(each for key, value in inner for each in places(value, (*path, key)))]


def spoilt(record: Any) -> list[Any]:
    """The document with each of its places taken away, and set to each wild value."""
    found = []
    for path in places(record):
        for value in (..., *WILD):
            made = copy.deepcopy(record)
            at = made
            for key in path[:-1]:
                at = at[key]
            if value is ...:
                del at[path[-1]]
            else:
                at[path[-1]] = value
            found.append(made)
    return found

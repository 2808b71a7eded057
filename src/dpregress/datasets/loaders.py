"""Loaders: tables that a package bundles, or Parquet files of a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from dpregress.errors import InvalidInput
from dpregress.rows.readers.files import read

#: Environment variable that names a folder of Parquet tables.
FOLDER = "DPREGRESS_DATA"


def keep(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole: even if the process is killed, a reader finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as own:  # no other process writes there
        part = Path(own) / path.name
        write(part)
        part.replace(path)


def randhie() -> pa.Table:
    """The RAND Health Insurance Experiment: 20,190 person-years, doctor visits and nine covariates.

    Bundled with statsmodels (the ``demo`` extra). There is no person id: a person has up to five rows,
    which cannot be told apart, so a guarantee can only be per record.
    """
    try:
        from statsmodels.datasets import randhie as bundled
    except ImportError as error:
        raise InvalidInput("this table comes with statsmodels: pip install 'dpregress[demo]'") from error
    space = bundled.load_pandas().data
    return pa.table({str(name): np.asarray(space[name], dtype=np.float64) for name in space.columns})


def data_folder() -> Path:
    """Where downloaded tables are kept: the folder of ``DPREGRESS_DATA``, else one in the user's cache.

    Raises
    ------
    InvalidInput
        If ``DPREGRESS_DATA`` names a file.
    """
    given = os.environ.get(FOLDER)
    if given:
        if Path(given).is_file():
            raise InvalidInput(f"{FOLDER} names a file: set it to a folder of tables")
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpregress"


def where_is(name: str) -> Path | None:
    """The Parquet file of a table, if it is there."""
    path = data_folder() / f"{name}.parquet"
    return path if path.is_file() else None


def has_table(name: str) -> bool:
    """Whether :func:`folder_table` finds a table."""
    return where_is(name) is not None


def folder_table(name: str) -> pa.Table:
    """A Parquet table of :func:`data_folder`.

    Raises
    ------
    InvalidInput
        When the table is not there.
    """
    path = where_is(name)
    if path is None:
        raise InvalidInput(
            f"set {FOLDER} to a folder that holds {name}.parquet, or download it where "
            f"`dpregress datasets list` shows a source: dpregress datasets fetch {name}"
        )
    return read(path)

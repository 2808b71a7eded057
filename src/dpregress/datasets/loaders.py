"""Loaders: tables that a package bundles, or that lie in the folder named by DPREGRESS_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpregress.errors import InvalidInput
from dpregress.rows.readers.files import read

#: Environment variable that names a folder of Parquet tables.
FOLDER = "DPREGRESS_DATA"


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


def folder_table(name: str) -> pa.Table:
    """A Parquet table from the folder that ``DPREGRESS_DATA`` names.

    Raises
    ------
    InvalidInput
        When the variable is not set or the table is not there.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        raise InvalidInput(f"set {FOLDER} to a folder that holds {name}.parquet")
    return read(Path(folder) / f"{name}.parquet")

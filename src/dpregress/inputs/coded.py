"""Tables as coded rows of a domain: for releases of marginals, and for predictions from models that rest on them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.coordinates import Domain, Matrix
from dpregress.errors import InvalidInput, one_line
from dpregress.inputs.tables import array_table
from dpregress.releases.marginals import original_design
from dpregress.rows import CodedParquet, CodedSource, LevelRows
from dpregress.rows.codes import Coder
from dpregress.rows.design.terms import split_terms
from dpregress.rows.readers.files import is_table, names_of, read, read_files, to_table
from dpregress.rows.sources import reader_of

_CHUNK = 65_536


def coded_source(table: Any, domain: Domain, *, stays: bool = False) -> CodedSource | CodedParquet:
    """Rows of a file or a table as codes; a Parquet file is read anew in every pass, and never held whole.

    Parameters
    ----------
    table : path or table
    domain : Domain
    stays : bool
        Whether the rows stay where they are, in a database that counts them.
    """
    if stays:
        reader = reader_of(table)
        Coder(domain).check_types(reader.schema)
        return CodedParquet(reader, domain)
    if is_table(table):
        held = to_table(table, domain.names)
    elif str(table).lower().endswith((".parquet", ".pq")) and Path(table).is_file():
        reader = read_files(table)
        Coder(domain).check_types(reader.schema)
        return CodedParquet(reader, domain)
    else:
        held = read(table, domain.names, empty=True)
    Coder(domain).check_types(held.schema)
    return CodedSource(held, domain)


def coded_names(table: Any, *, stays: bool) -> list[str]:
    """Names of the columns of a table, as :func:`coded_source` takes it."""
    if stays:
        return list(reader_of(table).schema.names)
    return list(to_table(table).schema.names) if is_table(table) else names_of(table)


def coded_design(X: Any, domain: Domain, features: Sequence[str]) -> Matrix:
    """Design rows in the units of users, of shape (m, d), without the constant; cells are mapped as in a release.

    Parameters
    ----------
    X : path, table, or array-like of shape (m, number of features)
        A path or a table is read by the names of the features, an array in their order.
    domain : Domain
    features : sequence of str
    """
    known = domain.select(features)
    table = X
    if _is_array(X):
        table = array_table(X, list(features))
    levels = LevelRows(known)
    chunks = coded_source(table, known).chunks(_CHUNK)
    return np.concatenate([original_design(known, levels(chunk).x, features) for chunk in chunks])


def coded_formula(text: str, domain: Domain) -> tuple[str, list[str]]:
    """The response and the features of a formula of columns, such as ``visits ~ age + C(plan)``.

    Pair tables do not tell of products and functions of columns, and numbers enter as numbers.

    Raises
    ------
    InvalidInput
        For other terms, or without an intercept.
    """
    left, right = split_terms(text)
    if len(left) != 1 or () not in right:
        raise InvalidInput(f"formula {one_line(text)}: write one response, and keep the intercept")
    names = []
    for term in (*left, *(term for term in right if term)):
        name = _column(term[0]) if len(term) == 1 else ":".join(term)
        if name not in domain.names or (term[0].startswith("C(") and domain.attributes[domain.index(name)].numeric):
            raise InvalidInput(
                f"formula {one_line(text)}: marginals know no {one_line(':'.join(term))}: write columns of the "
                "release, without functions and products"
            )
        names.append(name)
    return names[0], names[1:]


def _column(factor: str) -> str:
    """The column of a factor such as ``age``, ```two words``` or ``C(plan)``."""
    inner = factor[2:-1] if factor.startswith("C(") and factor.endswith(")") else factor
    return inner.strip().strip("`")


def _is_array(X: Any) -> bool:
    """Whether this is an array or a list of rows, not a table, a path or a list of paths."""
    if isinstance(X, list):
        return not any(isinstance(each, str | PathLike) for each in X)
    return isinstance(X, np.ndarray)

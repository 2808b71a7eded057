"""Exposures of private rows, to which mean responses are proportional: ``E y = e exp(x'b)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpregress.coordinates import Exposure, Vector
from dpregress.errors import InvalidInput
from dpregress.inputs.formula import read_columns
from dpregress.inputs.indices import check_aligned
from dpregress.inputs.response import check_exposed, type_of_array
from dpregress.inputs.tables import column_names, numbers
from dpregress.public import Categorical, Numeric, PublicMoments, Schema
from dpregress.rows import ExposedSource, Source
from dpregress.rows.design.encoder import readable, to_numbers
from dpregress.rows.readers.base import Reader
from dpregress.rows.readers.files import is_table

#: How the name of an exposure begins that a formula computes.
OFFSET = "offset("


def one_offset(exposure: str | None, computed: str | None) -> str | None:
    """The name of the exposure, or of the offset that a formula computes; InvalidInput for both."""
    if exposure is not None and computed is not None:
        raise InvalidInput(f"the formula has {computed}: write the exposure into it, as in offset(log({exposure}))")
    return exposure if computed is None else computed


def exposed(source: Source, exposure: Any, name: str | None, schema: Schema | None) -> Source:
    """The source with the exposures of its rows; InvalidInput for a name, text, or another number than rows."""
    if exposure is None:
        return source
    if isinstance(exposure, str):
        raise InvalidInput(
            f"exposure={exposure!r} is a name: fit takes an exposure for each row, fit_table the name of a column"
        )
    check_exposed(str(name), type_of_array(exposure), schema)
    return ExposedSource(source, numbers(exposure, "exposure"))


def exposure_bounds(
    name: str | None, link: str, schema: Schema | None, public: PublicMoments | None
) -> Exposure | None:
    """Public bounds of the exposures: the schema's, else those of :class:`~dpregress.coordinates.Exposure`.

    Raises
    ------
    InvalidInput
        Where the link is not the logarithm, or public responses do not come with exposures as the private do.
    """
    labelled = public is not None and public.labels is not None
    if name is None:
        if labelled and public is not None and public.exposure is not None:
            raise InvalidInput("the labelled public rows have exposures and the private rows none: give exposure=")
        return None
    if name.startswith(OFFSET):
        if link == "identity":
            raise InvalidInput(f"{name} goes with a link such as log or logit: for least squares, subtract it from y")
        if labelled and public is not None and public.exposure is None:
            raise InvalidInput(f"the labelled public rows have no {name}: add its columns, or leave their labels out")
        return Exposure(name)
    if link != "log":
        raise InvalidInput(f"exposure goes with the log link, as of poisson; this model's link is {link}")
    if labelled and public is not None and public.exposure is None:
        raise InvalidInput(
            "the labelled public rows need exposures too: PublicMoments.from_rows(V, y, exposure=..), "
            "or leave their labels out"
        )
    column = None if schema is None else schema.column(name)
    if isinstance(column, Categorical):
        raise InvalidInput(f"exposure {name!r} is categorical in the schema: exposures are positive numbers")
    if not isinstance(column, Numeric) or column.bounds is None:
        return Exposure(name)
    return Exposure(name, *column.bounds)


def offsets(exposure: Any, X: Any, rows: int, fitted: str | None, features: Sequence[str] = ()) -> Vector | float:
    """Logarithms of the exposures of rows to predict for, of shape (m,); 0 without any.

    Parameters
    ----------
    exposure : array-like, str or None
        An exposure for each row, or its column in the table X. Default: the column that the fit had, if it is in X.
    X : array or table
    rows : int
        Of X.
    fitted : str or None
        The name of the exposure of the fit.
    features : sequence of str
        Columns of the table that the model reads: they are no exposure unless it is asked for.

    Raises
    ------
    InvalidInput
        If the fit had no exposure, for a column that X does not have, or another number than rows.
    """
    if exposure is not None and fitted is None:
        raise InvalidInput("this model was fitted without an exposure: leave exposure= out")
    if exposure is None:
        if fitted is None or fitted.startswith(OFFSET) or fitted in features or fitted not in _names(X):
            return 0.0
        exposure = fitted
    return log_exposure(exposures_of(exposure, X, rows))


def needs_exposure(fitted: str | None, X: Any, features: Sequence[str]) -> bool:
    """Whether a model was fitted with an exposure of which these rows have no column that is not among its features."""
    return fitted is not None and not fitted.startswith(OFFSET) and (fitted in features or fitted not in _names(X))


def exposures_of(exposure: Any, X: Any, rows: int) -> Vector:
    """Exposures of rows to predict for, of shape (m,), given as numbers or by the name of their column in the table X.

    Raises
    ------
    InvalidInput
        For a column that X does not have, another number than rows, or a type that holds no numbers.
    """
    if isinstance(exposure, str):
        if exposure not in _names(X):
            raise InvalidInput(f"no column {exposure!r} in the rows to predict for: give an exposure for each row")
        return exposure_column(X, exposure)
    check_aligned(X, exposure=exposure)
    values = numbers(exposure, "exposure")
    if len(values) != rows:
        raise InvalidInput(f"X has {rows} rows, exposure has {len(values)}")
    return values


def exposure_column(X: Any, name: str) -> Vector:
    """A column of exposures in a table or file, of shape (m,); NaN for a cell that is no number.

    Raises
    ------
    InvalidInput
        For a type that holds neither numbers nor text, such as a date.
    """
    table = read_columns(X, (name,))
    kind = table.schema.field(name).type
    # Text is read as numbers, as cells of CSV files are: what a fit refuses before the charge costs nothing here.
    if not readable(kind):
        raise InvalidInput(
            f"exposure {name!r} is of type {kind}: exposures are positive numbers, choose another column or cast it"
        )
    return to_numbers(table[name])


def _names(X: Any) -> list[str]:
    """The columns of a table or file; an array has none."""
    return column_names(X) if is_table(X) or isinstance(X, Reader) else []


def log_exposure(exposure: Vector) -> Vector:
    """``log e``, NaN where e is not positive and finite."""
    usable = np.isfinite(exposure) & (exposure > 0)
    return np.where(usable, np.log(np.where(usable, exposure, 1.0)), np.nan)

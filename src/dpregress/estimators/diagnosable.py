"""Models that can be diagnosed on private rows at a cost of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dpregress.accounting import Event, Ledger, Request, gaussian_promise
from dpregress.accounting.names import note_of
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.estimators.diagnosing import MOST_QUESTIONS, SEVERAL, Subject, check_diagnosable, diagnosed
from dpregress.estimators.parameters import checked_budget
from dpregress.estimators.training import formula_text, ready_rows
from dpregress.inference.diagnosis import Diagnosis
from dpregress.inputs.described import described_table
from dpregress.inputs.exposure import OFFSET, exposed, exposure_bounds
from dpregress.inputs.indices import check_aligned
from dpregress.inputs.tables import (
    coded,
    column_names,
    encoded,
    joined_table,
    matrix,
    numbers,
    opened_table,
)
from dpregress.inputs.units import bounded_units
from dpregress.public import Categorical, Schema
from dpregress.releases import ClassCoefficients, Coefficients, Estimates
from dpregress.releases.model_files import ResponseModel, WrittenFormula
from dpregress.rows import ArraySource, Encoder, FormulaEncoder, Source
from dpregress.rows.readers.files import is_table
from dpregress.trust import Session

#: What the guarantee of a diagnosis assumes to be public.
_ASSUMED = ("the number of private records", "the names and types of the columns", "the model that is diagnosed")


class Diagnosed(NamedTuple):
    """What a diagnosis needs of a fitted model."""

    coefficients: Coefficients
    response: ResponseModel
    estimates: Estimates | None
    formula: WrittenFormula | None
    schema: Schema | None


def one_predictor(coefficients: Coefficients | ClassCoefficients) -> Coefficients:
    """The coefficients of a model with a single predictor; those of several classes are refused."""
    if isinstance(coefficients, ClassCoefficients):
        raise NotAvailable(SEVERAL)
    return coefficients


def diagnose_model(
    model: Diagnosed,
    X: Any,
    y: Any = None,
    *,
    privacy: Event,
    exposure: Any = None,
    unit: Any = None,
    max_rows_per_unit: int | None = None,
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> Diagnosis:
    """Diagnose a fitted model on private rows; see :meth:`~dpregress.DPRidge.diagnose`."""
    check_diagnosable(model.response)
    promise = gaussian_promise(checked_budget(privacy))
    check_aligned(X, y=y, exposure=exposure, unit=unit)
    rows, coefficients = _rows(model, X, y, exposure, unit), model.coefficients
    if not rows.n:
        raise InvalidInput("the table has no rows: nothing can be diagnosed")
    source, whose = bounded_units(rows, unit, max_rows_per_unit)
    name = model.response.exposure
    needed = name is not None and not name.startswith(OFFSET)
    if (exposure is None) == needed:
        raise InvalidInput(
            "this model was fitted without an exposure: leave exposure= out"
            if not needed
            else "this model was fitted with an exposure: give exposure="
        )
    bounds = exposure_bounds(name, model.response.link, model.schema, None)
    subject = Subject(coefficients, model.response, model.estimates, bounds)
    subject.dispersion  # noqa: B018  # what the model did not release is refused before the charge
    with ready_rows(source, None, None) as ready:
        session = Session.reserve(
            ready,
            promise,
            rounds=MOST_QUESTIONS,
            budget=privacy,
            ledger=ledger,
            unit=whose,
            note=note_of(f"diagnosis of {coefficients.target}"),
            request=Request(formula=note_of(_formula(model)), source=note_of(described_table(X))),
            random_state=random_state,
        )
        found = diagnosed(session, subject, whose.per_record(promise), source.n)
    return replace(found, privacy=session.statement(_ASSUMED))


def _formula(model: Diagnosed) -> str:
    """The model, for the ledger."""
    if model.formula is not None:
        return model.formula.text
    features = model.coefficients.features
    constant = model.estimates is None or len(model.estimates.names) > len(features)
    declared = {} if model.schema is None else model.schema.columns
    made = {each: name for name, column in declared.items() for each in column.design(name)}
    named = tuple(dict.fromkeys(made.get(each, each) for each in features))  # columns, as the entry of the fit has them
    return formula_text(model.coefficients.target, named if constant else ("0", *named), model.response.exposure)


def _rows(model: Diagnosed, X: Any, y: Any, exposure: Any, unit: Any) -> Source:
    """Rows with their responses, with the design columns of the model in its order."""
    found, classes = model.coefficients, model.response.classes
    if not is_table(X) and not isinstance(X, str) and y is not None and model.formula is None:
        x = matrix(X)
        if x.shape[1] != len(found.features):
            raise InvalidInput(f"X has {x.shape[1]} columns, the model {len(found.features)} features")
        response = coded(y, classes) if classes else numbers(y)
        if len(response) != len(x):
            raise InvalidInput("X and y have different numbers of rows: give one response for each row")
        return exposed(ArraySource(x, response), exposure, model.response.exposure, model.schema)
    table = joined_table(X, y, found.target) if y is not None else opened_table(X)
    column = exposure if isinstance(exposure, str) else None
    design = _design(model, column_names(table), column)
    absent = set(found.features) ^ set(design.features)
    if absent:
        raise InvalidInput(f"the table and the model do not share column {min(absent)!r}: give the columns of the fit")
    source: Source = encoded(table, design, unit if isinstance(unit, str) else None)
    if column is None:
        source = exposed(source, exposure, model.response.exposure, model.schema)
    return source


def _design(model: Diagnosed, names: list[str], exposure: str | None) -> Encoder | FormulaEncoder:
    """The encoder of a table's columns for this model, whose order it keeps whatever that of the table."""
    classes, target = model.response.classes, model.coefficients.target
    if model.formula is not None:
        levels: Mapping[str, Categorical] = {
            name: Categorical(each, model.formula.missing.get(name)) for name, each in model.formula.levels.items()
        }
        return FormulaEncoder.of(model.formula.text, Schema(levels), classes, exposure)
    features = model.coefficients.features
    columns = [name for name in names if name not in (target, exposure)]
    placed = sorted((_place(name, features, model.schema), name) for name in columns)
    return Encoder.of([name for at, name in placed if at < len(features)], target, model.schema, classes, exposure)


def _place(column: str, features: tuple[str, ...], schema: Schema | None) -> int:
    """Where the design columns that come from this column of the table begin; their number if none does."""
    declared = None if schema is None else schema.column(column)
    made = (column,) if declared is None else declared.design(column)
    return min((features.index(name) for name in made if name in features), default=len(features))

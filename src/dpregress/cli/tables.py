"""Public tables given on the command line, and the columns they imply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpregress.display import shown
from dpregress.errors import InvalidInput
from dpregress.inputs.formula import formula_moments
from dpregress.inputs.public import check_public_exposure, public_columns
from dpregress.inputs.tables import check_exposure
from dpregress.public import Categorical, Numeric, PublicMoments, Schema
from dpregress.rows import FormulaEncoder
from dpregress.rows.design.encoder import Encoder
from dpregress.rows.readers.base import has_columns
from dpregress.rows.sources import reader_of


def load_schema(path: Path | None) -> Schema | None:
    """The schema of --schema."""
    return None if path is None else Schema.from_toml(path)


def split_names(text: str | None) -> list[str] | None:
    """``a,b,c`` as a list."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise InvalidInput("--features takes different column names separated by commas")
    return names


def split_classes(family: str, classes: str | None, declared: Numeric | Categorical | None) -> tuple[str, ...] | None:
    """The classes of --classes, ``no, yes``, else the levels that the schema declares; None where neither says."""
    if family not in ("binomial", "multinomial"):
        if classes is not None:
            raise InvalidInput("--classes goes with --family binomial or multinomial")
        return None
    names = declared.levels if isinstance(declared, Categorical) else ()
    names = names if classes is None else tuple(name.strip() for name in classes.split(","))
    if family == "multinomial" and len(names) < 3:
        raise InvalidInput(
            "name the classes of a multinomial target, three or more: --classes low,middle,high, or in the schema"
        )
    if family == "binomial" and len(names) > 2:
        raise InvalidInput(f"--family binomial is for two classes, not {len(names)}: choose --family multinomial")
    return names or None


def declared_response(target: str | None, formula: str | None, schema: Schema | None) -> Numeric | Categorical | None:
    """What the schema declares of the response, which a formula names itself."""
    if schema is None:
        return None
    if formula is not None:
        (target,) = FormulaEncoder.of(formula, schema, ("0", "1")).response.columns
    return None if target is None else schema.column(target)


def choose_features(
    data: Any,
    target: str,
    features: Sequence[str] | None,
    public: Path | None,
    schema: Schema | None,
    unit: str | None = None,
    exposure: str | None = None,
) -> list[str]:
    """The feature columns: those asked for, else all of the data but the target, the unit's and the exposure's.

    The public side must know them all.
    """
    reader = reader_of(data)
    columns, where = reader.schema.names, reader.name
    for path, names in ((where, columns), *(((public, public_columns(public)),) if public is not None else ())):
        repeated = {name for name in names if list(names).count(name) > 1}
        if repeated:
            raise InvalidInput(f"{path} has several columns of the same name: rename them")
    others = [name for name in (target, unit, exposure) if name is not None]
    for name in [*others, *(features or [])]:
        if name not in columns:
            raise InvalidInput(f"no column {name!r} in {where}, {has_columns(columns)}: check its names")
    chosen = list(features) if features is not None else [name for name in columns if name not in others]
    if target in chosen:
        raise InvalidInput(f"target {target!r} is among the features: leave it out of --features")
    check_exposure(exposure, chosen, (target,), unit)
    if not chosen:
        raise InvalidInput(f"{where} has no column other than {target!r} to regress on")
    known, needed = _known_columns(public, schema, chosen)
    unknown = [name for name in needed if name not in known]
    if unknown:
        known_by = shown(public) if public is not None else "the schema"
        raise InvalidInput(f"no column {unknown[0]!r} in {known_by}: add it there, or choose columns with --features")
    return chosen


def only_formula(target: str | None, features: str | None, no_intercept: bool) -> None:
    """Refuse options that a formula stands for."""
    for option, given in (("--target", target is not None), ("--features", features is not None)):
        if given:
            raise InvalidInput(f"{option} does not go with --formula, which names the columns: leave one of them out")
    if no_intercept:
        raise InvalidInput("--no-intercept does not go with --formula: write 0 + in the formula, as in 'y ~ 0 + age'")


def load_formula_public(
    formula: str,
    data: Any,
    public: Path | None,
    schema: Schema | None,
    classes: tuple[str, ...],
    exposure: str | None = None,
    *,
    labelled: bool,
) -> tuple[PublicMoments | None, int]:
    """Public moments of a formula's columns from rows or a moments file, and how many rows with gaps were left out."""
    encoder = FormulaEncoder.of(formula, schema, classes, exposure)
    rows = None if public is None or public.suffix.lower() == ".json" else public
    for table, columns in ((data, encoder.needed), *([(rows, encoder.sources)] if rows is not None else [])):
        reader = reader_of(table)
        absent = [name for name in columns if name not in reader.schema.names]
        if absent:
            raise InvalidInput(
                f"no column {absent[0]!r} in {reader.name}, {has_columns(reader.schema.names)}: check its names"
            )
    if public is None:
        return None, 0
    (target,) = encoder.response.columns
    if rows is not None and labelled and target in public_columns(rows):
        check_public_exposure(rows, exposure)
    return formula_moments(public if rows is not None else PublicMoments.load(public), encoder, schema, labelled)


def _known_columns(
    public: Path | None, schema: Schema | None, features: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The columns that the public side has, and those that it needs: a moments file has design columns."""
    if public is None:
        return tuple(schema.columns) if schema is not None else (), features
    if public.suffix.lower() == ".json":
        return public_columns(public), Encoder.of(features, None, schema).features
    return public_columns(public), features

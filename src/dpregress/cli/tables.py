"""Public tables given on the command line, and the columns they imply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpregress.errors import InvalidInput
from dpregress.estimators._formula import check_numeric, formula_moments, public_moments
from dpregress.public import PublicMoments, Schema
from dpregress.rows import FormulaEncoder
from dpregress.rows.encoding import Encoder
from dpregress.rows.files import names_of, read
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
    for path, names in ((where, columns), *(((public, columns_of(public)),) if public is not None else ())):
        repeated = {name for name in names if list(names).count(name) > 1}
        if repeated:
            raise InvalidInput(f"{path} has several columns {min(repeated)!r}: rename them")
    others = [name for name in (target, unit, exposure) if name is not None]
    for name in [*others, *(features or [])]:
        if name not in columns:
            raise InvalidInput(f"no column {name!r} in {where}; it has {', '.join(columns[:12])}")
    chosen = list(features) if features is not None else [name for name in columns if name not in others]
    if target in chosen:
        raise InvalidInput(f"target {target!r} is among the features: leave it out of --features")
    if not chosen:
        raise InvalidInput(f"{where} has no column beside {target!r} to regress on")
    known, needed = _known_columns(public, schema, chosen)
    unknown = [name for name in needed if name not in known]
    if unknown:
        known_by = public if public is not None else "the schema"
        raise InvalidInput(f"no column {unknown[0]!r} in {known_by}: add it there, or choose columns with --features")
    return chosen


def load_public(
    path: Path,
    features: Sequence[str],
    target: str | None,
    schema: Schema | None,
    classes: tuple[str, ...] = (),
    exposure: str | None = None,
) -> tuple[PublicMoments, int]:
    """Public moments of the features from rows or a moments file, and how many rows with gaps were left out.

    With a target, rows that hold it count as labelled; they need the exposure, where there is one.
    """
    if path.suffix.lower() == ".json":
        return PublicMoments.load(path).select(Encoder.of(features, None, schema).features), 0
    labelled = target is not None and target in names_of(path)
    if labelled:
        check_public_exposure(path, exposure)
    encoder = Encoder.of(
        features, target if labelled else None, schema, classes if labelled else (), exposure if labelled else None
    )
    table = read(path, encoder.needed)
    check_numeric(table.drop_columns([target] if labelled and classes else []), schema, path)
    encoder.check_types(table.schema)
    return public_moments(table, encoder, path)


def check_public_exposure(path: Path, exposure: str | None) -> None:
    """Refuse public rows that hold the target without its exposure."""
    if exposure is not None and exposure not in names_of(path):
        raise InvalidInput(
            f"{path} holds the target without its exposure {exposure!r}: add the column, or --ignore-public-labels"
        )


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
                f"no column {absent[0]!r} in {reader.name}; it has {', '.join(reader.schema.names[:12])}"
            )
    if public is None:
        return None, 0
    (target,) = encoder.response.columns
    if rows is not None and labelled and target in names_of(rows):
        check_public_exposure(rows, exposure)
    return formula_moments(public if rows is not None else PublicMoments.load(public), encoder, schema, labelled)


def _known_columns(
    public: Path | None, schema: Schema | None, features: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The columns that the public side has, and those that it needs: a moments file has design columns."""
    if public is None:
        return tuple(schema.columns) if schema is not None else (), features
    if public.suffix.lower() == ".json":
        return columns_of(public), Encoder.of(features, None, schema).features
    return columns_of(public), features


def columns_of(public: Path) -> Sequence[str]:
    """Columns of public rows, or of a moments file."""
    return PublicMoments.load(public).names if public.suffix.lower() == ".json" else names_of(public)

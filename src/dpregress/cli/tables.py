"""Public tables given on the command line, and the columns they imply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpregress.errors import InvalidInput
from dpregress.public import Categorical, PublicMoments, Schema
from dpregress.rows.encoding import Encoder, is_text, to_numbers
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
    data: Any, target: str, features: Sequence[str] | None, public: Path | None, schema: Schema | None
) -> list[str]:
    """The feature columns: those asked for, else all of the data but the target; the public side must know them all."""
    reader = reader_of(data)
    columns, where = reader.schema.names, reader.name
    for path, names in ((where, columns), *(((public, _names(public)),) if public is not None else ())):
        repeated = {name for name in names if list(names).count(name) > 1}
        if repeated:
            raise InvalidInput(f"{path} has several columns {min(repeated)!r}: rename them")
    for name in [target, *(features or [])]:
        if name not in columns:
            raise InvalidInput(f"no column {name!r} in {where}; it has {', '.join(columns[:12])}")
    chosen = list(features) if features is not None else [name for name in columns if name != target]
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
    path: Path, features: Sequence[str], target: str | None, schema: Schema | None, classes: tuple[str, ...] = ()
) -> tuple[PublicMoments, int]:
    """Public moments of the features from rows or a moments file, and how many rows with gaps were left out.

    With a target, rows that hold it count as labelled.
    """
    if path.suffix.lower() == ".json":
        return PublicMoments.load(path).select(Encoder.of(features, None, schema).features), 0
    labelled = target is not None and target in names_of(path)
    table = read(path, [*features, *([target] if labelled and target is not None else [])])
    check_numeric(table.drop_columns([target] if labelled and classes else []), schema, path)
    encoder = Encoder.of(features, target if labelled else None, schema, classes if labelled else ())
    encoder.check_types(table.schema)
    x, y = encoder.x(table), encoder.y(table)
    whole = np.isfinite(x).all(axis=1) & (np.isfinite(y) if y is not None else True)
    if not whole.any():
        raise InvalidInput(f"no row of {path} is free of missing cells: mend the public table")
    moments = PublicMoments.from_rows(x[whole], None if y is None else y[whole], names=encoder.features)
    return moments, int((~whole).sum())


def check_numeric(table: pa.Table, schema: Schema | None, path: Path) -> None:
    """Refuse a public column with text in it whose levels are not declared."""
    for name in table.schema.names:
        if schema is not None and isinstance(schema.column(name), Categorical):
            continue
        column = table[name]
        if not is_text(column.type):
            continue
        text = np.asarray(pc.is_valid(column)) & ~np.isfinite(to_numbers(column))
        if text.any():
            raise InvalidInput(
                f"column {name!r} of {path} holds text: declare its levels in a schema, or leave it out with --features"
            )


def _known_columns(
    public: Path | None, schema: Schema | None, features: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The columns that the public side has, and those that it needs: a moments file has design columns."""
    if public is None:
        return tuple(schema.columns) if schema is not None else (), features
    if public.suffix.lower() == ".json":
        return _names(public), Encoder.of(features, None, schema).features
    return _names(public), features


def _names(public: Path) -> Sequence[str]:
    """Columns of public rows, or of a moments file."""
    return PublicMoments.load(public).names if public.suffix.lower() == ".json" else names_of(public)

"""Drafts of schema files from public knowledge: public rows, a data dictionary, or a domain of codes.

Declarations of a dictionary are copied. What public rows only suggest is written as a comment if it could be wrong: the
range of a sample is not the range of the population.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpregress.display import how_many, shown
from dpregress.errors import InvalidInput, SchemaError, reason
from dpregress.public import Categorical, Numeric, Schema
from dpregress.public.columns import is_plain
from dpregress.public.toml import toml_key, toml_value
from dpregress.rows.design.encoder import is_text, readable, to_numbers

#: The largest number of different texts in a column that is drafted as a list of levels.
MOST_LEVELS = 50
#: Accepted names for the columns of a data dictionary.
_FIELDS = {
    "name": ("name", "column", "variable", "field", "feature", "attribute"),
    "type": ("type", "kind", "dtype", "class"),
    "lower": ("lower", "min", "minimum", "lower bound", "lower_bound"),
    "upper": ("upper", "max", "maximum", "upper bound", "upper_bound"),
    "levels": ("levels", "values", "categories", "codes", "allowed values", "allowed_values"),
    "unit": ("unit", "units"),
    "missing": ("missing", "missing rule", "missing_rule"),
    "fill": ("fill", "default"),
    "description": ("description", "label", "meaning", "notes"),
}
_TRUTH = ("bool", "boolean", "logical")
_NUMBERS = (
    "numeric",
    "number",
    "float",
    "double",
    "real",
    "int",
    "integer",
    "continuous",
    "count",
    "interval",
    "ratio",
)
_LEVELS = (
    *_TRUTH,
    "categorical",
    "category",
    "factor",
    "nominal",
    "ordinal",
    "binary",
    "enum",
    "text",
    "string",
    "str",
)


def from_rows(table: pa.Table, source: str) -> str:
    """A draft from public rows, with the observed levels, and with ranges as comments.

    Parameters
    ----------
    table : pyarrow.Table
        Public rows. Never private ones: levels and ranges of private rows are private.
    source : str
        Where they come from, for the first line.
    """
    head = (
        f"# A draft from {table.num_rows:,} PUBLIC rows, {_comment(source)}. Never draft from rows that are private.\n"
        "# The private rows may lie further out and hold other levels: widen by knowledge of the subject, then\n"
        "# take away the # before lower and upper. The first level is the reference.\n"
    )
    parts = [_seen(name, column) for name, column in zip(table.schema.names, table.columns, strict=True)]
    return "\n".join([head, *parts])


def is_dictionary(names: list[str]) -> bool:
    """Whether columns of these names describe other columns: a name, and a type, levels or bounds."""
    fields = set(_fields(names))
    return "name" in fields and bool(fields & {"type", "levels", "lower", "upper"})


def from_dictionary(table: pa.Table, source: str) -> str:
    """A draft from a data dictionary, a table with a row for each column.

    Raises
    ------
    SchemaError
        For a row that contradicts itself, naming the column it is about.
    """
    places = _fields(table.schema.names)
    if "name" not in places:
        raise InvalidInput(f"{source} has no column called name, column or variable: a dictionary has a row per column")
    cells = {field: _texts(table.column(at)) for field, at in places.items()}
    made: dict[str, Numeric | Categorical] = {}
    parts = [f"# A draft from the data dictionary {_comment(source)}. The first level is the reference.\n"]
    for row in range(table.num_rows):
        entry = {field: (texts[row] or "").strip() for field, texts in cells.items()}
        name = entry["name"]
        if not name:
            raise SchemaError(f"row {row + 1} of {source} names no column: fill in or delete it")
        if name in made:
            raise SchemaError(f"{source} describes column {name!r} twice: delete one row")
        remark = f"# {_comment(entry['description'])}\n" if entry.get("description") else ""
        declared = _declared(name, entry)
        if declared is None:
            parts.append(f"{remark}# {_comment(name)} is text without a list of levels: leave it out with --features\n")
            continue
        made[name] = declared
        bounds = "# lower =\n# upper =\n" if isinstance(declared, Numeric) and declared.bounds is None else ""
        parts.append(remark + Schema({name: declared}).to_toml() + bounds)
    Schema(made)
    return "\n".join(parts)


def from_domain(path: Path) -> str:
    """A draft from a JSON domain, ``{column: number of levels}`` or ``{column: [levels]}``."""
    form = "write {column: number of levels} in JSON"
    try:
        record = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{shown(path)} is not a domain: {form} ({reason(error)})") from error
    if not isinstance(record, Mapping) or not record:
        raise InvalidInput(f"{shown(path)} is not a domain: {form}")
    return f"# A draft from the domain {_comment(path.name)}.\n\n" + Schema.from_levels(record).to_toml()


def _seen(name: str, column: pa.ChunkedArray) -> str:
    if not is_plain(name):
        return f"# a column with control characters in its name, {name!r}: rename it\n"
    if not readable(column.type):
        return f"# {_comment(name)} is of type {column.type}, which is not read: leave it out with --features\n"
    values = to_numbers(column)
    gaps = int(column.null_count)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if is_text(kind) and int((~np.isfinite(values)).sum()) > gaps:
        return _seen_levels(name, column, gaps)
    finite = values[np.isfinite(values)]
    lines = [f"[{toml_key(name)}]"]
    if len(finite):
        lower, upper = suggested_bounds(float(finite.min()), float(finite.max()))
        lines += [
            f"# seen in the public rows: {finite.min():g} to {finite.max():g}",
            f"# lower = {lower}",
            f"# upper = {upper}",
        ]
    lines.append('# unit = ""')
    if len(finite) < len(values):
        lines.append(f'# missing = "indicator"  # {len(values) - len(finite)} of the public rows have no number')
    return "\n".join(lines) + "\n"


def _seen_levels(name: str, column: pa.ChunkedArray, gaps: int) -> str:
    counts = Counter(text for text in _texts(column) if text)
    plain = [level for level in counts if is_plain(level) and "\ufffd" not in level]
    if not 2 <= len(plain) <= MOST_LEVELS:
        return (
            f"# {_comment(name)} holds {how_many(len(counts), 'different text')} in the public rows: "
            "declare its levels, or leave it out with --features\n"
        )
    first = max(sorted(plain), key=counts.__getitem__)
    lines = [f"[{toml_key(name)}]", f"levels = {toml_value([first, *sorted(set(plain) - {first})])}"]
    if gaps:
        lines.append(f'# missing = "level"  # {gaps} of the public rows have none')
    if len(plain) < len(counts):
        lines.append(f"# left out, because they are not plain UTF-8: {how_many(len(counts) - len(plain), 'text')}")
    return "\n".join(lines) + "\n"


def suggested_bounds(lower: float, upper: float) -> tuple[float, float]:
    """The range widened by its width on either side, but not across zero, and rounded outwards."""
    width = upper - lower or abs(upper) or 1.0
    step = 10.0 ** math.floor(math.log10(width))
    wide = math.floor((lower - width) / step) * step, math.ceil((upper + width) / step) * step
    low = max(wide[0], 0.0) if lower >= 0 else wide[0]
    high = min(wide[1], 0.0) if upper <= 0 and low < 0 else wide[1]
    return float(f"{low:.12g}"), float(f"{high:.12g}")


def _fields(names: list[str]) -> dict[str, int]:
    """Positions of a dictionary's fields."""
    plain = [name.strip().lower() for name in names]
    found = {field: [at for at, name in enumerate(plain) if name in known] for field, known in _FIELDS.items()}
    return {field: at[0] for field, at in found.items() if at}


def _declared(name: str, entry: Mapping[str, str]) -> Numeric | Categorical | None:
    kind = entry.get("type", "").lower()
    levels = entry.get("levels", "")
    if kind and kind not in (*_NUMBERS, *_LEVELS):
        raise SchemaError(f"column {name!r} is of type {kind!r}: write numeric or categorical")
    try:
        if kind in _LEVELS or (not kind and levels):
            texts = [level.strip() for level in levels.replace(";", "|").split("|")] if levels else []
            if not texts and kind not in _TRUTH:
                return None
            return Categorical(tuple(texts or ("false", "true")), entry.get("missing") or None)
        return Numeric(
            _number("lower", entry),
            _number("upper", entry),
            entry.get("unit", ""),
            entry.get("missing") or "mean",  # type: ignore[arg-type]  # checked there
            _number("fill", entry),
        )
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from error


def _number(field: str, entry: Mapping[str, str]) -> float | None:
    text = entry.get(field, "")
    if not text:
        return None
    value = float(to_numbers(pa.array([text]))[0])
    if not math.isfinite(value):
        raise SchemaError(f"{field} {text[:40]!r} is not a number")
    return value


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """Cells as text, whatever their type; bytes that are not UTF-8 are marked."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    cells: list[Any] = pc.cast(column, pa.large_binary() if is_text(column.type) else pa.large_string()).to_pylist()
    return [cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in cells]


def _comment(text: str) -> str:
    return "".join(mark if mark.isprintable() else " " for mark in text)

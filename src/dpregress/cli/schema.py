"""``dpregress schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpregress.cli.output import print_table, say
from dpregress.cli.places import taken
from dpregress.display import how_many, shown
from dpregress.errors import InvalidInput

if TYPE_CHECKING:
    from dpregress.public import Schema

_PATH = click.Path(path_type=Path)


@click.group()
def schema() -> None:
    """Draft and check a schema of columns.

    It holds types, bounds and levels of columns, and rules for missing cells.

    \b
    Example:
      dpregress schema init pilot.csv --out visits.toml
      dpregress schema check visits.toml --public pilot.csv
    """


@schema.command("init")
@click.argument("source", metavar="SOURCE", type=_PATH)
@click.option("-o", "--out", type=_PATH, required=True, help="File to write (TOML).")
@click.option(
    "--read-as", type=click.Choice(["rows", "dictionary", "domain"]),
    help="Kind of file [default: domain for .json, dictionary if it has columns such as name and type].",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def init(source: Path, out: Path, read_as: str | None, overwrite: bool) -> None:
    """Draft a schema from a SOURCE of public knowledge: PUBLIC rows, a data dictionary, or a domain.

    Public rows (CSV, Parquet) give types, levels of text columns, and ranges as comments. Private rows may lie
    further out, so widen the ranges with subject knowledge before you remove the comment signs.
    A dictionary is a CSV with one row per column: name, type, lower, upper, levels (a|b|c), unit, missing,
    fill, description. A domain is JSON: {column: number of levels}. Never draft from private rows.

    \b
    Example:
      dpregress schema init pilot.csv --out visits.toml
    """
    from dpregress.curator import drafting
    from dpregress.rows.readers.files import names_of, read

    with taken(out, overwrite=overwrite) as place:
        if read_as is None and source.suffix.lower() != ".json":
            read_as = "dictionary" if drafting.is_dictionary(names_of(source)) else "rows"
        if read_as in ("rows", "dictionary"):
            draft = drafting.from_rows if read_as == "rows" else drafting.from_dictionary
            text = draft(read(source), source.name)
        else:
            text = drafting.from_domain(source)
        place.write(text)
    origin = "PUBLIC rows" if read_as == "rows" else f"a {read_as or 'domain'}"
    say(f"Wrote {out}, a draft from {origin}. Edit it, then: dpregress schema check {out}")


@schema.command("check")
@click.argument("schema_file", metavar="SCHEMA", type=_PATH)
@click.option("--public", "table", type=_PATH, help="A table or moments file to compare the columns with.")
def check_schema(schema_file: Path, table: Path | None) -> None:
    """Show what SCHEMA makes of each column: design columns, bounds, and the value that replaces missing cells.

    \b
    Example:
      dpregress schema check visits.toml --public pilot.csv
    """
    from dpregress import Schema
    from dpregress.curator.inspection import stand_in
    from dpregress.public import Numeric

    declared = Schema.from_toml(schema_file)
    if not declared.columns:
        raise InvalidInput(f"{shown(schema_file)} declares no column: write a table such as [age] with lower and upper")
    remarks = _remarks(declared, table)
    rows = []
    for name, column in declared.columns.items():
        if isinstance(column, Numeric):
            bounds = "none" if column.bounds is None else f"{column.bounds[0]:g} to {column.bounds[1]:g}"
            values = f"{bounds} {column.unit}".rstrip()
        else:
            values = _shortened(column.levels)
        kind = "number" if isinstance(column, Numeric) else "level"
        rows.append([name, kind, values, stand_in(column), _shortened(column.design(name))])
    header = ["column", "read as", "bounds or levels", "missing cells become", "design columns"]
    print_table(f"{shown(schema_file)}: {how_many(len(rows), 'column')}", header, rows)
    for remark in remarks:
        say(remark)


def _remarks(schema: Schema, table: Path | None) -> list[str]:
    """What a reader of the schema should know before a fit."""
    from dpregress.inputs.public import public_columns
    from dpregress.public import Categorical, Numeric
    from dpregress.rows.readers.csv import MISSING

    remarks = []
    unbounded = [name for name, column in schema.columns.items() if isinstance(column, Numeric) and not column.bounds]
    if unbounded:
        remarks.append(
            f"Without bounds: as features, these columns need public rows that have them: {_shortened(unbounded)}."
        )
    for name, column in schema.columns.items():
        unread = [level for level in column.levels if level in MISSING] if isinstance(column, Categorical) else []
        if unread:
            remarks.append(f"Level {unread[0]!r} of {name!r} is read as a missing cell in CSV files.")
    if table is not None:
        names = public_columns(table)
        designs = {design for name, column in schema.columns.items() for design in column.design(name)}
        lacking = [name for name in names if name not in schema.columns and name not in designs]
        absent = [name for name, column in schema.columns.items() if not {name, *column.design(name)} & set(names)]
        if lacking:
            remarks.append(f"Columns of {shown(table)} outside the schema (read as numbers): {_shortened(lacking)}.")
        if absent:
            remarks.append(f"Columns of the schema that are not in {shown(table)}: {_shortened(absent)}.")
        if not lacking and not absent:
            remarks.append(f"The schema and {shown(table)} have the same columns.")
    return remarks


def _shortened(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names[:12]) + (f", .. ({len(names)} in all)" if len(names) > 12 else "")

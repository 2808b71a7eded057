"""``dpregress check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dpregress.public import Schema
    from dpregress.rows.inspection import ColumnCheck

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("data", type=_PATH)
@click.option("--features", help="Columns, separated by commas [default: all].")
@click.option("--schema", "schema_file", type=_PATH, help="Bounds and levels of columns (TOML).")
def check(data: Path, features: str | None, schema_file: Path | None) -> None:
    """Show the curator of DATA which cells a fit would map. NOT PRIVATE: do not publish.

    A fit never reports missing, unreadable or undeclared cells, because a message that depends on
    private values is itself a leak. This command reads them without noise, for whoever holds them anyway.

    \b
    Example:
      dpregress check visits.csv --schema visits.toml
    """
    from dpregress.cli.output import print_table
    from dpregress.cli.tables import load_schema, split_names
    from dpregress.rows.files import read
    from dpregress.rows.inspection import inspect

    table = read(data, split_names(features))
    schema = load_schema(schema_file)
    found = inspect(table, schema)
    header = ["column", "read as", "missing", "not a number", "not finite", "undeclared", "out of bounds", "mapped to"]
    rows = [
        [column.name, column.kind, *(str(count) for count in column.counts), _stand_in(column, schema)]
        for column in found
    ]
    print_table(f"{data}: {table.num_rows:,} rows. NOT PRIVATE, DO NOT PUBLISH", header, rows)
    mapped = sum(sum(column.counts[:4]) for column in found)
    click.echo(
        "Every cell is usable as it is."
        if mapped == 0
        else f"{mapped} cell(s) would be mapped, features as the last column says; "
        "a row without a usable response gets weight 0."
    )


def _stand_in(column: ColumnCheck, schema: Schema | None) -> str:
    from dpregress.public import Numeric
    from dpregress.rows.inspection import stand_in

    declared = schema.column(column.name) if schema is not None else None
    return "" if column.kind == "not read" else stand_in(declared or Numeric())

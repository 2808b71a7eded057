"""``dpregress check``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpregress.cli.families import FamilyChoice, response_families
from dpregress.cli.output import print_table, say
from dpregress.display import how_many, shown
from dpregress.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from dpregress.curator.inspection import ColumnCheck
    from dpregress.public import Schema

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("data", type=_PATH)
@click.option("--features", help="Columns, separated by commas [default: all].")
@click.option("--schema", "schema_file", type=_PATH, help="Bounds and levels of columns (TOML).")
@click.option("--target", help="Response column, checked as a response.")
@click.option(
    "--family", type=FamilyChoice(response_families), default="gaussian", show_default=True,
    help="Family of the response, as in `dpregress fit`.",
)  # fmt: skip
@click.option("--classes", help="Classes of the target, as NO,YES [default: those of the schema, else 0,1].")
def check(
    data: Path, features: str | None, schema_file: Path | None, target: str | None, family: str, classes: str | None
) -> None:
    """Show the curator of DATA which cells a fit would replace. NOT PRIVATE: do not publish.

    A fit never reports missing, unreadable or undeclared cells, because a message that depends on
    private values is itself a leak. This command reads the cells without noise, for the person who holds
    the data anyway.

    \b
    Example:
      dpregress check visits.csv --schema visits.toml
      dpregress check visits.csv --target smoker --family binomial --classes no,yes
    """
    from dpregress.cli.tables import declared_response, load_schema, split_classes, split_names
    from dpregress.curator.inspection import inspect_rows
    from dpregress.rows.readers.files import read

    if target is None and (family != "gaussian" or classes is not None):
        raise InvalidInput("--family and --classes describe a response: name its column with --target")
    wanted = split_names(features)
    if wanted is not None and target is not None and target not in wanted:
        wanted.append(target)
    table = read(data, wanted)
    schema = load_schema(schema_file)
    named = split_classes(family, classes, declared_response(target, None, schema))
    named = named or (("0", "1") if family == "binomial" else ())
    found = inspect_rows(table if target not in table.schema.names else table.drop_columns([target]), schema)
    rows = [[*_cells(column), _stand_in(column, schema)] for column in found]
    header = [
        "column",
        "read as",
        "missing",
        "not a number",
        "not finite",
        "undeclared",
        "out of bounds",
        "replaced by",
    ]
    if target is not None:
        response = _response(table, target, schema, family, named)
        found.append(response)
        rows.append([*_cells(response), _of_response(response)])
    print_table(f"{shown(data)}: {table.num_rows:,} rows. NOT PRIVATE, DO NOT PUBLISH", header, rows)
    for line in _verdict(found, family):
        say(line)


def _verdict(found: Sequence[ColumnCheck], family: str) -> list[str]:
    """What a fit does with the cells that it does not use as they are."""
    replaced = sum(sum(column.counts[:4]) for column in found)
    beyond = sum(column.out_of_bounds for column in found)
    impossible = sum(column.impossible for column in found)
    said = []
    if impossible:
        said.append(
            f"{how_many(impossible, 'response')} cannot come from the family {family}; a fit uses such responses "
            "unchanged."
        )
    if replaced:
        said.append(
            f"{how_many(replaced, 'cell')} would be replaced: features as shown in the last column; a row without a "
            "usable response is ignored."
        )
    if beyond:
        said.append(
            f"Beyond the declared bounds: {how_many(beyond, 'cell')}. A fit uses such features, but downweights rows "
            "that lie far outside. Of responses it clips large residuals (the recipe one-shot clips responses); those "
            "far beyond the bounds do not widen the clips unless they are many. Predictions stay within the bounds. If "
            "the bounds are too narrow, widen them from the data dictionary, never from these private rows."
        )
    return said or ["Every cell can be used unchanged."]


def _response(
    table: pa.Table, target: str, schema: Schema | None, family: str, classes: tuple[str, ...]
) -> ColumnCheck:
    from dpregress.curator.inspection import inspect_response
    from dpregress.inputs.tables import check_classes
    from dpregress.models import MULTINOMIAL, family_of
    from dpregress.rows import Encoder
    from dpregress.rows.design.encoder import present

    present([target], table.schema.names)
    Encoder.of((), target, schema, classes)  # both refuse what a fit would
    check_classes(target, classes, schema)
    possible = family_of("binomial" if family == MULTINOMIAL else family).distribution.possible
    return inspect_response(table, target, schema, classes, possible)


def _cells(column: ColumnCheck) -> list[str]:
    return [column.name, column.kind, *(str(count) for count in column.counts)]


def _of_response(column: ColumnCheck) -> str:
    """What a fit does with the rows whose response it does not use as it is."""
    if not column.out_of_bounds:
        return "row is ignored"
    clipped = "residual is clipped"
    return f"row is ignored; beyond bounds: {clipped}" if sum(column.counts[:4]) else clipped


def _stand_in(column: ColumnCheck, schema: Schema | None) -> str:
    from dpregress.curator.inspection import stand_in
    from dpregress.public import Numeric

    declared = schema.column(column.name) if schema is not None else None
    return "" if column.kind == "not read" else stand_in(declared or Numeric())

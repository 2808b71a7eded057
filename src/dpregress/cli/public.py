"""``dpregress public``."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.cli.output import number, print_table, say
from dpregress.cli.places import taken

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("rows", type=_PATH)
@click.option("-o", "--out", type=_PATH, required=True, help="File to write (JSON).")
@click.option("--features", help="Columns, separated by commas [default: all].")
@click.option("--schema", "schema_file", type=_PATH, help="Levels of categorical columns (TOML).")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def public(rows: Path, out: Path, features: str | None, schema_file: Path | None, overwrite: bool) -> None:
    """Write the moments of public ROWS to a file.

    They are count, names, means and second moment. The file can be given to `dpregress fit --public` in place of
    the rows. It holds no row, but it is not protected either: use this command only for rows that are public.

    \b
    Example:
      dpregress public pilot.csv -o moments.json
    """
    from dpregress.cli.tables import load_schema, split_names
    from dpregress.inputs.public import left_out_note, moments_of
    from dpregress.rows.readers.files import names_of

    with taken(out, overwrite=overwrite) as place:
        moments, left_out = moments_of(rows, split_names(features) or names_of(rows), None, load_schema(schema_file))
        place.write(moments.text())
    assert moments.mean is not None
    table = [
        [name, number(mean), number(deviation)]
        for name, mean, deviation in zip(moments.names, moments.mean, moments.deviation, strict=True)
    ]
    print_table(f"{moments.n:,} public rows", ["column", "mean", "std. deviation"], table)
    if left_out:
        say(f"{left_out_note(left_out)}.")
    say(f"Wrote {out}.")

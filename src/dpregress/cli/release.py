"""``dpregress release`` and ``dpregress space``: moments of all columns, released once."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.cli.charging import budget_options, open_ledger, record_options, say_spent, seed_option
from dpregress.cli.fit import in_own_words, source_of
from dpregress.cli.output import say
from dpregress.cli.places import taken

_PATH = click.Path(path_type=Path)
_OUT = click.option("--out", "-o", type=_PATH, required=True, help="The file to write.")
_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace an existing file.")


@click.command()
@click.argument("data", nargs=-1)
@click.option(
    "--sql", "database", metavar="URL", help="Read a query in place of DATA: duckdb://, sqlite://, postgresql://."
)
@click.option("--query", help="The SELECT statement for --sql.")
@click.option("--columns", help="Columns to release, separated by commas [default: all].")
@click.option("--public", "public_rows", type=_PATH, help="Public rows (CSV, Parquet) or moments (JSON).")
@click.option("--schema", "schema_file", type=_PATH, help="Bounds and levels of columns (TOML).")
@click.option("--like", type=_PATH, help="Coordinates of `dpregress space`, or of an earlier release, to combine with.")
@click.option("--complete", help="Columns without which a row does not count, such as later responses.")
@click.option("--site", default="", help="A name for this table, if it will be combined with others.")
@budget_options("release")
@record_options
@_OUT
@_OVERWRITE
@seed_option
def release(
    data: tuple[str, ...],
    database: str | None,
    query: str | None,
    columns: str | None,
    public_rows: Path | None,
    schema_file: Path | None,
    like: Path | None,
    complete: str | None,
    site: str,
    epsilon: float,
    delta: float,
    confirm_delta: bool,
    ledger_file: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    dry_run: bool,
    unit: str | None,
    max_rows_per_unit: int | None,
    out: Path,
    overwrite: bool,
    seed: int | None,
) -> None:
    """Release the moments of all columns of DATA to a file. Every regression among them is free from then on.

    DATA, PUBLIC and the schema are as in `dpregress fit`. No column is the response: any can be regressed on any others
    by `dpregress regress`. A missing cell is replaced by the public mean of its column, or without public rows by the
    middle of its bounds. With --complete, rows without a usable cell in these columns do not count.

    \b
    Examples:
      dpregress release visits.csv --schema visits.toml --epsilon 1 --delta 1e-6 --out moments.json
      dpregress regress moments.json --target visits --features age,smoker
    """
    from dpregress import ApproxDP, MemoryLedger, release_moments
    from dpregress.cli.tables import load_schema, split_names
    from dpregress.inputs.described import described_table

    budget, schema = ApproxDP(epsilon, delta, confirm_delta=confirm_delta), load_schema(schema_file)
    source = source_of(data, database, query)
    ledger = open_ledger(
        ledger_file, dataset, analyst, purpose, source=described_table(source), out=out,
        rehearsed=MemoryLedger(budget, unit=unit or "record") if dry_run else None,
    )  # fmt: skip
    with taken(out, overwrite=overwrite) as place:
        with in_own_words(source):
            released = release_moments(
                source,
                privacy=budget,
                columns=split_names(columns),
                public=None if public_rows is None else str(public_rows),
                schema=schema,
                like=like,
                complete=split_names(complete) or (),
                site=site,
                ledger=ledger,
                unit=unit,
                max_rows_per_unit=max_rows_per_unit,
                random_state=seed,
            )
        place.write(released.text())
    say(f"{released.n:,} rows, {len(released.names)} design columns.")
    say_spent(released.privacy_, what="releases")
    say(f"Wrote {out}.")


@click.command()
@click.option("--columns", help="Columns of the tables, separated by commas [default: all that are known publicly].")
@click.option("--public", "public_rows", type=_PATH, help="Public rows (CSV, Parquet) or moments (JSON).")
@click.option("--schema", "schema_file", type=_PATH, help="Bounds and levels of columns (TOML).")
@click.option("--rows", type=click.IntRange(min=1), required=True, help="Number of rows of a typical site.")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of a site's release.")
@click.option("--delta", type=float, required=True, help="As in `dpregress release`.")
@_OUT
@_OVERWRITE
def space(
    columns: str | None,
    public_rows: Path | None,
    schema_file: Path | None,
    rows: int,
    epsilon: float,
    delta: float,
    out: Path,
    overwrite: bool,
) -> None:
    """Fix the coordinates in which several sites will release.

    They come from public facts alone. Each site then releases with --like this file, and `dpregress combine` adds
    the releases up.

    \b
    Example:
      dpregress space --public pilot.csv --schema visits.toml --rows 10000 --epsilon 1 --delta 1e-6 --out space.json
    """
    from dpregress import ApproxDP, shared_space
    from dpregress.cli.tables import load_schema, split_names

    found = shared_space(
        split_names(columns),
        n=rows,
        privacy=ApproxDP(epsilon, delta),
        public=None if public_rows is None else str(public_rows),
        schema=load_schema(schema_file),
    )
    with taken(out, overwrite=overwrite) as place:
        place.write(found.text())
    say(f"Coordinates of {len(found.columns)} columns. Nothing private was read.")
    say(f"Wrote {out}.")

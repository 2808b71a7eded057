"""``dpregress datasets``."""

from __future__ import annotations

import click

from dpregress.cli.output import print_table, say


@click.group()
def datasets() -> None:
    """Show and download the tables of the papers.

    \b
    Examples:
      dpregress datasets list
      dpregress datasets fetch banknote
    """


@datasets.command("list")
def list_datasets() -> None:
    """List the tables, which of them are here, and where the others come from.

    \b
    Example:
      dpregress datasets list
    """
    from dpregress.datasets import DATASETS, data_folder, has_table

    rows = []
    for each in DATASETS.values():
        way = "here" if has_table(each.name) else "fetch" if each.urls else "put it there"
        rows.append([each.name, way, f"{each.rows:,}", each.title, each.source, each.licence])
    print_table("Tables of the papers", ["name", "state", "rows", "what", "source", "licence"], rows)
    say(f"The folder is {data_folder()}; DPREGRESS_DATA names another.")


@datasets.command("fetch")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Agree to the licence without being asked.")
def fetch_table(name: str, yes: bool) -> None:
    """Download a table from its original source and check its rows.

    The licence is shown, and asked about once.

    \b
    Example:
      dpregress datasets fetch banknote --yes
    """
    from dpregress.datasets import agreed, dataset_named, fetch_dataset, record_agreement, where_is

    dataset = dataset_named(name)
    there = where_is(name)
    if there is not None:
        say(f"{name} is there already: {there}.")
        return
    asked = bool(dataset.urls) and not agreed(dataset)
    if asked:
        say(f"{dataset.title}, from {dataset.source}. Licence: {dataset.licence}.")
        if not yes:
            click.confirm("Download it under this licence?", abort=True)
    path = fetch_dataset(dataset, then=(lambda: record_agreement(dataset)) if asked else lambda: None)
    say(f"Wrote {path}: {dataset.rows:,} rows, as known.")

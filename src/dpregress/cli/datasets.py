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
    """List the tables, which of them are in the folder, and where they come from.

    "here": in the folder. "fetch": `dpregress datasets fetch` downloads it. "absent": get it from its source, and put
    NAME.parquet in the folder. `datasets fetch` also checks a table that is there.

    \b
    Example:
      dpregress datasets list
    """
    from dpregress.datasets import DATASETS, data_folder, has_table

    rows, licences = [], dict[str, list[str]]()
    for each in DATASETS.values():
        state = "here" if has_table(each.name) else "fetch" if each.urls else "absent"
        rows.append([each.name, each.title, each.source, state, f"{each.rows:,}"])
        licences.setdefault(each.licence, []).append(each.name)
    print_table("Tables of the papers", ["name", "what", "source", "state", "rows"], rows, text=4)
    print_table("Licences", ["licence", "tables"], [[one, ", ".join(of)] for one, of in licences.items()], text=2)
    say(f"The folder is {data_folder()}; DPREGRESS_DATA names another.")


@datasets.command("fetch")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Agree to the licence without being asked.")
def fetch_table(name: str, yes: bool) -> None:
    """Download a table from its original source and check its rows.

    The licence is shown, and asked about once. A table that is in the folder already is checked, and not downloaded.

    \b
    Example:
      dpregress datasets fetch banknote --yes
    """
    from dpregress.datasets import agreed, check_dataset, dataset_named, fetch_dataset, record_agreement, where_is

    dataset = dataset_named(name)
    there = where_is(name)
    if there is not None:
        check_dataset(dataset, there)
        say(f"{name} is there already: {there}: {dataset.rows:,} rows, as known.")
        return
    asked = bool(dataset.urls) and not agreed(dataset)
    if asked:
        say(f"{dataset.title}, from {dataset.source}. Licence: {dataset.licence}.")
        if not yes:
            click.confirm("Download it under this licence?", abort=True)
    path = fetch_dataset(dataset, then=(lambda: record_agreement(dataset)) if asked else lambda: None)
    say(f"Wrote {path}: {dataset.rows:,} rows, as known.")

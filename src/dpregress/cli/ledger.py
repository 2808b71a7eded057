"""``dpregress ledger``."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.cli.output import print_table, say

_PATH = click.Path(path_type=Path)


@click.group()
def ledger() -> None:
    """Open budgets and show what is spent.

    \b
    Example:
      dpregress ledger new budget.db --dataset claims --epsilon 3 --delta 1e-6
      dpregress ledger show budget.db
    """


@ledger.command("new")
@click.argument("file", type=_PATH)
@click.option("--dataset", required=True, help="Name of the data set.")
@click.option("--epsilon", type=float, required=True, help="Total that may ever be spent on it.")
@click.option("--delta", type=float, required=True)
@click.option("--unit", default="record", show_default=True, help="Unit of privacy; see `dpregress fit --unit`.")
@click.option(
    "--neighbours", type=click.Choice(["replace", "add-remove"]), default="replace", show_default=True,
    help="Neighbouring tables: fits need replace, marginals need add-remove.",
)  # fmt: skip
def new(file: Path, dataset: str, epsilon: float, delta: float, unit: str, neighbours: str) -> None:
    """Open a budget for a data set in FILE, which is created if needed. The budget can never be changed.

    \b
    Example:
      dpregress ledger new budget.db --dataset claims --epsilon 3 --delta 1e-6
      dpregress ledger new budget.db --dataset claims-of-persons --unit person_id --epsilon 3 --delta 1e-6
    """
    from dpregress import ApproxDP, SQLiteLedger
    from dpregress.accounting import Relation

    relation = Relation.REPLACE_ONE if neighbours == "replace" else Relation.ADD_REMOVE
    opened = SQLiteLedger.create(file, dataset, ApproxDP(epsilon, delta), unit=unit, relation=relation)
    account = opened.account
    say(
        f"Opened {account.dataset!r} in {file}: epsilon = {epsilon:g}, delta = {delta:g}, "
        f"for {account.relation.value} neighbours, one {account.unit}."
    )


@ledger.command("show")
@click.argument("file", type=_PATH)
@click.option("--dataset", help="Show only this data set.")
def show(file: Path, dataset: str | None) -> None:
    """Show every budget in FILE, how much of it is spent, and each charge.

    \b
    Example:
      dpregress ledger show budget.db --dataset claims
    """
    from dpregress import SQLiteLedger
    from dpregress.accounting.ledger import CHARGE_COLUMNS, charge_rows

    for name in [dataset] if dataset is not None else SQLiteLedger.datasets(file):
        opened = SQLiteLedger(file, name)
        print_table(opened.describe(), CHARGE_COLUMNS, charge_rows(opened.charges))

"""``dpregress ledger``."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from dpregress.cli.output import csv_of, print_table, say
from dpregress.errors import InvalidInput

_PATH = click.Path(path_type=Path)
_FORMAT = "dpregress.ledger/1"
_CSV_COLUMNS = (
    "dataset", "charged", "analyst", "purpose", "formula", "source", "output", "note", "event", "epsilon", "delta",
    "seeded", "software",
)  # fmt: skip


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
@click.option("--max-epsilon-per-fit", type=float, help="Refuse any fit with a larger epsilon, at the delta above.")
@click.option("--analyst", "analysts", multiple=True, help="Who may charge the budget; repeat it [default: anyone].")
@click.option("--require-unit", is_flag=True, help="Refuse any fit that does not name the unit.")
def new(
    file: Path,
    dataset: str,
    epsilon: float,
    delta: float,
    unit: str,
    neighbours: str,
    max_epsilon_per_fit: float | None,
    analysts: tuple[str, ...],
    require_unit: bool,
) -> None:
    """Open a budget for a data set in FILE, which is created if needed. Budget and policy can never be changed.

    \b
    Example:
      dpregress ledger new budget.db --dataset claims --epsilon 3 --delta 1e-6
      dpregress ledger new budget.db --dataset claims-of-persons --unit person_id --epsilon 3 --delta 1e-6 \\
          --max-epsilon-per-fit 1 --analyst ann --analyst ben --require-unit
    """
    from dpregress import ApproxDP, Policy, SQLiteLedger
    from dpregress.accounting import Relation

    relation = Relation.REPLACE_ONE if neighbours == "replace" else Relation.ADD_REMOVE
    policy = Policy(max_epsilon_per_fit, analysts, require_unit)
    opened = SQLiteLedger.create(file, dataset, ApproxDP(epsilon, delta), unit=unit, relation=relation, policy=policy)
    account = opened.account
    say(
        f"Opened {account.dataset!r} in {file}: epsilon = {epsilon:g}, delta = {delta:g}, "
        f"for {account.relation.value} neighbours, one {account.unit}."
    )
    if policy.describe():
        say(f"Policy: {policy.describe()}.")


@ledger.command("show")
@click.argument("file", type=_PATH)
@click.option("--dataset", help="Show only this data set.")
@click.option("--delta", type=float, help="State epsilon at this delta [default: that of the budget].")
@click.option("--if-spent", type=float, metavar="EPSILON", help="Say what one more fit of this epsilon would leave.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the charges as CSV.")
def show(
    file: Path, dataset: str | None, delta: float | None, if_spent: float | None, as_json: bool, as_csv: bool
) -> None:
    """Show every budget in FILE, what is spent and left of it, and each charge.

    \b
    Example:
      dpregress ledger show budget.db --dataset claims --if-spent 1
      dpregress ledger show budget.db --json
    """
    from dpregress import SQLiteLedger
    from dpregress.accounting.ledger import charge_table

    if as_json and as_csv:
        raise InvalidInput("--json and --csv are two formats: choose one")
    names = [dataset] if dataset is not None else SQLiteLedger.datasets(file)
    opened = [SQLiteLedger(file, name) for name in names]
    if as_json:
        records = [_record(each, delta, if_spent) for each in opened]
        click.echo(json.dumps({"format": _FORMAT, "datasets": records}, indent=2))
    elif as_csv:
        click.echo(_csv(opened), nl=False)
    else:
        # all are read before the first is printed, so that a refusal comes alone
        tables = [(each.describe(), *charge_table(each.charges, each.account.budget)) for each in opened]
        notes = [_standing(each, delta, if_spent) for each in opened]
        for table, lines in zip(tables, notes, strict=True):
            print_table(*table)
            for line in lines:
                say(line)


def _standing(opened, delta: float | None, if_spent: float | None) -> list[str]:  # type: ignore[no-untyped-def]
    """Lines about the policy, and about what is left where more is asked for."""
    from dpregress.accounting.remaining import describe_left
    from dpregress.accounting.wording import at_delta

    account, spent = opened.account, [charge.event for charge in opened.charges]
    lines = [f"Policy: {account.policy.describe()}."] if account.policy.describe() else []
    if delta is not None:
        lines.append(f"Left for one more fit: {describe_left(account.budget, spent, delta)}.")
    if if_spent is not None:
        after, at = _after(opened, spent, delta, if_spent)
        asked = at_delta(if_spent, at)
        left = "it would be refused" if after is None else f"{describe_left(account.budget, after, at)} would be left"
        lines.append(f"After one more fit of {asked}: {left}.")
    return lines


def _after(opened, spent, delta: float | None, if_spent: float):  # type: ignore[no-untyped-def]
    """All charges with one more fit of this epsilon, None where it is refused; and its delta."""
    from dpregress import ApproxDP
    from dpregress.accounting.adaptive import covers_adaptive
    from dpregress.accounting.remaining import fit_of

    budget = opened.account.budget
    if delta is None and not isinstance(budget, ApproxDP):
        raise InvalidInput("this budget has no delta: give --delta with --if-spent")
    at = budget.delta0 if delta is None else delta
    fit, largest = fit_of(if_spent, at, spent), opened.account.policy.largest(budget)
    allowed = covers_adaptive(budget, (*spent, fit)) and (largest is None or largest.covers(fit))
    return ([*spent, fit] if allowed else None), at


def _record(opened, delta: float | None, if_spent: float | None) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    """A budget with its charges, as plain values."""
    from dpregress import ApproxDP
    from dpregress.accounting.remaining import largest_charge

    account, charges = opened.account, opened.charges
    spent = [charge.event for charge in charges]
    at = account.budget.delta0 if delta is None and isinstance(account.budget, ApproxDP) else delta

    def left(events: Any) -> dict[str, Any]:
        most = largest_charge(account.budget, events)
        return {"charge": None if most is None else most.encode(), **_at(most, at)}

    record = {
        "dataset": account.dataset,
        "budget": account.budget.encode(),
        "relation": account.relation.value,
        "unit": account.unit,
        "policy": account.policy.encode(),
        "spent": _at(opened.spent, at),
        "left": left(spent),
        "charges": [
            {
                "charged": charge.charged,
                "event": charge.event.encode(),
                "note": charge.note,
                **asdict(charge.request),
                "software": charge.software,
                "seeded": charge.seeded,
            }
            for charge in charges
        ],
    }
    if if_spent is not None:
        after, used = _after(opened, spent, delta, if_spent)
        record["if_spent"] = {"epsilon": if_spent, "delta": used, "refused": after is None}
        record["if_spent"]["left"] = None if after is None else left(after)
    return record


def _at(event, delta: float | None) -> dict[str, float | None]:  # type: ignore[no-untyped-def]
    """The epsilon of an event, or of nothing, at a delta; null where there is none."""
    epsilon = math.inf if delta is None else 0.0 if event is None else event.epsilon(delta)
    return {"epsilon": epsilon if math.isfinite(epsilon) else None, "delta": delta}


def _csv(ledgers) -> str:  # type: ignore[no-untyped-def]
    """All charges, one a line."""
    import pyarrow as pa

    from dpregress import ApproxDP

    def line(each, charge) -> dict[str, Any]:  # type: ignore[no-untyped-def]
        budget = each.account.budget
        return {
            "dataset": each.account.dataset,
            "charged": charge.charged,
            **asdict(charge.request),
            "note": charge.note,
            "event": json.dumps(charge.event.encode()),
            **_at(charge.event, budget.delta0 if isinstance(budget, ApproxDP) else None),
            "seeded": charge.seeded,
            "software": charge.software,
        }

    rows = [line(each, charge) for each in ledgers for charge in each.charges]
    text, number = pa.string(), pa.float64()
    kinds = [(name, number if name in ("epsilon", "delta") else text) for name in _CSV_COLUMNS]
    kinds[_CSV_COLUMNS.index("seeded")] = ("seeded", pa.bool_())
    return csv_of(pa.Table.from_pylist(rows, schema=pa.schema(kinds)))

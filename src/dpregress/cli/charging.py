"""What commands that charge a ledger share: who charges it and what for, and dry runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from dpregress.cli.output import say
from dpregress.display import shown
from dpregress.errors import LedgerError

if TYPE_CHECKING:
    from dpregress.accounting import Ledger, PrivacyStatement, Rehearsed, SQLiteLedger

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_WHO = (
    click.option("--analyst", help="Your name, for the ledger; its policy may require it."),
    click.option("--purpose", help="What the results are for; recorded in the ledger."),
)
_OPTIONS = (
    click.option("--dataset", help="Data set whose budget in the ledger is charged."),
    *_WHO,
    click.option("--dry-run", is_flag=True, help="Check everything public and say what would be charged; then stop."),
)


def budget_options(of: str) -> Callable[[_Command], _Command]:
    """``--epsilon`` and ``--delta`` of a fit, a release or a diagnosis."""
    return _all(
        click.option("--epsilon", type=float, required=True, help=f"Privacy budget of the {of}."),
        click.option("--delta", type=float, required=True, help="Choose it below one over the number of people."),
    )


def record_options(command: _Command) -> _Command:
    """What commands that charge for records of a table share: ``--confirm-delta``, the ledger's, and the unit's."""
    return _all(
        click.option("--confirm-delta", is_flag=True, help="Allow a delta above one over the number of records."),
        charging_options("Ledger to charge; see `dpregress ledger new`."),
        click.option("--unit", metavar="COLUMN", help="Column of ids: each id is protected with all its rows."),
        click.option(
            "--max-rows-per-unit", type=int, metavar="K", help="With --unit: at most K rows of each id count."
        ),
    )(command)


def account_options(ledger_help: str) -> Callable[[_Command], _Command]:
    """``--ledger``, ``--dataset``, ``--analyst`` and ``--purpose`` of a command that has no dry run."""
    ledger = click.option("--ledger", "ledger_file", type=_PATH, help=ledger_help)
    return _all(ledger, click.option("--dataset", help="Its account."), *_WHO)


def _all(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


#: The seed of the noise.
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), help="Seed of the noise, for tests only: it ends all protection."
)


def charging_options(ledger_help: str) -> Callable[[_Command], _Command]:
    """``--ledger``, ``--dataset``, ``--analyst``, ``--purpose``, ``--dry-run``, and what a dry run prints."""

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def charging(*arguments: Any, **options: Any) -> None:
            from dpregress.accounting import Rehearsed

            try:
                command(*arguments, **options)
            except Rehearsed as stopped:
                _say_rehearsed(stopped)

        ledger = click.option("--ledger", "ledger_file", type=_PATH, help=ledger_help)
        return _all(ledger, *_OPTIONS)(cast(_Command, charging))

    return decorate


def open_ledger(
    path: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    *,
    source: str,
    out: Path,
    rehearsed: Ledger | None,
) -> Ledger | None:
    """The ledger of the options on behalf of who charges it; None without ``--ledger``.

    Parameters
    ----------
    path, dataset, analyst, purpose
        The options.
    source : str
        The private rows, in words.
    out : Path
    rehearsed : Ledger, optional
        For a dry run: what stands for the ledger where there is none.

    Raises
    ------
    LedgerError
    """
    from dpregress.accounting.names import note_of

    found: Ledger | None = _account_of(path, dataset)
    if found is None and (analyst is not None or purpose is not None):
        raise LedgerError("--analyst and --purpose go with --ledger: nothing else records them")
    found = rehearsed if found is None else found
    if found is None:
        return None
    found = found.on_behalf(
        analyst=analyst or "", purpose=purpose or "", source=note_of(source), output=note_of(shown(out))
    )
    return found if rehearsed is None else found.rehearsal()


def _account_of(path: Path | None, dataset: str | None) -> SQLiteLedger | None:
    """The account of ``--ledger`` and ``--dataset``; None without them.

    Raises
    ------
    LedgerError
        For one without the other, and an account that cannot be opened.
    """
    from dpregress.accounting import SQLiteLedger

    if (path is None) != (dataset is None):
        raise LedgerError("--ledger and --dataset go together: name the file and the data set's budget in it")
    return None if path is None or dataset is None else SQLiteLedger(path, dataset)


def say_spent(privacy: PrivacyStatement, *, what: str) -> None:
    """What was spent on these ``what``, such as fits, where it is recorded, and that a seed ends all protection."""
    from dpregress.reports import words

    say(f"Spent: {words.total(privacy)}.")
    if privacy.recorded is None:
        say(
            f"The spending is not recorded: without --ledger, no ledger keeps track of repeated {what} on the same "
            "people."
        )
    else:
        say(f"Recorded in {privacy.recorded}.")
    if privacy.seeded:
        say("CAUTION: the noise came from a seed. Anyone who knows the seed can subtract it: do not publish this.")


def _say_rehearsed(stopped: Rehearsed) -> None:
    from dpregress.accounting import Composed
    from dpregress.accounting.remaining import describe_left
    from dpregress.accounting.wording import describe, describe_spent

    charge, ledger = stopped.charge, stopped.ledger
    cost = f"{describe(stopped.asked)} ({describe(charge.event)})"
    say("Dry run: everything public was checked, no private value was used, and nothing was charged or written.")
    say(f"{charge.note}: {charge.request.formula}")
    if ledger.location is None:
        say(f"It would spend {cost}, recorded in no ledger.")
    else:
        account, spent = ledger.account, [each.event for each in (*ledger.charges, charge)]
        say(f"It would charge {cost} to {account.dataset!r} in {ledger.location}.")
        say(
            f"Of {describe(account.budget)}, {describe_spent(Composed.of(spent), account.budget)} would then be spent, "
            f"{describe_left(account.budget, spent)} left."
        )
    say(f"It would write {charge.request.output}.")

"""The ``dpregress`` command and its groups."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

import click

from dpregress import __version__
from dpregress.cli.check import check
from dpregress.cli.collect import collect
from dpregress.cli.datasets import datasets
from dpregress.cli.device import report
from dpregress.cli.diagnose import diagnose
from dpregress.cli.experiment import experiment
from dpregress.cli.fit import fit
from dpregress.cli.ledger import ledger
from dpregress.cli.marginals import marginals
from dpregress.cli.moments import combine_files, moments, regress
from dpregress.cli.plan import plan_study
from dpregress.cli.predict import predict
from dpregress.cli.public import public
from dpregress.cli.release import release, space
from dpregress.cli.schema import schema
from dpregress.cli.shares import SHARE_COMMANDS
from dpregress.cli.study import study
from dpregress.cli.vertical import vertical
from dpregress.display import plain, shown
from dpregress.errors import DPRegressError

#: Parameters of the library, where a refusal names them without a value, that are flags of the same name.
_PARAMETER = re.compile(r"\b(public|schema|classes|features|ledger|bins|columns|like|target)=(?=[\s,;:.)]|$)")
#: What the library says of parameters that have another name as flags, or none.
_IN_FLAGS = {
    "give public=, schema= or row_bound=": "give --public rows, or a --schema with bounds",
    "give the columns of the tables, public rows that have them, or a schema": "give --columns, --public or --schema",
    "like= fixes the columns and what is public about them: leave the other parameters out": (
        "--like fixes the columns and what is public about them: leave --columns, --public and --schema out"
    ),
    "name the response: target='cost'": "name the response: --target cost, or --formula 'cost ~ age'",
    "the formula names the columns: leave target and features out": (
        "--target and --features do not go with --formula, which names the columns: leave them out"
    ),
    "the formula determines the intercept: write 0 + in it, and leave fit_intercept=True": (
        "--no-intercept does not go with --formula: write 0 + in the formula, as in 'y ~ 0 + age'"
    ),
    "is among the features: leave it out": "is among the features: leave it out of --features",
    "max_rows_per_unit goes with unit:": "--max-rows-per-unit goes with --unit:",
    "unit goes with max_rows_per_unit:": "--unit goes with --max-rows-per-unit:",
    "or confirm this one with ApproxDP(.., confirm_delta=True)": "or confirm this one with --confirm-delta",
    "for records, or fit with unit=": "for records, or fit with --unit ",
    "give analyst=, as in ledger.on_behalf(analyst='NAME')": "give --analyst NAME",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpregress")
def cli() -> None:
    """Differentially private regression on CSV and Parquet tables.

    \b
    A first session:
      dpregress check claims.parquet          what would be replaced (for the curator only)
      dpregress ledger new budget.db --dataset claims --epsilon 3 --delta 1e-6
      dpregress fit claims.parquet --target cost --public pilot.csv \\
          --epsilon 1 --delta 1e-6 --ledger budget.db --dataset claims --out cost-model
      dpregress ledger show budget.db
    """


for command in (
    fit, predict, diagnose, plan_study, release, regress, moments, space, combine_files, public, schema, check, ledger,
    marginals, vertical, study, collect, report, experiment, datasets,
):  # fmt: skip
    cli.add_command(command)


for command in SHARE_COMMANDS:
    collect.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; every refusal is one line on standard error and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that lacks a letter shows an escape; nothing fails for it
            stream.reconfigure(errors="backslashreplace")
    try:
        cli.main(arguments, prog_name="dpregress", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as without:
        click.echo(without.ctx.get_help())
    except click.Abort:
        click.echo(f"error: interrupted{_charged(given)}", err=True)
        sys.exit(130)
    except click.ClickException as refusal:
        click.echo(_refusal(refusal.format_message(), given), err=True)
        sys.exit(2)
    except DPRegressError as refusal:
        click.echo(_refusal(in_flags(str(refusal)), given), err=True)
        sys.exit(2)
    except (OSError, UnicodeError) as failure:
        # of the terminal, a full disk or a path: nothing here knows a private cell
        click.echo(f"{_refusal(str(failure), given)}{_charged(given)}", err=True)
        sys.exit(2)


def _charged(arguments: Sequence[str]) -> str:
    """A reminder for the commands that charge budgets."""
    return (
        ""
        if arguments and arguments[0] in ("experiment", "datasets")
        else "; if a budget was charged, it stays charged"
    )


def in_flags(text: str) -> str:
    """A refusal of the library in the words of the command line: ``public=`` is ``--public`` there.

    Examples
    --------
    >>> in_flags("the rows need a public bound: give public=, schema= or row_bound=")
    'the rows need a public bound: give --public rows, or a --schema with bounds'
    """
    for words, flags in _IN_FLAGS.items():
        text = text.replace(words, flags)
    return _PARAMETER.sub(r"--\1", text)


def _one_line(text: str) -> str:
    return plain(" ".join(text.split()))


def _refusal(text: str, arguments: Sequence[str]) -> str:
    """A refusal in one line, in which no URL among the arguments shows its credentials."""
    for argument in arguments:
        value = argument.partition("=")[2] if argument.startswith("--") else argument
        for given in (value, str(Path(value))) if "/" in value else ():
            text = text.replace(given, shown(given))
    return f"error: {_one_line(text)}"

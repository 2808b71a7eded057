"""``dpregress plan``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from dpregress.cli.charging import budget_options
from dpregress.cli.families import FamilyChoice, response_families
from dpregress.cli.output import number, print_table, say
from dpregress.cli.places import taken
from dpregress.errors import InvalidInput

_PATH = click.Path(path_type=Path)


@click.command("plan")
@click.option("--n", "rows", type=int, required=True, help="Private rows that will be fitted.")
@click.option("--target", default="y", show_default=True, help="Response column.")
@click.option("--features", help="Feature columns, separated by commas [default: all others].")
@click.option("--public", "public_rows", type=_PATH, help="Public rows (CSV, Parquet).")
@click.option("--schema", "schema_file", type=_PATH, help="Bounds and levels of columns (TOML).")
@budget_options("fit")
@click.option(
    "--family", type=FamilyChoice(response_families), default="gaussian", show_default=True, help="As in fit."
)
@click.option("--response", metavar="MEAN,SD", help="Assumed mean and standard deviation of the target.")
@click.option("--explained", type=float, default=0.2, show_default=True, help="Assumed share of explained variance.")
@click.option("--trust", default="central", show_default=True, help="Trust models: central,local,vertical.")
@click.option("--effect", type=float, help="Size of a coefficient whose power is shown.")
@click.option("--width", type=float, help="Width of a 95% interval for which the rows and the epsilon are found.")
@click.option("--coefficient", help="The coefficient of --width.")
@click.option("--out", type=_PATH, help="Page to write (HTML).")
@click.option("--overwrite", is_flag=True, help="Replace an existing page.")
def plan_study(
    rows: int,
    target: str,
    features: str | None,
    public_rows: Path | None,
    schema_file: Path | None,
    epsilon: float,
    delta: float,
    family: str,
    response: str | None,
    explained: float,
    trust: str,
    effect: float | None,
    width: float | None,
    coefficient: str | None,
    out: Path | None,
    overwrite: bool,
) -> None:
    """Tell which standard errors a study can expect.

    Public rows or a schema are all it takes. Nothing private is read and no budget is charged. With --effect the
    power of a test of a coefficient of that size is shown, and with --width the smallest number of rows and the
    smallest epsilon for an interval of that width.

    \b
    Example:
      dpregress plan --n 20000 --target visits --public pilot.csv --epsilon 1 --delta 1e-6 --effect 0.1
    """
    from dpregress import ApproxDP
    from dpregress.cli.tables import load_schema, split_names
    from dpregress.experiments import plan
    from dpregress.experiments.study_plan import check_effect, check_width
    from dpregress.models import MULTINOMIAL

    if (width is None) != (coefficient is None):
        raise InvalidInput("--width and --coefficient go together: say whose interval")
    if effect is not None:
        check_effect(effect)
    if width is not None:
        check_width(width)
    if family == MULTINOMIAL:
        raise InvalidInput("--family multinomial is not planned: plan two of the classes as binomial")
    models = [each.strip() for each in trust.split(",")]
    with ExitStack() as stack:
        place = None if out is None else stack.enter_context(taken(out, overwrite=overwrite))
        found = plan(
            rows, ApproxDP(epsilon, delta), public=public_rows, schema=load_schema(schema_file), target=target,
            features=split_names(features), family=family, response=_pair(response),
            explained=explained, trust=models,
        )  # fmt: skip
        header, table = _table(found, models, effect)
        said = [] if width is None or coefficient is None else _needs(found, models, coefficient, width)
        if place is not None:
            place.write(found.picture(f"Plan of {target}", said, [header, *table]))
    print_table(f"Expected of {rows:,} rows at epsilon {epsilon:g}, by {found.basis}", header, table)
    for line in said:
        say(line)
    if out is not None:
        say(f"Wrote {out}.")


def _table(found, models: list[str], effect: float | None) -> tuple[list[str], list[list[str]]]:  # type: ignore[no-untyped-def]  # imported lazily
    """A header, and a row for each coefficient of each trust model."""
    header = ["trust", "coefficient", "std. error", "sampling", "privacy", *([] if effect is None else ["power"])]
    table = []
    for model in models:
        powers = [() for _ in found.names] if effect is None else found.power(effect, trust=model)[:, None]
        pairs = zip(found.rows_of(model), powers, strict=True)
        table += [[model, name, *(number(float(value)) for value in (*each, *power))] for (name, *each), power in pairs]
    return header, table


def _needs(found, models: list[str], coefficient: str, width: float) -> list[str]:  # type: ignore[no-untyped-def]
    """What an interval of this width needs under each trust model."""
    lines = []
    for model in models:
        needed = found.rows_for(width, coefficient, trust=model)
        budget = found.epsilon_for(width, coefficient, trust=model)
        lines.append(
            f"{model}: an interval of {coefficient} of width {width:g} needs {needed:,} rows at epsilon "
            f"{found.privacy.epsilon0:g}, or epsilon {budget:.3g} with {found.n:,} rows."
        )
    return lines


def _pair(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        mean, deviation = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidInput(
            "--response takes two numbers, the mean and the standard deviation, such as 3.5,2"
        ) from error
    return mean, deviation

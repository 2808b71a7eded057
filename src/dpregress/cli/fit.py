"""``dpregress fit``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dpregress.cli.charging import budget_options, open_ledger, record_options, say_spent, seed_option
from dpregress.cli.families import FamilyChoice, covariance_types, fitted_families, linear_recipes
from dpregress.cli.output import FIT_FILES, print_diagnosis, print_lines, say
from dpregress.cli.places import taken
from dpregress.cli.statements import DIALECTS, print_statement
from dpregress.display import shown
from dpregress.errors import InvalidInput, SeededNoiseWarning, SelectedRowsWarning

_SELECTED = (
    "Caution: the query selects rows ({}), and their exact number is published. If the selection depends on private "
    "cells, keep every row and leave the response of the others empty: CASE WHEN age >= 30 THEN visits END AS visits."
)
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("data", nargs=-1)
@click.option(
    "--sql", "database", metavar="URL", help="Read a query in place of DATA: duckdb://, sqlite://, postgresql://."
)
@click.option("--query", help="The SELECT statement for --sql.")
@click.option("--target", help="Response column.")
@click.option("--features", help="Feature columns, separated by commas [default: all others].")
@click.option("--formula", help='Model formula in place of --target and --features, such as "visits ~ age + C(plan)".')
@click.option("--public", "public_rows", type=_PATH, help="Public rows (CSV, Parquet) or moments (JSON).")
@click.option("--ignore-public-labels", is_flag=True, help="Do not use the target column of PUBLIC.")
@click.option("--schema", "schema_file", type=_PATH, help="Bounds and levels of columns (TOML).")
@budget_options("fit")
@click.option(
    "--family", type=FamilyChoice(fitted_families), default="gaussian", show_default=True,
    help="Family of the response: a number, one of two classes, one of several, a count, a positive amount.",
)  # fmt: skip
@click.option("--classes", help="The classes of the target, as NO,YES [default: the schema's, else 0,1 or booleans].")
@click.option("--link", help="Link function, such as identity or probit [default: the family's own].")
@click.option("--exposure", metavar="COLUMN", help="With a log link: the mean response is proportional to this.")
@click.option("--weights", metavar="COLUMN", help="Survey weights, whose upper bound the schema declares.")
@click.option("--time", metavar="COLUMN", help="Of --family survival: the time of the event or of censoring.")
@click.option("--cuts", help="Of --family survival: ends of the pieces of constant hazard, as 30,90,365.")
@click.option("--alpha", type=float, default=0.0, show_default=True, help="Ridge penalty, as in scikit-learn.")
@click.option("--no-intercept", is_flag=True, help="Fit through the origin.")
@click.option(
    "--recipe", type=FamilyChoice(linear_recipes), default="residual", show_default=True,
    help="How a linear model is fitted.",
)  # fmt: skip
@click.option(
    "--cov-type", type=FamilyChoice(covariance_types), default="robust", show_default=True,
    help="Sampling covariance: released (1% to 6% of the budget), or by the model (free).",
)  # fmt: skip
@record_options
@click.option("--diagnose", type=float, default=0.0, metavar="SHARE", help="Share of the budget for a diagnosis: 0.02.")
@click.option(
    "--engine",
    metavar="ENGINE",
    help="dask (local workers), dask://HOST:PORT, or push-down (the database) [default: threads].",
)
@click.option(
    "--print-sql", "dialect", type=click.Choice(DIALECTS), help="Print the first statement of --engine push-down; stop."
)
@click.option("--out", type=_PATH, default=Path("dpregress-out"), show_default=True, help="Folder for the results.")
@click.option("--overwrite", is_flag=True, help="Replace existing results.")
@seed_option
def fit(
    data: tuple[str, ...],
    database: str | None,
    query: str | None,
    target: str | None,
    features: str | None,
    formula: str | None,
    public_rows: Path | None,
    ignore_public_labels: bool,
    schema_file: Path | None,
    epsilon: float,
    delta: float,
    family: str,
    classes: str | None,
    link: str | None,
    exposure: str | None,
    weights: str | None,
    time: str | None,
    cuts: str | None,
    alpha: float,
    no_intercept: bool,
    recipe: str,
    cov_type: str,
    confirm_delta: bool,
    ledger_file: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    dry_run: bool,
    unit: str | None,
    max_rows_per_unit: int | None,
    diagnose: float,
    engine: str | None,
    dialect: str | None,
    out: Path,
    overwrite: bool,
    seed: int | None,
) -> None:
    """Fit a private regression to DATA.

    It is linear, logistic (two or more classes), Poisson, Gamma or a survival model.

    DATA are CSV or Parquet files, a folder of them, patterns such as 'part-*.parquet', or URLs. With --sql a query
    takes their place. Rows are streamed, so memory does not grow with the size of DATA.

    PUBLIC holds rows that are already public, with the same columns: they give the scales of the columns. If
    PUBLIC has the target column, its labels scale the response too. Everything public is checked first. Then the
    ledger is charged, and only then is anything computed from private cells. The command writes model.json,
    privacy.json and report.html.

    A private cell that is missing, not finite or not a number is replaced by the public mean of its column, or without
    public rows by the middle of its bounds. A row without a usable response is ignored. Neither is ever reported.

    \b
    Examples:
      dpregress fit visits.csv --target visits --public pilot.csv --epsilon 1 --delta 1e-6
      dpregress fit visits.csv --target visits --public pilot.csv --epsilon 1 --delta 1e-6 \\
          --unit person_id --max-rows-per-unit 4
      dpregress fit claims.csv --target claims --family poisson --exposure years --schema claims.toml \\
          --epsilon 1 --delta 1e-6
      dpregress fit visits.csv --formula "visits ~ age + C(smoker) + age:smoker" --schema visits.toml \\
          --epsilon 1 --delta 1e-6
      dpregress fit visits.csv --target plan --family multinomial --classes free,basic,full \\
          --public pilot.csv --epsilon 1 --delta 1e-6
      dpregress fit --sql duckdb:///clinic.db --query "SELECT age, visits FROM people" --target visits \\
          --public pilot.csv --epsilon 1 --delta 1e-6
    """
    from dpregress import ApproxDP, MemoryLedger
    from dpregress.cli.tables import declared_response, load_schema, split_classes, split_names
    from dpregress.inputs.described import described_table
    from dpregress.inputs.formula import formula_moments, formula_source, open_public
    from dpregress.inputs.public import check_apart, moments_of
    from dpregress.inputs.tables import feature_columns
    from dpregress.rows import FormulaEncoder
    from dpregress.rows.sources import reader_of

    if target is None and formula is None:
        raise InvalidInput("name the response: --target visits, or --formula 'visits ~ age + C(plan)'")
    budget = ApproxDP(epsilon, delta, confirm_delta=confirm_delta)
    schema = load_schema(schema_file)
    source = source_of(data, database, query)
    check_apart(source, public_rows)
    rows, known = reader_of(source), open_public(public_rows)
    model = _model(
        family, link, split_classes(family, classes, declared_response(target, formula, schema)), recipe, alpha
    )
    exposure = _survival(model, time, cuts, exposure, no_intercept)
    columns = split_names(features)
    public, left_out = None, 0
    if formula is not None:
        encoder = FormulaEncoder.of(formula, schema, model.target_classes, exposure)
        formula_source(rows, None, encoder, unit, schema, weights)  # refuses what is not there before any is read
        if known is not None:
            public, left_out = formula_moments(known, encoder, schema, not ignore_public_labels)
    elif target is not None:
        columns = feature_columns(rows, target, columns, unit, exposure, weights, schema)
        if known is not None:
            labels = None if ignore_public_labels else target
            public, left_out = moments_of(known, columns, labels, schema, model.target_classes, exposure)
    uncharged = MemoryLedger(budget, unit=unit or "record")
    ledger = open_ledger(
        ledger_file, dataset, analyst, purpose, source=described_table(source), out=out,
        rehearsed=uncharged if dry_run else None,
    )  # fmt: skip
    model.set_params(
        privacy=budget, public=public, schema=schema, formula=formula, cov_type=cov_type, random_state=seed,
        ledger=ledger if dialect is None else uncharged,
    )  # fmt: skip
    extras = {"time" if time is not None else "exposure": exposure, "weights": weights, "diagnose": diagnose}
    capped = {"unit": unit, "max_rows_per_unit": max_rows_per_unit}
    if dialect is not None:
        print_statement(model, rows, (target, columns), (dialect, query or ""), **extras, **capped)
        return
    with taken(out, FIT_FILES, overwrite=overwrite) as place, in_own_words(source):
        model.fit_table(rows, target, columns, engine, **extras, **capped)
        place.write(*_texts(model, shown(data[0]).rpartition("/")[2] if data else "a query"))
    _print(model, left_out, out)


@contextmanager
def in_own_words(source: Any) -> Iterator[None]:
    """What the fit would warn of is said by this command: of selected rows here, of a seed with the results."""
    from dpregress import SQLQuery

    if isinstance(source, SQLQuery) and source.selects:
        say(_SELECTED.format(source.selects))
    with warnings.catch_warnings():
        for said in SeededNoiseWarning, SelectedRowsWarning:
            warnings.simplefilter("ignore", said)
        yield


def source_of(data: tuple[str, ...], database: str | None, query: str | None):  # type: ignore[no-untyped-def]
    """What ``fit_table`` takes: the files, or the query."""
    from dpregress import SQLQuery
    from dpregress.rows.readers.locations import paths_of

    if (database is None) != (query is None):
        raise InvalidInput("--sql and --query go together: the URL of a database and a SELECT statement")
    if (database is None) == (not data):
        raise InvalidInput("give DATA (files or patterns), or --sql with --query; not both")
    if database is not None and query is not None:
        return SQLQuery(database, query)
    paths_of(data)  # refuses what is not there
    return data[0] if len(data) == 1 else data


def _model(family: str, link: str | None, classes: tuple[str, ...] | None, recipe: str, alpha: float):  # type: ignore[no-untyped-def]  # imported lazily
    """The estimator of the family with those of its parameters that are options here; others are refused."""
    from dpregress import DPLinearRegression, DPRidge
    from dpregress.estimators.families import estimator_of

    kind: type = estimator_of(family, link) if family != "survival" else _survival_estimator(link)
    kind = DPLinearRegression if kind is DPRidge and alpha == 0 else kind
    offered: dict[str, object] = {"alpha": alpha, "recipe": recipe, "classes": classes, "family": family, "link": link}
    parameters = kind().get_params()
    if recipe != "residual" and "recipe" not in parameters:
        mend = "--link identity" if family == "gaussian" else "--family gaussian"
        raise InvalidInput(f"--recipe {recipe} goes with {mend}")
    if classes is not None and "classes" not in parameters:
        raise InvalidInput(f"--classes goes with --link logit: for {link}, code the target as 0 and 1")
    return kind(**{name: value for name, value in offered.items() if name in parameters})


def _survival_estimator(link: str | None):  # type: ignore[no-untyped-def]  # imported lazily
    from dpregress import DPSurvival

    if link not in (None, "log"):
        raise InvalidInput("--family survival has the link log: leave --link out")
    return DPSurvival


def _survival(model, time: str | None, cuts: str | None, exposure: str | None, no_intercept: bool) -> str | None:  # type: ignore[no-untyped-def]
    """Set the pieces of a survival model; the column that takes the place of the exposure."""
    if "cuts" not in model.get_params():
        if time is not None or cuts is not None:
            raise InvalidInput("--time and --cuts go with --family survival")
        model.set_params(fit_intercept=not no_intercept)
        return exposure
    if no_intercept:
        raise InvalidInput("--no-intercept does not go with --family survival, whose intercept is the hazard")
    if time is None or cuts is None or exposure is not None:
        raise InvalidInput("--family survival takes --time COLUMN and --cuts 30,90,365, and no --exposure")
    try:
        model.set_params(cuts=tuple(float(cut) for cut in cuts.split(",")))
    except ValueError as error:
        raise InvalidInput(f"--cuts takes numbers such as 30,90,365, not {shown(cuts)}") from error
    return time


def _texts(model, table: str) -> tuple[str, ...]:  # type: ignore[no-untyped-def]
    from dpregress.estimators.saving import fit_texts

    return fit_texts(model, f"{model.coefficients_.target} in {table}")


def _print(model, left_out: int, out: Path) -> None:  # type: ignore[no-untyped-def]
    from dpregress import ApproxDP
    from dpregress.inputs.public import left_out_note

    found = model.coefficients_
    print_lines(str(model.summary()))
    if model.diagnosis_ is not None:
        print_diagnosis(model.diagnosis_)
    say_spent(model.privacy_, what="fits")
    if isinstance(model.privacy, ApproxDP) and model.privacy.delta0 * found.n > 1:
        say(f"Caution: the confirmed delta lies above one over the number of records, {1 / found.n:.1g}.")
    if left_out:
        say(f"{left_out_note(left_out)}.")
    say(f"Wrote {', '.join(FIT_FILES)} in {out}.")

"""``dpregress marginals``: release pair tables once; regress, sample and report from the file."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from dpregress.cli.charging import budget_options, charging_options, open_ledger, say_spent, seed_option
from dpregress.cli.families import FamilyChoice, table_families
from dpregress.cli.output import FIT_FILES, csv_of, print_lines, say
from dpregress.cli.places import taken
from dpregress.errors import InvalidInput, SeededNoiseWarning

#: Synthetic rows are made in memory, a few bytes for each cell.
_MOST_CELLS = 10**8
#: The recipe that serves a use best (docs/methods/marginals.md).
_RECIPES = {"regressions": "one-shot", "rows": "residuals"}
_PATH = click.Path(path_type=Path)
_OUT = click.option("--out", "-o", type=_PATH, required=True, help="The file to write.")
_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace an existing file.")


@click.group()
def marginals() -> None:
    """Release pair tables once, then regress any column on others.

    \b
    Example:
      dpregress marginals release census.csv --schema census.toml --epsilon 1 --delta 1e-6 --out census.json
      dpregress marginals fit census.json --target income --family binomial
      dpregress marginals synth census.json --rows 10000 --out rows.csv
      dpregress marginals report census.json --out census.html
    """


@marginals.command("release")
@click.argument("data", type=_PATH)
@click.option("--schema", "schema_file", type=_PATH, required=True, help="Levels and bounds of columns (TOML).")
@click.option("--columns", help="Columns to release, separated by commas [default: all of the schema].")
@budget_options("release")
@click.option(
    "--use", type=click.Choice(["regressions", "rows"]), default="regressions", show_default=True,
    help="What the release is for; it chooses the recipe: one-shot for regressions, residuals for synthetic rows.",
)  # fmt: skip
@click.option(
    "--recipe", type=click.Choice(["one-shot", "aim", "residuals", "gaussian"]),
    help="The library's own, AIM, ResidualPlanner, or equal noise on every block [default: by --use].",
)  # fmt: skip
@click.option("--target", help="Column whose pairs are measured more accurately.")
@click.option("--bins", type=int, default=32, show_default=True, help="Number of equal bins of a number's range.")
@click.option("--confirm-delta", is_flag=True, help="Allow a delta above 1e-5.")
@charging_options("Ledger to charge, opened with --neighbours add-remove.")
@_OUT
@_OVERWRITE
@seed_option
def marginals_release(
    data: Path,
    schema_file: Path,
    columns: str | None,
    epsilon: float,
    delta: float,
    use: str,
    recipe: str | None,
    target: str | None,
    bins: int,
    confirm_delta: bool,
    ledger_file: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    dry_run: bool,
    out: Path,
    overwrite: bool,
    seed: int | None,
) -> None:
    """Release the pair tables of DATA (CSV or Parquet) to a file. Whatever is computed from it later is free.

    Every column needs public levels (ordered = true where they are steps of a number) or bounds. A missing or
    undeclared cell counts as the schema says (missing, fill), else as the first level of a categorical column or
    as the middle of a number. A number outside the bounds counts as the nearest bin. No such cell is ever reported.
    Bounds may be wide: histograms that are part of the release narrow them to where the values are (but for aim).
    Neighbouring tables differ by the addition or removal of one record.

    \b
    Example:
      dpregress marginals release visits.csv --schema visits.toml --epsilon 1 --delta 1e-6 --out visits.json
    """
    from dpregress import ApproxDP, MemoryLedger, __version__
    from dpregress.accounting import Relation
    from dpregress.cli.tables import load_schema, split_names
    from dpregress.estimators.marginals_release import release_marginals
    from dpregress.inputs.described import described_table
    from dpregress.public.coding import domain_of
    from dpregress.releases.marginals_files import marginals_text

    schema = load_schema(schema_file)
    assert schema is not None
    domain = domain_of(schema, split_names(columns), bins=bins)
    budget = ApproxDP(epsilon, delta, confirm_delta=confirm_delta)
    unrecorded = MemoryLedger(budget, relation=Relation.ADD_REMOVE) if dry_run else None
    ledger = open_ledger(
        ledger_file, dataset, analyst, purpose, source=described_table(data), out=out, rehearsed=unrecorded
    )
    with taken(out, overwrite=overwrite) as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)  # said in words below
        released = release_marginals(
            data,
            domain,
            privacy=budget,
            recipe=recipe or _RECIPES[use],
            target=target,
            ledger=ledger,
            random_state=seed,
        )
        place.write(marginals_text(released.marginals, released.privacy, software=f"dpregress {__version__}"))
    say(f"About {released.marginals.count:,.0f} records, {len(domain.pairs)} pairs of columns.")
    say_spent(released.privacy, what="releases")
    say(f"Wrote {out}.")


@marginals.command("fit")
@click.argument("file", type=_PATH)
@click.option("--target", help="Response column.")
@click.option("--features", help="Feature columns, separated by commas [default: all others].")
@click.option("--formula", help='In place of --target and --features, such as "visits ~ age + smoker".')
@click.option(
    "--family", type=FamilyChoice(table_families), default="gaussian", show_default=True,
    help="Family of the response: a number, one of two classes, one of several, a count.",
)  # fmt: skip
@click.option("--out", "-o", type=_PATH, help="Folder for model.json, privacy.json and report.html.")
@_OVERWRITE
def marginals_fit(
    file: Path,
    target: str | None,
    features: str | None,
    formula: str | None,
    family: str,
    out: Path | None,
    overwrite: bool,
) -> None:
    """Regress a column of a released FILE on others. This costs nothing more.

    A categorical column enters as indicators of all its levels but the first. A number enters in its own units, or by
    the positions of its levels, 0, 1, .., if these are not evenly spaced.

    \b
    Example:
      dpregress marginals fit visits.json --formula "visits ~ age + smoker" --out visits-model
    """
    from dpregress import MarginalsRegression
    from dpregress.cli.tables import split_names
    from dpregress.estimators.saving import fit_texts
    from dpregress.inputs.coded import coded_formula
    from dpregress.releases.marginals_files import load_marginals

    columns = split_names(features)
    if (target is None) == (formula is None) or (formula is not None and columns is not None):
        raise InvalidInput("give --target with or without --features, or --formula")
    if formula is not None:
        target, columns = coded_formula(formula, load_marginals(file)[0].domain)
    assert target is not None
    model = MarginalsRegression.from_release(file, target, columns, family=family)
    if out is not None:
        with taken(out, FIT_FILES, overwrite=overwrite) as place:
            place.write(*fit_texts(model, f"{target} in {file.name}"))
    print_lines(str(model.summary()))
    say(f"Computed from the release ({model.privacy_.describe()}): nothing more was spent.")
    if out is not None:
        say(f"Wrote {', '.join(FIT_FILES)} in {out}.")


@marginals.command("synth")
@click.argument("file", type=_PATH)
@click.option("--rows", type=click.IntRange(min=1), required=True, help="Number of rows.")
@_OUT
@_OVERWRITE
@click.option("--seed", type=click.IntRange(min=0), help="Seed, to draw the same rows again; sampling spends nothing.")
def marginals_synth(file: Path, rows: int, out: Path, overwrite: bool, seed: int | None) -> None:
    """Sample synthetic rows from a released FILE, as CSV. This costs nothing more.

    \b
    Example:
      dpregress marginals synth visits.json --rows 1000 --out synthetic.csv
    """
    from dpregress.mechanisms import sampling_generator
    from dpregress.releases.marginals_files import load_marginals
    from dpregress.rows.codes import decoded
    from dpregress.rows.memory import check_sample_fits

    if out.suffix.lower() in (".parquet", ".pq"):
        raise InvalidInput(f"synthetic rows are written as CSV: name the file {out.with_suffix('.csv')}")
    released, _ = load_marginals(file)
    columns = released.domain.attributes
    longest = sum(max(len(level.encode()) for level in column.levels) + 1 for column in columns)
    check_sample_fits(rows, len(columns), longest)
    with taken(out, overwrite=overwrite) as place:
        codes = released.mixture.sample(rows, sampling_generator(seed))
        place.write(csv_of(decoded(released.domain, codes)))
    if sum(column.numeric for column in columns) > 1 and released.moments_only:
        say("Pairs of numbers were released as moments, not as tables: --use rows gives rows closer to the data.")
    say(f"Wrote {rows:,} synthetic rows to {out}.")


@marginals.command("report")
@click.argument("file", type=_PATH)
@_OUT
@_OVERWRITE
def marginals_report(file: Path, out: Path, overwrite: bool) -> None:
    """Write an HTML page about a released FILE: a bar chart of each column, heat maps of the strongest pairs.

    \b
    Example:
      dpregress marginals report visits.json --out visits.html
    """
    from dpregress import __version__
    from dpregress.releases.marginals_files import load_marginals
    from dpregress.reports.marginals import marginals_page

    released, privacy = load_marginals(file)
    with taken(out, overwrite=overwrite) as place:
        place.write(marginals_page(file.name, released, privacy, software=f"dpregress {__version__}"))
    say(f"Wrote {out}.")

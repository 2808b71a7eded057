"""``dpregress experiment``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpregress.cli.output import number, print_table, say
from dpregress.cli.places import taken
from dpregress.display import shown
from dpregress.errors import DPRegressError, InvalidInput

if TYPE_CHECKING:
    from dpregress.experiments.base import Experiment
    from dpregress.experiments.runner import RunSize
    from dpregress.reports import Fitted

_PATH = click.Path(path_type=Path)
_OUT = Path("experiments-out")


@click.group()
def experiment() -> None:
    """Run a demonstration, or the figures and tables of the papers.

    \b
    Examples:
      dpregress experiment rand-health --out demo-out
      dpregress experiment list
      dpregress experiment run cao-2 --quick
    """


@experiment.command("list")
def list_experiments() -> None:
    """List the figures and tables of the papers that can be run.

    A data set in brackets is not here: see `dpregress datasets list`.

    \b
    Example:
      dpregress experiment list
    """
    from dpregress.experiments.catalogue import EXPERIMENTS

    papers: dict[str, list[list[str]]] = {}
    for each in EXPERIMENTS.values():
        row = [each.name, f"{each.figure}: {each.title}", ", ".join(_needed(each)) or "-", f"{each.repeats:,}"]
        papers.setdefault(each.paper, []).append(row)
    for paper, rows in papers.items():
        print_table(paper, ["name", "what", "needs", "repeats"], rows, text=3)


def _needed(experiment: Experiment) -> list[str]:
    """The data sets of an experiment, those that are not here in brackets, and its optional package."""
    from dpregress.datasets import has_table

    names = dict.fromkeys(experiment.table(setting) for setting in experiment.settings)
    tables = [name if has_table(name) else f"({name})" for name in names if name]
    return [*tables, *([experiment.package] if experiment.package else [])]


@experiment.command("run")
@click.argument("name")
@click.option("--quick", is_flag=True, help="Fewer points and repeats: under a minute each on two cores.")
@click.option("--repeats", type=click.IntRange(min=1), help="Repeats in place of those of the paper.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Of rows and noise.")
@click.option("--out", type=_PATH, default=_OUT, show_default=True, help="Folder of rows, summaries and plots.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; default: one for each processor.")
def run_experiments(name: str, quick: bool, repeats: int | None, seed: int, out: Path, workers: int | None) -> None:
    """Run a figure or table of a paper, or all of them.

    NAME is one of `dpregress experiment list`, or all. Its cost is predicted before it starts. A run that was stopped
    goes on where it was: what the file in --out holds is not run again.

    \b
    Example:
      dpregress experiment run wu-3 --quick --repeats 2
    """
    from dpregress.experiments.catalogue import EXPERIMENTS, experiment_named
    from dpregress.experiments.runner import RunSize

    for place in (out, *out.parents):
        if place.is_file():
            raise InvalidInput(f"--out is a folder; {shown(place)} is a file: name a folder")
    size = RunSize(quick, repeats, seed, workers or os.cpu_count() or 1)
    if name != "all":
        _run(experiment_named(name), out, size)
        return
    for each in EXPERIMENTS.values():
        try:
            _run(each, out, size)
        except DPRegressError as refusal:
            say(f"left out: {refusal}")


def _run(experiment: Experiment, out: Path, size: RunSize) -> None:
    from dpregress.datasets import keep
    from dpregress.experiments.plots import draw
    from dpregress.experiments.runner import run_experiment

    summary = run_experiment(experiment, out, size, say)
    text = summary.to_json() + "\n"
    keep(out / f"{experiment.name}.json", lambda part: part.write_text(text, encoding="utf-8"))
    keep(out / f"{experiment.name}.png", lambda part: draw(experiment, summary, part))
    for claim in experiment.claims:
        found = claim.judge(summary)
        say(f"  {found.verdict}: {claim.text} {found.seen}")
    say(f"Wrote {experiment.name}.parquet, .json and .png in {out}.")


@experiment.command("page")
@click.option("--runs", type=_PATH, default=_OUT, show_default=True, help="Folder of the summaries of runs.")
@click.option("--out", type=_PATH, required=True, help="The Markdown file to write.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def write_page(runs: Path, out: Path, overwrite: bool) -> None:
    """Write a page that compares the claims of the papers with runs.

    \b
    Example:
      dpregress experiment page --runs experiments-out --out reproduction.md
    """
    from dpregress.experiments.page import reproduction_page
    from dpregress.experiments.summaries import read_summaries

    text = reproduction_page(read_summaries(runs))
    with taken(out, overwrite=overwrite) as place:
        place.write(text)
    say(f"Wrote {out}.")


@experiment.command("rand-health")
@click.option(
    "--out", type=_PATH, default=Path("demo-out"), show_default=True, help="Folder for the models and the report."
)
@click.option("--overwrite", is_flag=True, help="Replace existing files.")
def rand_health(out: Path, overwrite: bool) -> None:
    """Doctor visits in the RAND Health Insurance Experiment: linear, logistic and Poisson.

    Each model spends epsilon 1 at delta 1e-6. The output shows the private fits beside the non-private ones,
    which a real publication must never do.

    \b
    Example:
      dpregress experiment rand-health --out demo-out
    """
    from dpregress import __version__
    from dpregress.accounting import compose_statements
    from dpregress.estimators.saving import model_documents
    from dpregress.experiments import rand_health as demo
    from dpregress.reports import fit_page, words

    files = [*(model.file for model in demo.MODELS), "report.html"]
    software = f"dpregress {__version__}"
    with taken(out, files, overwrite=overwrite) as place:
        models = demo.run()
        fits = [model.fitted for model in models]
        page = fit_page("Doctor visits, privately", fits, software=software, notes=demo.NOTES)
        place.write(*(model_documents(model.estimator)[0] for model in models), page)
    for note in (*demo.NOTES, ""):
        say(note)
    for fit in fits:
        _print_fit(fit)

    one, every = fits[0].privacy, compose_statements([fit.privacy for fit in fits])
    rows = [[str(k), number(mu), number(epsilon)] for k, mu, epsilon in words.group_rows(one)]
    print_table("Guarantee of one model for a person with k records", ["k", "mu", "epsilon at delta 1e-06"], rows)
    say(f"Spent by each model: {words.total(one)}.")
    say(f"Spent by all {len(fits)} together: {words.total(every)}.")
    say("The spending is recorded in no file, and the non-private columns are for this demonstration only.")

    say(f"Wrote {', '.join(files)} in {out}.")


def _print_fit(fit: Fitted) -> None:
    from dpregress.releases import Coefficients

    found, other = fit.coefficients, fit.comparison
    assert other is not None
    assert isinstance(found, Coefficients)
    rows = [["(intercept)", number(found.intercept), "", number(other.intercept)]]
    for name, private, error, plain in zip(found.features, found.coef, found.standard_error, other.coef, strict=True):
        rows.append([name, number(private), number(error), number(plain)])
    print_table(f"{fit.title}: {found.n:,} private records", ["", "private", "std. error", "non-private"], rows)
    rows = [[name, number(error), number(mean)] for name, error, mean in other.errors]
    print_table(f"Held-out rows; their true mean is {number(other.truth)}", ["", other.loss, "mean prediction"], rows)

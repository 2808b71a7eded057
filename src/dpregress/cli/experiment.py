"""``dpregress experiment``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpregress.cli.output import number, print_table, say
from dpregress.cli.places import taken

if TYPE_CHECKING:
    from dpregress.reports import Fitted

_PATH = click.Path(path_type=Path)


@click.group()
def experiment() -> None:
    """Run a demonstration or an experiment on data that come with packages.

    \b
    Example:
      dpregress experiment rand-health --out demo-out
    """


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

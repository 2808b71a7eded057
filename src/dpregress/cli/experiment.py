"""``dpregress experiment``."""

from __future__ import annotations

from pathlib import Path

import click

_PATH = click.Path(path_type=Path)


@click.group()
def experiment() -> None:
    """Run a demonstration or an experiment on data that packages bundle.

    \b
    Example:
      dpregress experiment rand-health --out demo-out
    """


@experiment.command("rand-health")
@click.option("--out", type=_PATH, default=Path("demo-out"), show_default=True, help="Folder for the report.")
@click.option("--overwrite", is_flag=True, help="Replace a report that is there.")
def rand_health(out: Path, overwrite: bool) -> None:
    """Doctor visits in the RAND Health Insurance Experiment, at epsilon 1, delta 1e-6.

    Shows the private fit beside the non-private one, which a real publication never would.

    \b
    Example:
      dpregress experiment rand-health --out demo-out
    """
    from dpregress import __version__
    from dpregress.cli.output import check_out, number, print_table, progress_bar, write_all
    from dpregress.experiments import rand_health as demo
    from dpregress.releases.files import model_text
    from dpregress.reports import fit_page, words

    check_out(out, ["model.json", "report.html"], overwrite=overwrite)
    with progress_bar("reading private rows") as progress:
        shown = demo.run(progress)
    found, other = shown.coefficients, shown.comparison
    click.echo("\n".join(demo.NOTES) + "\n")

    rows = [["(intercept)", number(found.intercept), "", number(other.intercept)]]
    for name, private, error, plain in zip(found.features, found.coef, found.standard_error, other.coef, strict=True):
        rows.append([name, number(private), number(error), number(plain)])
    title = f"Doctor visits a year, {found.n:,} private records"
    print_table(title, ["", "private", "std. error", "non-private"], rows)

    header = ["held-out rows", "mean squared error", "mean prediction"]
    rows = [[name, number(error), number(mean)] for name, error, mean in other.errors]
    print_table(f"Prediction; the true mean is {number(other.truth)}", header, rows)

    rows = [[str(k), number(mu), number(epsilon)] for k, mu, epsilon in words.group_rows(shown.privacy)]
    print_table("What it means for a person with k records", ["k", "mu", "epsilon at delta 1e-06"], rows)
    click.echo(f"Spent: {words.total(shown.privacy)}.")
    click.echo("The spending is not recorded (no ledger), and the non-private columns are for this demonstration only.")

    software = f"dpregress {__version__}"
    page = fit_page(
        "Doctor visits: a private linear regression",
        found,
        shown.privacy,
        software=software,
        comparison=other,
        notes=demo.NOTES,
    )
    model = model_text(found, shown.privacy, shown.moments, software=software)
    write_all(out, {"model.json": model, "report.html": page})
    click.echo(f"Wrote {out / 'report.html'} and {out / 'model.json'}.")

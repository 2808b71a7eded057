"""``dpregress predict``."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.cli.output import csv_of, say
from dpregress.cli.places import taken

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("model", type=_PATH)
@click.argument("data", type=_PATH)
@click.option("-o", "--out", type=_PATH, required=True, help="File to write (CSV).")
@click.option(
    "--schema",
    "schema_file",
    type=_PATH,
    help="Schema in place of the one that the model file holds (TOML).",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def predict(model: Path, data: Path, out: Path, schema_file: Path | None, overwrite: bool) -> None:
    """Predict the response of the rows of DATA with a MODEL.

    MODEL is model.json or the folder of a fit. The command writes one row for each row of DATA, with the mean
    response. For two classes it writes the probability of the second class and the likelier class; for more
    classes, the probability of each and the likeliest one. The guarantee covers the model only, and not the rows of
    DATA from which predictions are made.

    \b
    Example:
      dpregress predict cost-model new-claims.csv -o predicted.csv
    """
    from dpregress.cli.tables import load_schema
    from dpregress.estimators.saved import SavedModel

    with taken(out, overwrite=overwrite) as place:
        predicted = SavedModel.load(model).predict_file(data, load_schema(schema_file))
        place.write(csv_of(predicted))
    say(f"Wrote {predicted.num_rows:,} predictions to {out}.")

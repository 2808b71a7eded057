"""``dpregress predict``."""

from __future__ import annotations

from pathlib import Path

import click

from dpregress.errors import InvalidInput

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("model", type=_PATH)
@click.argument("data", type=_PATH)
@click.option("-o", "--out", type=_PATH, required=True, help="File to write (CSV).")
@click.option("--schema", "schema_file", type=_PATH, help="The schema of the fit, where columns have levels (TOML).")
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def predict(model: Path, data: Path, out: Path, schema_file: Path | None, overwrite: bool) -> None:
    """Predict the response of the rows of DATA with a MODEL (model.json of a fit).

    Writes one row for each row of DATA: the mean response, and for two classes the probability of the second
    and the likelier one. Predictions about people are about those people: the guarantee covers the model only.

    \b
    Example:
      dpregress predict cost-model/model.json new-claims.csv -o predicted.csv
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from dpregress.cli.output import write_all
    from dpregress.cli.tables import load_schema
    from dpregress.queries import family_of
    from dpregress.releases.files import load_model, load_response
    from dpregress.rows import Encoder
    from dpregress.rows.files import names_of, read

    if out.exists() and not overwrite:
        raise InvalidInput(f"{out} is there already: choose another name, or add --overwrite")
    coefficients, response = load_model(model), load_response(model)
    schema = load_schema(schema_file)
    columns = [name for name in names_of(data) if _feeds(name, coefficients.features)]
    encoder = Encoder.of(columns, None, schema)
    absent = [name for name in coefficients.features if name not in encoder.features]
    if absent:
        raise InvalidInput(
            f"{data} has no column for {absent[0]!r} of the model: give the columns and schema of the fit"
        )
    table = read(data, columns)
    encoder.check_types(table.schema)
    x = encoder.x(table)[:, [encoder.features.index(name) for name in coefficients.features]]
    mean = family_of(response.family, response.link).mean(coefficients.predict(x))
    found = {coefficients.target: mean}
    if response.classes:
        likelier = np.array(response.classes)[(mean > 0.5).astype(int)]
        found = {f"P({coefficients.target} = {response.classes[1]})": mean, coefficients.target: likelier}
    buffer = pa.BufferOutputStream()
    pacsv.write_csv(pa.table(found), buffer)
    write_all(out.parent, {out.name: buffer.getvalue().to_pybytes().decode()})
    click.echo(f"Wrote {len(mean):,} predictions to {out}.")


def _feeds(column: str, features: tuple[str, ...]) -> bool:
    """Whether design columns of the model come from this column."""
    return any(name == column or name.startswith(f"{column}=") for name in features)

"""Models from files, for prediction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from scipy.special import softmax

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.inputs.exposure import log_exposure
from dpregress.models import family_of
from dpregress.public import Categorical, Schema
from dpregress.releases import ClassCoefficients, Coefficients
from dpregress.releases.model_files import (
    ResponseModel,
    WrittenFormula,
    load_formula,
    load_model,
    load_response,
    load_schema_text,
)
from dpregress.rows import Encoder, FormulaEncoder
from dpregress.rows.design.encoder import to_numbers
from dpregress.rows.readers.files import FilesReader, read, read_files


@dataclass(frozen=True, eq=False)
class SavedModel:
    """Coefficients of a model file with how predictions are made from them.

    Parameters
    ----------
    coefficients : Coefficients or ClassCoefficients
    response : ResponseModel
    formula : WrittenFormula, optional
    schema : Schema, optional
        The schema of the columns from which predictions are made.
    """

    coefficients: Coefficients | ClassCoefficients
    response: ResponseModel
    formula: WrittenFormula | None = None
    schema: Schema | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ``model.json``; InvalidInput for a file that is not one."""
        text = load_schema_text(path)
        schema = None if text is None else Schema.from_text(text, f"the schema in {path}")
        return cls(load_model(path), load_response(path), load_formula(path), schema)

    def predict_file(self, data: str | Path, schema: Schema | None = None) -> pa.Table:
        """One row for each row of a CSV or Parquet file: the mean response under the target's name.

        A model with an exposure reads its column: the mean is NaN where that is no positive finite number.

        For two classes the probability of the second, and the likelier one under the target's name; for more the
        probability of each, and the likeliest.

        Parameters
        ----------
        data : path
            With the columns of the fit.
        schema : Schema, optional
            Default: what the model file holds of the fit's.

        Raises
        ------
        InvalidInput
            If a column of the model is missing.
        """
        with np.errstate(all="ignore"):  # a row beyond float64 has the prediction inf or nan
            return self._predicted(read_files(data), schema)

    def _predicted(self, data: FilesReader, schema: Schema | None) -> pa.Table:
        target = self.coefficients.target
        x = self._x(data, schema or self.schema) if self.formula is None else self._computed(data, self.formula, schema)
        predictor = self.coefficients.predict(x)
        if isinstance(self.coefficients, ClassCoefficients):
            chances = softmax(predictor, axis=1)
            names = self.coefficients.classes
            columns = {f"P({target} = {name})": chances[:, k] for k, name in enumerate(names)}
            return pa.table({**columns, target: np.array(names)[chances.argmax(axis=1)]})
        if self.response.exposure is not None:
            predictor = predictor + log_exposure(self._exposure(data, self.response.exposure))
        mean = family_of(self.response.family, self.response.link).mean(predictor)
        if not self.response.classes:
            return pa.table({target: mean})
        likelier = np.array(self.response.classes)[(mean > 0.5).astype(int)]
        return pa.table({f"P({target} = {self.response.classes[1]})": mean, target: likelier})

    @staticmethod
    def _exposure(data: FilesReader, name: str) -> Vector:
        if name not in data.schema.names:
            raise InvalidInput(f"{data.name} has no column {name!r}, the exposure of the model: add it, 1 for rates")
        encoder = Encoder((), exposed=name)
        table = read(data, encoder.needed)
        encoder.check_types(table.schema)
        return to_numbers(table[name])

    def _x(self, data: FilesReader, schema: Schema | None) -> Matrix:
        features = self.coefficients.features
        columns = [name for name in data.schema.names if _feeds(name, features)]
        encoder = Encoder.of(columns, None, schema)
        absent = [name for name in features if name not in encoder.features]
        if absent:
            raise InvalidInput(
                f"{data.name} has no column for {absent[0]!r} of the model: give the columns and schema of the fit"
            )
        table = read(data, columns)
        encoder.check_types(table.schema)
        return encoder.x(table)[:, [encoder.features.index(name) for name in features]]

    def _computed(self, data: FilesReader, formula: WrittenFormula, schema: Schema | None) -> Matrix:
        levels = Schema(
            {name: Categorical(levels, formula.missing.get(name)) for name, levels in formula.levels.items()}
        )
        known = levels if schema is None else schema
        encoder = FormulaEncoder.of(formula.text, known, self.response.classes).right
        if encoder.features != self.coefficients.features:
            raise InvalidInput(
                "the columns of the formula differ from those of the model: give the schema of the fit, or none"
            )
        table = read(data, encoder.needed)
        encoder.check_types(table.schema)
        return encoder.x(table)


def _feeds(column: str, features: tuple[str, ...]) -> bool:
    """Whether design columns of the model come from this column."""
    return any(name == column or name.startswith(f"{column}=") for name in features)

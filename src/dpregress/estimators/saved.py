"""Models read back from files, to predict with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from dpregress.errors import InvalidInput
from dpregress.public import Schema
from dpregress.queries import family_of
from dpregress.releases import Coefficients
from dpregress.releases.files import ResponseModel, load_model, load_response
from dpregress.rows import Encoder
from dpregress.rows.files import names_of, read


@dataclass(frozen=True, eq=False)
class SavedModel:
    """Coefficients of a model file with how predictions are made from them.

    Parameters
    ----------
    coefficients : Coefficients
    response : ResponseModel
    """

    coefficients: Coefficients
    response: ResponseModel

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ``model.json``; InvalidInput for a file that is not one."""
        return cls(load_model(path), load_response(path))

    def predict_file(self, data: str | Path, schema: Schema | None = None) -> pa.Table:
        """One row for each row of a CSV or Parquet file: the mean response under the target's name.

        For two classes the probability of the second, and the likelier one under the target's name.

        Parameters
        ----------
        data : path
            With the columns of the fit.
        schema : Schema, optional
            That of the fit, where columns have levels.

        Raises
        ------
        InvalidInput
            When a column of the model is missing.
        """
        features, target = self.coefficients.features, self.coefficients.target
        columns = [name for name in names_of(data) if _feeds(name, features)]
        encoder = Encoder.of(columns, None, schema)
        absent = [name for name in features if name not in encoder.features]
        if absent:
            raise InvalidInput(
                f"{data} has no column for {absent[0]!r} of the model: give the columns and schema of the fit"
            )
        table = read(data, columns)
        encoder.check_types(table.schema)
        x = encoder.x(table)[:, [encoder.features.index(name) for name in features]]
        mean = family_of(self.response.family, self.response.link).mean(self.coefficients.predict(x))
        if not self.response.classes:
            return pa.table({target: mean})
        likelier = np.array(self.response.classes)[(mean > 0.5).astype(int)]
        return pa.table({f"P({target} = {self.response.classes[1]})": mean, target: likelier})


def _feeds(column: str, features: tuple[str, ...]) -> bool:
    """Whether design columns of the model come from this column."""
    return any(name == column or name.startswith(f"{column}=") for name in features)

"""Models from files, for prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.special import softmax

from dpregress.accounting import Event, Ledger, PrivacyStatement
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.display import shown
from dpregress.errors import InvalidInput, one_line
from dpregress.estimators.curves import SurvivalCurves, times_of
from dpregress.estimators.diagnosable import Diagnosed, diagnose_model, one_predictor
from dpregress.estimators.inferential import terms_of
from dpregress.estimators.summary import SummaryNotes, narrowed_ranges, ranges_note, ranges_of
from dpregress.inference import Diagnosis, IntervalKind
from dpregress.inputs.coded import coded_design
from dpregress.inputs.exposure import OFFSET, exposure_column, log_exposure, offsets
from dpregress.inputs.formula import names_files, read_columns
from dpregress.inputs.tables import design, feeds, opened_table, read_once
from dpregress.models import MULTINOMIAL, family_of
from dpregress.models.hazards import SURVIVAL
from dpregress.public import Categorical, Schema
from dpregress.releases import ClassCoefficients, Coefficients, Estimates
from dpregress.releases.estimates import INTERCEPT
from dpregress.releases.marginals import design_names
from dpregress.releases.model_files import (
    ResponseModel,
    WrittenFormula,
    WrittenSummary,
    load_diagnosis,
    load_domain,
    load_estimates,
    load_formula,
    load_model,
    load_privacy,
    load_response,
    load_schema_text,
    load_summary,
)
from dpregress.rows import Encoder, FormulaEncoder
from dpregress.rows.design.encoder import text_of
from dpregress.rows.readers.files import FilesReader, read, read_files

__all__ = ["SavedModel", "load"]


@dataclass(frozen=True, eq=False, repr=False)
class SavedModel(SurvivalCurves):
    """A fitted model from a file: it predicts, and has the summary and the inference of the model that was saved.

    ``survival`` and ``cumulative_hazard`` are those of survival models.

    Parameters
    ----------
    coefficients_ : Coefficients or ClassCoefficients
    response_model : ResponseModel
        Family, link, classes, and the name of the exposure.
    privacy_ : PrivacyStatement
    estimates_ : Estimates, optional
    formula : WrittenFormula, optional
    schema : Schema, optional
        The schema of the columns from which predictions are made.
    diagnosis_ : Diagnosis, optional
        The paid diagnosis that was saved with it.
    domain : Domain, optional
        Of a model of coded columns, in place of a schema.
    written : WrittenSummary, optional
        What the summary of the model said beside its numbers.
    """

    coefficients_: Coefficients | ClassCoefficients
    response_model: ResponseModel
    privacy_: PrivacyStatement
    estimates_: Estimates | None = None
    formula: WrittenFormula | None = None
    schema: Schema | None = None
    diagnosis_: Diagnosis | None = None
    domain: Domain | None = None
    written: WrittenSummary | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ``model.json``; InvalidInput for a file that is not one."""
        text = load_schema_text(path)
        schema = None if text is None else Schema.from_text(text, f"the schema in {path}")
        response, privacy, estimates = load_response(path), load_privacy(path), load_estimates(path)
        found = load_model(path)
        if response.family not in (MULTINOMIAL, SURVIVAL):
            family_of(response.family, response.link)  # refuses others
        if estimates is not None and not _belong(estimates, found):
            raise InvalidInput(f"{shown(path)}: its estimates are not those of its coefficients")
        if response.labels and tuple(map(text_of, response.labels)) != response.classes:
            raise InvalidInput(f"{shown(path)}: its labels are not those of its classes")
        domain = load_domain(path)
        if domain is not None:
            _check_domain(domain, found, path)
        diagnosis = load_diagnosis(path, Diagnosis.decode)
        written = load_summary(path)
        return cls(found, response, privacy, estimates, load_formula(path), schema, diagnosis, domain, written)

    @property
    def coef_(self) -> Any:
        """The shrunk slopes, of shape (d,), or (K, d) for K > 2 classes."""
        return self.coefficients_.coef

    @property
    def intercept_(self) -> Any:
        """The intercept, or those of the classes."""
        return self.coefficients_.intercept

    def predict(
        self,
        X: Any,
        *,
        exposure: ArrayLike | str | None = None,
        time: ArrayLike | float | str | None = None,
        interval: IntervalKind | None = None,
        level: float = 0.95,
    ) -> Any:
        """Mean responses, or the likeliest class, of shape (m,); as of the estimator that was saved.

        Parameters
        ----------
        X : array-like or table of shape (m, d), or path
            Arrays have the design columns of ``coefficients_.features``, in this order; for a model of coded columns
            they have the columns of the table.
        exposure : array-like of shape (m,) or str, optional
            Default: the column that the fit had, if X has it, otherwise 1 for every row. Another name of ``time``
            for survival models.
        time : array-like of shape (m,), float or str, optional
            As of :meth:`DPSurvival.predict`.
        interval : {"mean", "prediction"}, optional
            Also an interval, as of the estimator.
        level : float, default=0.95
        """
        X = opened_table(X) if names_files(X) else read_once(X)
        rows, name, cuts = self._rows(X), self.response_model.exposure, self.response_model.cuts
        if cuts:
            if interval is not None:
                return self._intervals(rows, interval, level)  # which refuses
            given = exposure if time is None else time
            times = times_of(cuts[-1] if given is None else given, X, len(rows))
            return self.response_model.probability(self.coefficients_.predict(rows), times)
        if time is not None:
            raise InvalidInput("time= is that of survival models, and this is none: leave it out")
        offset = offsets(exposure, X, len(rows), name, self._columns) + self._own_offset(X)
        if interval is not None:
            return self._intervals(rows, interval, level, offset)
        chances = self._means(self.coefficients_.predict(rows) + offset)
        return self.response_model.likeliest(chances) if self.response_model.classes else chances

    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of the classes, of shape (m, K)."""
        if not self.response_model.classes:
            raise InvalidInput("this model predicts a number: use predict")
        X = read_once(X)
        chances = self._means((self.coefficients_.predict(self._rows(X)).T + self._own_offset(X)).T)
        return chances if chances.ndim == 2 else np.column_stack([1 - chances, chances])

    def diagnose(
        self,
        X: Any,
        y: Any = None,
        *,
        privacy: Event,
        exposure: Any = None,
        unit: Any = None,
        max_rows_per_unit: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> Diagnosis:
        """Diagnose the model on private rows, as :meth:`dpregress.DPRidge.diagnose` does; the ledger is charged.

        Parameters
        ----------
        X, y, privacy, exposure, unit, max_rows_per_unit, ledger, random_state
            As of the estimator.
        """
        found = Diagnosed(
            one_predictor(self.coefficients_), self.response_model, self.estimates_, self.formula, self.schema
        )
        return diagnose_model(
            found, X, y, privacy=privacy, exposure=exposure, unit=unit, max_rows_per_unit=max_rows_per_unit,
            ledger=ledger, random_state=random_state,
        )  # fmt: skip

    def __repr__(self) -> str:
        response = self.response_model
        return f"<SavedModel of {one_line(self.coefficients_.target)}: {response.family}, {response.link} link>"

    def _repr_html_(self) -> str:
        return self.summary().to_html()

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
        target, response = self.coefficients_.target, self.response_model
        if self.domain is not None:
            x = self._coded(data, self.domain, schema)
        elif self.formula is not None:
            x = self._computed(data, self.formula, schema)
        else:
            x = self._x(data, schema or self.schema)
        predictor = self.coefficients_.predict(x)
        if isinstance(self.coefficients_, ClassCoefficients):
            chances = self._means(predictor)
            names = self.coefficients_.classes
            columns = {f"P({target} = {name})": chances[:, k] for k, name in enumerate(names)}
            return pa.table({**columns, target: self._cells(chances)})
        if response.cuts and response.exposure is not None:
            times = self._exposure(data, response.exposure, len(predictor))
            return pa.table({target: response.probability(predictor, times)})
        if self._offset_formula is not None:
            predictor = predictor + self._own_offset(data)
        elif response.exposure is not None:
            predictor = predictor + log_exposure(self._exposure(data, response.exposure, len(predictor)))
        mean = self._means(predictor)
        if not response.classes:
            return pa.table({target: mean})
        return pa.table({f"P({target} = {response.classes[1]})": mean, target: self._cells(mean)})

    def _cells(self, chances: Matrix) -> Any:
        """The likeliest classes as a column: text, if some of them are text."""
        found = self.response_model.likeliest(chances)
        return found if found.dtype != object else [text_of(label) for label in found.tolist()]

    def _means(self, predictor: Matrix) -> Matrix:
        """Means, or for several classes their probabilities."""
        if isinstance(self.coefficients_, ClassCoefficients):
            return np.asarray(softmax(predictor, axis=1))
        return family_of(self.response_model.family, self.response_model.link).mean(predictor)

    def _linear_predictor(self, X: Any) -> Any:
        return self.coefficients_.predict(self._rows(X))

    def _rows(self, X: Any) -> Matrix:
        """Rows to predict for, in the order of the design columns."""
        if self.domain is not None:
            return coded_design(X, self.domain, self.domain.names)
        if names_files(X):
            X = opened_table(X)
        if self.formula is not None:
            encoder = self._encoder(self.formula, None)
            table = read_columns(X, encoder.needed)
            encoder.check_types(table.schema)
            return encoder.x(table)
        if isinstance(X, FilesReader):
            return self._x(X, self.schema)
        x = design(X, schema=self.schema, features=self.coefficients_.features)
        if x.shape[1] != len(self.coefficients_.features):
            raise InvalidInput(f"X has {x.shape[1]} columns, the model {len(self.coefficients_.features)} features")
        return x

    @property
    def _offset_formula(self) -> WrittenFormula | None:
        """The formula, if it computes an offset."""
        return self.formula if (self.response_model.exposure or "").startswith(OFFSET) else None

    def _own_offset(self, X: Any) -> Vector | float:
        """What the formula's ``offset()`` adds to predictors, of shape (m,)."""
        if self._offset_formula is None:
            return 0.0
        encoder = self._encoder(self._offset_formula, None)
        found = encoder.offsets(read_columns(opened_table(X) if names_files(X) else X, encoder.needed))
        assert found is not None
        return found

    @property
    def _columns(self) -> Sequence[str]:
        """Columns of the table that are features, or from which a formula computes them."""
        return self.coefficients_.features if self.formula is None else self._encoder(self.formula, None).sources

    def _exposure(self, data: FilesReader, name: str, rows: int) -> Vector:
        if name in self._columns:  # exposures that a fit was given as an array may be called as a feature is
            return np.full(rows, self.response_model.cuts[-1] if self.response_model.cuts else 1.0)
        if name not in data.schema.names:
            what = "the exposure of the model: add it, 1 for rates"
            what = "the time until which the model predicts: add it" if self.response_model.cuts else what
            raise InvalidInput(f"{data.name} has no column {name!r}, {what}")
        return exposure_column(data, name)

    def _x(self, data: FilesReader, schema: Schema | None) -> Matrix:
        features = self.coefficients_.features
        columns = [name for name in data.schema.names if feeds(name, features, schema)]
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
        encoder = self._encoder(formula, schema)
        table = read(data, encoder.needed)
        encoder.check_types(table.schema)
        return encoder.x(table)

    @staticmethod
    def _coded(data: FilesReader, domain: Domain, schema: Schema | None) -> Matrix:
        if schema is not None:
            raise InvalidInput("this model holds the levels of its columns: leave the schema out")
        return coded_design(read(data, domain.names), domain, domain.names)

    def _encoder(self, formula: WrittenFormula, schema: Schema | None) -> FormulaEncoder:
        """The formula's columns, by the schema or by the levels that the file holds."""
        levels = Schema(
            {name: Categorical(levels, formula.missing.get(name)) for name, levels in formula.levels.items()}
        )
        known = levels if schema is None else schema
        encoder = FormulaEncoder.of(formula.text, known, self.response_model.classes).right
        if encoder.features != self.coefficients_.features:
            raise InvalidInput(
                "the columns of the formula differ from those of the model: give the schema of the fit, or none"
            )
        return encoder

    def _terms(self) -> Mapping[str, Sequence[str]]:
        if self.formula is not None:
            return self._encoder(self.formula, None).terms
        return terms_of(self.coefficients_.features, self.schema)

    def _model_name(self) -> str:
        return "saved model" if self.written is None else self.written.model

    def _statement(self) -> PrivacyStatement:
        return self.privacy_ if self.written is None or self.written.party is None else self.written.party

    def _notes(self) -> SummaryNotes:
        if self.written is not None:
            return SummaryNotes(self.written.before, self.written.after)
        within = ranges_of(self.coefficients_) if self.domain is None else narrowed_ranges(self.domain)
        return SummaryNotes(after=tuple(ranges_note(within)))

    def _no_estimates(self) -> str:
        return "this model file holds no estimates for inference: fit again with the default recipe of this version"


def load(path: str | Path) -> SavedModel:
    """Read a fitted model that ``save`` or ``dpregress fit`` wrote.

    Parameters
    ----------
    path : path
        The folder, or the ``model.json`` in it.

    Raises
    ------
    InvalidInput
        If it is not a model file, or has another version.
    """
    return SavedModel.load(path)


def _check_domain(domain: Domain, coefficients: Coefficients | ClassCoefficients, path: str | Path) -> None:
    """Refuse a file whose columns are not those of its coefficients."""
    if design_names(domain, domain.names) != coefficients.features:
        raise InvalidInput(f"{shown(path)}: its columns are not those of its coefficients")


def _belong(estimates: Estimates, coefficients: Coefficients | ClassCoefficients) -> bool:
    """Whether estimates and coefficients have the same names, with or without an intercept."""
    expected = []
    for name, one in coefficients.by_class():
        prefix = f"{name}: " if name else ""
        expected.append([prefix + feature for feature in one.features])
    whole = [name for each in expected for name in each]
    constant = [
        name
        for each, (label, _) in zip(expected, coefficients.by_class(), strict=True)
        for name in (f"{label}: {INTERCEPT}" if label else INTERCEPT, *each)
    ]
    spread = estimates.spread
    fits = spread is None or len(spread) == len(coefficients.features)
    return fits and list(estimates.names) in (whole, constant)

"""The common face of linear estimators for every trust model: what they are given, and how they predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpregress.accounting import Event, Ledger
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, NotAvailable, one_line, type_of
from dpregress.estimators.diagnosing import checked_share
from dpregress.estimators.habits import in_own_names
from dpregress.estimators.inferential import terms_of
from dpregress.estimators.parameters import checked_privacy
from dpregress.estimators.progress import check_progress
from dpregress.estimators.saving import SavingMixin
from dpregress.estimators.shown import ShownMixin
from dpregress.estimators.training import Training
from dpregress.inputs.described import described_table, published_name
from dpregress.inputs.engines import engine_of, stays_in_place
from dpregress.inputs.exposure import OFFSET, exposed, exposure_bounds, offsets, one_offset
from dpregress.inputs.formula import formula_moments, formula_source, read_columns
from dpregress.inputs.indices import check_aligned
from dpregress.inputs.names import check_exposure, check_named
from dpregress.inputs.public import beyond_note, is_public, moments_of, opened_apart, public_columns, say_left_out
from dpregress.inputs.response import check_declared
from dpregress.inputs.tables import (
    Inputs,
    check_classes,
    design,
    matrix,
    read_once,
    response_name,
    training_source,
    training_table,
)
from dpregress.inputs.units import bounded_units
from dpregress.inputs.weights import weighted
from dpregress.public import PublicMoments, Schema
from dpregress.public.facts import PublicFacts
from dpregress.public.response import without_codes
from dpregress.public.whitening import start
from dpregress.releases import ClassCoefficients, Coefficients
from dpregress.releases.model_files import Label, ResponseModel, WrittenFormula
from dpregress.rows import Encoder, Engine, FormulaEncoder, Source
from dpregress.rows.engines import Progress
from dpregress.rows.readers.files import is_table


class PrivateLinearModel(ShownMixin, SavingMixin, BaseEstimator, ABC):
    """Base class of linear estimators for every trust model.

    The order is fixed: everything public is checked, the whole budget is charged, and only then is anything computed
    from private cells. A fit that fails after the charge stays charged.
    """

    privacy: Event | None
    public: Any
    schema: Schema | None
    row_bound: float | None
    fit_intercept: bool
    formula: str | None
    ledger: Ledger | None
    random_state: Any
    design_: FormulaEncoder | None
    coefficients_: Coefficients | ClassCoefficients
    #: Name of the exposure of the fit; None without an exposure, and before the fit.
    exposure_: str | None = None
    _by_name: bool = False

    def __init_subclass__(cls, **given: Any) -> None:
        """Parameters of other libraries are refused in the words of this one."""
        super().__init_subclass__(**given)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", in_own_names(cls.__init__))  # noqa: B010 - mypy knows no other way

    @abstractmethod
    def _fit(self, budget: Event, data: Training, progress: bool | Progress, engine: Engine | None = None) -> Self:
        """Charge, ask and solve, once everything public is checked."""

    @property
    @abstractmethod
    def response_model(self) -> ResponseModel:
        """How the linear predictor becomes a prediction."""

    @property
    def written_formula(self) -> WrittenFormula | None:
        """The fitted formula in the form of a model file."""
        check_is_fitted(self)
        if self.design_ is None:
            return None
        return WrittenFormula(self.design_.text, self.design_.levels, self.design_.stand_ins)

    @property
    def written_schema(self) -> str | None:
        """The schema of the fitted columns in the form of a model file; None for a formula."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", self.coefficients_.features)
        return None if self.schema is None or self.design_ is not None else self.schema.of_columns(names).to_toml()

    @property
    def target_classes(self) -> tuple[str, ...]:
        """Texts of the classes of the response; empty for a number."""
        return ()

    @property
    def target_labels(self) -> tuple[Label, ...]:
        """The classes as the response holds them, if these are not all text; else empty."""
        return ()

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _terms(self) -> Mapping[str, Sequence[str]]:
        if self.design_ is not None:
            return self.design_.terms
        return terms_of(self.coefficients_.features, self.schema)

    @classmethod
    def from_formula(cls, formula: str, privacy: Event | None = None, **parameters: Any) -> Self:
        """The model of a formula, such as ``"visits ~ age + C(plan)"``, to be fitted to a table.

        Parameters
        ----------
        formula : str
            Its syntax is in docs/formulas.md. It determines whether there is an intercept.
        privacy, **parameters
            Parameters of the class.

        Raises
        ------
        TypeError
            For a parameter that the class does not have, or a table in the place of the budget.

        Examples
        --------
        >>> import pandas as pd
        >>> from dpregress import GDP, DPLinearRegression, Numeric, Schema
        >>> table = pd.DataFrame({"age": [20.0, 40.0, 60.0, 80.0] * 5000, "visits": [2.0, 3.0, 6.0, 11.0] * 5000})
        >>> schema = Schema({"age": Numeric(18, 90), "visits": Numeric(0, 20)})
        >>> model = DPLinearRegression.from_formula("visits ~ age + I(age ** 2)", privacy=GDP(1.0), schema=schema)
        >>> model.fit_table(table).coefficients_.features
        ('age', 'I(age ** 2)')
        """
        if is_table(privacy):
            raise TypeError("the second positional argument is the budget: give the table to fit_table of the model")
        return cls(privacy=privacy, formula=formula, **parameters)

    @in_own_names
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        unit: ArrayLike | None = None,
        max_rows_per_unit: int | None = None,
        diagnose: float = 0.0,
        progress: bool | Progress = True,
    ) -> Self:
        """Fit within the budget of ``privacy``.

        Parameters
        ----------
        X : array-like or table of shape (n, d)
            NumPy, pandas, Polars or Arrow. Private. A missing or non-finite cell counts as the public mean, or without
            public rows as the middle of its bounds.
        y : array-like of shape (n,)
            Private. A row without a finite response gets weight 0. With a formula, y may be a column of the table X.
        exposure : array-like of shape (n,), optional
            Private. With a log link, the mean response is proportional to it: years, population, duration of a policy.
            A row whose exposure is not a positive finite number gets weight 0. The name of a Series is looked up in the
            schema for bounds.
        weights : array-like of shape (n,), optional
            Private survey weights. The schema declares their upper bound under the name of the Series, or "weights";
            larger ones count as that. A row whose weight is not a positive finite number gets weight 0.
        unit : array-like of shape (n,), optional
            Private ids. All rows of an id are protected together; default: each record by itself.
        max_rows_per_unit : int, optional
            k, with ``unit``: the first k rows of each unit count, and noise is k times as large.
        diagnose : float, default=0.0
            The share of the budget for a diagnosis of the fit, such as 0.02 (docs/diagnosis.md).
        progress : bool or callable, default=True
            True shows a bar on a terminal after two seconds, False nothing; a callable is called with
            (rows done, rows in all) in every pass.

        Raises
        ------
        InvalidInput
            If public facts are inconsistent; nothing is charged then.
        BudgetExceeded
            If the ledger does not hold enough; nothing is charged or read then.
        """
        budget = self._checked_parameters()
        check_progress(progress)
        check_aligned(X, y=y, exposure=exposure, weights=weights, unit=unit)
        if isinstance(unit, str):
            raise InvalidInput(f"unit={unit!r} is a name: fit takes an id for each row, fit_table the name of a column")
        public = opened_apart(X, self.public)
        name = None if exposure is None else str(getattr(exposure, "name", None) or "exposure")
        if self.formula is not None:
            rows = self._computed(self.formula, public, X, y)
        else:
            target = response_name(y, X)
            known = None if public is None else public_columns(public, target, name)
            source, columns = training_source(X, y, target=target, schema=self.schema, public=known)
            rows = self._declared(public, source, columns, target, name, Inputs.of(self, X))
        source, whose = bounded_units(exposed(rows.source, exposure, name, self.schema), unit, max_rows_per_unit)
        name = one_offset(name, rows.exposure)
        rows = rows._replace(table=described_table(X), origin=published_name(X))
        rows = rows._replace(source=source, unit=whose, exposure=name, diagnose=checked_share(diagnose))
        called = str(getattr(weights, "name", None) or "weights")
        return self._fit(budget, self._surveyed(rows, weights, called, rows.source), progress)

    @in_own_names
    def fit_table(
        self,
        table: Any,
        target: str | None = None,
        features: Sequence[str] | None = None,
        engine: Any = None,
        progress: bool | Progress = True,
        *,
        exposure: str | None = None,
        weights: str | None = None,
        unit: str | None = None,
        max_rows_per_unit: int | None = None,
        diagnose: float = 0.0,
    ) -> Self:
        """Fit a column of any table on its others, as :meth:`fit` does, in a constant amount of memory.

        Parameters
        ----------
        table : path, list of paths, table or query
            CSV or Parquet files (a path, a folder, a pattern such as ``part-*.parquet``, a list), a pandas, Polars or
            Arrow table, a Polars LazyFrame, a pyarrow Dataset, a DuckDB relation, a Spark DataFrame, a
            :class:`~dpregress.SQLQuery`, or any object that returns a new Arrow stream on each request
            (docs/sources.md). Private.
        target : str, default="y"
            The column of the response; a formula names it itself.
        features : sequence of str, optional
            Columns to regress on; default: all other columns, or those of the formula.
        engine : Engine, str, Dask client or cluster, optional
            Computes the sums; default: one thread for each processor. ``"dask"`` starts worker processes for this fit;
            an address such as ``"dask://host:8786"``, a client or a cluster uses those that are there. ``"push-down"``
            and ``"spark"`` let the database or Spark compute that holds the rows (docs/scale.md).
        progress : bool or callable, default=True
            True shows a bar on a terminal after two seconds, False nothing; a callable is called with
            (rows done, rows in all) in every pass.
        exposure : str, optional
            The column of exposures, as ``exposure`` of :meth:`fit`; never a feature.
        weights : str, optional
            The column of survey weights, as ``weights`` of :meth:`fit`; for files and tables in memory.
        unit : str, optional
            The column of private ids, as ``unit`` of :meth:`fit`; never a feature. For files and tables in memory, and
            for queries with ``engine="push-down"``: their rows have no fixed order, and the database draws k rows of a
            unit (docs/privacy/units.md).
        max_rows_per_unit : int, optional
        diagnose : float, default=0.0
            As of :meth:`fit`.

        Raises
        ------
        InvalidInput
            If a file or column does not exist, and in all cases of :meth:`fit`.
        SourceError
            If the rows cannot be read to their end, or change between passes; what was charged stays charged.
        """
        budget = self._checked_parameters()
        check_progress(progress)
        engine = engine_of(engine)
        public = opened_apart(table, self.public)
        if self.formula is not None:
            if target is not None or features is not None:
                raise InvalidInput("the formula names the columns: leave target and features out")
            rows = self._computed(self.formula, public, table, None, unit, exposure, weights)
        else:
            target = "y" if target is None else target
            source, encoder = training_table(
                table, target, features, self.schema, self.target_classes, unit, exposure, weights
            )
            columns = tuple(name for name, _ in encoder.columns)
            rows = self._declared(public, source, columns, target, exposure, Inputs.named(columns))
        bounded, whose = bounded_units(rows.source, unit, max_rows_per_unit, in_place=stays_in_place(engine))
        read = rows.source
        exposure = one_offset(exposure, rows.exposure)
        rows = rows._replace(table=described_table(table), origin=published_name(table))
        rows = rows._replace(source=bounded, unit=whose, exposure=exposure, diagnose=checked_share(diagnose))
        return self._fit(budget, self._surveyed(rows, weights, str(weights), read), progress, engine)

    def _surveyed(self, rows: Training, weights: Any, name: str, read: Source) -> Training:
        """The rows with their survey weights, if there are any."""
        if weights is None:
            return rows
        if rows.diagnose:
            raise NotAvailable("a diagnosis counts rows, not weights: leave diagnose= or weights= out")
        return rows._replace(source=weighted(rows.source, weights, name, self.schema, read), weights=name)

    def _declared(
        self, given: Any, source: Source, columns: tuple[str, ...], target: str, exposure: str | None, inputs: Inputs
    ) -> Training:
        """Training rows with columns as the schema or the public rows declare them."""
        Encoder.of((), target, self.schema, self.target_classes)  # refuses a categorical response for a numeric model
        features = Encoder.of(columns, None, self.schema).features
        if given is None and self.row_bound is None:
            check_declared(columns, source, self.schema)
        public, left_out = None, 0
        if given is not None:
            public, left_out = moments_of(given, columns, target, self.schema, self.target_classes, exposure)
        say_left_out(left_out)
        return Training(source, features, target, public, self.schema, bool(self.fit_intercept), inputs)

    def _computed(
        self,
        formula: str,
        given: Any,
        rows: Any,
        y: Any,
        unit: str | None = None,
        exposure: str | None = None,
        weights: str | None = None,
    ) -> Training:
        """Training rows with the columns of a formula; labels that are given as ``y`` are already numbers."""
        encoder = FormulaEncoder.of(formula, self.schema, self.target_classes, exposure)
        check_exposure(exposure, encoder.sources, encoder.response.columns, unit)
        check_named(weights=weights)
        if y is None and self.target_classes:
            (target,) = encoder.response.columns
            check_classes(target, self.target_classes, self.schema)
        source = formula_source(rows, y, encoder, unit, self.schema, weights)
        if given is None and self.row_bound is None:
            check_declared(encoder.right.needed, source, self.schema)
        public, left_out = None, 0
        if given is not None:
            public, left_out = formula_moments(given, encoder, self.schema)
        say_left_out(left_out)
        bounds = encoder.schema(self.schema, needed=public is None and self.row_bound is None)
        columns, label, inputs = encoder.features, encoder.response.label, Inputs.named(encoder.sources)
        found = Training(source, columns, label, public, bounds, encoder.intercept, inputs, design=encoder.right)
        return found._replace(exposure=None if encoder.offset is None else f"{OFFSET}{encoder.offset.label})")

    def _facts(
        self, features: tuple[str, ...], n: int, target: str, public: PublicMoments | None, schema: Schema | None,
        intercept: bool, exposure: str | None = None,
    ) -> PublicFacts:  # fmt: skip
        if n == 0 or not features:
            raise InvalidInput(f"the table has no {'rows' if n == 0 else 'features'}: nothing can be fitted")
        if n == 1:
            raise InvalidInput(
                "the table has a single row (n_samples=1): a fit needs at least two, and many for accuracy"
            )
        left_out = 0
        if public is not None and schema is not None and not self.target_classes and schema.bounds_all([target]):
            known, public = public.n, without_codes(public, schema.bounds_of(target))
            left_out = known - public.n
            say_left_out(left_out, beyond_note, frames=6)
        first = start(features, intercept=intercept, public=public, schema=schema, row_bound=self.row_bound)
        link = "" if exposure is None else self.response_model.link
        bounds = exposure_bounds(exposure, link, self.schema, public)
        return PublicFacts(n, target, first, public, schema, bounds, coded=left_out > 0)

    def _checked_parameters(self) -> Event:
        """Refuse parameters of another type than documented; the budget."""
        budget = checked_privacy(self)
        if self.formula is not None and not self.fit_intercept:
            raise InvalidInput("the formula determines the intercept: write 0 + in it, and leave fit_intercept=True")
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise InvalidInput(f"fit_intercept= takes True or False, not {one_line(self.fit_intercept)}")
        if self.public is not None and not is_public(self.public):
            raise InvalidInput(
                f"public= takes a PublicMoments, or a table or file of public rows, not {type_of(self.public)}"
            )
        return budget

    def _linear_predictor(self, X: ArrayLike) -> Vector:
        X = read_once(X)
        rows = self._rows(X)
        return (self.coefficients_.predict(rows).T + self._own_offset(X)).T

    def _rows_and_offset(self, X: ArrayLike, exposure: Any = None) -> tuple[Matrix, Vector | float]:
        """Rows to predict for, and what exposures and the formula's ``offset()`` add to their predictors."""
        X = read_once(X)
        rows = self._rows(X)
        return rows, offsets(exposure, X, len(rows), self.exposure_, self._read_columns()) + self._own_offset(X)

    def _read_columns(self) -> Sequence[str]:
        """The columns that predictions read, apart from an exposure."""
        check_is_fitted(self)
        return self.coefficients_.features if self.design_ is None else self.design_.sources

    def _own_offset(self, X: Any) -> Vector | float:
        """What the formula's ``offset()`` adds to predictors, of shape (m,); NaN where it has no value."""
        if self.design_ is None or self.design_.offset is None:
            return 0.0
        found = self.design_.offsets(read_columns(X, self.design_.needed))
        assert found is not None
        return found

    def _rows(self, X: ArrayLike) -> Matrix:
        """Rows to predict for, in the order of the design columns, of shape (m, d)."""
        check_is_fitted(self)
        if self.design_ is not None:
            table = read_columns(X, self.design_.needed)
            self.design_.check_types(table.schema)
            return self.design_.x(table)
        if not is_table(X):
            matrix(X)  # its shape is judged before its width is compared
        if not (is_table(X) and self._by_name):
            validate_data(self, X, reset=False, skip_check_array=True)
        x = design(X, schema=self.schema, features=self.coefficients_.features)
        if x.shape[1] != len(self.coefficients_.features):
            raise InvalidInput(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting "
                f"{len(self.coefficients_.features)} features as input"
            )
        return x

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags

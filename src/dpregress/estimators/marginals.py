"""Regression on a coded table through its privately released pair tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpregress.accounting import Event, Ledger
from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput, one_line
from dpregress.estimators.inferential import InferenceMixin, terms_of
from dpregress.estimators.marginals_fit import check_columns, check_family, fit_marginals, marginal_estimates
from dpregress.estimators.marginals_release import coded_source, release_marginals
from dpregress.estimators.parameters import checked_privacy
from dpregress.estimators.shown import ShownMixin
from dpregress.estimators.summary import summary_of
from dpregress.inference import checked_level
from dpregress.inputs.tables import array_table, joined_table, listed
from dpregress.models import MULTINOMIAL, family_of
from dpregress.public import Schema
from dpregress.public.coding import domain_of
from dpregress.releases.model_files import ResponseModel
from dpregress.reports.summary import Summary
from dpregress.rows import LevelRows
from dpregress.rows.engines import Progress
from dpregress.rows.readers.files import is_table, names_of, to_table

_CHUNK = 65_536


def _is_array(X: Any) -> bool:
    """Whether this is an array or a list of rows, not a table, a path or a list of paths."""
    if isinstance(X, list):
        return not any(isinstance(each, str | PathLike) for each in X)
    return isinstance(X, np.ndarray)


class MarginalsRegression(ShownMixin, InferenceMixin, BaseEstimator):
    r"""Regression of one coded column on others, from differentially private pair tables.

    Every column has a public list of levels. The pair tables of all columns are released once; the regression
    (and any other on the same release, and synthetic rows) is computed from them. Features enter as in
    ``Z b + b0``: one indicator for every level of a class but the first, the level's position scaled to [-1, 1]
    for a number.

    Parameters
    ----------
    privacy : ApproxDP, GDP or ZCDP
        The budget, for adding or removing one record. ``recipe="aim"`` takes no GDP.
    family : {"gaussian", "binomial", "multinomial", "poisson"}, default="gaussian"
        Of the target: a number (in its codes), one of two classes, one of several, a count.
    schema : Schema
        Levels or bounds of the columns (:meth:`Schema.from_levels` for integer codes). Numbers with bounds are cut
        into ``bins`` equal bins.
    bins : int, default=32
    recipe : {"one-shot", "aim", "residuals", "gaussian"}, default="one-shot"
        The library's own three questions, AIM as published, ResidualPlanner, or one noise on every block.
    ledger : Ledger, optional
        For add-or-remove neighbours; charged before any row is read.
    random_state : None, int or numpy Generator
        None draws from the operating system. A seed is for tests and simulations, and warns.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        For several classes of shape (classes, d).
    intercept_ : float, or ndarray of shape (classes,)
    coefficients_ : Coefficients
        With names and standard errors (of the shrunk coefficients); not for several classes.
    classes_ : tuple of str
        Of a class target.
    estimates_ : Estimates or None
        For inference, not shrunk; None for other families than "gaussian" and for "aim" (docs/inference.md).
    marginals_ : Marginals
        The release: other regressions (``moments``) and rows (``mixture.sample``) from it are free.
    moments_ : Moments
        Of this regression.
    privacy_ : PrivacyStatement

    References
    ----------
    Ferrando, Sheldon (2024); docs/methods/marginals.md.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> from dpregress import ApproxDP, MarginalsRegression, Schema
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.integers(5, size=(2, 20_000))
    >>> table = pa.table({"a": a, "b": b, "y": a + 2 * b})
    >>> schema = Schema.from_levels({"a": range(5), "b": range(5), "y": range(13)}, numeric=["a", "b", "y"])
    >>> model = MarginalsRegression(ApproxDP(1.0, 1e-6), schema=schema).fit_table(table, "y")
    >>> bool(np.abs(model.coef_ - [2, 4]).max() < 0.2)  # half a column's range is one unit
    True
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        family: str = "gaussian",
        schema: Schema | None = None,
        bins: int = 32,
        recipe: str = "one-shot",
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.privacy = privacy
        self.family = family
        self.schema = schema
        self.bins = bins
        self.recipe = recipe
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, progress: bool | Progress = True) -> Self:
        """Release the pair tables of X and y, and regress y on all columns of X.

        Parameters
        ----------
        X : array-like or table of shape (n, d)
            NumPy, pandas, Polars or Arrow. Private; undeclared values are mapped (docs/methods/marginals.md). The
            schema knows the columns of an array as x0, x1, ..
        y : array-like of shape (n,)
            Private. The schema knows it by its name (that of a Series, else "y").
        progress : bool or callable, default=True
            As in :meth:`fit_table`.

        Raises
        ------
        InvalidInput, BudgetExceeded
            As :meth:`fit_table`.
        """
        target = str(getattr(y, "name", None) or "y")
        table = joined_table(X, y, target)
        return self.fit_table(table, target, table.schema.names[:-1], progress=progress)

    def fit_table(
        self,
        table: Any,
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        progress: bool | Progress = True,
    ) -> Self:
        """Release the pair tables of the target and the features, and regress.

        Parameters
        ----------
        table : path or table
            CSV, Parquet, pandas, Polars or Arrow. Private; undeclared values are mapped (docs/methods/marginals.md).
        target : str, default="y"
            The response's column.
        features : sequence of str, optional
            Default: all other columns of the schema that the table has.
        progress : bool or callable, default=True
            A bar on a terminal after two seconds, nothing, or what is called with (rows done, rows in all).

        Raises
        ------
        InvalidInput
            For public facts that do not fit together; nothing is charged then.
        BudgetExceeded
            When the ledger does not hold enough; nothing is charged or read then.
        """
        budget = checked_privacy(self)
        if self.schema is None:
            raise InvalidInput("schema= is not set: declare every column's levels or bounds, see Schema.from_levels")
        target = "y" if target is None else target
        if not isinstance(target, str):
            raise InvalidInput(f"target takes the name of a column, not {one_line(target)}")
        held = to_table(table).schema.names if is_table(table) else names_of(table)
        if features is None:
            features = [name for name in self.schema.columns if name in held and name != target]
        features = listed(features)
        check_columns(target, features)
        domain = domain_of(self.schema, [*features, target], bins=self.bins)
        check_family(domain, target, tuple(features), self.family)
        released = release_marginals(
            table,
            domain,
            privacy=budget,
            recipe=self.recipe,
            target=target,
            ledger=self.ledger,
            random_state=self.random_state,
            progress=progress,
        )
        fitted = fit_marginals(released.marginals, target, tuple(features), self.family)
        self.fit_ = fitted
        self.estimates_ = marginal_estimates(released.marginals, target, features, self.family)
        self.coef_, self.coefficients_, self.moments_ = fitted.coef, fitted.coefficients, fitted.moments
        self.intercept_ = float(fitted.intercept) if fitted.intercept.ndim == 0 else fitted.intercept
        self.classes_ = fitted.classes
        self.marginals_, self.privacy_ = released.marginals, released.privacy
        self.n_features_in_ = len(features)
        self.feature_names_in_ = np.array(features, dtype=object)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The expected target in its codes, or the likeliest class as the schema writes it, of shape (m,).

        Parameters
        ----------
        X : path, table, or array-like of shape (m, d)
            A path or a table is read by the names of the features, an array in their order.
        """
        means = self._means(X)
        return np.array(self.classes_, dtype=object)[means.argmax(axis=1)] if self.classes_ else means

    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of ``classes_``, of shape (m, classes)."""
        means = self._means(X)
        if not self.classes_:
            raise InvalidInput(f"family={self.family!r} predicts a number: use predict")
        return means

    def summary(self, *, level: float | None = None, alpha: float | None = None) -> Summary:
        """As of every model; several classes have coefficients without errors."""
        check_is_fitted(self)
        return summary_of(
            type(self).__name__,
            self.fit_.by_class if self.coefficients_ is None else self.coefficients_,
            self.privacy_,
            response=self.response_model,
            estimates=self.estimates_,
            level=checked_level(level, alpha),
        )

    @property
    def response_model(self) -> ResponseModel:
        """Family, link, and the classes of a class target."""
        check_is_fitted(self)
        link = "logit" if self.fit_.family == MULTINOMIAL else family_of(self.fit_.family).link.name
        return ResponseModel(self.fit_.family, link, self.fit_.classes)

    def _no_estimates(self) -> str:
        return (
            "fits to a mixture have no estimates for inference, since they attenuate slopes by an unknown amount: take "
            'family="gaussian" and another recipe than "aim"'
        )

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _terms(self) -> Mapping[str, Sequence[str]]:
        return terms_of(self.fit_.moments.space.features, self.schema)

    def _means(self, X: Any) -> Matrix:
        """Predictions for rows that hold the features; undeclared cells are mapped as in the fit."""
        check_is_fitted(self)
        names = self.feature_names_in_.tolist()
        table = array_table(X, names) if _is_array(X) else X
        domain = self.fit_.domain
        known = domain.select(self.fit_.features)
        place = [domain.index(name) for name in self.fit_.features]
        levels, found = LevelRows(known), []
        for chunk in coded_source(table, known).chunks(_CHUNK):
            codes = np.zeros((len(chunk.x), len(domain.attributes)))
            codes[:, place] = levels(chunk).x
            found.append(self.fit_.mean(codes))
        return np.concatenate(found)

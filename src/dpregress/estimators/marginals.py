"""Regression on a coded table through its privately released pair tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpregress.accounting import Ledger
from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput
from dpregress.estimators.marginals_fit import check_columns, check_family, fit_marginals
from dpregress.estimators.marginals_release import coded_source, release_marginals
from dpregress.estimators.summary import summary_of
from dpregress.public import Schema
from dpregress.public.coding import domain_of
from dpregress.rows import LevelRows
from dpregress.rows.engines import Progress
from dpregress.rows.readers.files import is_table, names_of, to_table

_CHUNK = 65_536


class MarginalsRegression(BaseEstimator):
    r"""Regression of one coded column on others, from differentially private pair tables.

    Every column has a public list of levels. The pair tables of all columns are released once; the regression
    (and any other on the same release, and synthetic rows) is computed from them. Features enter as in
    ``Z b + b0``: one indicator for every level of a class but the first, the level's position scaled to [-1, 1]
    for a number.

    Parameters
    ----------
    schema : Schema
        Levels or bounds of the columns (:meth:`Schema.from_levels` for integer codes). Numbers with bounds are cut
        into ``bins`` equal bins.
    epsilon, delta : float
        The budget, for adding or removing one record.
    mechanism : {"one-shot", "aim", "residuals", "gaussian"}
        The library's own three questions, AIM as published, ResidualPlanner, or one noise on every block.
    family : {"gaussian", "binomial", "multinomial", "poisson"}
        Of the target: a number (in its codes), one of two classes, one of several, a count.
    bins : int
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
    >>> from dpregress import MarginalsRegression, Schema
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.integers(5, size=(2, 20_000))
    >>> table = pa.table({"a": a, "b": b, "y": a + 2 * b})
    >>> schema = Schema.from_levels({"a": range(5), "b": range(5), "y": range(13)}, numeric=["a", "b", "y"])
    >>> model = MarginalsRegression(schema=schema, epsilon=1.0, delta=1e-6).fit(table, target="y")
    >>> bool(np.abs(model.coef_ - [2, 4]).max() < 0.2)  # half a column's range is one unit
    True
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        mechanism: str = "one-shot",
        family: str = "gaussian",
        bins: int = 32,
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.family = family
        self.bins = bins
        self.ledger = ledger
        self.random_state = random_state

    def fit(
        self,
        table: Any,
        y: None = None,
        *,
        target: str,
        features: Sequence[str] | None = None,
        progress: bool | Progress = True,
    ) -> Self:
        """Release the pair tables of the target and the features, and regress.

        Parameters
        ----------
        table : path or table
            CSV, Parquet, pandas, Polars or Arrow. Private; undeclared values are mapped (docs/methods/marginals.md).
        y : None
            The response is a column of the table.
        target : str
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
        if not isinstance(self.schema, Schema):
            raise InvalidInput("schema= is not set: declare every column's levels or bounds, see Schema.from_levels")
        if y is not None or isinstance(features, str):
            raise InvalidInput("give target='column', and features as a list of column names")
        held = to_table(table).schema.names if is_table(table) else names_of(table)
        if features is None:
            features = [name for name in self.schema.columns if name in held and name != target]
        check_columns(target, features)
        domain = domain_of(self.schema, [*features, target], bins=self.bins)
        check_family(domain, target, tuple(features), self.family)
        released = release_marginals(
            table,
            domain,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=self.mechanism,
            target=target,
            ledger=self.ledger,
            random_state=self.random_state,
            progress=progress,
        )
        fitted = fit_marginals(released.marginals, target, tuple(features), self.family)
        self.fit_ = fitted
        self.coef_, self.coefficients_, self.moments_ = fitted.coef, fitted.coefficients, fitted.moments
        self.intercept_ = float(fitted.intercept) if fitted.intercept.ndim == 0 else fitted.intercept
        self.classes_ = fitted.classes
        self.marginals_, self.privacy_ = released.marginals, released.privacy
        self.n_features_in_ = len(features)
        self.feature_names_in_ = np.array(features, dtype=object)
        return self

    def predict(self, table: Any) -> NDArray[Any]:
        """The expected target in its codes, or the likeliest class as the schema writes it, of shape (m,)."""
        means = self._means(table)
        return np.array(self.classes_, dtype=object)[means.argmax(axis=1)] if self.classes_ else means

    def predict_proba(self, table: Any) -> Matrix:
        """Probabilities of ``classes_``, of shape (m, classes)."""
        means = self._means(table)
        if not self.classes_:
            raise InvalidInput(f"family={self.family!r} predicts a number: use predict")
        return means

    def summary(self) -> str:
        """Coefficients, their standard errors and the guarantee, as text."""
        check_is_fitted(self)
        if self.coefficients_ is None:
            return f"{len(self.classes_)} classes: see coef_ and intercept_\n{self.privacy_.describe()}"
        return summary_of(self.coefficients_, self.privacy_)

    def _means(self, table: Any) -> Matrix:
        """Predictions for a table that holds the features; undeclared cells are mapped as in the fit."""
        check_is_fitted(self)
        domain = self.fit_.domain
        known = domain.select(self.fit_.features)
        place = [domain.index(name) for name in self.fit_.features]
        levels, found = LevelRows(known), []
        for chunk in coded_source(table, known).chunks(_CHUNK):
            codes = np.zeros((len(chunk.x), len(domain.attributes)))
            codes[:, place] = levels(chunk).x
            found.append(self.fit_.mean(codes))
        return np.concatenate(found)

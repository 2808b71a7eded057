"""Regression on a coded table through its privately released pair tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpregress.accounting import Event, Ledger
from dpregress.coordinates import Domain, Matrix
from dpregress.errors import InvalidInput, check_choice, one_line
from dpregress.estimators.marginals_fit import (
    TABLE_FAMILIES,
    check_columns,
    check_family,
    fit_marginals,
    marginal_estimates,
)
from dpregress.estimators.marginals_release import Released, release_marginals
from dpregress.estimators.parameters import checked_privacy
from dpregress.estimators.saving import SavingMixin
from dpregress.estimators.shown import ShownMixin
from dpregress.estimators.summary import SummaryNotes, narrowed_ranges, ranges_note
from dpregress.inference import IntervalKind, PredictedIntervals
from dpregress.inputs.coded import coded_design, coded_names
from dpregress.inputs.engines import stays_in_place
from dpregress.inputs.indices import check_aligned
from dpregress.inputs.names import check_default_target, listed
from dpregress.inputs.tables import joined_table
from dpregress.models import MULTINOMIAL, family_of
from dpregress.public import Schema
from dpregress.public.coding import domain_of
from dpregress.releases.marginals import design_names
from dpregress.releases.marginals_files import load_marginals, marginals_text
from dpregress.releases.model_files import ResponseModel
from dpregress.rows.engines import Progress
from dpregress.version import SOFTWARE

_RELEASE_FILE = "marginals.json"


class MarginalsRegression(ShownMixin, SavingMixin, BaseEstimator):
    r"""Regression of one coded column on others, from differentially private pair tables.

    Every column has a public list of levels. The pair tables of all columns are released once; the regression
    (and any other on the same release, and synthetic rows) is computed from them. A class enters as one indicator for
    every level but the first. A number enters in its own units, or by the positions of its levels, 0, 1, .., if these
    are not evenly spaced.

    Parameters
    ----------
    privacy : ApproxDP, GDP or ZCDP
        The budget, for adding or removing one record. ``recipe="aim"`` takes no GDP.
    family : {"gaussian", "binomial", "multinomial", "poisson"}, default="gaussian"
        Of the target: a number, one of two classes, one of several, a count.
    schema : Schema
        Levels or bounds of the columns (:meth:`Schema.from_levels` for integer codes). Numbers with bounds are cut
        into ``bins`` equal bins of the range in which released histograms show their values; those beyond count as
        its ends ("aim": of the bounds).
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
    coefficients_ : Coefficients or ClassCoefficients
        With names and standard errors (of the shrunk coefficients); these are not known for several classes.
    classes_ : tuple of str
        Of a class target.
    estimates_ : Estimates or None
        For inference, not shrunk; None for "multinomial" and "aim" (docs/inference.md).
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
    >>> bool(np.abs(model.coef_ - [1, 2]).max() < 0.1)
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
        check_aligned(X, y=y)
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
        engine: Any = None,
    ) -> Self:
        """Release the pair tables of the target and the features, and regress.

        Parameters
        ----------
        table : path or table
            CSV, Parquet, pandas, Polars or Arrow. Private; undeclared values are mapped (docs/methods/marginals.md).
            With ``engine="push-down"``, a query, a DuckDB relation or a table of Spark (docs/scale.md).
        target : str, default="y"
            The response's column.
        features : sequence of str, optional
            Default: all other columns of the schema that the table has.
        progress : bool or callable, default=True
            A bar on a terminal after two seconds, nothing, or what is called with (rows done, rows in all).
        engine : Engine, str, Dask client or cluster, optional
            Computes the sums; default: one thread for each processor (docs/scale.md).

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
        check_default_target(target, self.schema.columns, "the schema")
        held = coded_names(table, stays=stays_in_place(engine))
        if features is None:
            features = [name for name in self.schema.columns if name in held and name != target]
        features = listed(features)
        check_columns(target, features)
        check_choice("family", self.family, TABLE_FAMILIES)
        count = target if self.family == "poisson" else None
        domain = domain_of(self.schema, [*features, target], bins=self.bins, count=count)
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
            engine=engine,
        )
        return self._keep(released, target, tuple(features))

    @classmethod
    def from_release(
        cls,
        release: str | PathLike[str] | Self,
        target: str,
        features: Sequence[str] | None = None,
        *,
        family: str = "gaussian",
    ) -> Self:
        """Another regression on marginals that were released before. It costs nothing more.

        Parameters
        ----------
        release : path or MarginalsRegression
            What ``dpregress marginals release`` wrote, or ``marginals.json`` of a saved model; or a fitted model.
        target : str
        features : sequence of str, optional
            Default: all other columns of the release.
        family : {"gaussian", "binomial", "multinomial", "poisson"}, default="gaussian"

        Raises
        ------
        InvalidInput
            For a file of another kind, and for a target that the family cannot explain.
        """
        if isinstance(release, MarginalsRegression):
            check_is_fitted(release)
            released = Released(release.marginals_, release.privacy_)
        else:
            released = Released(*load_marginals(Path(release)))
        names = released.marginals.domain.names
        features = [name for name in names if name != target] if features is None else listed(features)
        return cls(released.privacy.budget, family=family)._keep(released, target, tuple(features))

    def _keep(self, released: Released, target: str, features: tuple[str, ...]) -> Self:
        """Set the attributes of a fitted model."""
        fitted = fit_marginals(released.marginals, target, features, self.family)
        self.estimates_ = marginal_estimates(released.marginals, target, features, self.family)
        self.fit_ = fitted
        self.coef_, self.coefficients_, self.moments_ = fitted.coef, fitted.coefficients, fitted.moments
        self.intercept_ = float(fitted.intercept) if fitted.intercept.ndim == 0 else fitted.intercept
        self.classes_ = fitted.classes
        self.marginals_, self.privacy_ = released.marginals, released.privacy
        self.n_features_in_ = len(features)
        self.feature_names_in_ = np.array(features, dtype=object)
        return self

    def _files(self) -> dict[str, str]:
        """With the release, from which :meth:`from_release` and ``dpregress marginals`` make other regressions."""
        check_is_fitted(self)
        return {**super()._files(), _RELEASE_FILE: marginals_text(self.marginals_, self.privacy_, software=SOFTWARE)}

    def predict(
        self, X: Any, *, interval: IntervalKind | None = None, level: float = 0.95
    ) -> NDArray[Any] | PredictedIntervals:
        """The expected target, or the likeliest class as the schema writes it, of shape (m,).

        Parameters
        ----------
        X : path, table, or array-like of shape (m, d)
            A path or a table is read by the names of the features, an array in their order. Cells are mapped as in the
            fit.
        interval : {"mean", "prediction"}, optional
            Also an interval of the mean response, or of a new one (linear models); the result is then a
            :class:`~dpregress.inference.PredictedIntervals`, centred on the unshrunk estimates.
        level : float, default=0.95
        """
        if interval is not None:
            return self._intervals(self._rows(X), interval, level)
        means = self.fit_.mean(self._rows(X))
        return np.array(self.classes_, dtype=object)[means.argmax(axis=1)] if self.classes_ else means

    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of ``classes_``, of shape (m, classes)."""
        means = self.fit_.mean(self._rows(X))
        if not self.classes_:
            raise InvalidInput(f"family={self.family!r} predicts a number: use predict")
        return means

    @property
    def response_model(self) -> ResponseModel:
        """Family, link, and the classes of a class target."""
        check_is_fitted(self)
        link = "logit" if self.fit_.family == MULTINOMIAL else family_of(self.fit_.family).link.name
        return ResponseModel(self.fit_.family, link, self.fit_.classes)

    @property
    def written_domain(self) -> Domain:
        """The domain of the features."""
        return self.fit_.domain.select(self.fit_.features)

    def _notes(self) -> SummaryNotes:
        """The ranges of numbers, within which the regression is."""
        domain = self.fit_.domain.select([*self.fit_.features, self.fit_.target])
        return SummaryNotes(after=tuple(ranges_note(narrowed_ranges(domain))))

    def _no_estimates(self) -> str:
        if self.family == MULTINOMIAL:
            return (
                "several classes have no estimates for inference on marginals: regress two classes, family='binomial'"
            )
        if self.marginals_.unshrunk is None:
            return (
                "this release has no estimates for inference, since it is of the recipe aim or of an earlier version: "
                'release again with another recipe than "aim"'
            )
        return (
            "the released tables are too noisy for inference, since no coefficients agree with them: take fewer "
            "features or levels, or a larger budget"
        )

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _terms(self) -> Mapping[str, Sequence[str]]:
        domain = self.fit_.domain
        return {name: design_names(domain, [name]) for name in self.fit_.features}

    def _rows(self, X: Any) -> Matrix:
        """Design rows in the units of users; undeclared cells are mapped as in the fit."""
        check_is_fitted(self)
        return coded_design(X, self.fit_.domain, self.fit_.features)

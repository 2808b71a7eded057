"""The spine of every central estimator: public facts, charge, ask, solve."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpregress.accounting import GDP, Event, Ledger, MemoryLedger, PrivacyStatement, gaussian_promise
from dpregress.errors import InvalidInput, LedgerError
from dpregress.estimators._data import design, matrix, training_source, training_table
from dpregress.estimators._summary import summary_of
from dpregress.inference import in_original_units
from dpregress.mechanisms import noise_source
from dpregress.public import PublicMoments, Schema
from dpregress.public.facts import Facts
from dpregress.public.whitening import start
from dpregress.releases import Coefficients, Vector
from dpregress.releases.files import ResponseModel
from dpregress.rows import PrivateRows, Source, TableSource, ThreadedEngine
from dpregress.rows.engines import Progress
from dpregress.rows.files import is_table
from dpregress.solvers import Solution, Solver, Uncertainty
from dpregress.trust import Central, Door

_LARGEST_PENALTY = 1e200
#: Whose data a fit protects: the record, whatever a ledger calls it.
_UNIT = "record"
_KINDS: dict[str, type[Any]] = {
    "privacy": Event,
    "public": PublicMoments,
    "schema": Schema,
    "ledger": Ledger,
    "row_bound": numbers.Real,
}


class PrivateLinearModel(BaseEstimator):
    """What linear estimators share. Subclasses choose the solver.

    The order is fixed: everything public is checked, the whole budget is charged, and only then is
    anything computed from private cells. A fit that fails after the charge stays charged.
    """

    privacy: Event | None
    public: PublicMoments | None
    schema: Schema | None
    row_bound: float | None
    fit_intercept: bool
    ledger: Ledger | None
    random_state: Any

    @abstractmethod
    def _solver(self, facts: Facts, budget: GDP) -> Solver:
        """The method, from public facts and the budget."""

    @abstractmethod
    def _uncertainty(self, solution: Solution) -> Uncertainty | None:
        """Covariances of the whitened coefficients, where they are known."""

    @property
    @abstractmethod
    def response_model(self) -> ResponseModel:
        """How the linear predictor becomes a prediction."""

    @property
    def target_classes(self) -> tuple[str, ...]:
        """Texts of the classes that the response may be; none for a number."""
        return ()

    def summary(self) -> str:
        """Coefficients, their standard errors and the guarantee, as text."""
        check_is_fitted(self)
        return summary_of(self.coefficients_, self.privacy_)

    def fit(self, X: ArrayLike, y: ArrayLike, *, progress: Progress | None = None) -> Self:
        """Fit within the budget of ``privacy``.

        Parameters
        ----------
        X : array-like or table of shape (n, d)
            NumPy, pandas, Polars or Arrow. Private. A missing or non-finite cell counts as the public mean.
        y : array-like of shape (n,)
            Private. A row without a finite response gets weight 0.
        progress : callable, optional
            Called with (rows done, rows in all) in every pass.

        Raises
        ------
        InvalidInput
            For public facts that do not fit together; nothing is charged then.
        BudgetExceeded
            When the ledger does not hold enough; nothing is charged or read then.
        """
        budget = self._checked_parameters()
        target = str(getattr(y, "name", None) or "y")
        source, features = training_source(X, y, target=target, schema=self.schema, public=self.public)
        validate_data(self, X, skip_check_array=True)
        return self._fit_source(budget, source, features, target, progress)

    def fit_table(
        self, source: Any, target: str, features: Sequence[str] | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Fit a column of a table on its others, as :meth:`fit` does.

        Parameters
        ----------
        source : path or table
            A CSV or Parquet file, or a pandas, Polars or Arrow table. Private.
        target : str
            The response's column.
        features : sequence of str, optional
            Columns to regress on; default: all others.
        progress : callable, optional

        Raises
        ------
        InvalidInput
            For a file or column that is not there, and all that :meth:`fit` refuses.
        """
        budget = self._checked_parameters()
        table, encoder = training_table(source, target, features, self.schema, self.target_classes)
        self.feature_names_in_ = np.array([name for name, _ in encoder.columns], dtype=object)
        self.n_features_in_ = len(encoder.columns)
        return self._fit_source(budget, TableSource(table, encoder), encoder.features, target, progress)

    def _fit_source(
        self, budget: Event, source: Source, features: tuple[str, ...], target: str, progress: Progress | None
    ) -> Self:
        if source.n == 0 or not features:
            missing = "rows" if source.n == 0 else "features"
            raise InvalidInput(f"the table has no {missing}: nothing can be fitted")
        public = None if self.public is None else self.public.select(features)
        facts = Facts(
            n=source.n,
            target=target,
            start=start(
                features,
                intercept=self.fit_intercept,
                public=public,
                schema=self.schema,
                row_bound=self.row_bound,
            ),
            public=public,
            schema=self.schema,
        )
        promise = gaussian_promise(budget)
        solver = self._solver(facts, promise)
        trust = Central()
        trust.accept(solver.rounds)
        noise = noise_source(self.random_state)
        ledger = MemoryLedger(promise) if self.ledger is None else self.ledger
        if ledger.account.unit != _UNIT:
            raise LedgerError(f"this ledger counts a {ledger.account.unit}; a fit protects a {_UNIT}")
        reservation = ledger.reserve(promise, note=f"{type(self).__name__} of {target}")
        rows = PrivateRows(source, ThreadedEngine(progress=progress))
        solution = solver.solve(Door(trust, rows, noise, reservation))

        result = _coefficients(solution, self._uncertainty(solution), facts)
        self.coefficients_ = result
        self.coef_: Vector = result.coef
        self.intercept_: float = result.intercept
        self.moments_ = solution.moments
        self.privacy_ = PrivacyStatement(
            budget=budget,
            promise=promise,
            events=reservation.drawn,
            relation=reservation.relation,
            unit=_UNIT,
            assumed_public=facts.assumed_public(),
            seeded=noise.seeded,
            recorded=reservation.recorded,
        )
        return self

    def _checked_parameters(self) -> Event:
        """Refuse parameters of another type than documented; the budget."""
        if self.privacy is None:
            raise InvalidInput("privacy= is not set: say how much may be spent, such as ApproxDP(1.0, 1e-6)")
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidInput(f"{name}= takes a {kind.__name__}, not a {type(value).__name__}")
        return self.privacy

    def _linear_predictor(self, X: ArrayLike) -> Vector:
        check_is_fitted(self)
        if not is_table(X):
            matrix(X)  # its shape is judged before its width is compared
        validate_data(self, X, reset=False, skip_check_array=True)
        x = design(X, schema=self.schema, features=self.coefficients_.features)
        if x.shape[1] != len(self.coefficients_.features):
            raise InvalidInput(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting "
                f"{len(self.coefficients_.features)} features as input"
            )
        return self.coefficients_.predict(x)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags


def checked_penalty(alpha: float, facts: Facts) -> float:
    """Refuse a penalty that is negative, not finite, or beyond what the columns' scales can carry."""
    try:
        usable = math.isfinite(alpha) and alpha >= 0
    except TypeError:
        usable = False
    if not usable:
        raise InvalidInput(f"alpha must be finite and not negative, not {alpha!r}")
    if alpha * float(np.abs(facts.start.frame.slopes).max()) ** 2 > _LARGEST_PENALTY:
        raise InvalidInput(f"alpha = {alpha:g} is beyond any number for columns of this scale: choose a smaller one")
    return float(alpha)


def _coefficients(solution: Solution, uncertainty: Uncertainty | None, facts: Facts) -> Coefficients:
    """Coefficients in original units with their standard errors, NaN where those are not known."""
    frame = solution.frame
    coef, intercept = frame.pull_back(solution.whitened)
    unknown = np.full(len(coef), np.nan)
    return Coefficients(
        features=frame.features,
        coef=coef,
        intercept=intercept,
        target=facts.target,
        n=facts.n,
        privacy_error=unknown if uncertainty is None else in_original_units(uncertainty.privacy, frame),
        standard_error=unknown if uncertainty is None else in_original_units(uncertainty.total, frame),
        fill=frame.fill,
    )

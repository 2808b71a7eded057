"""Proportional hazards, constant in pieces of the follow-up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from dpregress.accounting import GDP, Event, Ledger
from dpregress.coordinates import Vector
from dpregress.display import plain
from dpregress.errors import InvalidInput
from dpregress.estimators.central import CentralModel
from dpregress.estimators.curves import SurvivalCurves, concordance, in_words_of_time, times_of
from dpregress.estimators.parameters import checked_robust
from dpregress.inputs.tables import numbers, read_once
from dpregress.models.hazards import SURVIVAL, checked_cuts
from dpregress.public import Schema
from dpregress.public.facts import PublicFacts
from dpregress.releases import Coefficients
from dpregress.releases.model_files import ResponseModel
from dpregress.rows.engines import Progress
from dpregress.solvers import PieceSteps, Solution, Solver, Uncertainty
from dpregress.solvers.glm.piece_steps import PieceSolution


class DPSurvival(RegressorMixin, CentralModel, SurvivalCurves):
    r"""Proportional hazards ``h(t | x) = h_k exp(X b)`` under differential privacy, with h constant in pieces.

    The response is whether the event occurred (1) or the person was censored (0), at the person's time. The likelihood
    is that of Poisson counts with exposure in each piece, and one row is one person: all its pieces are protected
    together, at no additional cost.

    Parameters
    ----------
    privacy : GDP, ApproxDP or ZCDP
        The whole budget of a fit, for replacing one person.
    cuts : sequence of float
        Public ends of the pieces, such as ``(30, 90, 365)``; the last is the end of the follow-up, where everybody is
        censored. There is no default: the unit of time is yours.
    public, schema, row_bound, formula, cov_type, ledger, random_state
        As in :class:`DPGLMRegressor`. Public rows give the scales of columns; their responses are not used.

    Attributes
    ----------
    coef_, privacy_, coefficients_, estimates_, n_features_in_, feature_names_in_
        As in :class:`DPRidge`; :meth:`ratios` has hazard ratios with their intervals.
    log_hazards_ : ndarray of shape (K,)
        Log hazards of the pieces for features of 0; their mean is ``intercept_``.
    log_hazard_errors_ : ndarray of shape (K,)
        Standard errors of their differences from the mean; NaN for pieces whose hazard noise hides.

    References
    ----------
    docs/methods/survival.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import DPSurvival, GDP, PublicMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 1)); life = rng.exponential(np.exp(-0.7 * X[:, 0]))
    >>> end = rng.uniform(0, 2, 20_000)
    >>> public = PublicMoments.from_rows(X[:300])
    >>> model = DPSurvival(GDP(1.0), cuts=(0.5, 1, 2), public=public)
    >>> model = model.fit(X[300:], (life <= end)[300:], time=np.minimum(life, end)[300:])
    >>> bool(abs(model.coef_[0] - 0.7) < 0.1)
    True
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        cuts: Sequence[float] | None = None,
        public: Any = None,
        schema: Schema | None = None,
        row_bound: float | None = None,
        formula: str | None = None,
        cov_type: str = "robust",
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.privacy = privacy
        self.cuts = cuts
        self.public = public
        self.schema = schema
        self.row_bound = row_bound
        self.formula = formula
        self.cov_type = cov_type
        self.ledger = ledger
        self.random_state = random_state

    #: The baseline hazard is the intercept of every model.
    fit_intercept = True

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        time: ArrayLike | None = None,
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
            One row for each person. Private.
        y : array-like of shape (n,)
            1 for an event, 0 for a censored person. Private.
        time : array-like of shape (n,)
            The time of the event or of censoring. Private. A person whose time is not a positive finite number gets
            weight 0.
        exposure, diagnose
            Not offered.
        weights, unit, max_rows_per_unit, progress
            As in :meth:`DPGLMRegressor.fit`, for people with several spells.
        """
        self._check_formula()
        if exposure is not None or time is None:
            raise InvalidInput("give time=, the time of each person's event or censoring, and no exposure=")
        with in_words_of_time():
            return super().fit(
                X,
                y,
                exposure=time,
                weights=weights,
                unit=unit,
                max_rows_per_unit=max_rows_per_unit,
                diagnose=diagnose,
                progress=progress,
            )

    def fit_table(
        self,
        table: Any,
        target: str | None = None,
        features: Sequence[str] | None = None,
        engine: Any = None,
        progress: bool | Progress = True,
        *,
        time: str | None = None,
        exposure: str | None = None,
        weights: str | None = None,
        unit: str | None = None,
        max_rows_per_unit: int | None = None,
        diagnose: float = 0.0,
    ) -> Self:
        """Fit a column of events of any table, as :meth:`DPGLMRegressor.fit_table` has it; ``time`` names the times."""
        self._check_formula()
        if exposure is not None or time is None:
            raise InvalidInput("give time=, the column of the times of events or censoring, and no exposure=")
        with in_words_of_time():
            return super().fit_table(
                table, target, features, engine, progress, exposure=time, weights=weights, unit=unit,
                max_rows_per_unit=max_rows_per_unit, diagnose=diagnose,
            )  # fmt: skip

    def predict(self, X: ArrayLike, *, time: ArrayLike | float | str | None = None) -> Vector:
        """Probability of the event until a time, ``1 - exp(-H(t) exp(X b))``, of shape (m,).

        Parameters
        ----------
        X : array-like or table of shape (m, d)
            Missing cells are replaced as in the fit.
        time : array-like of shape (m,), float or str, optional
            One for each row, one for all, or the name of their column in X. Default: the end of the follow-up. NaN is
            returned for times below 0 and beyond the last cut.
        """
        X = read_once(X)
        predictor = self._linear_predictor(X)
        times = times_of(self.cuts_[-1] if time is None else time, X, len(predictor))
        return self.response_model.probability(predictor, times)

    def score(self, X: ArrayLike, y: ArrayLike, *, time: ArrayLike | str | None = None) -> float:
        """Harrell's concordance within the follow-up, of rows that you may see: it has no noise and no guarantee.

        Of the pairs of people of whom one is known to have had the event earlier, it is the share in which that one has
        the larger hazard; equal ones count half. 1/2 is chance; NaN without such a pair.

        Parameters
        ----------
        X : array-like or table of shape (m, d)
        y : array-like of shape (m,)
            1 for an event, 0 for a censored person. Rows without a response or a positive finite time do not count.
        time : array-like of shape (m,) or str
            As in :meth:`fit`, or the name of its column in X.
        """
        if time is None:
            raise InvalidInput(
                "give time=, the time of each person's event or censoring: score is a concordance of times"
            )
        X = read_once(X)
        predictor, event = self._linear_predictor(X), numbers(y)
        times = times_of(time, X, len(predictor))
        if len(event) != len(predictor):
            raise InvalidInput(f"X has {len(predictor)} rows, y has {len(event)}")
        end = self.cuts_[-1]
        seen = np.isfinite(predictor) & np.isfinite(event) & np.isfinite(times) & (times > 0)
        died = (event >= 0.5) & (times <= end)
        return concordance(predictor[seen], np.minimum(times, end)[seen], died[seen])

    @property
    def response_model(self) -> ResponseModel:
        """The family, the time, and the hazards of the pieces relative to their mean."""
        relative = tuple(getattr(self, "_relative", ()))
        return ResponseModel(SURVIVAL, "log", (), self.exposure_, getattr(self, "cuts_", ()), relative)

    @property
    def _compares_public(self) -> bool:
        """Its pieces of time are no rows of public moments."""
        return False

    def _solver(self, facts: PublicFacts, budget: GDP) -> Solver:
        return PieceSteps(facts, checked_cuts(self.cuts), budget, robust=checked_robust(self.cov_type))

    def _uncertainty(self, solution: Solution) -> Uncertainty | None:
        return solution.uncertainty

    def _suited(self, *_: Any) -> None:
        """The released information weights people by their hazard, and is not comparable with public rows."""

    def _result(self, solution: Solution, facts: PublicFacts) -> Any:
        assert isinstance(solution, PieceSolution)
        assert solution.relative is not None
        assert solution.relative_covariance is not None
        found = super()._result(solution, facts)
        assert isinstance(found, Coefficients)
        self.cuts_ = checked_cuts(self.cuts)
        self._relative = tuple(float(value) for value in solution.relative)
        self.log_hazards_: Vector = found.intercept + solution.relative
        self.log_hazard_errors_: Vector = np.sqrt(np.maximum(np.diag(solution.relative_covariance), 0.0))
        return found

    def _check_formula(self) -> None:
        """Refuse the response of other libraries' formulas in the words of this one."""
        found = re.match(
            r"\s*Surv\s*\(([^(),]*),([^(),]*)\)\s*~", self.formula if isinstance(self.formula, str) else ""
        )
        if found:
            time, event = (plain(name.strip()) for name in found.groups())
            raise InvalidInput(f'formulas have no Surv: write "{event} ~ ..", and give time="{time}" to fit_table')

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

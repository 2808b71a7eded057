"""Linear regression and ridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpregress.accounting import GDP, Event, Ledger
from dpregress.errors import InvalidInput, check_choice
from dpregress.estimators.central import CentralModel, checked_penalty
from dpregress.estimators.habits import in_own_names
from dpregress.estimators.moments_fit import regress_moments
from dpregress.estimators.parameters import checked_robust
from dpregress.estimators.released_moments import ReleasedMoments
from dpregress.estimators.scoring import VarianceScore
from dpregress.inference import IntervalKind, privacy_covariance, sampling_covariance
from dpregress.papers.cao2026 import PublishedRidge, published_space
from dpregress.public import Schema
from dpregress.public.facts import PublicFacts
from dpregress.releases.model_files import ResponseModel
from dpregress.solvers import OneShot, Residual, Solution, Solver, Uncertainty

#: The eta of the paper's simulations, used by ``recipe="paper"``.
_PAPER_ETA = 0.05


def _published(facts: PublicFacts, budget: GDP, alpha: float) -> Solver:
    if facts.public is None:
        raise InvalidInput('recipe="paper" needs labelled public rows: give public=')
    space = published_space(facts.public, facts.n, _PAPER_ETA, intercept=facts.start.space.intercept)
    return PublishedRidge(space, budget, alpha / facts.n)


#: The solver of each recipe, from public facts, the budget and the ridge penalty. A new recipe is added here.
LINEAR_RECIPES: Mapping[str, Callable[[PublicFacts, GDP, float], Solver]] = {
    "residual": Residual,
    "one-shot": OneShot,
    "paper": _published,
}


class DPRidge(VarianceScore, CentralModel):
    r"""Ridge regression under differential privacy.

    Minimises ``||y - Xb - b0||^2 + alpha ||b||^2`` from a noisy Gram matrix and a few noisy correlations of x with
    residuals; the penalty is that of scikit-learn. Without noise, truncation and clipping, so are the coefficients.
    Row weights shrink the Gram matrix but not alpha, so that the penalty has somewhat more weight.

    Parameters
    ----------
    privacy : GDP, ApproxDP or ZCDP
        The whole budget of a fit, for replacing one record.
    public : PublicMoments, table or file, optional
        Moments of public rows with the same columns, or the rows themselves (a table or a file), which the schema
        encodes. A fit to labelled rows, which have a column with y's name, is the starting point and the prior.
    schema : Schema, optional
        Bounds and levels. Bounds of y are looked up under its name (the name of a Series, otherwise "y").
    row_bound : float, optional
        A public bound on the norm of a row, if there is neither a public table nor a schema.
    alpha : float, default=1.0
        Not negative.
    fit_intercept : bool, default=True
    formula : str, optional
        Such as ``"visits ~ age + C(plan)"``: determines the columns and the intercept (docs/formulas.md).
    recipe : {"residual", "one-shot", "paper"}, default="residual"
        Private residual steps; one joint release of moments, from which fits with other penalties cost nothing; or
        Algorithm 2 of Cao, Bi and Zhang (2026) with its constants, which needs labelled public rows.
    cov_type : {"robust", "model"}, default="robust"
        The sampling covariance of ``estimates_``: from a released second moment of scores, which takes 1% to 6% of the
        budget and allows for unequal error variances; or from one error variance, which is free (docs/inference.md).
        Of ``"one-shot"`` it is ``"model"``; ``"paper"`` has no estimates for inference.
    ledger : Ledger, optional
        Charged with the whole budget before any row is read. Without a ledger the spending is not recorded.
    random_state : None, int or numpy Generator
        None draws noise from the operating system. A seed is for tests and simulations, and raises a warning.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
    intercept_ : float
    privacy_ : PrivacyStatement
        The guarantee of this fit, and the events that it drew.
    coefficients_ : Coefficients
        The same coefficients with names and standard errors.
    estimates_ : Estimates or None
        Estimates that are not shrunk, for intervals and tests (docs/inference.md); None for a recipe without them.
    moments_ : Moments or None
        The noisy moments of the one-shot recipe; anything computed from them is post-processing.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had names.

    References
    ----------
    Cao, Bi, Zhang (2026), Algorithms 1 and 2; docs/methods/residual.md, docs/methods/one-shot.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import ApproxDP, DPRidge, PublicMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3)); y = X @ [1.0, 2.0, 3.0] + rng.normal(size=20_000)
    >>> public = PublicMoments.from_rows(X[:200], y[:200])
    >>> model = DPRidge(ApproxDP(1.0, 1e-6), public=public).fit(X[200:], y[200:])
    >>> bool(np.abs(model.coef_ - [1, 2, 3]).max() < 0.5)
    True
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        public: Any = None,
        schema: Schema | None = None,
        row_bound: float | None = None,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        formula: str | None = None,
        recipe: str = "residual",
        cov_type: str = "robust",
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.privacy = privacy
        self.public = public
        self.schema = schema
        self.row_bound = row_bound
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.formula = formula
        self.recipe = recipe
        self.cov_type = cov_type
        self.ledger = ledger
        self.random_state = random_state

    @classmethod
    def from_moments(
        cls,
        moments: ReleasedMoments,
        target: str | None = None,
        features: Sequence[str] | None = None,
        **parameters: Any,
    ) -> Self:
        """A fit to moments that were released before: any column on any others, at no further cost.

        Nothing is read or drawn. The estimates for inference assume equal error variances (``cov_type="model"``).

        Parameters
        ----------
        moments : ReleasedMoments
            From :func:`~dpregress.release_moments`, :func:`~dpregress.combine` or their file.
        target : str, optional
            The response: a column of numbers, or an indicator such as ``"plan=full"``. A formula names it itself.
        features : sequence of str, optional
            Columns or design columns; default: all but those of the target.
        **parameters
            ``alpha`` of :class:`DPRidge`, ``fit_intercept`` or ``formula``, whose columns must have been released.

        Raises
        ------
        InvalidInput
            For columns that were not released.
        TypeError
            For a parameter that the class does not have.
        """
        model = cls(recipe="one-shot", cov_type="model", **parameters)
        regress_moments(model, moments, target, features, model._penalty())
        model.set_params(privacy=model.privacy_.budget, schema=moments.schema)
        return model

    @in_own_names
    def predict(self, X: ArrayLike, *, interval: IntervalKind | None = None, level: float = 0.95) -> Any:
        """``X coef + intercept``, of shape (m,), within ``coefficients_.reach``: the declared bounds of the response.

        Of rows far from all others it is less if released votes or public rows say so; intervals are not limited.

        Parameters
        ----------
        X : array-like or table of shape (m, d)
            Missing cells are replaced as in the fit.
        interval : {"mean", "prediction"}, optional
            Also an interval of the mean response, or of a new one; the result is then a
            :class:`~dpregress.inference.PredictedIntervals` about the unshrunk estimate, within the same bounds.
        level : float, default=0.95
        """
        rows = self._rows(X)
        return self.coefficients_.predict(rows) if interval is None else self._intervals(rows, interval, level)

    def _penalty(self) -> float:
        return self.alpha

    def _solver(self, facts: PublicFacts, budget: GDP) -> Solver:
        alpha = checked_penalty(self._penalty(), facts.start.space)
        robust, recipe = checked_robust(self.cov_type), LINEAR_RECIPES[self.recipe]
        return Residual(facts, budget, alpha, robust=robust) if recipe is Residual else recipe(facts, budget, alpha)

    @property
    def _compares_public(self) -> bool:
        """The recipes of papers and of one release are as they are published."""
        check_choice("recipe", self.recipe, LINEAR_RECIPES)
        return self.recipe == "residual"

    @property
    def response_model(self) -> ResponseModel:
        """The linear predictor is the prediction."""
        return ResponseModel()

    def _uncertainty(self, solution: Solution) -> Uncertainty | None:
        if solution.moments is None:
            return solution.uncertainty
        noise = privacy_covariance(solution.moments, solution.whitened, solution.system)
        sampling = sampling_covariance(solution.moments, solution.whitened, solution.system)
        return Uncertainty(noise, noise + sampling)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the checks fit tens of rows, which noise must hide
        return tags


class DPLinearRegression(DPRidge):
    r"""Ordinary least squares under differential privacy.

    Minimises ``||y - Xb - b0||^2``: :class:`DPRidge` without a penalty.

    Parameters
    ----------
    privacy, public, schema, row_bound, fit_intercept, formula, recipe, cov_type, ledger, random_state
        As in :class:`DPRidge`.

    Attributes
    ----------
    coef_, intercept_, privacy_, coefficients_, estimates_, moments_, n_features_in_, feature_names_in_
        As in :class:`DPRidge`.

    References
    ----------
    Cao, Bi, Zhang (2026), Algorithms 1 and 2; docs/methods/residual.md, docs/methods/one-shot.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import DPLinearRegression, GDP, Numeric, Schema
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(20_000, 2)); y = X @ [1.0, 2.0]
    >>> schema = Schema({"x0": Numeric(0, 1), "x1": Numeric(0, 1), "y": Numeric(0, 3)})
    >>> model = DPLinearRegression(GDP(1.0), schema=schema).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2]).max() < 0.2)
    True
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        public: Any = None,
        schema: Schema | None = None,
        row_bound: float | None = None,
        fit_intercept: bool = True,
        formula: str | None = None,
        recipe: str = "residual",
        cov_type: str = "robust",
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            privacy,
            public=public,
            schema=schema,
            row_bound=row_bound,
            fit_intercept=fit_intercept,
            formula=formula,
            recipe=recipe,
            cov_type=cov_type,
            ledger=ledger,
            random_state=random_state,
        )

    def _penalty(self) -> float:
        return 0.0

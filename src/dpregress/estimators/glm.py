"""Generalised linear models: Poisson, Gamma, logistic, and any family with any of its links."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from dpregress.accounting import GDP, Event, Ledger
from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput
from dpregress.estimators.central import CentralModel, checked_penalty
from dpregress.estimators.classes import ClassModel
from dpregress.estimators.parameters import checked_robust
from dpregress.estimators.results import original
from dpregress.estimators.scoring import AccuracyScore, ExposedScore
from dpregress.inference import IntervalKind
from dpregress.inputs.tables import coded
from dpregress.models import Family, family_of
from dpregress.public import Schema
from dpregress.public.facts import PublicFacts
from dpregress.releases import ClassCoefficients, Coefficients
from dpregress.releases.model_files import ResponseModel
from dpregress.solvers import MultinomialSteps, ScoreSteps, Solution, Solver, Uncertainty
from dpregress.solvers.glm.multinomial import of_classes


class _ScoredModel(CentralModel):
    """Base class of generalised linear models."""

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        public: Any = None,
        schema: Schema | None = None,
        row_bound: float | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        formula: str | None = None,
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
        self.cov_type = cov_type
        self.ledger = ledger
        self.random_state = random_state

    @abstractmethod
    def _family(self) -> Family:
        """The distribution and the link."""

    def _solver(self, facts: PublicFacts, budget: GDP) -> Solver:
        family = self._family()
        distribution = family.distribution
        if facts.labels is not None and not distribution.possible(facts.labels).all():
            raise InvalidInput(
                f"the public rows hold responses that {distribution.name} cannot have ({distribution.support}): "
                "correct them, or leave their labels out"
            )
        robust = checked_robust(self.cov_type)
        return ScoreSteps(facts, family, budget, checked_penalty(self.alpha, facts.start.space), robust=robust)

    @property
    def response_model(self) -> ResponseModel:
        """Family, link, the classes of a binomial response, and the name of the exposure."""
        family = self._family()
        kind = family.distribution.name, family.link.name
        return ResponseModel(*kind, self.target_classes, self.exposure_, labels=self.target_labels)

    def _uncertainty(self, solution: Solution) -> Uncertainty | None:
        return solution.uncertainty


class _ScoredRegressor(ExposedScore, _ScoredModel):
    """A model whose prediction is the mean response; its family has a name."""

    _name: str

    def _family(self) -> Family:
        return family_of(self._name)

    def predict(
        self,
        X: ArrayLike,
        *,
        exposure: ArrayLike | str | None = None,
        interval: IntervalKind | None = None,
        level: float = 0.95,
    ) -> Any:
        """Mean responses ``m(X coef + intercept + log exposure)``, of shape (m,); see ``Coefficients.reach``.

        Parameters
        ----------
        X : array-like or table of shape (m, d)
            Missing cells are replaced as in the fit.
        exposure : array-like of shape (m,) or str, optional
            For a model that was fitted with an exposure: its values, or their column in X. Default: the column that the
            fit had, if X has it, otherwise 1 for every row: rates. NaN if an exposure is not a positive finite number.
        interval : {"mean", "prediction"}, optional
            Also an interval of the mean response, or of a new one; the result is then a
            :class:`~dpregress.inference.PredictedIntervals` about the unshrunk estimate.
        level : float, default=0.95
        """
        rows, offset = self._rows_and_offset(X, exposure)
        if interval is not None:
            return self._intervals(rows, interval, level, offset)
        return self._family().mean(self.coefficients_.predict(rows) + offset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the checks fit tens of rows, which noise must hide
        return tags


class DPGLMRegressor(_ScoredRegressor):
    r"""A generalised linear model under differential privacy.

    Solves the score equations ``sum x (y - m(x'b)) m'/V = alpha b`` by noisy scoring on one private Gram matrix.
    Each row's score is bounded (row weights, clipped residuals), not the coefficients.

    Parameters
    ----------
    privacy : GDP, ApproxDP or ZCDP
        The whole budget of a fit, for replacing one record.
    family : str, default="poisson"
        A family of numbers, such as "poisson", "gamma", "inverse-gaussian", "gaussian" or "binomial";
        docs/queries.md has the table of families with their links.
    link : str, optional
        One of the family's links, such as "identity"; default: the first in the table.
    public : PublicMoments, table or file, optional
        Moments of public rows with the same columns, or the rows themselves. Labelled rows provide the starting point
        and the prior.
    schema : Schema, optional
    row_bound : float, optional
        A public bound on the norm of a row, if there is neither a public table nor a schema.
    alpha : float, default=0.0
        Ridge penalty ``alpha / 2 ||b||^2`` on the slopes, subtracted from the log-likelihood.
    fit_intercept : bool, default=True
    formula, ledger, random_state
        As in :class:`DPRidge`.
    cov_type : {"robust", "model"}, default="robust"
        The sampling covariance of ``estimates_``: from a released second moment of scores, which takes 1% to 6% of the
        budget and allows for another variance than the family's; or by the family, which is free (docs/inference.md).

    Attributes
    ----------
    coef_, intercept_, privacy_, coefficients_, estimates_, n_features_in_, feature_names_in_
        As in :class:`DPRidge`.

    References
    ----------
    docs/methods/score-steps.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import ApproxDP, DPGLMRegressor, PublicMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)); y = rng.poisson(np.exp(1 + X @ [0.5, -0.5]))
    >>> public = PublicMoments.from_rows(X[:300], y[:300])
    >>> model = DPGLMRegressor(ApproxDP(1.0, 1e-6), family="poisson", public=public).fit(X[300:], y[300:])
    >>> bool(np.abs(model.coef_ - [0.5, -0.5]).max() < 0.2)
    True
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        family: str = "poisson",
        link: str | None = None,
        public: Any = None,
        schema: Schema | None = None,
        row_bound: float | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        formula: str | None = None,
        cov_type: str = "robust",
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            privacy,
            public=public,
            schema=schema,
            row_bound=row_bound,
            alpha=alpha,
            fit_intercept=fit_intercept,
            formula=formula,
            cov_type=cov_type,
            ledger=ledger,
            random_state=random_state,
        )
        self.family = family
        self.link = link

    def _family(self) -> Family:
        return family_of(self.family, self.link)


class DPPoissonRegressor(_ScoredRegressor):
    r"""Poisson regression of counts, ``E y = exp(X b + b0)``, under differential privacy.

    Parameters
    ----------
    privacy, public, schema, row_bound, alpha, fit_intercept, formula, cov_type, ledger, random_state
        As in :class:`DPGLMRegressor`.

    Attributes
    ----------
    coef_, intercept_, privacy_, coefficients_, estimates_, n_features_in_, feature_names_in_
        As in :class:`DPRidge`.

    References
    ----------
    docs/methods/score-steps.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import DPPoissonRegressor, GDP, PublicMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 1)); y = rng.poisson(np.exp(1 + 0.5 * X[:, 0]))
    >>> public = PublicMoments.from_rows(X[:300], y[:300])
    >>> model = DPPoissonRegressor(GDP(1.0), public=public).fit(X[300:], y[300:])
    >>> bool(abs(model.predict(X).mean() / y.mean() - 1) < 0.1)
    True
    """

    _name = "poisson"


class DPGammaRegressor(_ScoredRegressor):
    r"""Gamma regression of positive amounts, ``E y = exp(X b + b0)``, under differential privacy.

    Parameters
    ----------
    privacy, public, schema, row_bound, alpha, fit_intercept, formula, cov_type, ledger, random_state
        As in :class:`DPGLMRegressor`.

    Attributes
    ----------
    coef_, intercept_, privacy_, coefficients_, estimates_, n_features_in_, feature_names_in_
        As in :class:`DPRidge`.

    References
    ----------
    docs/methods/score-steps.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import DPGammaRegressor, GDP, PublicMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 1)); y = rng.gamma(2.0, np.exp(3 + 0.5 * X[:, 0]) / 2)
    >>> public = PublicMoments.from_rows(X[:300], y[:300])
    >>> model = DPGammaRegressor(GDP(1.0), public=public).fit(X[300:], y[300:])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.2)
    True
    """

    _name = "gamma"


class DPLogisticRegression(AccuracyScore, ClassModel, _ScoredModel):
    r"""Logistic regression, ``P(y = classes[1]) = 1 / (1 + exp(-X b - b0))``, under differential privacy.

    For K > 2 classes the model is multinomial: ``P(y = classes[k])`` is the softmax of ``X b_k + b0_k``, and the K
    rows of coefficients sum to 0. The classes are public knowledge and are never read from private labels. Any other
    label counts as missing.

    Parameters
    ----------
    privacy, public, schema, row_bound, alpha, fit_intercept, formula, cov_type, ledger, random_state
        As in :class:`DPGLMRegressor`. Labels of public rows are positions of the classes, 0 for the first, or the
        classes themselves if these are numbers.
    classes : sequence of numbers or str, optional
        At least two different classes. Default: the levels of the response in the schema, in their order; otherwise
        False and True for booleans, and 0 and 1 for numbers. The classes of a text response must be given.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_, intercept_ : ndarray of shape (d,), float
        For more than two classes, of shapes (K, d) and (K,).
    privacy_, coefficients_, estimates_, n_features_in_, feature_names_in_
        As in :class:`DPRidge`.

    References
    ----------
    docs/methods/score-steps.md, docs/methods/multinomial.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import ApproxDP, DPLogisticRegression, PublicMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2)); y = np.where(X @ [1.0, -1.0] + rng.logistic(size=20_000) > 0, "yes", "no")
    >>> public = PublicMoments.from_rows(X[:300])
    >>> model = DPLogisticRegression(ApproxDP(1.0, 1e-6), public=public, classes=("no", "yes"))
    >>> bool(model.fit(X[300:], y[300:]).score(X, y) > 0.6)
    True
    """

    def __init__(
        self,
        privacy: Event | None = None,
        *,
        classes: Sequence[float | str] | None = None,
        public: Any = None,
        schema: Schema | None = None,
        row_bound: float | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        formula: str | None = None,
        cov_type: str = "robust",
        ledger: Ledger | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            privacy,
            public=public,
            schema=schema,
            row_bound=row_bound,
            alpha=alpha,
            fit_intercept=fit_intercept,
            formula=formula,
            cov_type=cov_type,
            ledger=ledger,
            random_state=random_state,
        )
        self.classes = classes

    def _family(self) -> Family:
        return family_of("binomial")

    def _solver(self, facts: PublicFacts, budget: GDP) -> Solver:
        if facts.public is not None and facts.public.labels is not None:
            labels = self._positions(facts.public.labels)
            facts = replace(facts, public=replace(facts.public, labels=labels))
        if self._several:
            alpha, robust = checked_penalty(self.alpha, facts.start.space), checked_robust(self.cov_type)
            return MultinomialSteps(facts, len(self.target_classes), budget, alpha, robust=robust)
        return super()._solver(facts, budget)

    def _positions(self, labels: Vector) -> Vector:
        """Public labels as positions of classes."""
        classes = self.target_classes
        positions = np.isin(labels, np.arange(len(classes))).all()
        known = coded(labels, classes)
        if self._several and positions and np.isfinite(known).all() and not np.array_equal(known, labels):
            raise InvalidInput(
                "labels of the public rows could be the classes or their positions: give rows that include every class"
            )
        labels = labels if positions else known
        if not np.isfinite(labels).all():
            last = len(classes) - 1
            raise InvalidInput(
                f"labels of the public rows must be {'0 and 1' if last == 1 else f'0 to {last}'}, or the classes"
            )
        return labels

    @property
    def _several(self) -> bool:
        return len(self.target_classes) > 2

    @property
    def response_model(self) -> ResponseModel:
        """Family, link and classes."""
        if self._several:
            return ResponseModel("multinomial", "logit", self.target_classes, labels=self.target_labels)
        return super().response_model

    def _result(self, solution: Solution, facts: PublicFacts) -> Coefficients | ClassCoefficients:
        if not self._several:
            return super()._result(solution, facts)
        several = of_classes(solution, len(self.target_classes))
        each = tuple(original(one, self._uncertainty(one), facts) for one in several)
        return ClassCoefficients(self.target_classes, each)

    def decision_function(self, X: ArrayLike) -> Vector:
        """``X coef + intercept``, of shape (m,); for more than two classes ``X coef' + intercept``, of shape (m, K)."""
        return self._linear_predictor(X)

    def predict_proba(self, X: ArrayLike) -> Vector:
        """Probabilities of the classes, of shape (m, K)."""
        predictor = self._linear_predictor(X)
        if self._several:
            return np.asarray(softmax(predictor, axis=1))
        second = self._family().mean(predictor)
        return np.column_stack([1 - second, second])

    def predict(self, X: ArrayLike, *, interval: IntervalKind | None = None, level: float = 0.95) -> Any:
        """The most likely class of each row, of shape (m,).

        Parameters
        ----------
        X : array-like or table of shape (m, d)
        interval : {"mean"}, optional
            In place of the class, the probability of the second of two classes with an interval, or of each of more
            classes, as a :class:`~dpregress.inference.PredictedIntervals` about the unshrunk estimate.
        level : float, default=0.95
        """
        if interval is not None:
            rows, offset = self._rows_and_offset(X)
            return self._intervals(rows, interval, level, offset)
        predictor = self._linear_predictor(X)
        return self.classes_[predictor.argmax(axis=1) if self._several else (predictor > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # the checks fit tens of rows, which noise must hide
        return tags

"""Intervals, tests and summaries of fitted models, under the names that statsmodels has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.display import plain, some_and_more
from dpregress.errors import InvalidInput, NotAvailable, check_choice, one_line
from dpregress.estimators.fit_statistics import FitStatistics
from dpregress.estimators.summary import SummaryNotes, ratio_table_of, summary_of
from dpregress.inference import (
    Approximation,
    IntervalKind,
    PenaltyPath,
    PredictedIntervals,
    Submodel,
    SubsetPath,
    TermTests,
    TTest,
    WaldTest,
    best_subsets,
    checked_level,
    class_intervals,
    forward_selection,
    intervals,
    masked_covariance,
    p_values,
    penalty_path,
    predicted_intervals,
    standard_errors,
    submodel,
    t_ratios,
    t_tests,
    term_tests,
    wald,
)
from dpregress.inputs.names import listed
from dpregress.models import MULTINOMIAL, family_of
from dpregress.models.hazards import SURVIVAL
from dpregress.public import Schema
from dpregress.releases.estimates import INTERCEPT
from dpregress.reports.page import ratio_name
from dpregress.reports.summary import Summary, SummaryTable
from dpregress.rows.design.encoder import text_of

#: Intervals by the names of other libraries.
_INTERVALS = {"confidence": "mean", "obs": "prediction"}
#: Links whose slopes are logarithms of ratios.
_RATIO_LINKS = ("logit", "log")


class InferenceMixin(FitStatistics):
    """Inference from the ``estimates_`` of a fit.

    All of it is centred on the unshrunk estimates; ``coef_`` and predictions are shrunk (docs/inference.md). For
    coefficients that are not identified, errors, p-values and intervals are NaN.
    """

    privacy_: Any

    # ------------------------------------------------------------- single coefficients

    @property
    def param_names(self) -> tuple[str, ...]:
        """Names of the k coefficients, the intercept first; for several classes ``"class: name"``."""
        return self._known().names

    @property
    def params(self) -> Vector:
        """The unshrunk estimates, of shape (k,)."""
        return self._known().estimate

    @property
    def bse(self) -> Vector:
        """Standard errors of ``params``, due to sampling and to privacy noise, of shape (k,)."""
        return standard_errors(self._known())

    @property
    def bse_sampling(self) -> Vector:
        """The part of ``bse`` that is due to the sampling of rows; the squares of the two parts add up."""
        return standard_errors(self._known(), self._known().sampling)

    @property
    def bse_privacy(self) -> Vector:
        """The part of ``bse`` that is due to privacy noise."""
        return standard_errors(self._known(), self._known().privacy)

    @property
    def tvalues(self) -> Vector:
        """``params / bse``, of shape (k,)."""
        return t_ratios(self._known())

    @property
    def pvalues(self) -> Vector:
        """Two-sided p-values of the hypotheses that a coefficient is 0, of shape (k,)."""
        return p_values(self._known())

    @property
    def scale(self) -> float:
        """The dispersion; the residual variance of a linear model."""
        found = self._known().dispersion
        if found is None:
            raise NotAvailable("the dispersion was not released by this fit: choose another recipe")
        return found

    def cov_params(self) -> Matrix:
        """The covariance of ``params``, of shape (k, k)."""
        found = self._known()
        return masked_covariance(found, found.covariance)

    def conf_int(
        self, significance: float | None = None, /, *, level: float | None = None, alpha: float | None = None
    ) -> Matrix:
        """Confidence intervals, of shape (k, 2).

        Parameters
        ----------
        significance : float, optional
            alpha by position, as in statsmodels: ``conf_int(0.1)`` has the level 90%. From .5 on it is refused, since
            a level may be meant.
        level : float, default=0.95
        alpha : float, optional
            ``1 - level``.
        """
        return intervals(self._known(), checked_level(level, alpha, significance))

    def ratios(self, *, base: Any = None, level: float | None = None, alpha: float | None = None) -> Matrix:
        """Odds ratios (logit link), rate ratios (log link) or hazard ratios, with intervals, of shape (d, 3).

        The columns are ``exp(b)`` and the ends of its interval; rows are in the order of ``coefficients_.features``. Of
        K classes they are ratios of the odds of each other class against ``base``, of shape ((K - 1) d, 3), one class
        after the other.

        Parameters
        ----------
        base : str or number, optional
            The class that the others are compared with, of more than two.
        level, alpha
            As in :meth:`conf_int`.

        Raises
        ------
        InvalidInput
            For other links, and for more than two classes without a base.
        """
        found, response = self._known(), self.response_model
        if response.link not in _RATIO_LINKS:
            raise InvalidInput(f"ratios go with the links logit and log, and the link of this model is {response.link}")
        slopes = self._slopes_against(base).values()
        effects = t_tests(found, np.array(list(slopes)).reshape(-1, len(found.names)))
        ends = effects.conf_int(level=checked_level(level, alpha))
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(np.column_stack([effects.effect, ends])))

    def ratio_table(self, *, base: Any = None, level: float | None = None, alpha: float | None = None) -> SummaryTable:
        """:meth:`ratios` with the names of their features: to print, and as a data frame by ``to_frame``.

        Parameters
        ----------
        base, level, alpha
            As in :meth:`ratios`.

        Raises
        ------
        InvalidInput
            As :meth:`ratios`.
        """
        reached, names = checked_level(level, alpha), tuple(self._slopes_against(base))
        name = ratio_name(self.response_model) if base is None else f"odds against {base}"
        return ratio_table_of(names, self.ratios(base=base, level=reached), name, reached)

    # ------------------------------------------------------------- hypotheses

    def t_test(self, spec: Any) -> TTest:
        """Test single linear combinations of coefficients.

        Parameters
        ----------
        spec : str, sequence of str, array-like of shape (k,) or (r, k), or pair (R, q)
            As ``"x1 = x2, x3 = 0"``. Names that are not plain words stand in backticks (```plan=full` = 0``), and the
            intercept is ``Intercept``; text needs the ``formulas`` extra. Matrices have the columns ``param_names``.
        """
        return t_tests(self._known(), spec)

    def wald_test(self, spec: Any) -> WaldTest:
        """Test linear combinations of coefficients jointly: F if the degrees of freedom are finite, else chi-square.

        Parameters
        ----------
        spec
            As in :meth:`t_test`.
        """
        return wald(self._known(), spec)

    def wald_test_terms(self) -> TermTests:
        """Test each term jointly, as in an analysis of variance: all levels of a column, all columns of a spline."""
        return term_tests(self._known(), self._coefficients_by_term())

    def compare(self, dropped: str | Sequence[str]) -> Submodel:
        """The model without some terms beside this one: a Wald test, and differences of AIC and BIC.

        Both are approximations from the estimates and their covariance (docs/inference.md), and cost nothing.

        Parameters
        ----------
        dropped : str or sequence of str
            Terms, or names of coefficients.
        """
        known, terms = self._known(), self._coefficients_by_term()
        names: list[str] = []
        for name in [dropped] if isinstance(dropped, str) else listed(dropped, "compare"):
            if name not in terms and name not in known.names:
                offered = ", ".join(map(plain, terms))
                raise InvalidInput(f"{one_line(name)} is neither a term nor a coefficient: choose from {offered}")
            names.extend(terms.get(name, (name,)))
        if not names or len(set(names)) == len(known.names):
            raise InvalidInput("drop at least one term, and keep at least one coefficient")
        return submodel(known, self.coefficients_.n, list(dict.fromkeys(names)))

    # ------------------------------------------------------------- selection

    def path(
        self,
        penalty: str = "lasso",
        *,
        alphas: Sequence[float] | int = 100,
        l1_ratio: float = 0.5,
        standardized: bool = True,
    ) -> PenaltyPath:
        """Penalised coefficients for many penalties, by the least-squares approximation; it costs nothing.

        Parameters
        ----------
        penalty : {"lasso", "ridge", "elastic-net"}
        alphas : sequence of float, or int, default=100
            Penalties as in scikit-learn's ElasticNet (ridge with ``alpha`` is ``Ridge(n * alpha)`` there), or their
            number.
        l1_ratio : float, default=0.5
            The share of the absolute penalty, for "elastic-net".
        standardized : bool, default=True
            Whether slopes are penalised in standard deviations of their columns.
        """
        ratios = {"lasso": 1.0, "ridge": 0.0, "elastic-net": l1_ratio}
        check_choice("penalty", penalty, ratios)
        return penalty_path(self._approximation(), ratios[penalty], alphas, standardized=standardized)

    def select(self, method: str = "forward") -> SubsetPath:
        """Sets of terms of every size, by forward selection or the best of all sets; it costs nothing.

        Parameters
        ----------
        method : {"forward", "best"}
            "best" compares all sets of at most 20 terms.
        """
        methods = {"forward": forward_selection, "best": best_subsets}
        check_choice("method", method, methods)
        return methods[method](self._approximation(), self._coefficients_by_term())

    # ------------------------------------------------------------- shown

    def summary(self, *, level: float | None = None, alpha: float | None = None) -> Summary:
        """Estimates with standard errors, tests and intervals, and the guarantee below.

        Without estimates for inference, the shrunk coefficients with what is known of their errors.

        Parameters
        ----------
        level, alpha
            As in :meth:`conf_int`.
        """
        self._check_fitted()
        return summary_of(
            self._model_name(),
            self.coefficients_,
            self._statement(),
            response=self._known_response(),
            estimates=self.estimates_,
            level=checked_level(level, alpha),
            notes=self._notes(),
        )

    # ------------------------------------------------------------- what models say of themselves

    def _slopes_against(self, base: Any) -> dict[str, Vector]:
        """The combination of coefficients that each slope is, by its name; of several classes against a base."""
        names, response = self._known().names, self.response_model
        one = dict(zip(names, np.eye(len(names)), strict=True))
        if response.family != MULTINOMIAL:
            if base is not None:
                raise InvalidInput("base= is a class of more than two: leave it out")
            return {name: row for name, row in one.items() if name != INTERCEPT}
        features, classes, text = self.coefficients_.features, response.classes, text_of(base)
        if text not in classes:
            offered = some_and_more(classes)
            raise InvalidInput(f"coefficients of several classes have no base class: give base=, one of {offered}")
        others = [name for name in classes if name != text]
        return {f"{c}: {f}": one[f"{c}: {f}"] - one[f"{text}: {f}"] for c in others for f in features}

    def _model_name(self) -> str:
        return type(self).__name__

    def _notes(self) -> SummaryNotes:
        """What a summary says beside the numbers."""
        return SummaryNotes()

    def _statement(self) -> Any:
        """The guarantee that a summary shows."""
        return self.privacy_

    def _terms(self) -> Mapping[str, Sequence[str]]:
        """Names of the design columns of each term."""
        return terms_of(self.coefficients_.features, None)

    def _approximation(self) -> Approximation:
        """Slopes with their covariance, of a single linear predictor."""
        known = self._known()
        if self.response_model.family == MULTINOMIAL:
            raise InvalidInput("columns are selected for one linear predictor: fit two classes")
        return Approximation.of(known, int(self.coefficients_.n))

    def _coefficients_by_term(self) -> dict[str, list[str]]:
        """Names of the coefficients of each term; for several classes those of all classes."""
        names, features = self._known().names, self.coefficients_.features
        slopes = [name for name in names if name != INTERCEPT and not name.endswith(f": {INTERCEPT}")]
        found: dict[str, list[str]] = {}
        for term, columns in self._terms().items():
            places = [features.index(column) for column in columns]
            starts = range(0, len(slopes), len(features))
            found[term] = [slopes[start + place] for start in starts for place in places]
        return found

    def _intervals(self, x: Matrix, kind: Any, level: float, offset: Vector | float = 0.0) -> PredictedIntervals:
        """Intervals for rows of the design; missing cells are filled as in predictions."""
        found, response = self._known(), self.response_model
        check_choice("interval", kind, ("mean", "prediction"), _INTERVALS)
        rows = self.coefficients_.within(x)
        asked: IntervalKind = "mean" if kind == "mean" else "prediction"
        if response.family == SURVIVAL:
            raise NotAvailable("survival models have no intervals of predictions: conf_int has those of coefficients")
        if response.family == MULTINOMIAL:
            return class_intervals(found, rows, response.classes, interval=asked, level=checked_level(level))
        family, limits = family_of(response.family, response.link), self.coefficients_.limits
        return predicted_intervals(
            found, rows, family, interval=asked, level=checked_level(level), offset=offset,
            limits=self.coefficients_.reach if limits is None else limits,
        )  # fmt: skip


def terms_of(features: Sequence[str], schema: Schema | None) -> dict[str, list[str]]:
    """Design columns by term: the columns of a declared one, else those that are called ``term=level``.

    Parameters
    ----------
    features : sequence of str
    schema : Schema or None
    """
    declared = {} if schema is None else schema.columns
    owner = {design: name for name, column in declared.items() for design in column.design(name)}
    found: dict[str, list[str]] = {}
    for feature in features:
        found.setdefault(owner.get(feature, feature.partition("=")[0] or feature), []).append(feature)
    return found

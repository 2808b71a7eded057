"""What fitted models say of themselves as a whole, under the names that statsmodels has for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpregress.errors import InvalidInput, NotAvailable
from dpregress.estimators.diagnosing import is_diagnosable
from dpregress.inference import (
    Diagnosis,
    LikelihoodRatio,
    WaldTest,
    excess_deviance,
    explained_share,
    explained_variance,
    likelihood_ratio,
    wald,
)
from dpregress.releases import Estimates
from dpregress.releases.estimates import INTERCEPT
from dpregress.releases.model_files import ResponseModel


class FitStatistics:
    """Numbers of rows and of coefficients, and goodness of fit."""

    #: Estimates for inference; None before a fit, and where a recipe has none.
    estimates_: Estimates | None = None
    #: The paid diagnosis of this model; None before one.
    diagnosis_: Diagnosis | None = None
    coefficients_: Any
    if TYPE_CHECKING:  # a property of estimators, an attribute of a saved model

        @property
        def response_model(self) -> ResponseModel: ...

    # ------------------------------------------------------------- rows and coefficients

    @property
    def nobs(self) -> int:
        """Private rows: all of them, as the guarantee takes their number as public; of marginals as released."""
        self._check_fitted()
        return int(self.coefficients_.n)

    @property
    def df_model(self) -> int:
        """Slopes; of K classes, those of K - 1."""
        self._check_fitted()
        return len(self.coefficients_.features) * self._contrasts

    @property
    def df_resid(self) -> int:
        """``nobs`` less all coefficients. Tests and intervals have ``estimates_.df`` in its place."""
        response = self._known_response()
        pieces = len(response.cuts) if response is not None and response.cuts else 1
        found = self.estimates_
        constant = found is None or any(name.endswith(INTERCEPT) for name in found.names)
        return self.nobs - self.df_model - constant * pieces * self._contrasts

    @property
    def _contrasts(self) -> int:
        """Linear predictors that differ: K - 1 of K classes."""
        return max(len(self.coefficients_.by_class()) - 1, 1)

    # ------------------------------------------------------------- goodness of fit

    @property
    def rsquared(self) -> float:
        """R^2 of a linear model, from the released residual variance and covariance of the features.

        NaN if a coefficient that is not identified may matter: ``wald_test_terms()`` names those.
        """
        return explained_share(self._linear())

    @property
    def rsquared_adj(self) -> float:
        """R^2 with the variances divided by their degrees of freedom."""
        found, left = self._linear(), self.df_resid
        return 1 - (1 - explained_share(found)) * (left + self.df_model) / left if left > 0 else float("nan")

    @property
    def explained(self) -> float:
        """The variance of the response that a linear model explains, in squared units of the response."""
        return explained_variance(self._linear())

    @property
    def fvalue(self) -> float:
        """The F statistic of the hypothesis that all slopes of a linear model are 0, by :meth:`wald_test`.

        NaN if a slope is not identified: ``wald_test_terms()`` names those.
        """
        found = self._overall()
        return found.statistic / (found.df_num if found.distribution == "chi2" else 1)

    @property
    def f_pvalue(self) -> float:
        """The p-value of :attr:`fvalue`: by F, or by chi-square where ``estimates_.df`` is infinite."""
        return self._overall().pvalue

    @property
    def deviance(self) -> float:
        """The sum of unit deviances of a generalised linear model, from its paid :attr:`diagnosis_`."""
        return self._diagnosed().deviance.value

    @property
    def llf(self) -> float:
        """The log-likelihood, from the paid :attr:`diagnosis_`, which has its error."""
        return self._diagnosed().llf.value

    @property
    def aic(self) -> float:
        """``2 k - 2 llf``, from the paid :attr:`diagnosis_`; :meth:`compare` has differences at no cost."""
        return self._diagnosed().aic.value

    @property
    def bic(self) -> float:
        """``k log n - 2 llf``, from the paid :attr:`diagnosis_`; :meth:`compare` has differences at no cost."""
        return self._diagnosed().bic.value

    def likelihood_ratio(self, other: FitStatistics) -> LikelihoodRatio:
        """A likelihood-ratio test against a model nested in this one, both diagnosed on the same rows.

        The privacy noise of both deviances, and what noise in the coefficients adds to them, count in the p-value.
        :meth:`compare` tests the same by the estimates and their covariance, at no cost and with more power.

        Parameters
        ----------
        other : fitted model
            With fewer coefficients, all of which this model has.
        """
        if not isinstance(other, FitStatistics):
            raise InvalidInput(f"likelihood_ratio takes another fitted model, not {type(other).__name__}")
        known, nested = self._known(), other._known()
        if not set(nested.names) < set(known.names):
            raise InvalidInput("the other model must be nested in this one: give a model with some of its coefficients")
        excess = excess_deviance(known) + excess_deviance(nested)
        return likelihood_ratio(self._diagnosed(), other._diagnosed(), excess)

    # ------------------------------------------------------------- what models say of themselves

    def _check_fitted(self) -> None:
        """Refuse a model without a fit."""

    def _known_response(self) -> ResponseModel | None:
        """Family and link, where they have names."""
        return self.response_model

    def _no_estimates(self) -> str:
        """Why there are no estimates, and the mend."""
        return (
            f"this {type(self).__name__} has no estimates for inference: take the default recipe of "
            "DPLinearRegression, DPRidge or a generalised linear model"
        )

    def _known(self) -> Estimates:
        self._check_fitted()
        if self.estimates_ is None:
            raise NotAvailable(self._no_estimates())
        return self.estimates_

    def _diagnosed(self) -> Diagnosis:
        self._check_fitted()
        if self.diagnosis_ is None:
            offered = hasattr(self, "diagnose") and is_diagnosable(self.response_model)
            paid = "pay for them by diagnose(X, y, privacy=..) or fit(.., diagnose=0.02); " if offered else ""
            raise NotAvailable(
                "deviance, log-likelihood, AIC and BIC are sums over private rows that no fit releases: "
                f"{paid}compare and wald_test cost nothing"
            )
        return self.diagnosis_

    def _linear(self, what: str = "R^2 is") -> Estimates:
        found, response = self._known(), self.response_model
        if (response.family, response.link) != ("gaussian", "identity"):
            raise NotAvailable(f"{what} for linear models, and this one is {response.family} with link {response.link}")
        return found

    def _overall(self) -> WaldTest:
        """Of all slopes of a linear model."""
        found = self._linear("fvalue and f_pvalue are")
        return wald(found, np.eye(len(found.names))[[name != INTERCEPT for name in found.names]])

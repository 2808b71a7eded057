"""What a linear model explains, and what dropping terms would change: from estimates and covariances, never from rows.

``b'Sb - tr(S V)`` estimates the variance of the linear predictor, S the covariance of the features and V that of the
slopes, without the part that errors of the slopes add. Submodels follow from the least-squares approximation
``(b - beta)' V^-1 (b - beta)`` of minus twice the log-likelihood (Wang and Leng 2007).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpregress.display import ShownInShort, some_of
from dpregress.errors import NotAvailable
from dpregress.inference.constraints import of_coefficients
from dpregress.inference.hypotheses import WaldTest, pseudo_inverse, wald
from dpregress.releases import Estimates
from dpregress.releases.estimates import INTERCEPT

#: The share of the explained variance that may be hidden in slopes that are not identified, and how many standard
#: deviations of the residuals these may be.
_HIDDEN, _EFFECT = 0.05, 3.0


def explained_variance(estimates: Estimates) -> float:
    """``b'Sb - tr(S V)``, not negative.

    A slope that is not identified is left out if it cannot matter, such as that of a level that hardly anybody has: its
    estimate, its noise and three residual standard deviations explain at most a twentieth of what the others do. If it
    may matter, the variance is NaN.

    Raises
    ------
    NotAvailable
        If the covariance of the features was not released.
    """
    if estimates.spread is None:
        raise NotAvailable("R^2 needs the covariance of the features, which this fit did not release")
    slopes = np.array([name != INTERCEPT for name in estimates.names])
    known = estimates.identified[slopes]
    estimate, spread = estimates.estimate[slopes], estimates.spread
    b, errors = np.where(known, estimate, 0.0), estimates.covariance[np.ix_(slopes, slopes)]
    noise = np.einsum("ij,ji->i", spread, errors)
    explained = max(float(b @ spread @ b - noise[known].sum()), 0.0)
    possible = np.diag(spread) * (estimate**2 + _EFFECT**2 * (estimates.dispersion or math.inf))
    hidden = float((noise + possible)[~known].sum())
    return explained if known.all() or hidden <= _HIDDEN * explained else math.nan


def explained_share(estimates: Estimates) -> float:
    """R^2, between 0 and 1.

    Raises
    ------
    NotAvailable
        If the residual variance or the covariance of the features was not released.
    """
    if estimates.dispersion is None:
        raise NotAvailable("R^2 needs the residual variance, which this fit did not release")
    explained = explained_variance(estimates)
    whole = explained + estimates.dispersion
    return min(explained / whole, 1.0) if whole > 0 else math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Submodel(ShownInShort):
    """A model without some terms, beside the one that was fitted.

    Parameters
    ----------
    dropped : tuple of str
    test : WaldTest
        Of the hypothesis that all dropped coefficients are 0.
    delta_aic, delta_bic : float
        The criterion of the submodel minus that of the fitted model: below 0, the submodel is preferred.
    n_effective : float
        The number of rows that would tell as much without privacy noise; BIC counts with it.
    estimates : Estimates
        Those of the submodel.
    """

    dropped: tuple[str, ...]
    test: WaldTest
    delta_aic: float
    delta_bic: float
    n_effective: float
    estimates: Estimates

    def _in_short(self) -> str:
        return f"without {some_of(self.dropped)}: {self.test}"

    def __str__(self) -> str:
        removed = f"Removing {some_of(self.dropped, len(self.dropped))}: {self.test}."
        return f"{removed}{self._criteria()}\n{self.estimates}"

    def _criteria(self) -> str:
        """How the criteria change, if the dropped coefficients are identified."""
        if math.isnan(self.delta_aic):
            return ""
        aic, bic = (f"{'rises' if each >= 0 else 'falls'} by" for each in (self.delta_aic, self.delta_bic))
        second = bic if aic != bic else "by"
        return f" AIC {aic} {abs(self.delta_aic):.4g}, BIC {second} {abs(self.delta_bic):.4g} (lower is better)."


def submodel(estimates: Estimates, n: int, dropped: Sequence[str]) -> Submodel:
    """The model without these coefficients, by the least-squares approximation.

    Parameters
    ----------
    estimates : Estimates
    n : int
        The number of rows.
    dropped : sequence of str
        Names of coefficients.
    """
    asked = of_coefficients(estimates.names, dropped)
    test = wald(estimates, asked.matrix)
    out = np.isin(estimates.names, dropped)
    effective = effective_rows(estimates, n)
    change = test.statistic * (1 if test.distribution == "chi2" else test.df_num)
    aic, bic = change - 2 * test.df_num, change - math.log(max(effective, 1.0)) * test.df_num
    return Submodel(tuple(dropped), test, aic, bic, effective, _without(estimates, out))


def _without(estimates: Estimates, out: NDArray[np.bool_]) -> Estimates:
    """The minimum of the approximation with these coefficients at 0, and its covariances."""
    keep = ~out
    covariance = estimates.covariance
    turn = np.zeros((int(keep.sum()), len(out)))
    turn[:, keep] = np.eye(len(turn))
    turn[:, out] = -covariance[np.ix_(keep, out)] @ pseudo_inverse(covariance[np.ix_(out, out)])[0]
    return replace(
        estimates,
        names=tuple(name for name, kept in zip(estimates.names, keep, strict=True) if kept),
        estimate=turn @ estimates.estimate,
        sampling=turn @ estimates.sampling @ turn.T,
        privacy=turn @ estimates.privacy @ turn.T,
        identified=estimates.identified[keep] & bool(estimates.identified[out].all()),
        shift=estimates.shift[keep],
        dispersion=None,
        spread=None,
    )


def effective_rows(estimates: Estimates, n: int) -> float:
    """``n tr(V^+ V_sampling) / rank``: the number of rows that would tell as much without privacy noise."""
    known = np.ix_(estimates.identified, estimates.identified)
    inverse, rank = pseudo_inverse(estimates.covariance[known])
    return n * float(np.einsum("ij,ji->", inverse, estimates.sampling[known])) / rank if rank > 0 else math.nan

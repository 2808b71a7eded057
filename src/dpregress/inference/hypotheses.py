"""Tests of linear hypotheses about coefficients, by their covariance with the privacy noise in it.

The Wald statistic is ``(R b - q)' (R V R')^+ (R b - q)``, with the pseudo-inverse and its rank r. With a covariance
estimated from a noisy release, ``W / r`` is compared with F(r, df), otherwise W with chi-square(r). Source: Wald
(1943); docs/inference.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, fdtrc

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen
from dpregress.display import (
    NO_ESTIMATE,
    UNIDENTIFIED,
    ShownInShort,
    p_equals,
    p_value,
    plain,
    some_and_more,
    some_of,
)
from dpregress.errors import InvalidInput
from dpregress.inference.constraints import LinearHypothesis, linear_hypothesis, of_coefficients
from dpregress.inference.intervals import checked_level, critical_values, two_sided
from dpregress.releases import Estimates

#: Eigenvalues of a correlation matrix below this count as 0.
_SINGULAR = 1e-10
#: Share of the effects that may lie where the covariance is 0: rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class TTest(ShownInShort):
    """Tests of single linear combinations, under statsmodels' names.

    Parameters
    ----------
    labels : tuple of str
        The hypotheses.
    effect : ndarray of shape (r,)
        ``R b``.
    null : ndarray of shape (r,)
        q.
    sd : ndarray of shape (r,)
        Standard errors of the effects; NaN where a coefficient is not identified.
    df : ndarray of shape (r,)
    """

    labels: tuple[str, ...]
    effect: Vector
    null: Vector
    sd: Vector
    df: Vector

    @property
    def tvalue(self) -> Vector:
        """``(R b - q) / sd``, of shape (r,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.effect - self.null) / self.sd)

    @property
    def pvalue(self) -> Vector:
        """Two-sided, of shape (r,)."""
        return two_sided(self.tvalue, self.df)

    def conf_int(
        self, significance: float | None = None, /, *, level: float | None = None, alpha: float | None = None
    ) -> Matrix:
        """Intervals of the effects, of shape (r, 2); of 95% by default, ``alpha`` is ``1 - level``."""
        reach = critical_values(self.df, checked_level(level, alpha, significance)) * self.sd
        return np.column_stack([self.effect - reach, self.effect + reach])

    def _in_short(self) -> str:
        return f"of {len(self.labels)} hypotheses: {some_of(self.labels)}"

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each hypothesis."""
        import pandas as pd

        lower, upper = self.conf_int().T
        columns = {"effect": self.effect, "sd": self.sd, "tvalue": self.tvalue, "pvalue": self.pvalue}
        return pd.DataFrame({**columns, "ci_lower": lower, "ci_upper": upper}, index=list(self.labels))

    def __str__(self) -> str:
        names = [plain(label) for label in self.labels]
        width = max(map(len, [*names, "hypothesis"]))
        ratio = "z" if np.all(np.isinf(self.df)) else "t"
        header = ("effect", "std err", ratio, f"P>|{ratio}|", "[0.025", "0.975]")
        lines = [f"{'hypothesis':{width}}" + "".join(f"  {name:>11}" for name in header)]
        columns = (self.effect, self.sd, self.tvalue, self.pvalue, *self.conf_int().T)
        for name, effect, *others in zip(names, *columns, strict=True):
            if math.isnan(others[0]):
                cells = [f"{NO_ESTIMATE:>11}", UNIDENTIFIED]
            else:
                error, ratio, chance, *ends = others
                cells = [f"{value:11.5g}" for value in (effect, error, ratio)]
                cells += [f"{p_value(chance):>11}", *(f"{end:11.5g}" for end in ends)]
            lines.append("  ".join([f"{name:{width}}", *cells]))
        return "\n".join(lines)


@dataclass(frozen=True)
class WaldTest:
    """A joint test, under statsmodels' names.

    Parameters
    ----------
    statistic : float
        F if ``df_denom`` is finite, otherwise chi-square; NaN where a coefficient is not identified.
    pvalue : float
    df_num : int
        The rank of the covariance of the effects.
    df_denom : float
    """

    statistic: float
    pvalue: float
    df_num: int
    df_denom: float

    @property
    def distribution(self) -> str:
        """The reference: "F" or "chi2"."""
        return "chi2" if math.isinf(self.df_denom) else "F"

    def __str__(self) -> str:
        if math.isnan(self.statistic):
            return UNIDENTIFIED
        law = f"chi2({self.df_num})" if math.isinf(self.df_denom) else _reference(self)
        return f"{law} = {self.statistic:.5g}, {p_equals(self.pvalue)}"


@dataclass(frozen=True, repr=False)
class TermTests(ShownInShort):
    """A joint test of the coefficients of each term, as in an analysis of variance.

    Parameters
    ----------
    terms : tuple of str
    tests : tuple of WaldTest
    unidentified : tuple of str
        The coefficients that are not identified, because of which tests are NaN.
    """

    terms: tuple[str, ...]
    tests: tuple[WaldTest, ...]
    unidentified: tuple[str, ...] = ()

    def _in_short(self) -> str:
        return f"of {len(self.terms)} terms: {some_of(self.terms)}"

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each term, under statsmodels' names."""
        import pandas as pd

        rows = [(test.statistic, test.pvalue, test.df_num, test.df_denom) for test in self.tests]
        columns = ["statistic", "pvalue", "df_constraint", "df_denom"]
        return pd.DataFrame(rows, index=list(self.terms), columns=columns)

    def __str__(self) -> str:
        names = [plain(term) for term in self.terms]
        width = max(map(len, [*names, "term"]))
        lines = [f"{'term':{width}}  {'statistic':>11}  {'df':>4}  {'p-value':>8}  reference"]
        for term, test in zip(names, self.tests, strict=True):
            numbers = f"{test.statistic:11.4g}  {test.df_num:4d}  {p_value(test.pvalue):>8}"
            if math.isnan(test.statistic):
                numbers = f"{'':11}  {test.df_num:4d}  {'':8}"
            against = UNIDENTIFIED if math.isnan(test.statistic) else _reference(test)
            lines.append(f"{term:{width}}  {numbers}  {against}")
        if self.unidentified:
            named = some_and_more(self.unidentified)
            lines.append(f"Without a test because of coefficients that are not identified: {named}.")
            lines.append("Merge a rare level with another, or spend more.")
        return "\n".join(lines)


def _reference(test: WaldTest) -> str:
    return "chi2" if math.isinf(test.df_denom) else f"F({test.df_num}, {test.df_denom:.4g})"


def t_tests(estimates: Estimates, spec: Any) -> TTest:
    """Test each row of a hypothesis by itself.

    Parameters
    ----------
    estimates : Estimates
    spec
        As in :func:`~dpregress.inference.linear_hypothesis`.
    """
    asked = linear_hypothesis(estimates.names, spec)
    variance = np.einsum("ri,ij,rj->r", asked.matrix, estimates.covariance, asked.matrix)
    sd = np.where(_unknown(estimates, asked), np.nan, np.sqrt(np.maximum(variance, 0.0)))
    return TTest(asked.labels, asked.matrix @ estimates.estimate, asked.value, sd, estimates.df_along(asked.matrix))


def wald(estimates: Estimates, spec: Any) -> WaldTest:
    """Test all rows of a hypothesis together.

    Raises
    ------
    InvalidInput
        For a hypothesis about what is fixed by definition, such as the sum of a coefficient over all classes.
    """
    return _wald(estimates, linear_hypothesis(estimates.names, spec))


def term_tests(estimates: Estimates, terms: Mapping[str, Sequence[str]]) -> TermTests:
    """Test the coefficients of each term together.

    Parameters
    ----------
    estimates : Estimates
    terms : mapping of str to sequence of str
        The names of each term's coefficients.
    """
    found = [_wald(estimates, of_coefficients(estimates.names, names)) for names in terms.values()]
    tested = {name for names in terms.values() for name in names}
    return TermTests(tuple(terms), tuple(found), tuple(name for name in estimates.unidentified if name in tested))


def _wald(estimates: Estimates, asked: LinearHypothesis) -> WaldTest:
    if _unknown(estimates, asked).any():
        return WaldTest(math.nan, math.nan, int(np.linalg.matrix_rank(asked.matrix)), estimates.df)
    effect = asked.matrix @ estimates.estimate - asked.value
    covariance = asked.matrix @ estimates.covariance @ asked.matrix.T
    inverse, rank = pseudo_inverse(covariance)
    scale = _scale(covariance)
    outside = (effect - covariance @ (inverse @ effect)) / scale
    if rank == 0 or np.linalg.norm(outside) > _ROUNDING * np.linalg.norm(effect / scale):
        raise InvalidInput("this hypothesis is about what the model fixes by definition: there is nothing to test")
    squared = float(effect @ inverse @ effect)
    if math.isinf(estimates.df):
        return WaldTest(squared, float(chdtrc(rank, squared)), rank, math.inf)
    sampling = asked.matrix @ estimates.sampling @ asked.matrix.T
    share = float(np.einsum("ij,ji->", inverse, sampling)) / rank  # of the variance that is estimated: Satterthwaite
    df = estimates.df / max(share, 1e-12) ** 2
    return WaldTest(squared / rank, float(fdtrc(rank, df, squared / rank)), rank, df)


def pseudo_inverse(covariance: Matrix) -> tuple[Matrix, int]:
    """The pseudo-inverse of a covariance and its rank, judged by the correlations: units of coefficients differ."""
    scale = _scale(covariance)
    values, vectors = eigen(covariance / np.outer(scale, scale))
    kept = values > _SINGULAR * len(values)
    turn = vectors[:, kept] / scale[:, None]
    return np.asarray(turn / values[kept] @ turn.T), int(kept.sum())


def _scale(covariance: Matrix) -> Vector:
    """Standard deviations, with 1 for what has none."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return np.where(deviations > 0, deviations, 1.0)


def _unknown(estimates: Estimates, asked: LinearHypothesis) -> Vector:
    """Which rows are about coefficients that are not identified."""
    return np.asarray((asked.matrix[:, ~estimates.identified] != 0).any(axis=1))

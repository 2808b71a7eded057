r"""Do sites agree? Chi-square tests of the differences between their estimates, whose noise is known.

With estimates ``b_i`` of k sites and covariances ``V_i`` (sampling and privacy), the pooled estimate is ``b = (sum
V_i^-1)^-1 sum V_i^-1 b_i`` and ``Q = sum (b_i - b)' V_i^-1 (b_i - b)`` is chi-square with ``(k - 1) p`` degrees of
freedom if all sites have the same coefficients. Source: Cochran (1954); the share ``I^2 = max(0, 1 - df/Q)`` of Higgins
and Thompson (2002) is what of the variation exceeds errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from dpregress.coordinates import Matrix, Vector, svec
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.inference.hypotheses import pseudo_inverse
from dpregress.releases import Estimates, Isotropic, Moments

#: With more columns the covariance of all second moments is too large to invert.
_MOST_COLUMNS = 40


@dataclass(frozen=True, eq=False, repr=False)
class HeterogeneityTest(ShownInShort):
    """A test that several sites have the same parameters.

    Parameters
    ----------
    statistic : float
        Cochran's Q, jointly for all parameters.
    pvalue : float
    df : int
    names : tuple of str
        The parameters that are also tested one by one; empty if there are too many.
    pvalues : ndarray of shape (len(names),)
    """

    statistic: float
    pvalue: float
    df: int
    names: tuple[str, ...]
    pvalues: Vector

    @property
    def excess(self) -> float:
        """``I^2``: the share of the variation between sites that exceeds their errors, between 0 and 1."""
        return max(0.0, 1 - self.df / self.statistic) if self.statistic > 0 else 0.0


def coefficient_heterogeneity(estimates: Sequence[Estimates]) -> HeterogeneityTest:
    """Whether the sites have the same coefficients; those that a site does not identify are left out.

    Raises
    ------
    InvalidInput
        For fewer than two sites, or no coefficient that all of them identify.
    """
    first = estimates[0]
    known = np.logical_and.reduce([each.identified for each in estimates])
    if len(estimates) < 2 or not known.any() or any(each.names != first.names for each in estimates):
        raise InvalidInput("heterogeneity takes two sites or more that identify the same coefficients")
    place = np.ix_(known, known)
    values = [each.estimate[known] for each in estimates]
    covariances = [each.covariance[place] for each in estimates]
    names = tuple(name for name, told in zip(first.names, known, strict=True) if told)
    statistic, df = cochran(values, covariances)
    single = [
        cochran([value[[i]] for value in values], [each[i : i + 1, i : i + 1] for each in covariances])
        for i in range(len(names))
    ]
    pvalues = np.array([chdtrc(each, found) for found, each in single])
    return HeterogeneityTest(statistic, float(chdtrc(df, statistic)), df, names, pvalues)


def moment_heterogeneity(sites: Sequence[Moments]) -> HeterogeneityTest:
    """Whether the rows of the sites have the same means and covariances; rows are taken as normal.

    Raises
    ------
    InvalidInput
        For fewer than two sites.
    NotAvailable
        For too many columns.
    """
    order = sites[0].space.order
    if len(sites) < 2:
        raise InvalidInput("heterogeneity takes two sites or more")
    if order > _MOST_COLUMNS:
        raise NotAvailable(f"the moments of more than {_MOST_COLUMNS} columns are not compared: compare a regression")
    pooled = np.sum([site.total for site in sites], axis=0) / sum(site.n for site in sites)
    constant = sites[0].space.constant
    mean = pooled @ constant / float(constant @ pooled @ constant)
    rows = _moment_covariance(pooled, np.asarray(mean))
    covariances = []
    for site in sites:
        assert isinstance(site.noise, Isotropic)
        covariances.append(rows / site.n + (site.noise.sigma / site.n) ** 2 * np.eye(len(rows)))
    statistic, df = cochran([svec.svec(site.mean) for site in sites], covariances)
    return HeterogeneityTest(statistic, float(chdtrc(df, statistic)), df, (), np.empty(0))


def cochran(values: Sequence[Vector], covariances: Sequence[Matrix]) -> tuple[float, int]:
    """Cochran's Q of vectors with these covariances, and its degrees of freedom."""
    weights = [pseudo_inverse(covariance)[0] for covariance in covariances]
    pooled = pseudo_inverse(np.sum(weights, axis=0))[0] @ np.sum(
        [weight @ value for weight, value in zip(weights, values, strict=True)], axis=0
    )
    left = [value - pooled for value in values]
    statistic = sum(float(each @ weight @ each) for each, weight in zip(left, weights, strict=True))
    return statistic, (len(values) - 1) * len(pooled)


def _moment_covariance(second: Matrix, mean: Vector) -> Matrix:
    """Of svec of ``v v'`` for one normal row v with this second moment and mean: Isserlis' theorem."""
    order = len(second)
    row, column = np.triu_indices(order)
    scale = np.where(row == column, 1.0, np.sqrt(2.0))
    found = second[np.ix_(row, row)] * second[np.ix_(column, column)]
    found += second[np.ix_(row, column)] * second[np.ix_(column, row)]
    found -= 2 * np.outer(mean[row] * mean[column], mean[row] * mean[column])
    return np.asarray(found * np.outer(scale, scale))

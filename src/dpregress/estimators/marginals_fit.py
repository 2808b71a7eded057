"""Regressions on released marginals: any column on any others, at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.inference import in_original_units
from dpregress.releases import Coefficients, Marginals, Moments
from dpregress.releases.marginals import encoded_design
from dpregress.solvers.marginals.mixture_likelihood import solve_classes, solve_logistic
from dpregress.solvers.marginals.relevance import Counts, Shrunk, solve_by_relevance

FAMILIES = ("gaussian", "binomial", "multinomial", "poisson")
#: Rows that stand for a mixture in a generalised linear model.
_POINTS = 20_000
_LARGEST_PREDICTOR = 30.0


def check_columns(target: str, features: Sequence[str]) -> None:
    """Refuse features that are none, named twice, or the target.

    Raises
    ------
    InvalidInput
    """
    if not features or target in features or len(set(features)) != len(features):
        raise InvalidInput(f"regress {target!r} on at least one other column, each once, and not on itself")


def check_family(domain: Domain, target: str, features: Sequence[str], family: str) -> None:
    """Refuse a target that the family cannot explain; public facts decide.

    Raises
    ------
    InvalidInput
    """
    if family not in FAMILIES:
        raise InvalidInput(f"family must be one of {', '.join(FAMILIES)}, not {family!r}")
    check_columns(target, features)
    attribute = domain.attributes[domain.index(target)]
    for name in features:
        domain.index(name)
    if family in ("gaussian", "poisson"):
        if not (attribute.numeric and attribute.evenly_spaced):
            raise InvalidInput(f"{target!r} is no number of evenly spaced levels: list it in numeric=")
        if family == "poisson" and attribute.values[0] < 0:
            raise InvalidInput(f"{target!r} can be negative, a count cannot: choose family='gaussian'")
    elif attribute.numeric:
        raise InvalidInput(f"{target!r} is a number, {family} takes a class: leave it out of numeric=")
    elif family == "binomial" and attribute.size != 2:
        raise InvalidInput(f"{target!r} has {attribute.size} levels, not two: choose family='multinomial'")


@dataclass(frozen=True, eq=False)
class TableFit:
    """A fitted regression on coded columns.

    Attributes
    ----------
    coef : ndarray of shape (d,), or (classes, d)
    intercept : ndarray of shape () or (classes,)
    coefficients : Coefficients or None
        With names and standard errors; None for several classes.
    moments : Moments
        Of the target, or of its last level's indicator.
    """

    domain: Domain
    target: str
    features: tuple[str, ...]
    family: str
    coef: Matrix
    intercept: Vector
    coefficients: Coefficients | None
    moments: Moments

    @property
    def classes(self) -> tuple[str, ...]:
        """Levels of a class target."""
        if self.family in ("gaussian", "poisson"):
            return ()
        return self.domain.attributes[self.domain.index(self.target)].levels

    def mean(self, codes: Matrix) -> Matrix:
        """Expected values, of shape (m,), or probabilities of the classes, of shape (m, classes).

        Parameters
        ----------
        codes : ndarray of shape (m, attributes)
            Of the domain's attributes.
        """
        rows = encoded_design(self.domain, codes, self.features)[:, 1:]
        predictors = rows @ self.coef.T + self.intercept
        if self.family == "gaussian":
            return np.asarray(predictors)
        if self.family == "poisson":
            return np.asarray(np.exp(np.clip(predictors, -_LARGEST_PREDICTOR, _LARGEST_PREDICTOR)))
        if self.family == "binomial":
            chance = expit(predictors)
            return np.column_stack([1 - chance, chance])
        return np.asarray(softmax(predictors, axis=1))


def fit_marginals(marginals: Marginals, target: str, features: Sequence[str], family: str = "gaussian") -> TableFit:
    """Regress one attribute on others, from released marginals alone.

    Parameters
    ----------
    marginals : Marginals
    target : str
    features : sequence of str
    family : {"gaussian", "binomial", "multinomial", "poisson"}

    Raises
    ------
    InvalidInput
        For a target that the family cannot explain.
    """
    domain = marginals.domain
    check_family(domain, target, features, family)
    groups = marginals.groups(features)
    attribute = domain.attributes[domain.index(target)]
    if family == "multinomial":
        return _multinomial(marginals, target, tuple(features))
    level = attribute.levels[-1] if family == "binomial" else None
    moments = marginals.moments(target, features, level)
    if family == "gaussian":
        found = solve_by_relevance(moments, groups)
    elif family == "binomial":
        found = solve_logistic(moments, _points(marginals, features), _shares(marginals, target))
    else:
        assert moments.space.response is not None
        scale = moments.space.response
        found = solve_by_relevance(moments, groups, Counts(_points(marginals, features), scale.centre, scale.scale))
    coefficients = _coefficients(moments, found, target, linear=family == "gaussian")
    coef, intercept = coefficients.coef, np.array(coefficients.intercept)
    return TableFit(domain, target, tuple(features), family, coef, intercept, coefficients, moments)


def _points(marginals: Marginals, features: Sequence[str]) -> Matrix:
    return encoded_design(marginals.domain, marginals.mixture.points(_POINTS), features)


def _shares(marginals: Marginals, target: str) -> Matrix:
    """What the points' components expect of the target's classes."""
    return marginals.mixture.shares(marginals.domain.index(target), _POINTS)


def _coefficients(moments: Moments, found: Shrunk, target: str, *, linear: bool) -> Coefficients:
    space = moments.space if linear else moments.space.with_response(None)
    coef, intercept = space.pull_back(found.coef)
    return Coefficients(
        features=space.features,
        coef=coef,
        intercept=intercept,
        target=target,
        n=moments.n,
        privacy_error=in_original_units(found.privacy, space),
        standard_error=in_original_units(found.covariance, space),
        fill=space.fill,
    )


def _multinomial(marginals: Marginals, target: str, features: tuple[str, ...]) -> TableFit:
    domain = marginals.domain
    moments = marginals.moments(target, features, domain.attributes[domain.index(target)].levels[-1])
    coef = solve_classes(_points(marginals, features), _shares(marginals, target), moments.n)
    return TableFit(domain, target, features, "multinomial", coef[:, 1:], coef[:, 0], None, moments)

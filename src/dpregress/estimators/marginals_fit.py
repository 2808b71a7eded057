"""Regressions on released marginals: any column on any others, at no further cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, softmax

from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput, check_choice
from dpregress.inference import original_coefficients, table_estimates
from dpregress.models import MULTINOMIAL, family_of
from dpregress.releases import ClassCoefficients, Coefficients, Estimates, Marginals, Moments
from dpregress.releases.marginals import encoded_design, regression_space
from dpregress.releases.release import ANYWHERE
from dpregress.releases.standardised import Standardised, standardised
from dpregress.solvers.marginals.mixture_likelihood import solve_classes, solve_logistic
from dpregress.solvers.marginals.relevance import Counts, Shrunk, solve_by_relevance

#: Rows that stand for a mixture in a generalised linear model.
_POINTS = 20_000


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
    check_choice("family", family, TABLE_FAMILIES)
    check_columns(target, features)
    attribute = domain.attributes[domain.index(target)]
    kind = TABLE_FAMILIES[family]
    if kind.numeric:
        if not (attribute.numeric and attribute.evenly_spaced):
            raise InvalidInput(f"{target!r} is not a number with evenly spaced levels: list it in numeric=")
        distribution = family_of(family).distribution
        if not distribution.possible(np.asarray(attribute.values)).all():
            raise InvalidInput(
                f"{target!r} has levels that {family} cannot have ({distribution.support}): choose family='gaussian'"
            )
    elif attribute.numeric:
        raise InvalidInput(f"{target!r} is a number, {family} takes a class: leave it out of numeric=")
    elif kind.levels not in (None, attribute.size):
        raise InvalidInput(f"{target!r} has {attribute.size} levels, not {kind.levels}: choose family='multinomial'")
    regression_space(domain, target, features, None if kind.numeric else attribute.levels[-1])


@dataclass(frozen=True, eq=False, repr=False)
class TableFit(ShownInShort):
    """A fitted regression on coded columns.

    Attributes
    ----------
    coef : ndarray of shape (d,), or (classes, d)
    intercept : ndarray of shape () or (classes,)
    coefficients : Coefficients or ClassCoefficients
        In the units of users, with names and standard errors; these are not known for several classes.
    moments : Moments
        Of the target, or of its last level's indicator.
    """

    domain: Domain
    target: str
    features: tuple[str, ...]
    family: str
    coef: Matrix
    intercept: Vector
    coefficients: Coefficients | ClassCoefficients
    moments: Moments

    @property
    def classes(self) -> tuple[str, ...]:
        """Levels of a class target."""
        if TABLE_FAMILIES[self.family].numeric:
            return ()
        return self.domain.attributes[self.domain.index(self.target)].levels

    def mean(self, x: Matrix) -> Matrix:
        """Expected values, of shape (m,), or probabilities of the classes, of shape (m, classes).

        Parameters
        ----------
        x : ndarray of shape (m, d)
            Design rows in the units of users.
        """
        if isinstance(self.coefficients, Coefficients):
            return TABLE_FAMILIES[self.family].mean(self.coefficients.predict(x))
        return TABLE_FAMILIES[self.family].mean(x @ self.coef.T + self.intercept)


def fit_marginals(marginals: Marginals, target: str, features: Sequence[str], family: str = "gaussian") -> TableFit:
    """Regress one attribute on others, from released marginals alone.

    Parameters
    ----------
    marginals : Marginals
    target : str
    features : sequence of str
    family : str
        One of ``TABLE_FAMILIES``.

    Raises
    ------
    InvalidInput
        For a target that the family cannot explain.
    """
    check_family(marginals.domain, target, features, family)
    return TABLE_FAMILIES[family].fit(marginals, target, tuple(features), family)


def marginal_estimates(marginals: Marginals, target: str, features: Sequence[str], family: str) -> Estimates | None:
    """For inference, from tables that are not shrunk; None where there are none, and for several classes."""
    if family == MULTINOMIAL:
        return None
    attribute = marginals.domain.attributes[marginals.domain.index(target)]
    level = None if TABLE_FAMILIES[family].numeric else attribute.levels[-1]
    return table_estimates(marginals, target, list(features), family_of(family), level)


def _points(marginals: Marginals, features: Sequence[str]) -> Matrix:
    return encoded_design(marginals.domain, marginals.mixture.points(_POINTS), features)


def _shares(marginals: Marginals, target: str) -> Matrix:
    """What the points' components expect of the target's classes."""
    return marginals.mixture.shares(marginals.domain.index(target), _POINTS)


def _coefficients(moments: Moments, found: Shrunk, target: str, *, linear: bool) -> Coefficients:
    space = moments.space if linear else moments.space.with_response(None)
    return original_coefficients(
        space, found.coef, target=target, n=moments.n, privacy=found.privacy, total=found.covariance
    )


def _one_predictor(
    marginals: Marginals,
    target: str,
    features: tuple[str, ...],
    family: str,
    moments: Moments,
    known: Standardised,
    found: Shrunk,
) -> TableFit:
    coefficients = _coefficients(known.moments, found, target, linear=family == "gaussian")
    if TABLE_FAMILIES[family].numeric:
        coefficients = replace(coefficients, reach=_reach(marginals.domain, target, family))
    coef, intercept = coefficients.coef, np.array(coefficients.intercept)
    return TableFit(marginals.domain, target, features, family, coef, intercept, coefficients, moments)


def _reach(domain: Domain, target: str, family: str) -> tuple[float, float]:
    """The predictors of means within the levels of a number."""
    lower, upper = domain.attributes[domain.index(target)].reach
    return (lower, upper) if family == "gaussian" else (ANYWHERE[0], math.log(upper))


def _moments(marginals: Marginals, target: str, features: tuple[str, ...], family: str) -> Moments:
    """Of a number, or of the last level of a class."""
    attribute = marginals.domain.attributes[marginals.domain.index(target)]
    return marginals.moments(target, features, None if TABLE_FAMILIES[family].numeric else attribute.levels[-1])


def _gaussian(marginals: Marginals, target: str, features: tuple[str, ...], family: str) -> TableFit:
    moments = _moments(marginals, target, features, family)
    known = standardised(moments, marginals.numbers(features))
    found = solve_by_relevance(known.moments, marginals.groups(features))
    return _one_predictor(marginals, target, features, family, moments, known, found)


def _binomial(marginals: Marginals, target: str, features: tuple[str, ...], family: str) -> TableFit:
    moments = _moments(marginals, target, features, family)
    known = standardised(moments, marginals.numbers(features))
    points, shares = _points(marginals, features) @ known.turn.T, _shares(marginals, target)
    found = solve_logistic(known.moments, marginals.groups(features), points, shares)
    return _one_predictor(marginals, target, features, family, moments, known, found)


def _poisson(marginals: Marginals, target: str, features: tuple[str, ...], family: str) -> TableFit:
    moments = _moments(marginals, target, features, family)
    assert moments.space.response is not None
    scale = moments.space.response
    known = standardised(moments, marginals.numbers(features))
    counts = Counts(_points(marginals, features) @ known.turn.T, scale.centre, scale.scale)
    found = solve_by_relevance(known.moments, marginals.groups(features), counts)
    return _one_predictor(marginals, target, features, family, moments, known, found)


def _multinomial(marginals: Marginals, target: str, features: tuple[str, ...], family: str) -> TableFit:
    moments = _moments(marginals, target, features, family)
    whitened = solve_classes(_points(marginals, features), _shares(marginals, target), moments.n)
    classes = marginals.domain.attributes[marginals.domain.index(target)].levels
    space = moments.space.with_response(None)
    each = tuple(original_coefficients(space, one, target=target, n=moments.n) for one in whitened)
    found = ClassCoefficients(classes, each)
    return TableFit(marginals.domain, target, features, family, found.coef, found.intercept, found, moments)


def _two_chances(predictors: Vector) -> Matrix:
    chance = expit(predictors)
    return np.column_stack([1 - chance, chance])


@dataclass(frozen=True, repr=False)
class TableFamily(ShownInShort):
    """How a family is fitted to marginals.

    Attributes
    ----------
    numeric : bool
        Whether its target is a number; otherwise it is a class.
    levels : int or None
        How many levels the target must have; None for any number.
    fit : callable
    mean : callable
        Expected values, or probabilities of the classes, at linear predictors.
    """

    numeric: bool
    levels: int | None
    fit: Callable[[Marginals, str, tuple[str, ...], str], TableFit]
    mean: Callable[[Matrix], Matrix]


#: The families of regressions on marginals.
TABLE_FAMILIES: Mapping[str, TableFamily] = {
    "gaussian": TableFamily(True, None, _gaussian, np.asarray),
    "binomial": TableFamily(False, 2, _binomial, _two_chances),
    MULTINOMIAL: TableFamily(False, None, _multinomial, lambda predictors: np.asarray(softmax(predictors, axis=1))),
    "poisson": TableFamily(True, None, _poisson, family_of("poisson").mean),
}

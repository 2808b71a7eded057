r"""Estimates for inference from released pair tables: numbers, classes of two, and counts.

The released moments are ``M + N / n`` with a noise matrix N of known law. Two sources give the Gram matrix of the
features: the moments, which are unbiased, and the mixture that was fitted to them, which has much less noise. Each
block is the mixture's plus what the moments say beyond it, shrunk after James and Stein. The cross moments c with the
response are not shrunk, so that slopes are not attenuated. With ``b = A^+ c`` for the Gram matrix A, noise moves b by

    A^+ (c_N - (A - A_0) b) / n.

The error ``A - A_0`` is smaller than the noise of the moments; it counts as if it were that noise, whose law is known.
Directions in which A does not exceed its noise four times are left out: nothing is known about them. Numbers in bins
have Sheppard's correction, since middles of bins vary less than what lies in them leaves out: without it slopes would
be attenuated.

For a curved mean m, the coefficients a solve ``E x m(x'a) = A b``, the expectation over points of the mixture. The
linear part of the mean, b, thus has the released moments, and only what is beyond it rests on the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.coordinates.matrices import eigen
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput
from dpregress.inference.estimates import original_estimates
from dpregress.inference.moments import product_of, residual_variance
from dpregress.models import Family
from dpregress.releases import Estimates, Marginals, Moments
from dpregress.releases.block_noise import TableNoise
from dpregress.releases.marginals import encoded_design
from dpregress.releases.standardised import standardised

#: Standard deviations of the noise along a direction by which a Gram matrix must exceed 0 there.
_FAR = 4.0
#: A coefficient is not identified if its second-order variance is above this share of the first-order one.
_SECOND_ORDER = 1 / 4
#: The second-order variance is counted this many times, for the orders beyond it and for noise in the plug-in values.
_BEYOND = 2.0
#: Rows that stand for a mixture.
_POINTS = 20_000
#: Prior variance of coefficients under which equations are solved; a last step removes the prior.
_PRIOR = 25.0
#: The most by which that step may change predictors, in the root mean square; beyond it the equations have no root.
_FARTHEST = 0.5
_ITERATIONS, _LONGEST_STEP, _CLOSE = 50, 2.0, 1e-7


@dataclass(frozen=True, eq=False, repr=False)
class KnownSystem(ShownInShort):
    """A Gram matrix restricted to the directions in which it is known.

    Attributes
    ----------
    gram : ndarray of shape (p, p)
    values : ndarray of shape (k,)
        Eigenvalues above the noise.
    vectors : ndarray of shape (p, k)
    unknown : ndarray of shape (p, p)
        The projection on all other directions.
    """

    gram: Matrix
    values: Vector
    vectors: Matrix
    unknown: Matrix

    @classmethod
    def of(cls, gram: Matrix, moments: Moments) -> KnownSystem:
        """The directions in which the Gram matrix exceeds the noise of the moments."""
        values, vectors = eigen(gram)
        padded = np.vstack([vectors, np.zeros(len(values))])
        noise = [np.sqrt(v @ moments.noise.product_covariance(v) @ v) / moments.n for v in padded.T]
        known = values > np.maximum(_FAR * np.array(noise), _CLOSE * float(values.max()))
        rest = vectors[:, ~known]
        return cls(gram, values[known], vectors[:, known], rest @ rest.T)

    @property
    def inverse(self) -> Matrix:
        """The pseudo-inverse, of shape (p, p)."""
        return np.asarray((self.vectors / self.values) @ self.vectors.T)


@dataclass(frozen=True, eq=False, repr=False)
class LinearPart(ShownInShort):
    """Least squares on what is known, with the covariances of the coefficients that noise causes."""

    coef: Vector
    first: Matrix
    second: Matrix

    @classmethod
    def of(cls, moments: Moments, system: KnownSystem) -> LinearPart:
        """From cross moments that are not shrunk."""
        inverse, order = system.inverse, len(system.gram)
        coef = inverse @ moments.cross
        noise = moments.noise.product_covariance(np.append(coef, -1.0))[:order, :order]
        first = inverse @ noise @ inverse / moments.n**2
        second = inverse @ product_of(moments.noise, first, order + 1) @ inverse / moments.n**2
        return cls(coef, first, second)

    @property
    def privacy(self) -> Matrix:
        """The privacy covariance to second order."""
        return self.first + _BEYOND * self.second


@np.errstate(all="ignore")  # whatever was released, there is an answer
def table_estimates(
    marginals: Marginals, target: str, features: list[str], family: Family, level: str | None = None
) -> Estimates | None:
    """Coefficients of one linear predictor from released marginals; None without unshrunk tables, or without a root.

    Parameters
    ----------
    marginals : Marginals
    target : str
    features : list of str
    family : Family
        With a canonical link.
    level : str, optional
        Of a target that is a class.
    """
    if marginals.unshrunk is None:
        return None
    try:
        return _estimates(marginals, *marginals.unshrunk, target, features, family, level)
    except (np.linalg.LinAlgError, InvalidInput):  # of numbers beyond the range of floats
        return None


def _estimates(
    marginals: Marginals,
    gram: Matrix,
    noise: TableNoise,
    target: str,
    features: list[str],
    family: Family,
    level: str | None,
) -> Estimates | None:
    moments = replace(marginals, gram=gram, noise=noise).moments(target, features, level)
    places = marginals.places(features)
    less_noisy = less_noisy_moments(marginals, gram, noise) - spread_within_bins(marginals.domain)
    known = standardised(moments, marginals.numbers(features))
    system = KnownSystem.of(known.turn @ less_noisy[np.ix_(places, places)] @ known.turn.T, known.moments)
    if family.distribution.name == "gaussian":
        return _straight(known.moments, system)
    if not len(system.values):
        return None
    points = encoded_design(marginals.domain, marginals.mixture.points(_POINTS), features)
    return _curved(known.moments, system, points @ known.turn.T, family)


def less_noisy_moments(marginals: Marginals, gram: Matrix, law: TableNoise) -> Matrix:
    """Second moments as proportions: the mixture's, plus what the released ones say beyond it, shrunk block by block.

    A number's mean and its mean square are blocks of one entry.

    Parameters
    ----------
    marginals : Marginals
    gram : ndarray of shape (width, width)
        Unbiased released moments, in counts.
    law : TableNoise
        Of their noise.
    """
    domain, count = marginals.domain, marginals.count
    found, variances = marginals.mixture.design_moment.copy(), law.between + law.own
    each = [domain.columns_of(j) for j in range(len(domain.attributes))]
    blocks = [*((slice(0, 1), own) for own in each), *((own, own) for own in each)]
    blocks += [(each[j], each[k]) for j, k in domain.pairs]
    for first, second in blocks:
        beyond = gram[first, second] / count - found[first, second]
        noise = float(variances[first, second].sum()) / beyond.size / count**2 * max(beyond.size - 2, 1)
        beyond *= max(0.0, 1 - noise / max(float(np.sum(beyond**2)), 1e-300))
        found[first, second] += beyond
        found[second, first] = found[first, second].T
    return found


def spread_within_bins(domain: Domain) -> Matrix:
    """Sheppard's correction: what bins add to the mean squares of numbers that lie anywhere in them."""
    spread = np.zeros((domain.width, domain.width))
    for j, attribute in enumerate(domain.attributes):
        if attribute.edges and not attribute.whole:
            own = domain.columns_of(j).start
            spread[own, own] = (2 / attribute.unit) ** 2 / 12
    return spread


def _straight(moments: Moments, system: KnownSystem) -> Estimates:
    """Least squares itself, with homoscedastic sampling errors."""
    space, linear = moments.space, LinearPart.of(moments, system)
    assert space.response is not None
    total = moments.total.copy()
    total[:-1, :-1] = moments.n * system.gram
    squares, df = residual_variance(replace(moments, total=total), linear.coef, linear.first)
    return _identified(
        original_estimates(
            space, linear.coef, n=moments.n, sampling=squares / moments.n * system.inverse, privacy=linear.privacy,
            unidentified=system.unknown, df=df, dispersion=squares * space.response.scale**2, gram=system.gram,
        ),
        space.whitening, linear.first, linear.second,
    )  # fmt: skip


def _curved(moments: Moments, system: KnownSystem, points: Matrix, family: Family) -> Estimates | None:
    """The root of the mixture's equations, carried from the linear part by the delta method."""
    response, linear = moments.space.response, LinearPart.of(moments, system)
    assert response is not None
    constant = np.eye(len(linear.coef))[0]
    straight = response.scale * linear.coef + response.centre * constant
    known = points @ system.vectors
    rows = known.T @ known / len(known)
    wanted = rows @ (system.vectors.T @ straight)
    root = _root(known, wanted, family, _PRIOR * moments.n)
    if root is None:
        return None
    predictors = known @ root
    mean = family.mean(predictors)
    slope = (known * family.slope(predictors)[:, None]).T @ known / len(known)
    carried = system.vectors @ np.linalg.solve(slope, rows) @ system.vectors.T * response.scale
    beyond = mean - known @ np.linalg.solve(rows, known.T @ mean / len(known))
    spread = _dispersion(moments, mean, family) * family.distribution.variance(mean)
    meat = (known * (spread + beyond**2)[:, None]).T @ known / len(known)
    bread = system.vectors @ np.linalg.inv(slope)
    first, second = (carried @ part @ carried.T for part in (linear.first, linear.second))
    space = moments.space.with_response(None)
    found = original_estimates(
        space, system.vectors @ root, n=moments.n, sampling=bread @ meat @ bread.T / moments.n,
        privacy=first + _BEYOND * second, unidentified=system.unknown,
        dispersion=_dispersion(moments, mean, family), gram=system.gram,
    )  # fmt: skip
    return _identified(found, space.whitening, first, second)


def _identified(found: Estimates, whitening: Matrix, first: Matrix, second: Matrix) -> Estimates:
    """Without coefficients for which the noise of the Gram matrix matters too much."""
    turn = whitening.T
    beyond, near = (np.einsum("ki,ij,kj->k", turn, part, turn) for part in (second, first))
    # beyond the range of floats, sums of infinities of both signs would warn
    sampling, privacy = (np.where(np.isfinite(part), part, np.nan) for part in (found.sampling, found.privacy))
    identified = found.identified & (beyond <= _SECOND_ORDER * near)
    return replace(found, sampling=sampling, privacy=privacy, identified=identified)


def _root(points: Matrix, wanted: Vector, family: Family, prior: float) -> Vector | None:
    """Coefficients g with ``mean z m(z'g) = wanted``; None if no coefficients come near it."""
    coef = np.zeros(points.shape[1])
    for penalty in (1 / prior, 0.0):
        for _ in range(_ITERATIONS if penalty else 1):
            predictors = points @ coef
            slope = (points * family.slope(predictors)[:, None]).T @ points / len(points)
            slope += penalty * np.eye(len(coef))
            step = np.linalg.lstsq(slope, wanted - points.T @ family.mean(predictors) / len(points) - penalty * coef)[0]
            length = float(np.sqrt(np.mean((points @ step) ** 2)))
            if not penalty and not length <= _FARTHEST:
                return None
            coef = coef + min(1.0, _LONGEST_STEP / max(length, 1e-300)) * step
            if length <= _CLOSE:
                break
    return coef


def _dispersion(moments: Moments, mean: Vector, family: Family) -> float:
    """The variance of a response about its mean over that of the family: 1 for a class, released for a count."""
    response = moments.space.response
    assert response is not None
    if family.distribution.name == "binomial":
        return 1.0
    scale, centre = response.scale, response.centre
    square = scale**2 * moments.response_second + 2 * scale * centre * moments.cross[0] + centre**2
    return max(float(square - np.mean(mean**2)) / float(np.mean(family.distribution.variance(mean))), 1.0)

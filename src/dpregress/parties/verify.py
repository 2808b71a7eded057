"""Recomputes what the plan determines in a release, and refuses a release that states anything else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpregress.accounting import GDP, Relation
from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms import Gaussian
from dpregress.mechanisms.sketching import SEED_BYTES, sketch_matrix
from dpregress.parties.plan import PartyTerms, StudyPlan
from dpregress.public import Numeric
from dpregress.queries import Query, RowSketch, SecondMoment
from dpregress.releases import Isotropic, Moments, Sketch
from dpregress.solvers.shared.column_values import RANGE_ROUNDS
from dpregress.solvers.vertical.ranges import FoundRanges, range_spends, ranged_space
from dpregress.solvers.vertical.release import PartyRelease, mixing_space, party_spends

#: The largest relative difference of noise scales: those of earlier versions cover the rounding of sums.
_SCALE = 1e-6
#: The largest relative difference of coordinates: machines round the inverse root of released moments differently.
_COORDINATES = 1e-4
#: Honest noise exceeds this bound only once in 10^700 draws.
_DEVIATIONS = 60.0


def check_determined(plan: StudyPlan, terms: PartyTerms, release: PartyRelease, first: WhitenedSpace) -> None:
    """Refuse budgets, coordinates, radii and scales of noise that do not follow from the plan.

    The moments' space is that of the columns' bounds or stated ranges, the mixture's follows from the released moments;
    the noise follows from these, from n and from the party's mu. Ranges may lie anywhere within the bounds.

    Parameters
    ----------
    plan : Plan
    terms : PartyTerms
    release : PartyRelease
        As read from a file.
    first : WhitenedSpace
        The party's space by the plan.

    Raises
    ------
    InvalidInput
    """
    moments, mixture = release.moments, release.mixture
    numbers = plan.numbers(terms)
    look, rest = range_spends(terms.promise, numbers)
    if (release.found is None) != (look is None):
        raise InvalidInput("the ranges of its numbers are there if and only if the plan asks for them: refused")
    if release.found is not None and look is not None:
        _check_ranges(release.found, first, numbers, look)
        first = ranged_space(first, release.found.ranges)
    spends = party_spends(len(first.features), plan.n, rest)
    for name, part, spend in (("moments", moments, spends[0]), ("sketched rows", mixture, spends[1])):
        if len(part.events) != 1 or not math.isclose(_gaussian_mu(part.events[0]), spend.mu, rel_tol=_SCALE):
            raise InvalidInput(f"the {name} spend something other than mu = {spend.mu:.6g}, which the plan gives them")
    _check_space("moments", moments.space, first.with_response(None))
    _check_noise("moments", moments, SecondMoment(moments.space), spends[0], plan.n)
    if plan.ranges:  # parties with plans of earlier versions followed another rule
        with np.errstate(all="ignore"):  # values that are not finite are refused
            second = mixing_space(moments, spends[1].mu)
        _check_space("sketched rows", mixture.space, second)
    mixed = RowSketch(
        mixture.space, sketch_matrix(plan.mixing, plan.n, plan.k, bytes(SEED_BYTES))
    )  # norms know no seed
    if not math.isclose(mixture.unit, mixed.unit / mixed.mixing.column_norm, rel_tol=_SCALE):
        raise InvalidInput("the unit of the sketched rows does not follow from its radius")
    _check_noise("sketched rows", mixture, mixed, spends[1], plan.n)


def _check_ranges(found: FoundRanges, first: WhitenedSpace, numbers: Mapping[int, Numeric], spend: GDP) -> None:
    """Refuse ranges beyond the bounds, of other columns, or at another price."""
    mus = [_gaussian_mu(event) for event in found.events]
    if len(mus) != RANGE_ROUNDS or not math.isclose(math.hypot(*mus), spend.mu, rel_tol=_SCALE):
        raise InvalidInput(f"the ranges spend something other than mu = {spend.mu:.6g}, which the plan gives them")
    ends, fill = found.ranges.ends, found.ranges.fill
    if found.ranges.places != tuple(numbers) or np.isfinite(ends).sum() != 2 * len(numbers):
        raise InvalidInput("the ranges are of other columns than the numbers of the plan")
    for place, column in numbers.items():
        assert column.bounds is not None
        lower, upper = column.bounds
        if not lower <= ends[0, place] <= fill[place] <= ends[1, place] <= upper:
            raise InvalidInput("the ranges of its numbers reach beyond their bounds: refused")
    others = [place for place in range(len(fill)) if place not in numbers]
    if not np.array_equal(fill[others], first.fill[others]):
        raise InvalidInput("missing cells of indicators count as something else than in the plan: refused")


def _gaussian_mu(event: object) -> float:
    return event.mu if isinstance(event, GDP) else math.nan


def _check_space(name: str, space: WhitenedSpace, expected: WhitenedSpace) -> None:
    known = (space.features, space.intercept, space.response, space.weighting, space.exposure)
    if known != (expected.features, expected.intercept, expected.response, expected.weighting, expected.exposure):
        raise InvalidInput(f"the coordinates of the {name} are of another kind than the plan's")
    if not (_follow(space.whitening, expected.whitening) and _near(space.fill, expected.fill)):
        raise InvalidInput(f"the coordinates of the {name} do not follow from the plan")
    if not math.isclose(space.radius, expected.radius, rel_tol=_COORDINATES):
        raise InvalidInput(
            f"the radius of the {name} is {space.radius:.6g}; by the plan it is {expected.radius:.6g}: refused"
        )


def _follow(stated: Matrix, expected: Matrix) -> bool:
    """Whether slopes agree in every direction, with each column in its own unit, and the constant's entries agree.

    A column with a small scale must not pass as one with a larger scale, because the noise would then seem smaller.
    """
    unit = np.abs(expected[1:, 1:]).max(axis=0, initial=0.0)
    if not (_near(stated[0], expected[0]) and _near(stated[:, 0], expected[:, 0]) and (unit > 0).all()):
        return False
    one, other = stated[1:, 1:] / unit, expected[1:, 1:] / unit
    ratio = np.linalg.solve(other.T, one.T).T
    return bool(np.abs(ratio - np.eye(len(ratio))).max(initial=0.0) <= _COORDINATES)


def _near(one: Vector, other: Vector) -> bool:
    return bool(np.abs(one - other).max(initial=0.0) <= _COORDINATES * np.abs(other).max(initial=0.0))


def _check_noise(name: str, part: Moments | Sketch, query: Query[Any], spend: GDP, n: int) -> None:
    """Refuse a noise scale that differs from the plan's, and sums that n bounded rows and this noise cannot reach."""
    noise = part.noise
    expected = Gaussian(spend).sigma(query, Relation.REPLACE_ONE)
    if not isinstance(noise, Isotropic) or not math.isclose(noise.sigma, expected, rel_tol=_SCALE):
        found = noise.sigma if isinstance(noise, Isotropic) else math.nan
        raise InvalidInput(f"the {name} state noise of scale {found:.6g}; by the plan it is {expected:.6g}: refused")
    if not np.abs(part.total).max() <= n * query.contribution() + _DEVIATIONS * expected:
        raise InvalidInput(f"the {name} hold larger numbers than {n:,} rows within their bounds can add up to: refused")

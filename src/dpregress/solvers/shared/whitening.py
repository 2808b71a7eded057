"""A better whitening from a private second moment, if there are few public rows or none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, WhitenedSpace
from dpregress.coordinates.matrices import eigen, symmetric_power
from dpregress.public.facts import PublicFacts
from dpregress.public.moments import PublicMoments
from dpregress.public.radius import RowNorms, refined_radius
from dpregress.public.schema import Schema
from dpregress.queries import Ask, Counted, SecondMoment, noise_in_mean
from dpregress.releases import Moments
from dpregress.solvers.shared.levels import levels_in_reach
from dpregress.solvers.shared.repair import LARGEST_FLOOR, floored, gram_floor, noise_norm

#: Share of mu^2 of a private second moment to whiten by.
REFINE = 0.10
#: With more noise in it, in spectral norm, bounds are no better a start than public rows, few and skewed as they are;
#: nor is it worth while to magnify what public rows do not show.
_TOO_NOISY = 2.0
#: Public rows beyond so many median norms are far; if they are a larger share of all rows, they are not a few.
_TIMES, _FEW = 5.0, 0.03
#: Of the second moment along a direction, ordinary rows have next to nothing below the first share, little below the
#: second.
_NOTHING, _LITTLE = 0.001, 0.2
#: The square of the length of a level's mean row is at most this many times the number of coordinates where nothing
#: needs a larger radius: with the level's column a table of as many others has the least noise about it there.
_LEVEL = 2.0


def planned_start(facts: PublicFacts, budget: GDP) -> PublicFacts:
    """The facts with the other start, if they have one and a private second moment would have little noise in it."""
    instead = facts.start.instead
    if instead is None:
        return facts
    return replace(facts, start=instead) if _noise(instead.space, facts, budget) <= _TOO_NOISY else facts


def start_from_few(facts: PublicFacts, budget: GDP) -> PublicFacts:
    """The facts with the start from few public rows or skewed ones, if there is one; else :func:`planned_start`."""
    shrunk = facts.start.shrunk
    return planned_start(facts, budget) if shrunk is None else replace(facts, start=shrunk)


def start_in_reach(facts: PublicFacts, budget: GDP) -> PublicFacts:
    """The same, unless private second moments reach the coordinates of public rows from the bounds of a schema.

    Each magnifies directions up to the inverse of its noise.
    """
    planned, shrunk = planned_start(facts, budget), facts.start.shrunk
    if shrunk is None:
        return planned
    bounds = planned.start
    if bounds.refinements > 1:
        noise = min(_noise(bounds.space, facts, budget), LARGEST_FLOOR)
        apart = np.linalg.svd(shrunk.space.whitening @ np.linalg.inv(bounds.space.whitening), compute_uv=False)
        if noise**bounds.refinements * float(apart[0]) ** 2 <= 1:
            return planned
    return replace(facts, start=shrunk)


def _noise(space: WhitenedSpace, facts: PublicFacts, budget: GDP) -> float:
    """The noise of a private second moment in a space, in spectral norm."""
    change = SecondMoment.largest_change(space.radius) / math.sqrt(REFINE)
    return math.sqrt(2 * space.order) * noise_in_mean(change, budget, facts.n)


def far_public_rows(facts: PublicFacts) -> NDArray[np.bool_]:
    """Which public rows are many times as long as the median one, of shape (m,); none where rows are not known."""
    public, start = facts.public, facts.start
    if public is None or public.rows is None or start.refinements:
        return np.zeros(1, dtype=np.bool_)
    norms = np.linalg.norm(start.space.whiten(public.rows), axis=1)
    return np.asarray(norms > _TIMES * np.median(norms))


def without_far_rows(facts: PublicFacts, far: NDArray[np.bool_]) -> tuple[PublicFacts, RowNorms]:
    """The start in coordinates of the ordinary public rows if a few far ones dominate a direction, and norms in it.

    The public second moment along such a direction is that of far rows, and the radius that would keep most of it is
    theirs as well: its noise hides what ordinary rows say, and clips hold back what far rows say. A direction along
    which ordinary rows hardly vary, such as that of a rare level, is no reason.
    """
    start, public = facts.start, facts.public
    norms = RowNorms.of(public, start.space, refined=start.refinements > 0)
    if public is None or public.rows is None or not 0 < far.sum() <= _FEW * len(far):
        return facts, norms
    rows = public.rows[~far]
    whitened = start.space.whiten(rows)
    second = whitened.T @ whitened / len(rows)
    if not _NOTHING <= float(np.linalg.eigvalsh(second)[0]) < _LITTLE:
        return facts, norms
    space = start.space.rewhitened(symmetric_power(second, -0.5), 1.0)
    norms = RowNorms.leave_one_out(PublicMoments.from_rows(rows, names=public.names), space)
    space = space.rewhitened(np.eye(space.order), norms.median)
    return replace(facts, start=replace(start, space=space)), norms


def refinements(facts: PublicFacts) -> tuple[str, ...]:
    """Names of the private second moments to whiten by."""
    return tuple(f"refine {turn}" for turn in range(facts.start.refinements))


@dataclass(frozen=True, eq=False)
class Rewhitened:
    """Coordinates whose radius is the median norm of rows, and the distribution of norms in them.

    ``seen`` is the private second moment that they are whitened by, if there is one.
    """

    space: WhitenedSpace
    norms: RowNorms
    seen: Seen | None = None

    def truncated(self, radius: float) -> WhitenedSpace:
        """The coordinates with this radius, within which rows with uncommon levels are kept if they are at all."""
        space = self.space if self.seen is None else self.seen.whitened(radius).space
        return space.rewhitened(np.eye(space.order), radius)


@dataclass(frozen=True, eq=False)
class Seen:
    """A private second moment to whiten by.

    Of rows beyond the radius it shows less than there is. To magnify what is not seen of them would move them further
    out each time, so that the moment is at least what earlier ones have shown of it.

    Attributes
    ----------
    space : WhitenedSpace
        Where it was asked.
    second : Moments
    least : ndarray of shape (p, p)
        What earlier ones have shown.
    schema : Schema or None
        Of the levels that are kept within reach.
    """

    space: WhitenedSpace
    second: Moments
    least: Matrix
    schema: Schema | None

    @cached_property
    def _moment(self) -> Matrix:
        """The second moment, as it is shown."""
        values, vectors = eigen(self.least - self.second.gram)
        return np.asarray(self.second.gram + vectors * np.maximum(values, 0) @ vectors.T)

    def _root(self, reach: float) -> Matrix:
        """What whitens it, where levels have the least share that is within this reach."""
        second, space = self.second, self.space
        gram, noise = floored(self._moment, gram_floor(second)), noise_norm(second) / math.sqrt(2 * space.order)
        if space.intercept:
            gram = levels_in_reach(space, gram, noise, self.schema, max(_LEVEL * space.order, reach**2))
        return symmetric_power(gram, -0.5)

    def whitened(self, reach: float = 0.0) -> Rewhitened:
        """The coordinates that are whitened by it."""
        return replace(rewhitened_by(self.space, self.second, self._root(reach)), seen=self)

    def shown(self, gram: Matrix) -> Matrix:
        """What it shows beyond its noise in its coordinates, if rows were shrunk alike in all directions."""
        root = self._root(0.0)
        seen = root @ self._moment @ root
        kept = min(max(float(np.trace(gram)) / max(float(np.trace(seen)), 1e-300), 0.0), 1.0)  # all may be noise
        noise = noise_norm(self.second) / gram_floor(self.second)
        return np.asarray(kept * seen - noise * np.eye(len(gram)))


def refined(
    ask: Ask, space: WhitenedSpace, spend: GDP, schema: Schema | None = None, before: Seen | None = None
) -> Rewhitened:
    """``W <- A^{-1/2} W`` with A a private second moment in the first space.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
    spend : GDP
    schema : Schema, optional
        The levels that it declares are kept within reach.
    before : Seen, optional
        The second moment that whitened the space.
    """
    second = ask(Counted(SecondMoment(space.with_response(None))), spend)
    least = np.zeros_like(second.gram) if before is None else before.shown(second.gram)
    return Seen(space, second, least, schema).whitened()


def refined_in_turn(ask: Ask, start: Rewhitened, spends: Iterable[GDP], schema: Schema | None) -> Rewhitened:
    """The same for each of these budgets."""
    for spend in spends:
        start = refined(ask, start.space, spend, schema, start.seen)
    return start


def rewhitened(space: WhitenedSpace, second: Moments, floor: float) -> Rewhitened:
    """The same from a released second moment, with eigenvalues raised to at least ``floor``."""
    return rewhitened_by(space, second, symmetric_power(second.gram, -0.5, smallest=floor))


def rewhitened_by(space: WhitenedSpace, second: Moments, root: Matrix) -> Rewhitened:
    """The coordinates ``root @ x~``, in which the released second moment tells how long rows are."""
    better = space.rewhitened(root, 1.0)
    norms = RowNorms.normal(better, refined_radius(better, float(np.trace(root @ second.gram @ root))))
    return Rewhitened(better.rewhitened(np.eye(better.order), norms.median), norms)

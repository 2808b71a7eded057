"""A better whitening from a private second moment, if there are few public rows or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.public.radius import RowNorms, refined_radius
from dpregress.queries import Ask, Counted, SecondMoment
from dpregress.releases import Moments
from dpregress.solvers.shared.repair import gram_floor


@dataclass(frozen=True, eq=False)
class Rewhitened:
    """A better space, whose radius is the median norm of rows, and the distribution of norms in it."""

    space: WhitenedSpace
    norms: RowNorms


def refined(ask: Ask, space: WhitenedSpace, spend: GDP) -> Rewhitened:
    """``W <- A^{-1/2} W`` with A a private second moment in the first space."""
    second = ask(Counted(SecondMoment(space.with_response(None))), spend)
    return rewhitened(space, second, gram_floor(second))


def rewhitened(space: WhitenedSpace, second: Moments, floor: float) -> Rewhitened:
    """The same from a released second moment, with eigenvalues raised to at least ``floor``."""
    root = symmetric_power(second.gram, -0.5, smallest=floor)
    better = space.rewhitened(root, 1.0)
    norms = RowNorms.normal(better, refined_radius(better, float(np.trace(root @ second.gram @ root))))
    return Rewhitened(better.rewhitened(np.eye(better.order), norms.median), norms)

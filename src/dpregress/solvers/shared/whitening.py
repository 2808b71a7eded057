"""A better frame from a private second moment, where public rows are few or none."""

from __future__ import annotations

import math

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.coordinates.matrices import symmetric_power
from dpregress.public.radius import chi_radius
from dpregress.queries import Ask, Counted, SecondMoment
from dpregress.releases import Moments
from dpregress.solvers.shared.repair import gram_floor


def refined(ask: Ask, space: WhitenedSpace, spend: GDP) -> WhitenedSpace:
    """``W <- A^{-1/2} W`` with A a private second moment in the first frame; the radius is a chi-square median."""
    second = ask(Counted(SecondMoment(space.with_response(None))), spend)
    return rewhitened(space, second, gram_floor(second))


def rewhitened(space: WhitenedSpace, second: Moments, floor: float) -> WhitenedSpace:
    """The same of a second moment that was released, its eigenvalues raised to at least ``floor``."""
    root = symmetric_power(second.gram, -0.5, smallest=floor)
    better = space.rewhitened(root, 1.0)
    # directions too weak to be whitened in this noise make rows shorter than normal ones
    length = math.sqrt(max(float(np.trace(root @ second.gram @ root)), 1.0))
    return better.rewhitened(np.eye(better.order), min(chi_radius(better), length))

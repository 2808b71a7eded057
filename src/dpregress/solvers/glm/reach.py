"""What predictors are kept between: rows far out are not predicted with certainty."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.models import BinomialFamily, Family
from dpregress.public.facts import PublicFacts
from dpregress.public.schema import Schema
from dpregress.releases import ANYWHERE
from dpregress.solvers.base import Uncertainty
from dpregress.solvers.shared.surrogate import SurrogateRows, likely_alone
from dpregress.solvers.shared.weak_prior import has_scale


def declared_limits(facts: PublicFacts, family: Family) -> tuple[float, float]:
    """The declared bounds of the response as predictors, of log links."""
    lower, upper = ANYWHERE
    if facts.response_bounds is not None and facts.exposure is None and family.link.name == "log":
        least, most = facts.response_bounds
        lower = family.link.predictor(least) if least > 0 else lower
        upper = family.link.predictor(most) if most > 0 else upper
    return lower, upper


def reach(
    facts: PublicFacts,
    family: Family,
    space: WhitenedSpace,
    rows: SurrogateRows,
    coef: Vector,
    uncertainty: Uncertainty,
) -> tuple[float, float]:
    """The declared limits, and what rows like the public ones have; of two classes, without any, likely rows.

    Normal rows, which stand for private ones where bounds are not declared, have no rare levels: they limit nothing.
    """
    if not has_scale(family):
        return ANYWHERE
    lower, upper = declared_limits(facts, family)
    alone, below, above = facts.public is None or facts.public.rows is None, 0.0, 0.0
    if alone:
        if family != BinomialFamily or facts.schema is None or not likely_alone(space, facts.schema):
            return lower, upper
        below, above = _of_indicators(space, facts.schema, coef, uncertainty.total)
    least, most = rows.reach(coef, uncertainty.total, uncertainty.privacy, facts.n)
    lowest, highest = max(lower, least + below), min(upper, most + above)
    return (lowest, highest) if lowest < highest else (lower, upper)


def _of_indicators(space: WhitenedSpace, schema: Schema, coef: Vector, covariance: Matrix) -> tuple[float, float]:
    """How far an indicator moves predictors down and up, as far as its slope is known: rows may lack a rare level."""
    turn = space.whitening.T[1:]
    slopes, variance = turn @ coef, np.einsum("ij,jk,ik->i", turn, covariance, turn)
    moved = slopes * slopes**2 / np.maximum(slopes**2 + variance, 1e-300)
    moved = moved[[schema.is_indicator(name) for name in space.features]]
    return float(moved.min(initial=0.0)), float(moved.max(initial=0.0))

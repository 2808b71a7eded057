r"""The one-shot recipe: one joint release of whitened, row-weighted, bounded moments.

Every choice is a function of public facts (docs/methods/one-shot.md):

1. coordinates and radius from the public moment; with fewer than 5 public rows per column, or none, a private second
   moment for 10% of mu^2, by which they are whitened again;
2. the scale of the response from public labels, or from the bounds in the schema, or from a private histogram of
   log2|y| for 1.4% of mu^2, more if n mu is small;
3. for the rest of the budget, the joint second moment of ``(s x~, u clip(s y~, +-C))``, solved with an eigenvalue
floor.

If the linear model is misspecified, row weights and the clip change the estimand to a weighted projection, in which
distant rows and large responses have less weight.
"""

from __future__ import annotations

from typing import Any

from dpregress.accounting import GDP, split
from dpregress.coordinates import ResponseScale, WhitenedSpace
from dpregress.errors import UnboundedData
from dpregress.public import response
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, Counted, Query, ResponseHistogram, SecondMoment
from dpregress.releases import ANYWHERE
from dpregress.solvers.base import FactSolver, Solution
from dpregress.solvers.linear.least_squares import solve_moments
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes
from dpregress.solvers.shared.repair import floored, gram_floor
from dpregress.solvers.shared.surrogate import surrogate_rows
from dpregress.solvers.shared.whitening import refined

_REFINE_SHARE = 0.10
_SCALE_SHARE = 0.014
_LARGEST_SCALE_SHARE = 0.20
#: From about this n mu on, a histogram of scales is reliable.
_RELIABLE = 200.0


class OneShot(FactSolver):
    """One joint release, after at most two small releases that determine the scales.

    Parameters
    ----------
    facts : PublicFacts
    budget : GDP
        All of it is drawn.
    alpha : float
        Ridge penalty, as in scikit-learn.

    Raises
    ------
    UnboundedData
        If nothing public bounds the response and n mu is too small to estimate its scale privately.
    """

    def __init__(self, facts: PublicFacts, budget: GDP, alpha: float) -> None:
        self.facts = facts
        self.alpha = alpha
        seeks_scale = (
            facts.trusted_labels is None and response.from_bounds(facts.target, facts.schema, facts.start.space) is None
        )
        shares = [
            _REFINE_SHARE if facts.start.refinements else 0.0,
            scale_share(facts, budget) if seeks_scale else 0.0,
        ]
        shares.append(1 - sum(shares))
        parts = iter(split(budget, [share for share in shares if share > 0]))
        self.refine, self.scale, self.joint = (next(parts) if share > 0 else None for share in shares)
        if facts.trusted_labels is not None and self.joint is not None:
            # refuse labels without a valid response scale here, before the charge
            response.from_labels(facts.target, facts.trusted_labels, facts.start.space, self._joint_noise)

    @property
    def rounds(self) -> int:
        return sum(part is not None for part in (self.refine, self.scale, self.joint))

    @property
    def asks(self) -> tuple[type[Query[Any]], ...]:
        return (SecondMoment,) if self.scale is None else (ResponseHistogram, SecondMoment)

    def solve(self, ask: Ask) -> Solution:
        space = self.facts.start.space
        if self.refine is not None:
            space = refined(ask, space, self.refine).space
        assert self.joint is not None
        space = space.with_response(self._response(ask, space))
        moments = ask(Counted(SecondMoment(space)), self.joint)
        coef, system = solve_moments(moments, alpha=self.alpha)
        rows = surrogate_rows(space, self.facts.public, floored(moments.gram, gram_floor(moments)))
        return Solution(coef, system, space, moments, lost=rows.lost, reach=self.facts.credible_bounds or ANYWHERE)

    def _joint_noise(self, space: WhitenedSpace) -> float:
        """The noise in the joint moments of a space with a response."""
        assert self.joint is not None
        return SecondMoment(space).noise(self.joint, self.facts.n)

    def _response(self, ask: Ask, space: WhitenedSpace) -> ResponseScale:
        facts = self.facts
        if facts.trusted_labels is not None:
            return response.from_labels(facts.target, facts.trusted_labels, space, self._joint_noise)
        if self.scale is None:
            declared = response.from_bounds(facts.target, facts.schema, space)
            assert declared is not None
            return declared
        unscaled = space.with_response(ResponseScale(facts.target))
        found = Magnitudes.of_histogram(ask(ResponseHistogram(unscaled, EDGES), self.scale)).root_mean_square
        return response.scaled(ResponseScale(facts.target, 0.0, found), space, response.DEFAULT_CLIP)


def scale_share(facts: PublicFacts, budget: GDP) -> float:
    """The share of mu^2 that a histogram of the response's scale needs.

    Raises
    ------
    UnboundedData
        If more than a fifth would be needed.
    """
    share = max(_SCALE_SHARE, (_RELIABLE / (facts.n * budget.mu)) ** 2)
    if share > _LARGEST_SCALE_SHARE:
        raise UnboundedData(
            f"n mu = {facts.n * budget.mu:.3g} is too small to estimate the scale of {facts.target!r} "
            "privately: declare its bounds in the schema, give public labels, or spend more"
        )
    return share

"""The results of a solver in original units."""

from __future__ import annotations

from dpregress.inference import original_coefficients, original_estimates
from dpregress.public.facts import PublicFacts
from dpregress.releases import Coefficients, Estimates
from dpregress.solvers import Solution, Uncertainty


def estimates_of(solution: Solution) -> Estimates | None:
    """Estimates for inference; None if the recipe has none."""
    found = solution.unshrunk
    if found is None:
        return None
    return original_estimates(
        solution.space,
        found.coef,
        sampling=found.sampling,
        privacy=found.privacy,
        unidentified=found.unidentified,
        df=found.df,
        cov_type=found.cov_type,
        dispersion=found.dispersion,
        gram=found.gram,
    )


def original(solution: Solution, uncertainty: Uncertainty | None, facts: PublicFacts) -> Coefficients:
    """Coefficients in original units with their standard errors, which are NaN if not known."""
    privacy, total = (None, None) if uncertainty is None else (uncertainty.privacy, uncertainty.total)
    return original_coefficients(
        solution.space, solution.whitened, target=facts.target, n=facts.n, privacy=privacy, total=total
    )

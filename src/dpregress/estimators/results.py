"""The results of a solver in original units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpregress.inference import moment_estimates, original_coefficients, original_estimates
from dpregress.public.facts import PublicFacts
from dpregress.releases import Coefficients, Estimates
from dpregress.solvers import Solution, Uncertainty
from dpregress.solvers.shared.sandwich import FEWEST


def estimates_of(
    solution: Solution,
    n: int,
    classes: Sequence[str] = (),
    rows_of_a_unit: int = 1,
    *,
    robust: bool = False,
    numbers: Sequence[bool] = (),
) -> Estimates | None:
    """Estimates for inference; None if the recipe has none.

    Parameters
    ----------
    solution : Solution
    n : int
        Private rows.
    classes : sequence of str
        Of a model of more than two.
    rows_of_a_unit : int
        The k rows of a unit may all have the same error: the sampling covariance is at most k times that of
        independent rows.
    robust : bool
        Whether standard errors were to hold for unequal error variances.
    numbers : sequence of bool
        Which features are numbers and no indicators, if a Gram matrix was released.
    """
    found = solution.unshrunk
    if found is None and solution.moments is not None:
        return moment_estimates(solution.moments, lost=solution.lost, rows_of_a_unit=rows_of_a_unit)
    if found is None:
        return None
    return original_estimates(
        solution.space,
        found.coef,
        n=n,
        sampling=rows_of_a_unit * found.sampling,
        privacy=found.privacy,
        unidentified=found.unidentified,
        shift=found.shift,
        df=FEWEST if robust and found.cov_type == "model" else found.df,
        cov_type=found.cov_type,
        dispersion=found.dispersion,
        gram=found.gram,
        classes=classes,
        numbers=numbers,
    )


def original(solution: Solution, uncertainty: Uncertainty | None, facts: PublicFacts) -> Coefficients:
    """Coefficients in original units with their standard errors, which are NaN if not known."""
    privacy, total = (None, None) if uncertainty is None else (uncertainty.privacy, uncertainty.total)
    found = original_coefficients(
        solution.space, solution.whitened, target=facts.target, n=facts.n, privacy=privacy, total=total
    )
    return replace(found, reach=solution.reach, limits=solution.limits)

"""Linear models from released moments, at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpregress.errors import InvalidInput, type_of
from dpregress.estimators.central import checked_penalty
from dpregress.estimators.released_moments import ReleasedMoments
from dpregress.inference import likely_priors, moment_estimates, original_coefficients
from dpregress.inputs.tables import Inputs
from dpregress.releases import Coefficients
from dpregress.releases.release import ANYWHERE
from dpregress.releases.subsets import RegressionMoments, regression_moments
from dpregress.rows import Encoder, FormulaEncoder
from dpregress.solvers.shared.repair import floored, noise_norm, ridge_penalty

#: The share of a matrix's largest entry below which an eigenvalue is due to rounding.
_DIGITS = 1e-12
#: What is likely without the noise: these shares of the way from the mean for everybody to the coordinates' regression,
#: with their odds beforehand: as much for the coordinates as for all others.
_SHARES, _ODDS = (0.0, 0.25, 0.5, 0.75, 1.0), (1.0, 1.0, 1.0, 1.0, 4.0)


def regress_moments(
    model: Any, released: ReleasedMoments, target: str | None, features: Sequence[str] | None, alpha: float
) -> None:
    """Give a linear estimator the attributes of a fit to these columns.

    Parameters
    ----------
    model : DPRidge
        Its formula, if it has one, names the columns.
    released : ReleasedMoments
    target : str or None
    features : sequence of str or None
        Default: all columns but the target.
    alpha : float
        The ridge penalty.

    Raises
    ------
    InvalidInput
        For columns that were not released.
    """
    if not isinstance(released, ReleasedMoments):
        raise InvalidInput(f"moments are those of release_moments or combine, not {type_of(released)}")
    design, intercept = None, bool(model.fit_intercept)
    if model.formula is not None:
        if target is not None or features is not None:
            raise InvalidInput("the formula names the columns: leave target and features out")
        design = FormulaEncoder.of(model.formula, released.schema)
        chosen, response, intercept = _of_formula(released, design), design.response.label, design.intercept
    elif target is None:
        raise InvalidInput("name the response: target='cost'")
    else:
        response, chosen = released.response(target), released.design(features, other_than=target)
    own = regression_moments(released.moments, response, chosen, intercept=intercept)
    penalty = checked_penalty(alpha, own.moments.space)
    model.estimates_ = released.estimates_of(own)
    found = _coefficients(own, response, penalty, released.rows_of_a_unit)
    schema = released.schema
    bounded = schema is not None and schema.bounds_all([response])
    model.coefficients_ = replace(found, reach=schema.bounds_of(response) if schema and bounded else ANYWHERE)
    model.coef_, model.intercept_ = model.coefficients_.coef, model.coefficients_.intercept
    model.moments_, model.privacy_, model.exposure_ = released.moments, released.privacy_, None
    model.design_ = None if design is None else design.right
    Inputs.named(_sources(released, chosen) if design is None else design.sources).keep(model)


def _coefficients(own: RegressionMoments, target: str, alpha: float, rows_of_a_unit: int) -> Coefficients:
    """Ridge coefficients, with what the noise hides shrunk towards what is likely without it.

    That is the mean for everybody, the regression by the coordinates themselves, or a regression between them. With H
    the Gram matrix, the score ``H (b - b_0)`` of the private rows' exact answer has the prior ``N(0, t^2 I + S)``, and
    noise adds ``N(0, P)`` to it. S and P are the covariances of the estimated score due to sampling and to privacy
    noise. For each b_0, t^2 maximises the likelihood; the coefficients are the mean over all of them, by how likely
    they are.
    """
    moments, space = own.moments, own.moments.space
    assert space.response is not None
    estimates = moment_estimates(moments, rows_of_a_unit=rows_of_a_unit)
    gram = floored(moments.gram, noise_norm(moments) + _DIGITS * float(np.abs(moments.gram).max()))
    turn = space.response.scale * space.whitening.T
    around = np.asarray(np.linalg.solve(turn, own.baseline), dtype=np.float64)
    found = around + np.asarray(np.linalg.solve(turn, estimates.estimate), dtype=np.float64)
    to_score = gram @ np.linalg.inv(turn)
    privacy, sampling = (to_score @ part @ to_score.T for part in (estimates.privacy, estimates.sampling))
    flat = float(space.mean_row(gram) @ found) * space.constant if space.intercept else np.zeros_like(found)
    centres = [flat + share * (around - flat) for share in _SHARES]
    priors = likely_priors([gram @ (found - centre) for centre in centres], privacy + sampling, _ODDS)
    score, kept = np.zeros_like(found), np.zeros_like(gram)
    for centre, (weight, variance) in zip(centres, priors, strict=True):
        prior = variance * np.eye(len(found)) + sampling / rows_of_a_unit
        gain = np.linalg.solve(prior + privacy, prior).T
        score, kept = score + weight * gram @ centre + weight * gain @ gram @ (found - centre), kept + weight * gain
    ridge = np.linalg.inv(gram + ridge_penalty(space, alpha, moments.n))
    moved = ridge @ kept
    return original_coefficients(
        space,
        np.asarray(ridge @ score),
        target=target,
        n=moments.n,
        privacy=np.asarray(moved @ privacy @ moved.T),
        total=np.asarray(moved @ (privacy + sampling) @ moved.T),
    )


def _of_formula(released: ReleasedMoments, design: FormulaEncoder) -> tuple[str, ...]:
    """The released columns of a formula."""
    absent = [name for name in (design.response.label, *design.features) if name not in released.names]
    if absent:
        raise InvalidInput(
            f"{absent[0]!r} of the formula was not released: a release holds columns as they are, so add a column with "
            "its values to the table before the release"
        )
    return design.features


def _sources(released: ReleasedMoments, features: Sequence[str]) -> tuple[str, ...]:
    """The columns of the table of which these design columns are made."""
    declared = Encoder.of(released.columns, None, released.schema).columns
    return tuple(name for name, column in declared if {*column.design(name)} & {*features})

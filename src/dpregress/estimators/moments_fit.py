"""Linear models from released moments, at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput, type_of
from dpregress.estimators.base import checked_penalty
from dpregress.estimators.released_moments import ReleasedMoments
from dpregress.inference import original_coefficients, privacy_covariance, sampling_covariance
from dpregress.inputs.tables import Inputs
from dpregress.releases import Coefficients
from dpregress.releases.subsets import RegressionMoments, regression_moments
from dpregress.rows import Encoder, FormulaEncoder
from dpregress.solvers import solve_moments


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
    model.coefficients_ = _coefficients(own, response, penalty, released.rows_of_a_unit)
    model.estimates_ = released.estimates(response, chosen, intercept=intercept)
    model.coef_, model.intercept_ = model.coefficients_.coef, model.coefficients_.intercept
    model.moments_, model.privacy_, model.exposure_ = released.moments, released.privacy_, None
    model.design_ = None if design is None else design.right
    Inputs.named(_sources(released, chosen) if design is None else design.sources).keep(model)


def _coefficients(own: RegressionMoments, target: str, alpha: float, rows_of_a_unit: int) -> Coefficients:
    """The ridge coefficients of the whole response."""
    moments = own.moments
    scale = moments.space.response.scale if moments.space.response is not None else 1.0
    around = np.linalg.solve(moments.space.whitening.T, own.baseline / scale)
    whitened, system = solve_moments(moments, alpha=alpha, around=around)
    privacy: Matrix = privacy_covariance(moments, whitened - around, system)
    sampling = rows_of_a_unit * sampling_covariance(moments, whitened - around, system)
    return original_coefficients(
        moments.space, whitened, target=target, n=moments.n, privacy=privacy, total=privacy + sampling
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

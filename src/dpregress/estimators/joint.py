"""Coefficients from the joint release of several parties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy.stats import norm

from dpregress.errors import InvalidInput
from dpregress.inference import original_coefficients, privacy_covariance, sampling_covariance
from dpregress.releases import Coefficients, Moments
from dpregress.solvers import Solution
from dpregress.solvers.shared.stein import logistic_scale
from dpregress.solvers.vertical.joint import solve_joint
from dpregress.solvers.vertical.release import Joint

#: The largest spread of a least squares predictor of two classes, as a share of what a normal one can have.
_MOST_EXPLAINED = 0.85


def joint_coefficients(
    joint: Joint, target: str, features: Sequence[str], levels: tuple[float, float] | None = None
) -> tuple[Coefficients, Moments]:
    """Coefficients with standard errors in the order of the features, and the moments they rest on.

    With levels, those of the logistic regression of a target that has these two values.

    Raises
    ------
    InvalidInput
        For names that are not columns, or levels that do not both lie in the range of the target.
    """
    if levels is not None:
        _check_levels(joint, target, levels)
    solution = solve_joint(joint, target, features)
    moments = solution.moments
    assert moments is not None
    privacy = privacy_covariance(moments, solution.whitened, solution.system)
    sampling = sampling_covariance(moments, solution.whitened, solution.system)
    found = original_coefficients(
        solution.space, solution.whitened, target=target, n=moments.n, privacy=privacy, total=privacy + sampling
    ).in_order(features)
    places = [joint.moments.space.features.index(name) for name in (*features, target)]
    ends = joint.ends[:, places]
    found = replace(found, ends=ends[:, :-1])
    if levels is not None:
        return _logistic(found, solution, *levels), moments
    return replace(found, reach=(float(ends[0, -1]), float(ends[1, -1]))), moments


def _check_levels(joint: Joint, target: str, levels: tuple[float, float]) -> None:
    """Refuse a target whose values count as the ends of a range that does not hold both levels."""
    if target not in joint.moments.space.features:
        return
    lower, upper = joint.ends[:, joint.moments.space.features.index(target)]
    if not lower <= levels[0] < levels[1] <= upper:
        raise InvalidInput(
            f"{target!r} was released as a number between {lower:.6g} and {upper:.6g}, not as {levels[0]:g} and "
            f"{levels[1]:g}: declare it Categorical before the release"
        )


def _logistic(linear: Coefficients, solution: Solution, lower: float, upper: float) -> Coefficients:
    """The logistic coefficients that go with a least squares fit of labels at two ends, for a normal predictor."""
    response = solution.space.response
    assert response is not None
    width, slopes = upper - lower, solution.whitened[1:]
    rare = min(1 / linear.n, 0.5)
    mean = min(max((response.centre - lower) / width, rare), 1 - rare)
    spread = response.scale / width * math.sqrt(max(float(slopes @ solution.system[1:, 1:] @ slopes), 0.0))
    most = _MOST_EXPLAINED * float(norm.pdf(norm.ppf(mean)))
    kept = min(1.0, most / max(spread, 1e-300))
    scale, level = logistic_scale(mean, kept * spread)
    factor = kept * scale.value / width
    return replace(
        linear,
        coef=factor * linear.coef,
        intercept=level + factor * (linear.intercept - response.centre),
        privacy_error=factor * linear.privacy_error,
        standard_error=factor * linear.standard_error,
    )

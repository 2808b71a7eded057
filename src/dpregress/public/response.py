r"""The scale and bound of the response, from public facts alone.

The moments contain ``y~ = clip(s (y - centre) / scale, +-C)``. A larger C has less bias and more noise, because the
noise of the joint release grows with C. With public labels, C minimises the predicted noise variance plus the squared
clipping bias. Without labels, C is 3 scales, which was best in measurements (docs/methods/one-shot.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates import ResponseScale, Vector, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.public.columns import Numeric
from dpregress.public.moments import PublicMoments
from dpregress.public.schema import Schema

#: Clip in scales of the response where its distribution is not known (docs/methods/one-shot.md).
DEFAULT_CLIP = 3.0
#: The share of responses beyond declared bounds from which these are not believed.
OUTSIDE = 0.2
#: That from which public rows and bounds contradict each other.
_CONTRADICTS = 0.5
#: A response this many widths beyond its bounds is a code for a missing one, or an error.
_FAR_BEYOND = 0.5


def widened(bounds: tuple[float, float]) -> tuple[float, float]:
    """Bounds beyond which a response is a code or an error, rather than one for which they are too narrow."""
    away = _FAR_BEYOND * (bounds[1] - bounds[0])
    return bounds[0] - away, bounds[1] + away


def far_beyond(labels: Vector, bounds: tuple[float, float]) -> NDArray[np.bool_]:
    """Which public responses are codes or errors."""
    lower, upper = widened(bounds)
    return np.asarray((labels < lower) | (labels > upper))


def without_codes(public: PublicMoments, bounds: tuple[float, float]) -> PublicMoments:
    """Without the labelled rows whose response is far beyond declared bounds, unless there are many.

    Raises
    ------
    InvalidInput
        If most are: one of the two is in another unit.
    """
    if public.labels is None or public.rows is None or not len(public.labels):
        return public
    kept = ~far_beyond(public.labels, bounds)
    if float(np.mean(kept)) < 1 - _CONTRADICTS:
        raise InvalidInput(
            f"the responses of most public rows are far beyond their bounds in the schema ({bounds[0]:g} to "
            f"{bounds[1]:g}): bring both to the same unit, or leave the responses of the public rows out"
        )
    if kept.all() or float(np.mean(kept)) < 1 - OUTSIDE:
        return public
    exposure = None if public.exposure is None else public.exposure[kept]
    return PublicMoments.from_rows(public.rows[kept], public.labels[kept], names=public.names, exposure=exposure)


def cross_weight(radius: float, bound: float) -> float:
    r"""The weight u of the response in a joint row ``(x, u y)`` that minimises the error of the coefficients.

    With ``t = w^2 C^2 / R^2`` and ``u = w / sqrt 2`` the release has sensitivity ``sqrt 2 R^2 (1 + t/2)``;
    the error of the coefficients is about ``(1 + t/2)^2 (1/w^2 + 1/2)`` for a response of unit scale.
    Its minimum is at ``w^2 = (sqrt(1 + 8 / q) - 1) / 2``, ``q = C^2 / R^2``; t is then below 2.
    """
    ratio = (bound / radius) ** 2
    return math.sqrt(2 / (ratio * (math.sqrt(1 + 8 / ratio) + 1)))  # the same, without cancellation


#: Standard deviation of the noise in the mean joint moments of a space with a response.
JointNoise = Callable[[WhitenedSpace], float]


def noise_of_clip(space: WhitenedSpace, bound: float, joint_noise: JointNoise) -> float:
    """Predicted squared error of whitened coefficients due to noise, for a response of unit scale."""
    response = scaled(ResponseScale("y"), space, bound)
    noise = joint_noise(space.with_response(response))
    return space.order * noise**2 * (1 / (2 * response.cross**2) + 0.5)


def from_labels(name: str, labels: Vector, space: WhitenedSpace, joint_noise: JointNoise) -> ResponseScale:
    """Scale by the public labels; the clip minimises the predicted noise variance plus the squared bias on them.

    Parameters
    ----------
    name : str
    labels : ndarray of shape (m,)
        Public responses.
    space : WhitenedSpace
        The space in which moments will be released; with an intercept the response is centred.
    joint_noise : callable
        The noise of the joint release as a function of its space; the query knows it.
    """
    centre = float(np.mean(labels)) if space.intercept else 0.0
    centred = labels - centre
    scale = float(np.sqrt(np.mean(centred**2)))
    if scale == 0:
        return scaled(ResponseScale(name, centre, max(abs(centre), 1.0)), space, DEFAULT_CLIP)
    sizes = np.abs(centred) / scale
    candidates = np.maximum(np.quantile(sizes, np.linspace(0.8, 1.0, 41)), 1.0)

    def loss(bound: float) -> float:
        bias = float(np.mean(centred / scale - np.clip(centred / scale, -bound, bound)))
        lost = float(np.mean(np.maximum(sizes - bound, 0)))
        return noise_of_clip(space, bound, joint_noise) + bias**2 + lost**2

    best = min(candidates, key=lambda bound: loss(float(bound)))
    return scaled(ResponseScale(name, centre, scale), space, float(best))


def from_bounds(name: str, schema: Schema | None, space: WhitenedSpace) -> ResponseScale | None:
    """Scale by the declared bounds, at which the response is then clipped; None if the schema has none."""
    column = None if schema is None else schema.column(name)
    if not isinstance(column, Numeric) or column.bounds is None:
        return None
    lower, upper = column.bounds
    centre = (lower + upper) / 2 if space.intercept else 0.0
    reach = max(upper - centre, centre - lower)
    return scaled(ResponseScale(name, centre, reach / DEFAULT_CLIP), space, DEFAULT_CLIP)


def scaled(response: ResponseScale, space: WhitenedSpace, bound: float) -> ResponseScale:
    """The response with its clip and the best weight for it in this space."""
    return replace(response, bound=bound, cross=cross_weight(space.radius, bound))

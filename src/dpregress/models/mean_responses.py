"""Mean responses of the published local protocols, which use only the mean m of a model and its slope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import expit

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, one_line
from dpregress.models.families import Family, family_of

#: Predictors are clipped to this magnitude where a function would overflow.
_REACH = 30.0


@dataclass(frozen=True)
class MeanResponse:
    """``E[y | x] = m(x'w)``. A generalised linear model with cumulant Phi has ``m = Phi'``, a link f has ``m = f``.

    Parameters
    ----------
    name : str
    mean : callable
        m, elementwise.
    slope : callable
        Its derivative.
    bounds : tuple of float or None
        The range of y, if the model implies one.

    Examples
    --------
    >>> import numpy as np
    >>> cloglog = MeanResponse("cloglog", lambda z: -np.expm1(-np.exp(z)), lambda z: np.exp(z - np.exp(z)), (0.0, 1.0))
    """

    name: str
    mean: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]
    bounds: tuple[float, float] | None = None

    def steepest(self, reach: float) -> float:
        """The largest ``|m'(z)|`` over 2,001 points of ``|z| <= reach``."""
        slopes = np.abs(self.slope(np.linspace(-reach, reach, 2001)))
        if not np.isfinite(slopes).all():
            raise InvalidInput(f"the slope of {self.name!r} is not finite up to {reach:g}: take a smaller radius")
        return float(slopes.max())


def _within(z: Vector) -> Vector:
    return np.clip(z, -_REACH, _REACH)


#: Losses of generalised linear models, by the names of Wang et al. (2023): ``Phi' `` and ``Phi''``.
LOSSES: Mapping[str, MeanResponse] = MappingProxyType(
    {
        response.name: response
        for response in (
            MeanResponse("logistic", expit, lambda z: expit(z) * expit(-z), (0.0, 1.0)),
            MeanResponse(  # Phi = z/2 + sqrt(1 + z^2/4)
                "boosting", lambda z: 0.5 + z / (4 * np.sqrt(1 + z**2 / 4)), lambda z: 2 / (4 + z**2) ** 1.5, (0.0, 1.0)
            ),
            MeanResponse("exponential", lambda z: np.exp(_within(z)), lambda z: np.exp(_within(z))),
            MeanResponse("squared", lambda z: z, lambda z: np.ones_like(z)),
        )
    }
)

#: Links of non-linear regressions ``y = f(x'w) + noise``, by the names of that paper: f and f'.
LINKS: Mapping[str, MeanResponse] = MappingProxyType(
    {
        response.name: response
        for response in (
            MeanResponse("sigmoid", expit, lambda z: expit(z) * expit(-z)),
            MeanResponse("cubic", lambda z: z**3, lambda z: 3 * z**2),
            MeanResponse("log1pexp", lambda z: np.logaddexp(0.0, -z), lambda z: -expit(-z)),
        )
    }
)


#: The names of ``LocalGLM``: families by the package's names for them, and what has no other name.
MEAN_RESPONSES: Mapping[str, MeanResponse] = MappingProxyType(
    {
        "gaussian": LOSSES["squared"],
        "binomial": LOSSES["logistic"],
        "poisson": LOSSES["exponential"],
        "boosting": LOSSES["boosting"],
        **LINKS,
    }
)


def mean_of(family: str | MeanResponse) -> MeanResponse:
    """The mean response of a family, or one's own.

    Raises
    ------
    InvalidInput
    """
    found = _found(family, MEAN_RESPONSES)
    if found is None:
        names = ", ".join(MEAN_RESPONSES)
        raise InvalidInput(f"family must be one of {names} or a MeanResponse, not {one_line(family)}")
    return found


def exponential_family(response: MeanResponse) -> Family | None:
    """The family with its usual link whose mean response this is, if there is one."""
    for name in ("gaussian", "binomial", "poisson"):
        if response is MEAN_RESPONSES[name]:
            return family_of(name)
    return None


def mean_response(given: str | MeanResponse, offered: Mapping[str, MeanResponse]) -> MeanResponse:
    """The mean response with a given name, or a :class:`MeanResponse` as it is.

    Raises
    ------
    InvalidInput
    """
    found = _found(given, offered)
    if found is None:
        names = ", ".join(offered)
        raise InvalidInput(f"{one_line(given)} is none of {names}: choose one, or give a MeanResponse of your own")
    return found


def _found(given: object, offered: Mapping[str, MeanResponse]) -> MeanResponse | None:
    if isinstance(given, MeanResponse):
        return given
    return offered.get(given) if isinstance(given, str) else None

r"""Residuals of generalised linear models in a fixed order of IEEE operations, as a database can repeat them.

Libraries of mathematics round ``exp`` differently. Here it is a polynomial and a few products:
``exp(eta) = p(eta / 256)^256``, with p the Taylor polynomial of degree 10. The linear predictor lies within 30, so the
relative error of the polynomial is below ``2e-18``, and that of the power with its roundings below ``1e-13``. The
result is the same in every database, bit for bit. No privacy rests on that: what comes out is an integer, which is
checked against its bound.
docs/privacy/floating-point.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.models.families import Family
from dpregress.rows.ordered import OrderedRows, flushed
from dpregress.rows.row_kernel import RowExpression, Stage, added, clipped, floated, multiplied, name, term

#: Differences below it are 0; coefficients below it are 0, and those beyond ``_MOST`` are refused.
LEAST, _MOST = 2.0**-300, 2.0**200
#: ``exp(eta) = p(eta / 2^8)^(16^2)``, p of this degree; arguments of p below ``_FLAT`` are 0.
_HALVINGS, _POWER, _DEGREE, _FLAT = 2.0**-8, 16, 10, 2.0**-60


def _exponential(of: RowExpression) -> tuple[Stage, ...]:
    """``e``, the exponential of a number within 30."""
    inverse = [1 / math.factorial(k) for k in range(_DEGREE + 1)]
    half = _DEGREE // 2
    t, p, e = name("t"), name("p"), name("e")
    upper, lower = term(inverse[-1]), p
    for k in range(_DEGREE - 1, half - 1, -1):
        upper = upper * t + inverse[k]
    for k in range(half - 1, -1, -1):
        lower = lower * t + inverse[k]
    return (
        {"t": of * _HALVINGS},
        flushed("t", _FLAT),
        {"p": upper},
        {"e": lower},
        {"e": multiplied([e] * _POWER)},
        {"e": multiplied([e] * _POWER)},
    )


#: By the name of a link: stages from the linear predictor ``eta`` on, and the mean.
_MEANS: Mapping[str, tuple[tuple[Stage, ...], RowExpression]] = {
    "identity": ((), name("eta")),
    "log": (_exponential(name("eta")), name("e")),
    "logit": (_exponential(term(0.0) - name("eta")), term(1.0) / (term(1.0) + name("e"))),
    "inverse": ((), term(1.0) / name("eta")),
}
#: By the names of a distribution and a link: the factor ``m' / V(m)`` of the mean ``m``; None where it is 1.
_FACTORS: Mapping[tuple[str, str], Callable[[RowExpression], RowExpression] | None] = {
    ("gaussian", "identity"): None,
    ("gaussian", "log"): lambda m: m,
    ("binomial", "logit"): None,
    ("poisson", "log"): None,
    ("poisson", "identity"): lambda m: term(1.0) / m,
    ("gamma", "log"): lambda m: term(1.0) / m,
    ("gamma", "inverse"): lambda _: term(-1.0),
    ("inverse-gaussian", "log"): lambda m: term(1.0) / (m * m),
}


def has_order(family: Family) -> bool:
    """Whether residuals of a family can be computed in a fixed order.

    Examples
    --------
    >>> from dpregress.models import PoissonFamily
    >>> has_order(PoissonFamily)
    True
    """
    return (family.distribution.name, family.link.name) in _FACTORS


@dataclass(frozen=True, eq=False)
class OrderedResidual:
    """The residual of a row, ``w (y - m(x'beta)) f(x'beta)``.

    Parameters
    ----------
    rows : OrderedRows
        Of a space with a response.
    family : Family
    coef : ndarray of shape (p,)

    Raises
    ------
    NotAnswered
        For a family whose mean needs other functions than the exponential.
    InvalidInput
        For coefficients so large that an operation of the database could fail.
    """

    rows: OrderedRows
    family: Family
    coef: Vector

    def __post_init__(self) -> None:
        if not has_order(self.family):
            raise NotAnswered(
                f"a database cannot compute means of {self.family.distribution.name} with the link "
                f"{self.family.link.name}: leave the engine out"
            )
        if not np.abs(self.coef).max(initial=0.0) * self.rows.grid.step <= _MOST:
            raise InvalidInput("coefficients must be below 2^200: the preceding steps have diverged")

    def means(self, labelled: bool) -> tuple[Stage, ...]:
        """To ``g``, the weighted response within its bound, and ``m``, the mean of the unweighted row."""
        response, link = self.rows.response, self.family.link
        if response is None or not labelled:
            raise NotAnswered("a residual needs responses: leave the engine out")
        predictor = added(
            floated(name(column)) * factor
            for column, factor in zip(self.rows.integers, (self.coef * self.rows.grid.step).tolist(), strict=True)
            if abs(factor) >= LEAST
        )
        stages, mean = _MEANS[link.name]
        return (
            *self.rows.stages(labelled),
            {
                "eta": clipped(predictor / name("w"), link.lower, link.upper),
                "g": response.bounded(response.scaled * name("w")),
            },
            *stages,
            {"m": mean},
        )

    def stages(self, labelled: bool) -> tuple[Stage, ...]:
        """To ``d``, the residual."""
        factor = _FACTORS[self.family.distribution.name, self.family.link.name]
        last: tuple[Stage, ...] = ({"d": name("g") - name("w") * name("m")}, flushed("d", LEAST))
        if factor is not None:
            last = (*last, {"d": name("d") * factor(name("m"))}, flushed("d", LEAST))
        return (*self.means(labelled), *last)

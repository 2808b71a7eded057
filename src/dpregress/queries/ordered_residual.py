r"""Residuals of generalised linear models in a fixed order of IEEE operations, as a database can repeat them.

Means and factors need an exponential or a tail of the normal distribution at most
(:mod:`~dpregress.rows.ordered_functions`). The result is the same in every database, bit for bit. No privacy rests on
that: what comes out is an integer, which is checked against its bound.
docs/privacy/floating-point.md has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, NotAnswered
from dpregress.models.families import Family
from dpregress.rows.ordered import OrderedRows
from dpregress.rows.ordered_functions import exponentials, flushed, normal_tail
from dpregress.rows.row_kernel import RowExpression, Stage, added, case, clipped, floated, name, term

#: Differences below it are 0; coefficients below it are 0, and those beyond ``_MOST`` are refused.
LEAST, _MOST = 2.0**-300, 2.0**200
_ONE = term(1.0)
#: By the name of a link: stages from the linear predictor ``eta`` on, and the mean.
_MEANS: Mapping[str, tuple[tuple[Stage, ...], RowExpression]] = {
    "identity": ((), name("eta")),
    "log": (exponentials({"e": name("eta")}), name("e")),
    "logit": (exponentials({"e": term(0.0) - name("eta")}), _ONE / (_ONE + name("e"))),
    "inverse": ((), _ONE / name("eta")),
    "probit": (normal_tail("eta"), case(name("eta") < 0.0, name("tail"), _ONE - name("tail"))),
}
#: By the names of a distribution and a link: the factor ``m' / V(m)``, of the mean ``m`` and the columns of the stages
#: before it; None where it is 1.
_FACTORS: Mapping[tuple[str, str], RowExpression | None] = {
    ("gaussian", "identity"): None,
    ("gaussian", "log"): name("m"),
    ("binomial", "logit"): None,
    ("binomial", "probit"): _ONE / (name("mills") * (_ONE - name("tail"))),
    ("poisson", "log"): None,
    ("poisson", "identity"): _ONE / name("m"),
    ("gamma", "log"): _ONE / name("m"),
    ("gamma", "inverse"): term(-1.0),
    ("inverse-gaussian", "log"): _ONE / (name("m") * name("m")),
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


def combined(columns: Iterable[str], by: Iterable[float]) -> RowExpression:
    """A linear combination of columns, without those times 0."""
    return added(name(column) * factor for column, factor in zip(columns, by, strict=True) if factor != 0)


def ordered_predictor(rows: OrderedRows, coef: Vector) -> RowExpression:
    """``x'beta`` of the unweighted row.

    Raises
    ------
    InvalidInput
        For coefficients so large that an operation of the database could fail.
    """
    if not np.abs(coef).max(initial=0.0) * rows.grid.step <= _MOST:
        raise InvalidInput("coefficients must be below 2^200: the preceding steps have diverged")
    factors = zip(rows.integers, (coef * rows.grid.step).tolist(), strict=True)
    return added(floated(name(column)) * factor for column, factor in factors if abs(factor) >= LEAST) / name("w")


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
        For a family whose mean needs other functions.
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

    def means(self, labelled: bool) -> tuple[Stage, ...]:
        """To ``g``, the weighted response within its bound, and ``m``, the mean of the unweighted row."""
        response, link = self.rows.response, self.family.link
        if response is None or not labelled:
            raise NotAnswered("a residual needs responses: leave the engine out")
        predictor, exposure = ordered_predictor(self.rows, self.coef), self.rows.exposure
        stages, mean = _MEANS[link.name]
        if exposure is not None:
            predictor = predictor + name("o")
        return (
            *self.rows.stages(labelled),
            *(() if exposure is None else exposure.stages),
            {
                "eta": clipped(predictor, link.lower, link.upper),
                "g": response.bounded(response.scaled * name("w")),
            },
            *stages,
            {"m": mean},
        )

    def stages(self, labelled: bool) -> tuple[Stage, ...]:
        """To ``d``, the residual."""
        return self._residual(labelled, name("g") - name("w") * name("m"), self._factor)

    def unweighted(self, labelled: bool) -> tuple[Stage, ...]:
        """To ``d``, the residual without the weight, ``(y - m(x'beta)) |f(x'beta)|``."""
        return self._residual(labelled, name("g") / name("w") - name("m"), None if self.family.plain else self._factor)

    @property
    def _factor(self) -> RowExpression | None:
        return _FACTORS[self.family.distribution.name, self.family.link.name]

    def _residual(self, labelled: bool, plain: RowExpression, factor: RowExpression | None) -> tuple[Stage, ...]:
        last: tuple[Stage, ...] = ({"d": plain}, flushed("d", LEAST))
        if factor is not None:
            last = (*last, {"d": name("d") * factor}, flushed("d", LEAST))
        return (*self.means(labelled), *last)

r"""Residuals of multinomial logistic models in a fixed order of IEEE operations, as a database can repeat them.

Class predictors are shifted by the largest of a row, and cut at 30 below it, where probabilities are below ``1e-13``.
docs/privacy/floating-point.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpregress.coordinates import Matrix
from dpregress.errors import NotAnswered
from dpregress.queries.ordered_residual import combined, ordered_predictor
from dpregress.rows.ordered import OrderedRows
from dpregress.rows.ordered_functions import exponentials
from dpregress.rows.row_kernel import RowExpression, Stage, added, case, clipped, name, term

#: Class predictors further below the largest count as this.
_FURTHEST = 30.0


def largest(names: Sequence[str], into: str) -> tuple[Stage, ...]:
    """A column that is the largest of some, which are compared in pairs."""
    stages: list[Stage] = []
    while len(names) > 1:
        pairs = [names[place : place + 2] for place in range(0, len(names), 2)]
        names = [f"{into}{place}" for place in range(len(pairs))]
        stages.append(
            {
                winner: case(name(pair[0]) > name(pair[-1]), name(pair[0]), name(pair[-1]))
                for winner, pair in zip(names, pairs, strict=True)
            }
        )
    return (*stages, {into: name(names[0])})


@dataclass(frozen=True, eq=False)
class OrderedClasses:
    """The unweighted residual ``Q'(e_y - softmax(Q B'x))`` of a row, in K - 1 columns; 0 where y is not a class.

    Parameters
    ----------
    rows : OrderedRows
        Of a space with a response.
    coef : ndarray of shape (p, K - 1)
    basis : ndarray of shape (K, K - 1)
    rounding : float
        The largest distance from a whole number at which a response counts as a class.
    """

    rows: OrderedRows
    coef: Matrix
    basis: Matrix
    rounding: float

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coordinates of the residual."""
        return tuple(f"d{k}" for k in range(self.coef.shape[1]))

    def stages(self, labelled: bool) -> tuple[Stage, ...]:
        """To the coordinates.

        Raises
        ------
        NotAnswered
            Without responses.
        InvalidInput
            For coefficients so large that an operation of the database could fail.
        """
        response = self.rows.response
        if response is None or not labelled:
            raise NotAnswered("a residual needs responses: leave the engine out")
        predictors = {f"f{k}": ordered_predictor(self.rows, column) for k, column in enumerate(self.coef.T)}
        classes = {f"h{c}": combined(predictors, row) for c, row in enumerate(self.basis.tolist())}
        shares = {f"e{c}": f"h{c}" for c in range(len(classes))}
        return (
            *self.rows.stages(labelled),
            {**predictors, "g": response.bounded(response.scaled * name("w"))},
            {**classes, "g": name("g") / name("w")},
            *largest(list(classes), "peak"),
            *exponentials({e: clipped(name(h) - name("peak"), -_FURTHEST, 0.0) for e, h in shares.items()}),
            {"total": added(map(name, shares))},
            {e: name(e) / name("total") for e in shares},
            {f"q{k}": combined(shares, column) for k, column in enumerate(self.basis.T.tolist())},
            {d: self._differences(k) for k, d in enumerate(self.columns)},
        )

    def _differences(self, k: int) -> RowExpression:
        """A coordinate of the residual: that of the class of the row less its mean."""
        branches = (
            part
            for place, entry in enumerate(self.basis[:, k].tolist())
            for part in (
                (name("g") >= place - self.rounding) & (name("g") <= place + self.rounding),
                term(entry) - name(f"q{k}"),
            )
        )
        return case(*branches, 0.0)

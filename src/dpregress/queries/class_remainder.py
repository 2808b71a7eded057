r"""What row weights and clips take from the score of a multinomial model, within a bound of its own."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix
from dpregress.coordinates.exact import Grid
from dpregress.queries.bounded_vectors import BoundedVectors, checked_bound
from dpregress.queries.clipped_gradient import ClippedGradient, shortening
from dpregress.queries.multinomial import ClassResidual, MultinomialScore, clipped_rows, times
from dpregress.queries.ordered_residual import LEAST
from dpregress.queries.score import ClippedScore
from dpregress.queries.score_remainder import ScoreRemainder
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import LARGEST, check_range
from dpregress.rows.ordered_functions import flushed
from dpregress.rows.row_kernel import Stage, case, clipped, floated, name

#: Smaller residuals of rows without weights are those of rows that are predicted with certainty, and rounding: far out
#: they would be magnified.
_CERTAIN = 2.0**-36


class ClassRemainder(BoundedVectors, ClassResidual):
    r"""``sum u min(1, K / ||u||)``, with u what a multinomial score lacks of ``x~ v'``, ``v = Q'(e_y - softmax)``.

    x~ is the row without the weight s that shortens it, and ``u = x~ v' - s x~ r'`` with
    ``r = s v min(1, C / ||s v||)``, which is 0 for rows within the ball whose residuals are within the clip. The norm
    is that of all p (K - 1) numbers. A row contributes at most K, and replacing one changes the sum by at most ``2 K``,
    which opposite rows of the same class reach.

    Parameters
    ----------
    score : MultinomialScore
    bound : float
        K, a public number.

    References
    ----------
    docs/queries.md; docs/inference.md for its use.
    """

    def __init__(self, score: MultinomialScore, bound: float) -> None:
        super().__init__(score.space, score.coef)
        self.bound = checked_bound(bound)
        self.score = score

    @property
    def size(self) -> int:
        return int(self.coef.size)

    @property
    def columns(self) -> int:
        return super().columns + self.size

    def factor(self, rows: BoundedRows) -> Matrix:
        """What each row x as it is weighted is multiplied with, of shape (m, K - 1)."""
        residual = self.residual(rows)
        residual[np.abs(residual) < _CERTAIN] = 0.0
        beyond = rows.weight[:, None] * residual / shortening(rows)[:, None] ** 2 - self.score.factor(rows)
        return clipped_rows(beyond, self.most(rows))

    def each(self, rows: BoundedRows) -> Matrix:
        return Grid(self.bound, rows.words).nearest(times(rows, self.factor(rows)))

    def influence(self, rows: BoundedRows) -> Matrix:
        """The contribution of each row to the score and to this sum together, of shape (m, p (K - 1))."""
        return times(rows, self.score.factor(rows) + self.factor(rows))

    # ---------------------------------------------------------------- in a database

    def vector_stages(self, labelled: bool) -> tuple[tuple[Stage, ...], tuple[str, ...]]:
        self.check_program()
        check_range(self.score.clip)
        ordered, stages = self._ordered, self.score.kept_stages(labelled)
        beyond = tuple(f"beyond{k}" for k in range(self.classes - 1))
        weight = name("w")
        whole = {
            b: case((name(d) > weight * -_CERTAIN) & (name(d) < weight * _CERTAIN), 0.0, name(d) / (weight * weight))
            for b, d in zip(beyond, ordered.columns, strict=True)
        }
        lacking = {
            b: clipped(name(b) - name(k), -LARGEST, LARGEST) for b, k in zip(beyond, self.score.kept, strict=True)
        }
        small = {b: value for b in beyond for value in flushed(b, LEAST).values()}
        each = tuple(f"a{i}" for i in range(self.size))
        pairs = [floated(name(u)) * name(b) for u in ordered.rows.integers for b in beyond]
        return (*stages, whole, lacking, small, dict(zip(each, pairs, strict=True))), each

    def contributions(self, labelled: bool) -> tuple[tuple[Stage, ...], tuple[str, ...], float]:
        """Stages to :meth:`influence`, its columns, and what one in them stands for."""
        stages, each = self.vector_stages(labelled)
        both = tuple(f"b{i}" for i in range(self.size))
        products = [floated(name(u)) * name(k) for u in self._ordered.rows.integers for k in self.score.kept]
        stages = (
            *stages,
            *self.shrunk(each),
            {b: name(a) * name("s") + product for b, a, product in zip(both, each, products, strict=True)},
            {b: value for b in both for value in flushed(b, LEAST).values()},
        )
        return stages, both, Grid(self.space.radius, 1).step


def remainder_of(
    score: ClippedScore | ClippedGradient | MultinomialScore, bound: float
) -> ScoreRemainder | ClassRemainder:
    """The remainder of a score, within this bound."""
    return ClassRemainder(score, bound) if isinstance(score, MultinomialScore) else ScoreRemainder(score, bound)

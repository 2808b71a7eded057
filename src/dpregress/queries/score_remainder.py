r"""What row weights and clips take from a score, within a bound of its own."""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.exact import Grid
from dpregress.queries.clipped_gradient import ClippedGradient, VectorQuery, whole_factor
from dpregress.queries.ordered_residual import LEAST, OrderedResidual
from dpregress.queries.score import ClippedScore
from dpregress.rows.bounded import BoundedRows
from dpregress.rows.ordered import LARGEST, OrderedRows, check_range
from dpregress.rows.ordered_functions import flushed
from dpregress.rows.row_kernel import Stage, clipped, floated, name


class ScoreRemainder(VectorQuery):
    r"""``sum u min(1, K / ||u||)``, with u what a score lacks of ``h = x~ (y - m(x~'beta)) f``.

    x~ is the row without the weight that shortens it. For a :class:`~dpregress.queries.ClippedScore`
    ``u = h - s x~ clip(s (y - m) f, +-C)`` with the weight ``s = min(1, R / ||x~||)``, which is 0 for rows within the
    ball whose residuals are within the clip. For a :class:`~dpregress.queries.ClippedGradient` with the clip C it is
    ``u = h - g min(1, C / ||g||)``. A row contributes at most K, and replacing one changes the sum by at most
    ``2 K``, which opposite rows reach.

    Parameters
    ----------
    score : ClippedScore or ClippedGradient
    bound : float
        K, a public number.

    References
    ----------
    docs/queries.md; docs/inference.md for its use.
    """

    def __init__(self, score: ClippedScore | ClippedGradient, bound: float) -> None:
        super().__init__(score.space, score.family, score.coef, score.clip, bound)
        self.score = score

    def unbounded(self, rows: BoundedRows) -> Vector:
        return whole_factor(rows, self.residual(rows)) - self.score.factor(rows)

    def influence(self, rows: BoundedRows) -> Matrix:
        """The contribution of each row to the score and to this sum together, of shape (m, p)."""
        return np.asarray(rows.x * (self.score.factor(rows) + self.factor(rows))[:, None])

    # ---------------------------------------------------------------- in a database

    def unbounded_stages(self, labelled: bool) -> tuple[Stage, ...]:
        check_range(self.clip)
        residual = OrderedResidual(OrderedRows(self.space), self.family, self.coef).stages(labelled)
        beyond = name("d") / (name("w") * name("w")) - name("g")
        return (*residual, *self.score.kept_stages(), {"h": clipped(beyond, -LARGEST, LARGEST)}, flushed("h", LEAST))

    def contributions(self, labelled: bool) -> tuple[tuple[Stage, ...], tuple[str, ...], float]:
        """Stages to :meth:`influence`, its columns, and what one in them stands for."""
        stages, each = self.vector_stages(labelled)
        both = tuple(f"b{i}" for i in range(self.size))
        pairs = zip(both, each, OrderedRows(self.space).integers, strict=True)
        stages = (
            *stages,
            *self.shrunk(each),
            {b: name(a) * name("s") + floated(name(u)) * name("g") for b, a, u in pairs},
            {b: value for b in both for value in flushed(b, LEAST).values()},
        )
        return stages, both, Grid(self.space.radius, 1).step

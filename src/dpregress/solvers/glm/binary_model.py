r"""Two classes on surrogate rows: the residual of a class lies in [-1, 1], whatever the model is.

It is small for a row that is predicted well, however far out the row is. So where public rows show how long rows are,
these are not shortened: a gradient ``g = x~ (y - m)`` is clipped to the norm K, and a far row counts in full where its
class is the one that is expected. Elsewhere nobody knows the slope of such a score: rows are shortened, and residuals
clipped, as for other families. What a clip takes follows from the model, row by row
(:class:`~dpregress.solvers.glm.cut_off.ClassCut`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import entr

from dpregress.accounting import GDP
from dpregress.coordinates import Vector
from dpregress.queries import ClippedGradient, ClippedScore
from dpregress.solvers.glm.cut_off import ClassCut
from dpregress.solvers.glm.score_loop import Clipped
from dpregress.solvers.glm.surrogate_model import FamilyModel
from dpregress.solvers.shared.magnitudes import Magnitudes
from dpregress.solvers.shared.public_fit import LabelledRows
from dpregress.solvers.shared.radius_plan import TOLERATED
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.solvers.shared.truncation import ResidualTruncation, Truncation

#: The standard deviation of predictors, in longest steps, where a plane nearly separates two classes.
_SEPARATED = 4.0
#: The variance of predictors from which larger ones are less likely beforehand: noise must not make slopes of any size.
_LIKELY = 4.0
#: Share of their second moment that a clip may take from residuals of shortened rows.
_CUT = 0.02
#: The largest bound of a remainder, in times the farthest surrogate row: private ones may be farther out.
FARTHEST = 4.0
#: Rows are whole within so many radii. Steps were too long where far rows decide, with two and more.
_REACH = 1.4
#: Shares of gradients within the clips that are considered.
_WITHIN = 1 - np.geomspace(0.7, 1e-5, 40)
#: Clips beyond the largest gradient of a surrogate row, in times this.
_BEYOND = 2.0 ** np.arange(0.5, 6.1, 0.5)
#: A larger clip may cost this share of the deviance: a clip takes from rows that the model does not expect.
_TOLERATED = 2e-4
#: The least clip, in times the largest gradient.
_SHORTEST = 1e-6
#: The least share of the information that a clip is taken to leave.
_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class BinaryModel(FamilyModel):
    """A response in {0, 1}, with scores of shortened rows.

    Attributes
    ----------
    labelled : LabelledRows, optional
        Public rows with responses.
    """

    labelled: LabelledRows | None = None

    @property
    def furthest(self) -> float:
        return _SEPARATED * self.longest

    @property
    def likely(self) -> float:
        return _LIKELY

    @property
    def unweighted(self) -> BinaryModel:
        return self._with(self.rows.unweighted)

    @property
    def whole(self) -> WholeBinaryModel:
        """The same on rows that are whole, but for the farthest."""
        model = self._with(self.rows.whole(_REACH))
        return WholeBinaryModel(
            model.family, model.space, model.rows, model.gram, model.n, model.gram_variance, model.labelled
        )

    def _with(self, rows: SurrogateRows) -> BinaryModel:
        return replace(self, rows=rows, gram=self.gram + rows.second - self.rows.second)

    @property
    def farthest(self) -> float:
        """Of residuals of at most 1: that of private rows several times as far out as surrogate rows."""
        return FARTHEST * float(np.linalg.norm(self.rows.unweighted.x, axis=1).max())

    def dispersion(self, coef: Vector) -> float:  # noqa: ARG002  # that of a class
        return 1.0

    @cached_property
    def norms(self) -> Vector:
        """Those of surrogate rows, of shape (m,)."""
        return np.asarray(np.maximum(np.linalg.norm(self.rows.x, axis=1), 1e-300))

    def mean(self, coef: Vector) -> Vector:
        """Of surrogate rows, of shape (m,)."""
        return self.family.mean(self.rows.predictor(coef))

    def sizes(self, coef: Vector, length: Vector | float = 1.0) -> Magnitudes:
        """Sizes that the model expects of residuals, or of gradients of rows of this length."""
        mean, unit = self.mean(coef), self.rows.weight * length
        each = np.concatenate([unit * (1 - mean), unit * mean])
        return Magnitudes(each, np.concatenate([mean, 1 - mean]) / len(mean))

    def question(self, coef: Vector, spend: GDP) -> ClippedScore | ClippedGradient:
        per_unit, sizes = ClippedScore(self.space, self.family, coef, 1.0).noise_length(spend, self.n), self.sizes(coef)
        clip = sizes.best_clip(lambda clip: per_unit * clip, least=sizes.nearly_all(_CUT))
        return ClippedScore(self.space, self.family, coef, clip)

    def cut_off(self, coef: Vector, clip: float, dispersion: float | None = None) -> ClassCut:  # noqa: ARG002
        return ClassCut.of(self.rows, self.family, coef, clip)

    def clipped(self, coef: Vector, clip: float) -> Clipped:
        sizes = self.sizes(coef)
        share, within = sizes.share_within(clip), replace(sizes, size=np.minimum(sizes.size, clip))
        return Clipped(1.0, share, 1.0, within, sizes, 1.0, sizes.beyond(clip))

    def truncation(self, coef: Vector, clip: float) -> Truncation:
        return ResidualTruncation(self.rows, self.sizes(coef), clip)


@dataclass(frozen=True, eq=False)
class WholeBinaryModel(BinaryModel):
    """The same with gradients of whole rows."""

    def question(self, coef: Vector, spend: GDP) -> ClippedGradient:
        noise = ClippedGradient(self.space, self.family, coef, 1.0).noise_length(spend, self.n)
        return ClippedGradient(self.space, self.family, coef, self.best_clip(coef, noise), _REACH)

    def best_clip(self, coef: Vector, noise: float) -> float:
        """The clip whose noise and bias, relative to the slope that it leaves, are smallest, or a larger one.

        What clips take from the gradients of unexpected rows lies in one of p directions, so that its mean has a p-th
        of the square that it has if all lie in the same one.

        Parameters
        ----------
        coef : ndarray of shape (p,)
        noise : float
            The root mean squared noise for a clip of 1.
        """
        sizes, whole = self.sizes(coef, self.norms), self._information(coef)
        longest = float(sizes.size.max())
        within = np.maximum(sizes.quantiles(_WITHIN), _SHORTEST * longest)  # gradients of rows of zeros are no clips
        clips = np.append(np.unique(within), longest * _BEYOND)
        cut = np.array([sizes.cut(clip) for clip in clips.tolist()])
        if (seen := self._seen(coef)) is not None:
            cut = np.maximum(cut, [seen.cut(clip) for clip in clips.tolist()])
        kept = np.array([self._kept(coef, clip, whole) for clip in clips.tolist()])
        loss = ((noise * clips) ** 2 + cut**2 / self.space.order) / kept**2
        least, information = float(loss.min()), float(np.mean(whole))
        free = _TOLERATED * self._deviance(coef) * information / self.space.order
        allowed = np.where(clips > longest, TOLERATED * information / self.n, free)
        allowed = np.minimum(allowed, np.sqrt(least * allowed))  # so that noise falls as the budget rises
        return float(clips[loss <= least + allowed].max())

    def _seen(self, coef: Vector) -> Magnitudes | None:
        """Sizes of the gradients of labelled public rows."""
        if self.labelled is None:
            return None
        x = self.labelled.x
        norms = np.minimum(np.linalg.norm(x, axis=1), _REACH * self.space.radius)
        return Magnitudes.of_sample(norms * (self.labelled.y - self.family.mean(x @ coef)))

    def _deviance(self, coef: Vector) -> float:
        """The mean deviance that is expected."""
        mean = self.mean(coef)
        return 2 * float(np.mean(entr(mean) + entr(1 - mean)))

    def _information(self, coef: Vector) -> Vector:
        """The trace of the Fisher information of each row, of shape (m,)."""
        return np.asarray(self.family.information(self.rows.predictor(coef)) * self.norms**2)

    def _kept(self, coef: Vector, clip: float, information: Vector) -> float:
        """The share of the information that a clip leaves."""
        mean, weight = self.mean(coef), self.rows.weight
        most = clip / self.norms
        taken = np.maximum(weight * (1 - mean) - most, 0) + np.maximum(weight * mean - most, 0)
        return max(1 - float(information @ (taken / weight)) / max(float(information.sum()), 1e-300), _LEAST)

    def cut_off(self, coef: Vector, clip: float, dispersion: float | None = None) -> ClassCut:  # noqa: ARG002
        return ClassCut.of(self.rows, self.family, coef, clip / self.norms)

    def clipped(self, coef: Vector, clip: float) -> Clipped:
        gradients, sizes = self.sizes(coef, self.norms), self.sizes(coef)
        return Clipped(1.0, gradients.share_within(clip), 1.0, sizes, sizes, 1.0, gradients.beyond(clip))

    def truncation(self, coef: Vector, clip: float) -> Truncation:
        return ResidualTruncation(self.rows, self.sizes(coef), clip / self.norms)

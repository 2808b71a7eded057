"""Scores of predictions, as scikit-learn has them: of rows that belong together, and with their exposures."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score

from dpregress.errors import InvalidInput
from dpregress.inputs.exposure import needs_exposure
from dpregress.inputs.indices import check_aligned


class AccuracyScore(ClassifierMixin):
    """The share of rows whose class is predicted."""

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose class is predicted."""
        check_aligned(X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))


class VarianceScore(RegressorMixin):
    """The share of the variance of responses that predictions explain."""

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictions."""
        check_aligned(X, y=y, sample_weight=sample_weight)
        return float(super().score(X, y, sample_weight))


class ExposedScore(RegressorMixin):
    """The same of models that may have an exposure."""

    predict: Any
    exposure_: str | None
    _read_columns: Any

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        exposure: ArrayLike | str | None = None,
    ) -> float:
        """R^2 of the predictions, with the exposures of the rows as :meth:`predict` takes them.

        Raises
        ------
        InvalidInput
            For a model with an exposure, if it is neither given nor a column of X: y are no rates.
        """
        check_aligned(X, y=y, sample_weight=sample_weight)
        if exposure is None and needs_exposure(self.exposure_, X, self._read_columns()):
            raise InvalidInput(
                f"this model was fitted with an exposure: give exposure=, {self.exposure_!r} of each row"
            )
        predicted = self.predict(X, exposure=exposure)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

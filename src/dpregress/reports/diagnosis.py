"""A diagnosis as part of a page: its numbers, and charts of the ROC curve, calibration and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix
from dpregress.reports.chart import Chart, Points, chart


@dataclass(frozen=True, eq=False)
class Pictures:
    """What a page shows of a diagnosis.

    Parameters
    ----------
    facts : sequence of (str, float, float)
        Name, value and standard error.
    roc : ndarray of shape (m, 2) or None
        False and true positive rates.
    calibration : ndarray of shape (bins, 3)
        Mean prediction, mean response and its standard error.
    residuals : ndarray of shape (bins, 5)
        Mean prediction; mean Pearson residual, root mean square, each with its standard error.
    """

    facts: Sequence[tuple[str, float, float]]
    roc: Matrix | None
    calibration: Matrix
    residuals: Matrix

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The cells of the table of facts."""
        return [(name, _number(value, 4), _number(error, 2)) for name, value, error in self.facts]

    @property
    def charts(self) -> list[Chart]:
        """ROC curve, if there is one, calibration and residuals; bars are two standard errors."""
        roc = [] if self.roc is None else [self._roc(self.roc)]
        return [*roc, self._calibration(), self._residuals()]

    @staticmethod
    def _roc(roc: Matrix) -> Chart:
        return chart("ROC curve", "false positive rate", "true positive rate", [Points("", roc, joined=True)], slope=1)

    def _calibration(self) -> Chart:
        points = Points("", self.calibration[:, :2], 2 * self.calibration[:, 2])
        return chart("Calibration", "mean prediction", "mean response", [points], slope=1)

    def _residuals(self) -> Chart:
        predicted, mean, error, root, root_error = self.residuals.T
        points = [
            Points("mean", np.column_stack([predicted, mean]), 2 * error),
            Points("root mean square", np.column_stack([predicted, root]), 2 * np.minimum(root_error, root / 2)),
        ]
        return chart("Pearson residuals against fitted values", "mean prediction", "residual", points, slope=0)


def _number(value: float, digits: int) -> str:
    """So many digits, and all before the point."""
    return f"{value:,.0f}" if 10.0 ** (digits - 1) <= abs(value) < 1e15 else f"{value:.{digits}g}"

"""A diagnosis as part of a page: its numbers, and pictures of the ROC curve, calibration and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix
from dpregress.display import html_table
from dpregress.reports.plots import drawn

_INK, _BLUE, _ORANGE = "#222222", "#1f5fa8", "#c8641c"


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

    def to_html(self) -> str:
        """The section of a page."""
        rows = [[name, f"{value:.4g}", f"{error:.2g}"] for name, value, error in self.facts]
        table = html_table(("", "estimate", "std. error"), rows)
        pictures = [self._calibration(), self._residuals()]
        if self.roc is not None:
            pictures.insert(0, self._roc(self.roc))
        note = (
            '<p class="note">Paid for with privacy budget, like the coefficients. Bars are two standard errors, which '
            "cover sampling and privacy noise; that of the deviance covers the noise alone.</p>"
        )
        return "<h2>How well the model fits</h2>" + table + note + "".join(pictures)

    def _roc(self, roc: Matrix) -> str:
        with drawn("ROC curve", "false positive rate", "true positive rate") as picture:
            picture.axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=0.8)
            picture.axes.plot(roc[:, 0], roc[:, 1], color=_BLUE, marker="o", markersize=3)
            picture.axes.set_aspect("equal")
        return picture.text

    def _calibration(self) -> str:
        predicted, observed, error = self.calibration.T
        with drawn("Calibration", "mean prediction", "mean response") as picture:
            ends = [float(predicted.min()), float(predicted.max())]
            picture.axes.plot(ends, ends, color="#bbbbbb", linewidth=0.8)
            picture.axes.errorbar(predicted, observed, yerr=2 * error, fmt="o", color=_BLUE, capsize=2, markersize=4)
        return picture.text

    def _residuals(self) -> str:
        predicted, mean, error, root, root_error = self.residuals.T
        with drawn("Pearson residuals against fitted values", "mean prediction", "residual") as picture:
            picture.axes.axhline(0, color=_INK, linewidth=0.8)
            picture.axes.errorbar(
                predicted, mean, yerr=2 * error, fmt="o", color=_BLUE, capsize=2, markersize=4, label="mean"
            )
            picture.axes.errorbar(
                predicted, root, yerr=2 * np.minimum(root_error, root / 2), fmt="D", color=_ORANGE, capsize=2,
                markersize=4, label="root mean square",
            )  # fmt: skip
            picture.axes.legend(frameon=False)
        return picture.text

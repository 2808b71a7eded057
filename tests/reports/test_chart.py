"""Charts of diagnoses and plans, and the numbers beside them."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.reports.chart import dot_plot
from dpregress.reports.diagnosis import Pictures
from dpregress.reports.page import ratio_name
from dpregress.reports.render import drawing


@pytest.mark.parametrize("values", [[0.011, 0.012], [0.5, 4e6], [1e-9, np.inf], [np.inf, np.inf], [3.0, 3.0]])
def test_dots_on_a_logarithmic_axis(values: list[float]) -> None:
    """Each known number has a dot in the row of its name, and ticks are few and round. Deterministic."""
    plot = dot_plot("Errors", "error", ("age", "a name that is far too long"), {"central": np.array(values)})
    (series,) = plot.series
    known = np.isfinite(values)
    assert len(series.marks) == known.sum()
    rows = [at for at, _ in plot.up_ticks]
    assert [mark.y for mark in series.marks] == [row for row, shown in zip(rows, known, strict=True) if shown]
    assert all(plot.left <= mark.x <= 470 for mark in series.marks)
    assert len(plot.across_ticks) <= 6
    assert all(plot.left <= at <= 470 for at, _ in plot.across_ticks)
    assert all(len(name) <= 18 for _, name in plot.up_ticks)
    page = drawing("A <plan>", plot, ["said & done"], [("name", "error"), ("age", "1")])
    assert page.count("<circle") == known.sum()
    assert "A &lt;plan&gt;" in page
    assert "said &amp; done" in page


def test_large_numbers_have_no_exponents() -> None:
    empty = np.zeros((0, 5))
    found = Pictures([("deviance", 20792.3, 441.2), ("AUC", 0.80491, 0.01299)], None, empty[:, :3], empty)
    assert found.rows == [("deviance", "20,792", "441"), ("AUC", "0.8049", "0.013")]
    assert ratio_name(None) == ""

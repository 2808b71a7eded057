"""The demonstration, end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpregress.accounting import ApproxDP
from dpregress.experiments import rand_health
from tests.support import run


def test_demonstration_shows_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "experiment", "rand-health", "--out", tmp_path / "demo")
    assert done.code == 0, done.err
    for words in (
        "per record",
        "non-private",
        "public rows only",
        "true mean",
        "k records",
        "epsilon = 1 at delta = 1e-06",
    ):
        assert words in done.out
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "<svg" in page
    assert "Never publish" in page
    assert run(capsys, "experiment", "rand-health", "--out", tmp_path / "demo").code == 2


def test_demonstration_is_within_its_budget_and_useful() -> None:
    """The private mean squared error is below the mean's by more than noise can explain.

    Failure probability below 1e-9: the excess of the private error over the non-private one is a quadratic
    form of the noise with mean 0.4% of it; the mean's is 7.6%.
    """
    shown = rand_health.run()
    assert shown.privacy.budget == ApproxDP(1.0, 1e-6)
    assert np.isclose(shown.privacy.events.mu, shown.privacy.promise.mu, rtol=1e-12)
    errors = {name: error for name, error, _ in shown.comparison.errors}
    assert errors["private"] < errors["mean of the private rows (non-private)"] * 1.2
    assert not shown.privacy.seeded


def test_split_is_a_partition() -> None:
    rows = rand_health.split_rows(rand_health.randhie(), "mdvis", public=0.02, held_out=0.2, seed=1)
    sizes = [len(part[1]) for part in (rows.public, rows.held_out, rows.private)]
    assert sizes == [404, 4038, 15748]
    assert "mdvis" not in rows.features

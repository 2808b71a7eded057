"""The demonstration, end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpregress.accounting import ApproxDP, compose_statements
from dpregress.experiments import rand_health
from tests.support import run

WORDS = (
    "per record", "non-private", "public rows only", "true mean", "k records", "linear", "logistic", "Poisson",
    "epsilon = 1 at delta = 1e-06", "epsilon = 1.814 at delta = 1e-06",
)  # fmt: skip


def test_demonstration_shows_everything(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    done = run(capsys, "experiment", "rand-health", "--out", tmp_path / "demo")
    assert done.code == 0, done.err
    for words in WORDS:
        assert words in done.out
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count('<svg class="forest"') == 3
    assert "Never publish" in page
    assert run(capsys, "experiment", "rand-health", "--out", tmp_path / "demo").code == 2
    table = rand_health.randhie().drop_columns([rand_health.TARGET]).slice(0, 50)
    pq.write_table(table, tmp_path / "new.parquet")
    for name in ("linear", "logistic", "poisson"):
        model = tmp_path / "demo" / f"{name}-model.json"
        predicted = run(capsys, "predict", model, tmp_path / "new.parquet", "--out", tmp_path / f"{name}.csv")
        assert predicted.code == 0, predicted.err


@pytest.mark.nightly
def test_demonstration_is_within_its_budget_and_useful() -> None:
    """Every private loss is below the mean's plus a fifth, and every mean prediction within a fifth of the truth.

    Failure probability below 1e-9: the excess over the non-private loss is a quadratic form of the noise with
    mean below 1% of it (measured: .3%, .2%, .6%), the mean predictor's is 6-10%; the mean prediction's noise is
    about 1.5%.
    """
    fits = [model.fitted for model in rand_health.run()]
    assert len(fits) == 3
    for fit in fits:
        assert fit.privacy.budget == ApproxDP(1.0, 1e-6)
        assert np.isclose(fit.privacy.events.mu, fit.privacy.promise.mu, rtol=1e-9)
        assert not fit.privacy.seeded
        assert fit.comparison is not None
        losses = {name: loss for name, loss, _ in fit.comparison.errors}
        means = {name: mean for name, _, mean in fit.comparison.errors}
        assert losses["private"] < losses["mean of the private rows (non-private)"] * 1.2
        assert abs(means["private"] / fit.comparison.truth - 1) < 0.2
    assert np.isclose(compose_statements([fit.privacy for fit in fits]).mu, np.sqrt(3) * fits[0].privacy.mu)


def test_split_is_a_partition() -> None:
    rows = rand_health.split_rows(rand_health.randhie(), "mdvis", public=0.02, held_out=0.2, seed=1)
    sizes = [len(part[1]) for part in (rows.public, rows.held_out, rows.private)]
    assert sizes == [404, 4038, 15748]
    assert "mdvis" not in rows.features

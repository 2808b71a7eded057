"""Invented people: they are like the public rows of the study, and follow the slopes that a rehearsal prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from scipy.stats import norm
from sklearn.linear_model import PoissonRegressor

from dpregress.collector import Study
from dpregress.collector.drafting import study_from_toml
from dpregress.collector.rehearsal import rehearse_two
from dpregress.collector.simulation import InventedPeople
from dpregress.coordinates import Matrix
from tests.collector.support import DESCRIPTION
from tests.collector.two import HOLDERS

_VISITS = """
[questions.visits]
lower = 0
upper = 20
text = { en = "How often did you visit a doctor?", de = "Wie oft waren Sie beim Arzt?" }
"""


def visits_study(folder: Path, seed: int, users: int) -> Study:
    """A Poisson study at epsilon 8 whose public rows are of few, young coffee drinkers; they stand in the folder."""
    rng = np.random.default_rng([seed, 400])
    smoker = np.where(rng.random(400) < 0.3, "yes", "no")
    columns = {"age": rng.uniform(18, 60, 400), "coffee": rng.uniform(0, 5, 400), "smoker": smoker}
    pacsv.write_csv(pa.table(columns), folder / "pilot.csv")
    text = DESCRIPTION.format(enrolment="open", minimum=3, epsilon=8.0).partition("[questions.tired]")[0] + _VISITS
    for old, new in (("binomial", "poisson"), ('"tired"', '"visits"'), ("users = 20000", f"users = {users}")):
        text = text.replace(old, new)
    (folder / "visits.toml").write_text(text, encoding="utf-8")
    return study_from_toml(folder / "visits.toml", folder / "pilot.csv", HOLDERS)


def rows_of(study: Study, people: InventedPeople, n: int) -> Matrix:
    assert study.terms is not None
    return np.array([study.terms.row([*answers.values()]) for answers in people.answers(n)])


def test_invented_people_are_like_the_public_rows(tmp_path: Path, seed: int) -> None:
    """Means within 5.5 standard errors of those of the public rows: failure probability 1e-7."""
    study, n = visits_study(tmp_path, seed, 1000), 600
    assert study.terms is not None
    public = study.terms.public
    assert public is not None
    x = rows_of(study, InventedPeople(study.terms, seed), n)[:, :-1]
    away = (x.mean(axis=0) - public.mean) / (x.std(axis=0) / np.sqrt(n))
    assert np.abs(away).max() < 5.5
    spread = np.sqrt(np.diag(public.second) - np.asarray(public.mean) ** 2)
    assert np.all(x.std(axis=0) < 1.2 * spread)
    assert np.all(x.std(axis=0) > 0.8 * spread)


def test_the_printed_slopes_are_those_of_the_responses(tmp_path: Path, seed: int) -> None:
    """A Poisson regression on invented answers finds them: within 5.2 standard errors, failure probability 1e-6."""
    study = visits_study(tmp_path, seed, 1000)
    assert study.terms is not None
    people = InventedPeople(study.terms, seed)
    rows = rows_of(study, people, 800)
    x, y = rows[:, :-1], rows[:, -1]
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    fit = PoissonRegressor(alpha=0, tol=1e-8, max_iter=1000).fit(scaled, y)
    design = np.column_stack([np.ones(len(x)), scaled])
    errors = np.sqrt(np.diag(np.linalg.inv((design * fit.predict(scaled)[:, None]).T @ design)))[1:]
    away = (fit.coef_ - people.slopes * x.std(axis=0)) / errors
    print("errors in standard errors:", away.round(2))
    assert np.abs(away).max() < norm.isf(1e-6 / 6)


@pytest.mark.slow
def test_a_poisson_rehearsal_of_two_collectors_tells_slopes(tmp_path: Path, seed: int) -> None:
    """1,000 people at epsilon 8 through the real wire: slopes and intervals, where people and public rows had differed
    by so much that the equations had no root nearby. Within 5.2 standard errors: failure probability 1e-6. The fit that
    predicts is the mean wherever noise leaves it in doubt, which is one time in four."""
    study = visits_study(tmp_path, seed, 1000)
    (tmp_path / "stores").mkdir()
    found, truth = rehearse_two(study, 1000, tmp_path / "stores", tmp_path / "pilot.csv", seed)
    assert found.model.estimates_ is not None
    assert np.isfinite(found.lower).all()
    estimates = np.array([each["estimate"] for each in found.encode()["coefficients"]])
    away = (estimates - truth) / found.standard_error
    print("errors in standard errors:", away.round(2))
    assert np.abs(away).max() < norm.isf(1e-6 / 6)

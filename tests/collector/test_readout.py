"""What is read out: the fit of the sums, jackknife errors, and a bound on what dishonest users can do."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from dpregress.accounting import PureDP
from dpregress.collector import Study
from dpregress.collector.drafting import study_from_toml, study_model
from dpregress.collector.poisoning import smallest_slope
from dpregress.collector.readout import poisoned_at_most, read_out, score_root
from dpregress.collector.store import open_store
from dpregress.coordinates import Vector, Weighting
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.models.mean_responses import mean_of
from dpregress.public import PublicMoments
from dpregress.releases import MessageParts
from tests.collector.support import DESCRIPTION, TRUTH, arrival, make_study, people, pilot, reports, running, send
from tests.collector.test_browser_noise import asked

FAMILIES = ("binomial", "gaussian", "poisson")


def described(folder: Path, seed: int, family: str, epsilon: float = 4.0, n: int = 400) -> Study:
    text = DESCRIPTION.format(enrolment="open", minimum=5, epsilon=epsilon).replace("binomial", family)
    (folder / "d.toml").write_text(text, encoding="utf-8")
    return study_from_toml(folder / "d.toml", pilot(folder, seed, n))


def asking(study: Study, first: float) -> Study:
    """The same, for the cross moment alone, or also for the mean of the rows."""
    space = replace(study.space, weighting=Weighting.FEATURES)
    parts = MessageParts(first=first) if first else None
    question = "moments-in-parts" if first else "cross-moment"
    return replace(study, question=question, parts=parts, space=space, spend=PureDP(4.0))


def test_nothing_before_the_minimum(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path, seed, minimum=20)
    found = [arrival(each) for each in reports(study, seed, 20)]
    with open_store(tmp_path / "s.db", study) as store:
        store.add(found[:19])
        with pytest.raises(NotAvailable, match="19 of 20"):
            read_out(store)
        store.add(found[19:])
        assert read_out(store).n == 20
        with pytest.raises(NotAvailable):
            read_out(store, at_least=21)
        with pytest.raises(InvalidInput, match="share"):
            read_out(store, share=0.7)


def test_the_fit_is_that_of_the_release(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path, seed)
    found = reports(study, seed, 500)
    with open_store(tmp_path / "s.db", study) as store:
        store.add([arrival(each) for each in found])
        read = read_out(store, public=tmp_path / "pilot.csv")
    assert study.terms is not None
    model = study_model(study.terms, tmp_path / "pilot.csv")
    total = np.sum([each.answer.astype(np.int64) for each in found], axis=0)
    model.fit_release(study.release(total, 500), study.message_plan)
    np.testing.assert_array_equal(read.model.coef_, model.coef_)
    assert read.model.privacy_.promise == study.spend
    told = read.encode()
    assert [each["name"] for each in told["coefficients"]] == list(study.space.features)


def test_jackknife_errors_agree(tmp_path: Path, seed: int) -> None:
    """Against the law of the noise, 1,500 users: within a factor that 64 groups leave, failure probability 1e-6."""
    study = make_study(tmp_path, seed, n=4000)
    with open_store(tmp_path / "s.db", study) as store:
        store.add([arrival(each) for each in reports(study, seed, 1500)])
        read, totals = read_out(store, public=tmp_path / "pilot.csv"), store.totals()
    public = read.model.public
    found = score_root(study, public, study.release(totals.total, totals.n))
    assert found is not None
    equations, coef = found
    unit = study.step * study.limits[1] / math.sqrt(study.query.size)  # a unit vector's root mean square entry
    back = study.space.whitening.T[-3:] @ np.linalg.inv(equations.slope(coef))
    stated = 0.5 * unit / math.sqrt(1500) * np.linalg.norm(back, axis=1)
    low, high = (chi2.ppf(tail, 63) / 63 for tail in (1e-7, 1 - 1e-7))
    assert np.all(
        (0.9 * low <= (read.jackknife_error / stated) ** 2) & ((read.jackknife_error / stated) ** 2 <= 1.1 * high)
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", ["rows", "moments"])
@pytest.mark.parametrize(
    ("first", "dishonest", "part"), [(0.0, 10, 0.25), pytest.param(0.5, 4, 0.1, marks=pytest.mark.slow)]
)
def test_dishonest_reports_stay_within_the_bound(
    family: str, rows: str, first: float, dishonest: int, part: float, tmp_path: Path, seed: int
) -> None:
    """The worst admitted answers in every direction move the root by at most the bound, and by a good part of it."""
    study = asking(described(tmp_path, seed, family), first)
    assert study.terms is not None
    public = study_model(study.terms, tmp_path / "pilot.csv" if rows == "rows" else None).public
    assert isinstance(public, PublicMoments)
    honest = np.array([each.answer for each in reports(study, seed, 2000)], dtype=np.int64)
    total = honest.sum(axis=0)
    original = study.space.whitening.T[-3:]

    def slopes(of: NDArray[np.int64]) -> Vector:
        found = score_root(study, public, study.release(of, 2000))
        assert found is not None
        return np.asarray(original @ found[1])

    bound = poisoned_at_most(study, public, study.release(total, 2000), dishonest / 2000)
    assert np.isfinite(bound).all()
    little = max(round(study.limits[1]), 1)
    towards = np.array([(slopes(total + little * unit) - slopes(total)) for unit in np.eye(len(total), dtype=np.int64)])
    reached = np.zeros(3)
    for row in towards.T:
        for sign in (1, -1):
            worst = np.trunc(sign * row / np.linalg.norm(row) * study.limits[1]).astype(np.int64)
            leaning = np.argsort(honest @ worst)[:dishonest]  # the honest answers that lean the other way are replaced
            poisoned = total - honest[leaning].sum(axis=0) + dishonest * worst
            reached = np.maximum(reached, np.abs(slopes(poisoned) - slopes(total)))
    assert np.all(reached <= bound)
    assert np.all(reached >= part * bound), reached / bound


def test_the_bound_grows_with_the_share(tmp_path: Path, seed: int) -> None:
    study = asking(make_study(tmp_path, seed), 0.0)
    with open_store(tmp_path / "s.db", study) as store:
        store.add([arrival(each) for each in reports(study, seed, 500)])
        bounds = [read_out(store, share=share).poisoned for share in (0.0, 0.001, 0.01)]
        assert np.isinf(read_out(store, share=0.49).poisoned).all()
    assert (bounds[0] == 0).all()
    assert (bounds[1] < bounds[2]).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_smallest_slopes(family: str, seed: int) -> None:
    """Never above the mean over t of the smallest slope on a fine grid."""
    response, rng = mean_of(family), np.random.default_rng(seed)
    centre, reach = rng.normal(size=50) * 2, rng.exponential(size=50)
    steps = np.linspace(0, 1, 401)
    grid = centre[:, None, None] + reach[:, None, None] * steps[:, None] * np.linspace(-1, 1, 401)
    exact = response.slope(grid.ravel()).reshape(grid.shape).min(axis=2).mean(axis=1)
    found = smallest_slope(response, centre, reach)
    assert np.all(found <= exact * (1 + 1e-9))
    assert np.all(found >= 0.4 * exact)


def browser_reports(study: Study, folder: Path, seed: int, n: int) -> list[bytes]:
    """Reports that the pages' own modules make of invented people's answers, in node; noise from a seeded stream."""
    x, y = people(seed, n)
    told = [[*row[:2], "yes" if row[2] else "no", "yes" if of else "no"] for row, of in zip(x, y, strict=True)]
    where = folder / "people.json"
    where.write_text(json.dumps({"study": study.text(), "people": told, "label": f"browsers/{seed}/"}), "utf-8")
    found = asked("reports", where)
    assert found["kept"]
    data, length = base64.b64decode(found["reports"]), 84 + 4 * study.query.size
    return [data[at : at + length] for at in range(0, len(data), length)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "n"),
    [
        pytest.param("unit-vector", 5_000, marks=pytest.mark.nightly),
        pytest.param("unit-vector", 20_000, marks=pytest.mark.nightly),
        ("gaussian", 20_000),
    ],
)
def test_thousands_of_browsers(message: str, n: int, tmp_path: Path, seed: int) -> None:
    """From the browser's own noise through the service to coefficients within 5.1 standard errors.

    The failure probability is 1e-6. 4 standard errors would be passed by a right fit in 1 of 5,000 runs.
    """
    study = make_study(tmp_path, seed, n=n)
    if message == "gaussian":
        assert study.terms is not None
        model = study_model(study.terms, tmp_path / "pilot.csv").set_params(recipe="gaussian")
        study = Study.of(model.plan(study.space.features, n, target="tired"), study.title, study.terms)
    found = browser_reports(study, tmp_path, seed, n)
    assert len({each[36:52] for each in found}) == len(found) == n
    with running(study, tmp_path / "s.db") as port:
        for start in range(0, n, 100):
            body = b"".join(found[start : start + 100])
            assert send(port, body, "/api/reports/batch")[0] == 200
    with open_store(tmp_path / "s.db") as store:
        assert store.verify() == n
        assert store.refused() == {}
        read = read_out(store, public=tmp_path / "pilot.csv")
    estimates = np.array([each["estimate"] for each in read.encode()["coefficients"]])
    ratios = (estimates - TRUTH) / read.standard_error
    print("errors in standard errors:", ratios.round(2))
    assert np.abs(ratios).max() < norm.isf(1e-6 / 6)
    assert np.all(read.upper > read.lower)


def test_noise_of_unit_vectors_is_admitted_exactly(tmp_path: Path, seed: int) -> None:
    """The public limits hold every honest report, and nothing much longer."""
    study = make_study(tmp_path, seed)
    for each in reports(study, seed, 300):
        assert study.admits(each.answer)
    longer = np.zeros(study.query.size, dtype=np.int32)
    longer[0] = math.ceil(study.limits[1]) + 1
    assert not study.admits(longer)

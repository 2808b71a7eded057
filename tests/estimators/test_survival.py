"""Piecewise constant hazards: the limit of statsmodels, persons as a whole, coverage, files and commands."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binom
from sklearn.base import clone

import dpregress
from dpregress import DPRidge, DPSurvival, Numeric, PublicMoments, Schema
from dpregress.accounting import GDP, MemoryLedger, Relation
from dpregress.coordinates import Exposure, ResponseScale, WhitenedSpace, svec
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.models.hazards import checked_cuts, event_in_piece, time_in_pieces
from dpregress.queries import PieceInformation, PieceScore
from dpregress.rows import RawRows, WhitenedRows
from dpregress.solvers import PieceSteps
from tests.laws.spies import Silent
from tests.support import missing, run

CUTS = (0.25, 0.5, 1.0, 1.5)
SLOPES = np.array([0.6, -0.3])


def people(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, events and times with a Weibull hazard."""
    x = rng.normal(size=(n, 2)) * [1.0, 2.0]
    life = rng.weibull(1.5, n) * np.exp(-x @ SLOPES / 1.5)
    end = rng.uniform(0.0, 2.0, n)
    return x, (life <= end).astype(float), np.minimum(life, end)


def exploded(x: np.ndarray, event: np.ndarray, time: np.ndarray) -> Any:
    """The Poisson fit to one row for each piece of each person, by statsmodels."""
    try:
        import statsmodels.api as sm
    except ImportError:
        missing("statsmodels")
    pieces = len(CUTS)
    design = np.vstack([np.column_stack([np.tile(np.eye(pieces)[k], (len(x), 1)), x]) for k in range(pieces)])
    exposure, events = time_in_pieces(time, CUTS).T.ravel(), event_in_piece(time, event, CUTS).T.ravel()
    at_risk = exposure > 0
    model = sm.GLM(events[at_risk], design[at_risk], family=sm.families.Poisson(), exposure=exposure[at_risk])
    return model.fit(tol=1e-14, maxiter=100)


def without_noise(x: np.ndarray, event: np.ndarray, time: np.ndarray, public: PublicMoments, **more: Any) -> DPSurvival:
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        return DPSurvival(GDP(1e20), cuts=CUTS, public=public, **more).fit(x, event, time=time)


@pytest.mark.parametrize("mu", [0.03, 0.1])
def test_what_noise_hides_is_not_identified(mu: float, seed: int) -> None:
    """Bounds of 25 deviations: where slopes of -.5 and .6 are hidden, no interval says that they are about 0.

    Of eight fits, intervals of 99.9999% that miss are at most one: they miss at 1e-6 each where errors are right.
    """
    schema, missed = Schema({"x0": Numeric(-25, 25), "x1": Numeric(-50, 50)}), 0
    for draw in range(8):
        rng = np.random.default_rng([seed, draw])
        x, event, time = people(rng, 4_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPSurvival(GDP(mu), cuts=CUTS, schema=schema, random_state=rng).fit(x, event, time=time)
        ends = model.conf_int(level=1 - 1e-6)[1:]
        missed += int(((ends[:, 0] > SLOPES) | (ends[:, 1] < SLOPES)).any())
    assert missed <= 1


def test_limit_is_statsmodels(seed: int) -> None:
    """Coefficients, hazards and standard errors of the Poisson fit to exploded rows. Deterministic."""
    rng = np.random.default_rng(seed)
    x, event, time = people(rng, 4_000)
    right = exploded(x, event, time)

    def more_scores(facts: Any, cuts: Any, budget: Any, **options: Any) -> PieceSteps:
        return PieceSteps(facts, cuts, budget, (1.0,) * 8, **options)

    with patch("dpregress.estimators.survival.PieceSteps", more_scores):
        model = without_noise(x, event, time, PublicMoments.from_rows(people(rng, 300)[0]), cov_type="model")
    np.testing.assert_allclose(model.coef_, right.params[4:], rtol=1e-6)
    np.testing.assert_allclose(model.params[1:], right.params[4:], rtol=1e-6)
    np.testing.assert_allclose(model.log_hazards_, right.params[:4], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.bse[1:], right.bse[4:], rtol=1e-5)
    ratios = model.ratios()
    np.testing.assert_allclose(ratios[:, 0], np.exp(right.params[4:]), rtol=1e-6)
    baseline = time_in_pieces(np.full(5, 0.8), CUTS) @ np.exp(right.params[:4])
    chance = 1 - np.exp(-baseline * np.exp(x[:5] @ right.params[4:]))
    np.testing.assert_allclose(model.predict(x[:5], time=np.full(5, 0.8)), chance, rtol=1e-5)
    np.testing.assert_allclose(model.survival(x[:5], [0.8])[:, 0], 1 - chance, rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-16, 1e9, 3e16])
def test_the_unit_of_time_does_not_matter(unit: float, seed: int) -> None:
    """Also years in nanoseconds, in which hazards are far below exp(-30). Deterministic: there is no noise."""
    rng = np.random.default_rng(seed)
    x, event, time = people(rng, 2_000)
    schema = Schema({"x0": Numeric(-9, 9), "x1": Numeric(-9, 9)})

    def fitted(unit: float) -> DPSurvival:
        cuts = tuple(unit * cut for cut in CUTS)
        with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
            return DPSurvival(GDP(1e20), cuts=cuts, schema=schema).fit(x, event, time=unit * time)

    known, found = fitted(1.0), fitted(unit)
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-6)
    np.testing.assert_allclose(found.log_hazards_ + np.log(unit), known.log_hazards_, rtol=1e-6, atol=1e-5)


def test_score_is_the_derivative_and_information_its_slope(seed: int) -> None:
    """Without clips the information is minus the slope of the score. Deterministic."""
    rng = np.random.default_rng(seed)
    names, y, time = ("a", "b"), ResponseScale("y"), Exposure("t")
    space = WhitenedSpace(names, np.eye(3), 2.0, np.zeros(2), intercept=True, response=y, exposure=time)
    x, event, times = people(rng, 200)
    rows = WhitenedRows(space)(RawRows(x, event, exposure=times))
    coef = 0.3 * rng.normal(size=6)
    h = 1e-5 * np.eye(6)
    slope = [(PieceScore(space, CUTS, coef + e, 1e6).value(rows) - PieceScore(space, CUTS, coef - e, 1e6).value(rows))
             for e in h]  # fmt: skip
    information = svec.unsvec(PieceInformation(space, CUTS, coef, 1e6).value(rows), 6)
    np.testing.assert_allclose(np.array(slope) / 2e-5, -information, atol=1e-5 * np.abs(information).max())


def test_a_person_is_bounded_as_a_whole(seed: int) -> None:
    """The bound of the score is that of one row, however many pieces there are, and is reached."""
    rng = np.random.default_rng(seed)
    names = ("a", "b")
    for pieces in (1, 4, 50):
        cuts = tuple(np.linspace(0.1, 2.0, pieces))
        space = WhitenedSpace(
            names, np.eye(3), 1.5, np.zeros(2), intercept=True, response=ResponseScale("y"), exposure=Exposure("t")
        )
        query = PieceScore(space, cuts, rng.normal(size=3 + pieces - 1), 0.4)
        assert query.sensitivity(Relation.REPLACE_ONE) == pytest.approx(2 * 1.5 * 0.4)
        x, event, time = people(rng, 400)
        each = query.each(WhitenedRows(space)(RawRows(10 * x, event, exposure=time)))
        norms = np.linalg.norm(each, axis=1)
        assert norms.max() <= 1.5 * 0.4 * (1 + 1e-12)
        assert norms.max() >= 0.95 * 1.5 * 0.4


def test_intervals_cover(seed: int) -> None:
    """Of 60 intervals of 90% at least 36 cover: with a coverage of 85% that fails with probability below 1e-6."""
    rng = np.random.default_rng(seed)
    covered = []
    assert binom.cdf(35, 60, 0.85) < 1e-6
    for turn in range(30):
        x, event, time = people(rng, 4_000)
        model = DPSurvival(GDP(2.0), cuts=CUTS, public=PublicMoments.from_rows(x[:300]), random_state=seed + turn)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x[300:], event[300:], time=time[300:])
        lower, upper = model.conf_int(level=0.9)[1:].T
        covered += list((lower <= SLOPES) & (upper >= SLOPES))
    assert sum(covered) >= 36


def test_what_is_not_observed_counts_nowhere(seed: int) -> None:
    """People without a usable time or event, and what happens after the follow-up."""
    rng = np.random.default_rng(seed)
    x, event, time = people(rng, 2_000)
    public = PublicMoments.from_rows(x[:300])
    late = np.where(time > CUTS[-1], 50.0, time)
    assert np.allclose(without_noise(x, event, late, public).coef_, without_noise(x, event, time, public).coef_)
    gaps = time.copy()
    gaps[1_000:] = np.array([np.nan, -1.0, 0.0, np.inf] * 250)
    found = without_noise(x, event, gaps, public).coef_
    np.testing.assert_allclose(found, without_noise(x[:1_000], event[:1_000], time[:1_000], public).coef_, rtol=0.05)


def test_files_and_refusals(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    x, event, time = people(rng, 2_000)
    public = PublicMoments.from_rows(x[:300])
    model = without_noise(x, event, time, public)
    model.save(tmp_path)
    back = dpregress.load(tmp_path)
    np.testing.assert_allclose(back.predict(x[:9], exposure=time[:9]), model.predict(x[:9], time=time[:9]))
    np.testing.assert_allclose(back.predict(x[:9]), model.predict(x[:9]))
    np.testing.assert_allclose(back.ratios(), model.ratios())
    ledger = MemoryLedger(GDP(1.0))
    for cuts in ((), (1.0, 0.5), (0.0, 1.0), (math.inf,), "1,2", (1.0, "a")):
        with pytest.raises(InvalidInput, match="cuts="):
            DPSurvival(GDP(1.0), cuts=cuts, public=public, ledger=ledger).fit(x, event, time=time)
    for tiny in ((1e-120, 1.0), (1e-90, 1e120)):
        with pytest.raises(InvalidInput, match="change the unit of time"):
            DPSurvival(GDP(1.0), cuts=tiny, public=public, ledger=ledger).fit(x, event, time=time)
    with pytest.raises(InvalidInput, match="time="):
        DPSurvival(GDP(1.0), cuts=CUTS, public=public, ledger=ledger).fit(x, event)
    with pytest.raises(NotAvailable, match="a survival model has none"):
        DPSurvival(GDP(1.0), cuts=CUTS, public=public, ledger=ledger).fit(x, event, time=time, diagnose=0.1)
    with pytest.raises(InvalidInput, match="time") as refused:
        DPSurvival(GDP(1.0), cuts=CUTS, public=public, ledger=ledger).fit(x, event, time="days")
    assert "exposure" not in str(refused.value)
    assert not ledger.charges
    assert checked_cuts([1, 2]) == (1.0, 2.0)


def test_saved_models_read_times_and_have_no_intervals(tmp_path: Path) -> None:
    x, event, time = people(np.random.default_rng(0), 600)
    model = without_noise(x, event, time, PublicMoments.from_rows(x[:300]))
    model.save(tmp_path)
    back, rows = dpregress.load(tmp_path), pa.table({"x0": x[:9, 0], "x1": x[:9, 1], "t": [0.0, *time[1:9]]})
    expected = model.predict(x[:9], time=rows["t"])
    assert expected[0] == 0
    for given in (rows, rows.to_reader()):
        np.testing.assert_allclose(back.predict(given, exposure="t"), expected)
    for kind in ("mean", "prediction"):
        with pytest.raises(NotAvailable, match="survival models have no intervals of predictions"):
            back.predict(x[:9], interval=kind)


def fitted(rng: np.random.Generator, n: int = 600) -> tuple[DPSurvival, pd.DataFrame]:
    """A model of two columns, and its rows with the columns ``died`` and ``days``."""
    x, event, time = people(rng, n)
    frame = pd.DataFrame({"x0": x[:, 0], "x1": x[:, 1], "died": event, "days": time})
    public = PublicMoments.from_rows(x[: n // 2])
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        model = DPSurvival(GDP(1e20), cuts=CUTS, public=public).fit_table(frame, "died", ["x0", "x1"], time="days")
    return model, frame


def test_the_pieces_have_no_default() -> None:
    """A follow-up that ends at 1 would censor everybody whose times are days."""
    _, frame = fitted(np.random.default_rng(0))
    schema, ledger = Schema({"x0": Numeric(-9, 9), "x1": Numeric(-9, 9)}), MemoryLedger(GDP(1.0))
    model = DPSurvival(GDP(1.0), schema=schema, ledger=ledger)
    assert clone(model).get_params()["cuts"] is None
    with pytest.raises(InvalidInput, match=r"give cuts=.*follow-up, such as cuts=\(30, 90, 365\)$"):
        model.fit_table(frame, "died", ["x0", "x1"], time="days")
    with pytest.raises(InvalidInput, match="give cuts="):
        model.fit(frame[["x0", "x1"]], frame["died"], time=frame["days"])
    assert not ledger.charges


def test_curves_are_those_of_saved_models(tmp_path: Path, seed: int) -> None:
    model, frame = fitted(np.random.default_rng(seed))
    model.save(tmp_path)
    back, some, times = dpregress.load(tmp_path), frame[["x0", "x1"]][:7], [0.0, 0.3, 1.5]
    survival, hazard = model.survival(some, times), model.cumulative_hazard(some, times)
    assert survival.shape == hazard.shape == (7, 3)
    np.testing.assert_allclose(survival, np.exp(-hazard))
    np.testing.assert_array_equal(survival[:, 0], 1)
    for column, at in enumerate(times):
        np.testing.assert_allclose(survival[:, column], 1 - model.predict(some, time=np.full(7, at)), atol=1e-15)
        np.testing.assert_allclose(model.survival(some, at), survival[:, [column]])
    ratios = np.exp(some @ model.coef_).to_numpy()[:, None]
    np.testing.assert_allclose(model.cumulative_hazard(None, times) * ratios, hazard)
    pieces = time_in_pieces(np.array(times), CUTS) @ np.exp(model.log_hazards_)
    np.testing.assert_allclose(model.cumulative_hazard(None, times), pieces[None])
    np.testing.assert_array_equal(back.survival(some, times), survival)
    np.testing.assert_array_equal(back.cumulative_hazard(some, times), hazard)
    np.testing.assert_array_equal(back.predict(some, time=1), model.predict(some, time=1))
    np.testing.assert_array_equal(back.predict(frame[:7], time="days"), back.predict(frame[:7], exposure="days"))


def test_nothing_is_said_of_times_beyond_the_follow_up(tmp_path: Path) -> None:
    model, frame = fitted(np.random.default_rng(0))
    model.save(tmp_path)
    some, beyond = frame[["x0", "x1"]][:2], [-1.0, np.nextafter(CUTS[-1], 2), np.nan, np.inf]
    for each in (model, dpregress.load(tmp_path)):
        assert np.isnan(each.survival(some, beyond)).all()
        assert np.isnan(each.cumulative_hazard(some, beyond)).all()
        assert np.isnan(each.predict(some, time=beyond[:2])).all()
        assert np.isfinite(each.survival(some, CUTS[-1])).all()


def test_times_are_refused_by_name(tmp_path: Path) -> None:
    model, frame = fitted(np.random.default_rng(0))
    some = frame[["x0", "x1"]][:3]
    for act, said in (
        (lambda: model.survival(some, "days"), r"times= takes a number or several, such as \[30, 90\], not 'days'"),
        (lambda: model.cumulative_hazard(some, [[1, 2]]), "times should be a 1d array"),
        (lambda: model.predict(some, time=[1, 2]), "X has 3 rows, time has 2"),
        (lambda: model.score(some, frame["died"][:3]), "give time="),
        (lambda: model.score(some, frame["died"], time=frame["days"][:3]), "X has 3 rows, y has 600"),
    ):
        with pytest.raises(InvalidInput, match=said):
            act()
    DPRidge(GDP(5.0), row_bound=9.0, schema=Schema({"died": Numeric(0, 1)})).fit(
        frame[["x0", "x1"]], frame["died"]
    ).save(tmp_path)
    other = dpregress.load(tmp_path)
    for method in (other.survival, other.cumulative_hazard):
        with pytest.raises(NotAvailable, match="those of survival models, and this one is gaussian: use predict"):
            method(some, 1)
    with pytest.raises(InvalidInput, match="leave it out"):
        other.predict(some, time=1)


def test_score_is_the_concordance(seed: int) -> None:
    """Of all pairs by definition, with equal times and risks, gaps, and what happens after the follow-up."""
    rng = np.random.default_rng(seed)
    model, frame = fitted(rng)
    frame = frame.round({"x0": 0, "x1": 0, "days": 1})[:200]
    frame.loc[:9, "died"], frame.loc[10:19, "days"] = np.nan, np.nan
    risk = np.exp(frame[["x0", "x1"]] @ model.coef_)
    kept = frame[["died", "days"]].notna().all(axis=1) & (frame["days"] > 0)
    r, d, t = (column[kept].to_numpy() for column in (risk, frame["died"] > 0, frame["days"]))
    d, t = d & (t <= CUTS[-1]), np.minimum(t, CUTS[-1])
    right, pairs = 0.0, 0
    for i, j in np.ndindex(len(t), len(t)):
        if d[i] and (t[i] < t[j] or (t[i] == t[j] and not d[j])):
            right += float(r[i] > r[j]) + float(np.isclose(r[i], r[j])) / 2
            pairs += 1
    found = model.score(frame[["x0", "x1"]], frame["died"], time=frame["days"])
    assert found == pytest.approx(right / pairs, abs=1e-3)  # equal rows may differ by a rounding
    assert found == model.score(frame, frame["died"], time="days")
    assert 0.55 < found < 0.95
    assert math.isnan(model.score(frame[:1], frame["died"][:1], time="days"))


def test_the_response_of_other_formulas_and_pieces_out_of_order() -> None:
    _, frame = fitted(np.random.default_rng(0))
    model = DPSurvival.from_formula("Surv(days, died) ~ x0", privacy=GDP(1.0), cuts=CUTS)
    for how in ({}, {"time": "days"}):
        with pytest.raises(InvalidInput, match=r'write "died ~ \.\.", and give time="days"'):
            model.fit_table(frame, **how)
    for cuts, said in (((30, 10), "number 2 does not exceed the one before"), ((0, 10), "number 1 must be above 0")):
        with pytest.raises(InvalidInput, match=f"cuts= must be positive and increase, and {said}"):
            checked_cuts(cuts)


def test_hidden_hazards_have_no_errors(seed: int) -> None:
    """As coefficients that are not identified have none; pieces that are known have theirs."""
    rng = np.random.default_rng(seed)
    x, event, time = people(rng, 4_000)
    schema = Schema({"x0": Numeric(-25, 25), "x1": Numeric(-50, 50)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hidden = DPSurvival(GDP(0.03), cuts=CUTS, schema=schema, random_state=rng).fit(x, event, time=time)
    assert np.isnan(hidden.log_hazard_errors_).all()
    known = without_noise(x, event, time, PublicMoments.from_rows(x[:300]))
    assert (known.log_hazard_errors_ > 0).all()


def test_the_summary_says_what_the_follow_up_was(tmp_path: Path) -> None:
    model, frame = fitted(np.random.default_rng(0))
    model.save(tmp_path)
    for each in (model, dpregress.load(tmp_path)):
        facts = dict(each.summary().facts)
        assert facts["Family"] == "survival, log link"
        assert facts["Time"] == "days, followed up to 1.5; pieces end at 0.25, 0.5, 1, 1.5"
    model.fit(frame[["x0", "x1"]], frame["died"], time=frame["days"].to_numpy())
    assert dict(model.summary().facts)["Time"].startswith("followed up to 1.5")


def test_survival_of_a_stream() -> None:
    x, event, time = people(np.random.default_rng(0), 600)
    table = pa.table({"x0": x[:, 0], "x1": x[:, 1]})
    model = DPSurvival(GDP(20.0), cuts=CUTS, public=PublicMoments.from_rows(x[:300])).fit(table, event, time=time)
    np.testing.assert_array_equal(model.survival(table.to_reader(), [0.5, 1.0]), model.survival(table, [0.5, 1.0]))


def test_command_and_formula(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(seed)
    x, event, time = people(rng, 3_000)
    frame = pd.DataFrame({"age": x[:, 0], "dose": x[:, 1], "died": event, "days": time})
    schema = Schema({"age": Numeric(-4, 4), "dose": Numeric(-8, 8)})
    formula = DPSurvival.from_formula("died ~ age + I(dose ** 2)", privacy=GDP(5.0), cuts=CUTS, schema=schema)
    assert formula.fit_table(frame, time="days").coefficients_.features == ("age", "I(dose ** 2)")
    frame.to_csv(tmp_path / "people.csv", index=False)
    schema.save(tmp_path / "s.toml")
    done = run(
        capsys, "fit", tmp_path / "people.csv", "--target", "died", "--family", "survival", "--time", "days", "--cuts",
        "0.25,0.5,1,1.5", "--schema", tmp_path / "s.toml", "--epsilon", 5, "--delta", 1e-6, "--out", tmp_path / "m",
    )  # fmt: skip
    assert done.code == 0, done.err
    page = (tmp_path / "m" / "report.html").read_text()
    for words in ("<h3>Hazard ratios</h3>", "the hazard is multiplied by the ratio", "<dt>Time</dt>"):
        assert words in page
    done = run(capsys, "predict", tmp_path / "m", tmp_path / "people.csv", "--out", tmp_path / "p.csv")
    assert done.code == 0, done.err
    chances = pd.read_csv(tmp_path / "p.csv")["died"]
    assert chances[time <= CUTS[-1]].between(0, 1).all()
    assert chances[time > CUTS[-1]].isna().all()
    wrong = ["--family", "survival", "--time", "days", "--cuts", "x"]
    for given in (wrong[:2], wrong[2:4], wrong, [*wrong[:5], "1,2", "--no-intercept"]):
        done = run(
            capsys, "fit", tmp_path / "people.csv", "--target", "died", *given, "--schema", tmp_path / "s.toml",
            "--epsilon", 5, "--delta", 1e-6, "--out", tmp_path / "n",
        )  # fmt: skip
        assert done.code == 2
        assert "--cuts" in done.err or "--no-intercept" in done.err

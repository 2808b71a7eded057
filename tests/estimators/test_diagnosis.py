"""Paid diagnoses: exact without noise, within their errors with it, paid before anything is drawn."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

import dpregress
from dpregress import (
    ApproxDP,
    Categorical,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    LocalGLM,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.accounting import GDP, MemoryLedger, Policy
from dpregress.errors import BudgetExceeded, InvalidInput, NotAvailable, PolicyViolation
from dpregress.inference import Diagnosis
from dpregress.models import family_of
from tests.laws.spies import Silent
from tests.registry import responses
from tests.support import data_file, missing, run, statsmodels_family

ROWS = 6_000
HUGE = GDP(1e9)


def data(family: str, rng: np.random.Generator, n: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, 2))
    return x, responses(family_of(family), family_of(family).mean(0.3 + x @ [0.8, -0.5]), rng)


def fitted(family: str, seed: int, privacy: Any = HUGE, **more: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = data(family, rng)
    public = PublicMoments.from_rows(*data(family, rng, 400))
    kinds = {"gaussian": DPLinearRegression, "binomial": DPLogisticRegression}
    model = (
        kinds[family](privacy, public=public)
        if family in kinds
        else DPGLMRegressor(privacy, family=family, public=public)
    )
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        model.fit(x, y, **more)
    return model, x, y


def mean_of(model: Any, x: np.ndarray) -> np.ndarray:
    return model.predict_proba(x)[:, 1] if hasattr(model, "predict_proba") else model.predict(x)


def test_two_classes_without_noise(seed: int) -> None:
    """The binned numbers are those of scikit-learn, up to the width of the bins. Deterministic."""
    model, x, y = fitted("binomial", seed, diagnose=0.1)
    found, chance = model.diagnosis_, mean_of(model, x)
    assert len(found.predicted) == 20
    assert found.auc.value == pytest.approx(roc_auc_score(y, chance), abs=1e-3)
    assert found.brier.value == pytest.approx(brier_score_loss(y, chance), abs=2e-4)
    predicted, observed, _ = found.calibration().T
    rows = found.rows
    assert rows.sum() == pytest.approx(ROWS)
    assert predicted @ rows / ROWS == pytest.approx(chance.mean(), abs=1e-9)
    assert observed @ rows / ROWS == pytest.approx(y.mean(), abs=1e-9)
    assert repr(found).startswith("<Diagnosis of binomial, logit link: deviance ")
    assert [line.split()[0] for line in str(found).splitlines()[1:4]] == ["AUC", "Brier", "deviance"]
    roc = found.roc()
    assert roc[0].tolist() == [0, 0]
    assert roc[-1] == pytest.approx([1, 1])
    assert (np.diff(roc, axis=0) >= 0).all()


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma", "inverse-gaussian"])
def test_likelihood_is_statsmodels(family: str, seed: int) -> None:
    """Deviance, log-likelihood, AIC and BIC at the fitted coefficients. Clips take less than 2%. Deterministic."""
    model, x, y = fitted(family, seed, diagnose=0.1)
    import statsmodels.api as sm

    design = sm.add_constant(x)
    glm = sm.GLM(y, design, family=statsmodels_family(family_of(family)))
    mean = mean_of(model, x)
    deviance = glm.family.deviance(y, mean)
    assert model.deviance == pytest.approx(deviance, rel=0.02)
    null = glm.family.deviance(y, np.full(len(y), y.mean()))
    assert model.diagnosis_.explained.value == pytest.approx(1 - deviance / null, abs=0.02)
    scale = deviance / ROWS if family == "gaussian" else model.diagnosis_.dispersion
    llf = glm.family.loglike(y, mean, scale=scale)
    assert model.llf == pytest.approx(llf, abs=0.02 * ROWS)
    assert model.aic == pytest.approx(6 - 2 * model.llf)
    assert model.bic == pytest.approx(3 * math.log(ROWS) - 2 * model.llf)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_residuals_without_noise(family: str, seed: int) -> None:
    """Means and root mean squares of Pearson residuals by bin. Deterministic."""
    model, x, y = fitted(family, seed, diagnose=0.1)
    found, mean = model.diagnosis_, mean_of(model, x)
    residual = (y - mean) / np.sqrt(family_of(family).distribution.variance(mean))
    eta = x @ model.coef_ + model.intercept_
    place = np.searchsorted(found.edges, eta, side="right")
    _, shown, _, root, _ = found.residuals().T
    for at in range(len(found.predicted)):
        own = residual[place == at]
        assert shown[at] == pytest.approx(own.mean(), abs=0.05)
        assert root[at] == pytest.approx(np.sqrt(np.mean(own**2)), rel=0.06)


def test_share_is_part_of_the_budget(seed: int) -> None:
    """One charge, of the budget, and all draws are within it."""
    rng = np.random.default_rng(seed)
    x, y = data("binomial", rng)
    ledger = MemoryLedger(GDP(1.0))
    model = DPLogisticRegression(
        GDP(1.0), public=PublicMoments.from_rows(*data("binomial", rng, 400)), ledger=ledger, random_state=seed
    )
    with pytest.warns(UserWarning, match="seed"):
        model.fit(x, y, diagnose=0.1)
    assert len(ledger.charges) == 1
    assert model.privacy_.events.mu == pytest.approx(1.0, rel=1e-9)
    assert model.diagnosis_.privacy is None
    with pytest.raises(BudgetExceeded):
        model.diagnose(x, y, privacy=GDP(0.1))


def test_own_charge(seed: int) -> None:
    """The ledger of the model is charged with the budget of the diagnosis, and the statement is about it."""
    rng = np.random.default_rng(seed)
    x, y = data("poisson", rng)
    ledger = MemoryLedger(GDP(2.0))
    model = DPPoissonRegressor(
        GDP(1.0), public=PublicMoments.from_rows(*data("poisson", rng, 400)), ledger=ledger, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
        found = model.diagnose(x, y, privacy=GDP(0.3), random_state=seed)
    assert found is model.diagnosis_
    assert [entry.event.mu for entry in ledger.charges] == pytest.approx([1.0, 0.3])
    assert found.privacy is not None
    assert found.privacy.promise.mu == pytest.approx(0.3)
    assert found.privacy.events.mu == pytest.approx(0.3, rel=1e-9)


def test_the_ledger_says_who_asked_and_what_for(seed: int) -> None:
    """The charge of a diagnosis has the fields of a fit's, and a policy holds for both. Deterministic."""
    rng = np.random.default_rng(seed)
    x, y = data("binomial", rng)
    policy = Policy(analysts=["ann"])
    ledger = MemoryLedger(GDP(2.0), policy=policy)
    asked = ledger.on_behalf(analyst="ann", purpose="validation", source="held-out rows", output="later")
    public = PublicMoments.from_rows(*data("binomial", rng, 400))
    model = DPLogisticRegression(GDP(1.0), public=public, ledger=asked).fit(x, y)
    model.diagnose(x, y, privacy=GDP(0.3))
    fit, diagnosis = (entry.request for entry in ledger.charges)
    assert diagnosis == fit
    assert diagnosis.formula == "y ~ x0 + x1"
    model.set_params(ledger=ledger.on_behalf(analyst="bob", purpose="validation"))
    with pytest.raises(PolicyViolation, match="bob"):
        model.diagnose(x, y, privacy=GDP(0.3))
    assert len(ledger.charges) == 2


def test_the_ledger_names_columns_as_the_fit_does(seed: int) -> None:
    """Not the indicators that come of them. Deterministic."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.uniform(size=ROWS), "k": rng.choice(["u", "v", "w"], ROWS)})
    table["y"] = table.age + (table.k == "v")
    schema = Schema({"age": Numeric(0, 1, missing="indicator"), "k": Categorical(("u", "v", "w")), "y": Numeric(0, 2)})
    ledger = MemoryLedger(GDP(2.0))
    model = DPLinearRegression(GDP(1.0), schema=schema, ledger=ledger).fit_table(table)
    model.diagnose(table, privacy=GDP(0.3))
    assert [entry.request.formula for entry in ledger.charges] == ["y ~ age + k"] * 2


def test_without_public_rows_bins_are_released(seed: int) -> None:
    """A histogram of predictors finds bins of about equal counts. Deterministic."""
    model, x, y = fitted("binomial", seed)
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        found = model.diagnose(x, y, privacy=HUGE)
    assert found.rows.min() > ROWS / 20 / 3
    assert found.rows.max() < ROWS / 20 * 3
    assert found.auc.value == pytest.approx(roc_auc_score(y, mean_of(model, x)), abs=1e-3)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("family", ["binomial", "gaussian"])
def test_columns_of_a_table_may_come_in_any_order(family: str, seed: int, tmp_path: Path) -> None:
    """The spread of predictions, which bins rest on, is that of the model's order; slopes of 1 and 1/1000 tell."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"a": rng.normal(size=ROWS), "b": rng.normal(0, 3000, ROWS), "k": rng.choice(["u", "v"], ROWS)}
    )
    eta = 2 * table.a + 1e-4 * table.b + (table.k == "v")
    table["y"] = rng.random(ROWS) < 1 / (1 + np.exp(-eta)) if family == "binomial" else eta + rng.normal(size=ROWS)
    table["y"] = table.y.astype(float)
    kind = DPLogisticRegression if family == "binomial" else DPLinearRegression
    schema = Schema({"k": Categorical(("u", "v"))})
    model = kind(GDP(1.0), public=table[:300], schema=schema, random_state=seed)
    model.fit_table(table[300:], "y", ["b", "k", "a"])
    model.save(tmp_path / "fit")
    orders = [["b", "k", "a", "y"], ["y", "a", "k", "b"], ["a", "b", "k", "y"]]
    found = [
        each.diagnose(table[300:][order], privacy=GDP(0.5), random_state=seed).encode()
        for order in orders
        for each in (model, dpregress.load(tmp_path / "fit"))
    ]
    assert all(other == found[0] for other in found)


def test_missing_responses_count_nowhere(seed: int) -> None:
    model, x, y = fitted("binomial", seed)
    gaps = np.where(np.arange(ROWS) < ROWS // 2, np.nan, y)
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        found = model.diagnose(x, gaps, privacy=HUGE)
    assert found.n == pytest.approx(ROWS / 2, rel=1e-6)
    assert found.auc.value == pytest.approx(roc_auc_score(y[ROWS // 2 :], mean_of(model, x)[ROWS // 2 :]), abs=2e-3)


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_whatever_was_released_a_paid_fit_is_kept(family: str, seed: int) -> None:
    """Responses of all sizes: before, bounds of deviances could be equal, and the fit was lost after its charge."""
    rng = np.random.default_rng(seed)
    x, y = data(family, rng, 3_000)
    y[rng.random(len(y)) < 0.3] = 1e300
    fit = DPGLMRegressor(ApproxDP(30.0, 1e-6), family=family, row_bound=6.0, random_state=seed)
    fit.fit(x, y, diagnose=0.1, progress=False)
    assert fit.diagnosis_ is not None
    assert math.isfinite(fit.diagnosis_.n)


def test_shortened_rows(seed: int) -> None:
    """The share of rows beyond the radius, at a budget where the radius is not beyond all of them. Deterministic."""
    model, _, _ = fitted("gaussian", seed, GDP(0.05), diagnose=0.1)
    share, error = model.diagnosis_.shortened
    assert 0.01 < share < 0.9
    assert error > 0


def test_nested_models(seed: int) -> None:
    """Without noise the p-values are those of a chi-square; noise only makes them larger."""
    rng = np.random.default_rng(seed)
    x, y = data("binomial", rng)
    public = PublicMoments.from_rows(*data("binomial", rng, 400))
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        larger = DPLogisticRegression(HUGE, public=public).fit(x, y, diagnose=0.1)
        smaller = DPLogisticRegression(HUGE, public=public.select(["x0"])).fit(x[:, :1], y, diagnose=0.1)
    found = larger.likelihood_ratio(smaller)
    assert found.df == 1
    assert found.statistic > 100
    assert found.pvalue < 1e-6
    assert type(found)(4.0, 0.0, 1).pvalue == pytest.approx(0.0455, abs=1e-3)
    assert type(found)(4.0, 1e-3, 1).pvalue == pytest.approx(0.0455, abs=1e-3)
    assert type(found)(4.0, 30.0, 1).pvalue > 0.3
    with pytest.raises(InvalidInput, match="nested"):
        smaller.likelihood_ratio(larger)


def test_saved_with_the_model(seed: int, tmp_path: Path) -> None:
    """Files hold it, reports show it, and what cannot be is refused."""
    model, x, y = fitted("binomial", seed, diagnose=0.1)
    model.save(tmp_path)
    back = dpregress.load(tmp_path)
    assert isinstance(back.diagnosis_, Diagnosis)
    assert back.diagnosis_.auc == model.diagnosis_.auc
    assert back.aic == model.aic
    model.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page.count("<svg") == 4
    assert "AUC" in page
    frame = pd.DataFrame(x, columns=["x0", "x1"]).assign(y=y.astype(int))
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        again = back.diagnose(frame, privacy=HUGE)
    assert again.auc.value == pytest.approx(model.diagnosis_.auc.value, abs=2e-3)
    record = json.loads((tmp_path / "model.json").read_text())
    record["diagnosis"]["n"] = -1
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(InvalidInput, match="diagnosis"):
        dpregress.load(tmp_path)


def test_refusals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = data("binomial", rng)
    public = PublicMoments.from_rows(x[:200])
    ledger = MemoryLedger(GDP(1.0))
    for share in (0.9, -0.1, "2%", True, math.nan):
        with pytest.raises(InvalidInput, match="diagnose="):
            DPLogisticRegression(GDP(1.0), public=public, ledger=ledger).fit(x, y, diagnose=share)
    with pytest.raises(NotAvailable, match="two classes"):
        DPLogisticRegression(GDP(1.0), public=public, classes=(0, 1, 2), ledger=ledger).fit(x, y, diagnose=0.1)
    with pytest.raises(InvalidInput, match="device"):
        LocalGLM(ApproxDP(1.0, 1e-6), public=public).fit(x, y, diagnose=0.1)
    labelled = PublicMoments.from_rows(x[:200], y[:200])
    with pytest.raises(NotAvailable, match="paper"):
        DPLinearRegression(GDP(1.0), public=labelled, recipe="paper", ledger=ledger).fit(x, y, diagnose=0.1)
    assert not ledger.charges
    model, x, y = fitted("gaussian", seed)
    with pytest.raises(NotAvailable, match="diagnose"):
        _ = model.aic
    with pytest.raises(InvalidInput, match="columns"):
        model.diagnose(x[:, :1], y, privacy=GDP(1.0))


def test_a_table_without_rows_is_refused_before_the_charge(seed: int) -> None:
    """No seed can break it."""
    model, x, y = fitted("gaussian", seed)
    model.set_params(ledger=MemoryLedger(GDP(1.0)))
    found = model.coefficients_
    table = pd.DataFrame(x, columns=list(found.features)).assign(**{found.target: y})
    with pytest.raises(InvalidInput, match="the table has no rows: nothing can be diagnosed"):
        model.diagnose(table.iloc[:0], privacy=GDP(0.1))
    assert not model.ledger.charges


def test_command_line(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(seed)
    x, y = data("binomial", rng, 3_000)
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(y=np.where(y > 0, "yes", "no"))
    frame[:300].to_csv(tmp_path / "public.csv", index=False)
    frame[300:].to_csv(tmp_path / "rows.csv", index=False)
    done = run(
        capsys, "fit", tmp_path / "rows.csv", "--target", "y", "--classes", "no,yes", "--family", "binomial",
        "--public", tmp_path / "public.csv", "--epsilon", 5, "--delta", 1e-6, "--diagnose", 0.2, "--seed", seed,
        "--out", tmp_path / "model",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "AUC" in done.out
    diagnose = (
        "diagnose", tmp_path / "model", tmp_path / "rows.csv", "--epsilon", 5, "--delta", 1e-6, "--seed", seed,
        "--out", tmp_path / "later",
    )  # fmt: skip
    done = run(capsys, *diagnose, "--dry-run")
    assert done.code == 0, done.err
    assert "nothing was charged or written" in done.out
    assert "diagnosis of y: y ~ a + b" in done.out
    assert not (tmp_path / "later").exists()
    done = run(capsys, *diagnose)
    assert done.code == 0, done.err
    assert "The spending is not recorded" in done.out
    found = Diagnosis.decode(json.loads((tmp_path / "later" / "diagnosis.json").read_text()))
    assert 0.6 < found.auc.value < 1
    assert "Calibration" in (tmp_path / "later" / "diagnosis.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult", "bank", "bike", "visitspois"])
def test_real_tables(name: str, seed: int) -> None:
    """Each of some forty numbers is within eight of its own standard errors: a normal one fails once in 1e15.

    Clips and bins bias the numbers by less than one or two standard errors at this budget.
    """
    from benchmarks.diagnosis import measured
    from benchmarks.tables import ENTRIES

    entry = ENTRIES[name]
    if isinstance(entry.source, str):
        data_file(entry.source)
    else:
        try:
            import statsmodels  # noqa: F401
        except ImportError:
            missing("statsmodels")
    found = measured(entry, 1.0, 0.02, True, seed % 1000)
    ratio = found["difference"].abs() / found["error"]
    assert ratio.max() < 8, found[ratio == ratio.max()]
    assert ratio.median() < 2


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_predictions_are_diagnosed_before_they_are_limited(seed: int) -> None:
    """Zeros and ones by a linear model: many predictors lie beyond the bounds, and residuals are about these.

    The deviance is that of the predictor, 2% of the response's variance more than of predictions within bounds; its
    stated error is .001.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(100_000, 2))
    y = (x @ [2.0, 1.0] + rng.normal(size=len(x)) > 0).astype(float)
    schema = Schema({"x0": Numeric(-6, 6), "x1": Numeric(-6, 6), "y": Numeric(0, 1)})
    model = DPLinearRegression(GDP(5.0), schema=schema, public=PublicMoments.from_rows(x[:400]), random_state=seed)
    model.fit(x, y, diagnose=0.3)
    predictor = x @ model.coef_ + model.intercept_
    assert model.predict(x).min() == 0
    assert model.diagnosis_.predicted[0] < 0
    explained = model.diagnosis_.explained
    assert abs(explained.value - (1 - np.mean((y - predictor) ** 2) / y.var())) < 6 * explained.error
    assert explained.value < model.score(x, y) - 0.02

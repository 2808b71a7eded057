"""Reports of fitted models: what they say of the fit, and how they look on a phone, in the dark and on paper."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpregress import (
    ApproxDP,
    Categorical,
    DPLinearRegression,
    DPPoissonRegressor,
    LocalGLM,
    MemoryLedger,
    Numeric,
    PublicMoments,
    Schema,
    SQLiteLedger,
    VerticalRegression,
)
from dpregress.releases.model_files import ResponseModel
from dpregress.reports.forest import forest
from dpregress.reports.page import ratio_name
from tests.support import tool

BUDGET = ApproxDP(1.0, 1e-6)
#: Noise is fresh in every run: with this budget devices and parties identify every coefficient by far.
AMPLE = ApproxDP(8.0, 1e-6)
SCHEMA = Schema(
    {
        "age": Numeric(18, 80),
        "plan": Categorical(("free", "basic", "full")),
        "years": Numeric(0, 3),
        "claims": Numeric(0, 30),
    }
)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    age, plan, years = rng.uniform(18, 80, 20_000), rng.integers(0, 3, 20_000), rng.uniform(0.5, 2, 20_000)
    claims = rng.poisson(years * np.exp(-2 + 0.02 * age + 0.5 * (plan == 2))).astype(float)
    levels = np.array(["free", "basic", "full"])[plan]
    return pa.table({"age": age, "plan": levels, "years": years, "claims": claims})


@pytest.fixture(scope="module")
def pages(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A report of every kind of model."""
    folder = tmp_path_factory.mktemp("reports")
    ledger = SQLiteLedger.create(folder / "study.db", "claims", ApproxDP(3.0, 1e-6))
    counts = DPPoissonRegressor(BUDGET, schema=SCHEMA, formula="claims ~ age + C(plan)", ledger=ledger)
    linear = DPLinearRegression(BUDGET, schema=SCHEMA)
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(50_000, 3))
    binary = (rng.random(50_000) < 1 / (1 + np.exp(-x @ [1.0, -1.0, 0.5]))).astype(float)
    sides = {"clinic": x[:, :1], "lab": x[:, 1:]}
    ledgers = {name: MemoryLedger(AMPLE) for name in sides}
    models: dict[str, Any] = {
        "counts": counts.fit_table(table, exposure="years"),
        "linear": linear.fit_table(table, "claims", ["age", "plan"]),
        "local": LocalGLM(AMPLE, public=PublicMoments.from_rows(x[:500])).fit(x[500:], binary[500:]),
        "vertical": VerticalRegression(AMPLE, ledger=ledgers).fit(sides, x @ [0.5, -0.3, 0.1]),
    }
    found = {}
    for name, model in models.items():
        model.report(folder / f"{name}.html")
        found[name] = (folder / f"{name}.html").read_text(encoding="utf-8")
    return found


def facts(page: str) -> dict[str, str]:
    return {name: html.unescape(text) for name, text in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page)}


def test_facts_of_a_fit(pages: dict[str, str]) -> None:
    found = facts(pages["counts"])
    assert found["Family"] == "poisson, log link"
    assert found["Formula"] == "claims ~ age + C(plan)"
    assert found["Exposure"] == "years"
    assert found["Reference levels"] == "plan: free"
    assert found["Source"] == "a Table in memory"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", found["Fitted"])
    assert found["Ledger"].startswith("claims: epsilon = 3")
    assert "epsilon = 1 at delta = 1e-06 spent" in found["Ledger"]
    assert facts(pages["linear"])["Reference levels"] == "plan: free"
    assert "not recorded" in facts(pages["linear"])["Ledger"]


def test_fits_of_several_parties_and_of_users_have_reports(pages: dict[str, str]) -> None:
    assert facts(pages["vertical"])["Source"] == "the tables of clinic, lab"
    assert pages["vertical"].count("<dt>Ledger</dt>") == 2
    assert "user, whose own device adds the noise" in pages["local"]
    for name in ("vertical", "local"):
        assert '<svg class="forest"' in pages[name]


@pytest.mark.parametrize(("name", "ratio"), [("counts", "Rate ratios"), ("local", "Odds ratios"), ("linear", None)])
def test_ratios_go_with_links_that_have_them(pages: dict[str, str], name: str, ratio: str | None) -> None:
    assert (ratio in pages[name]) if ratio else "ratios</h3>" not in pages[name]


def test_ratios_are_those_of_the_table(pages: dict[str, str]) -> None:
    coef = re.search(r'<th scope="row">age</th><td data-label="coef">(.*?)</td>', pages["counts"])
    ratio = re.search(r'<th scope="row">age</th><td data-label="rate ratio">(.*?)</td>', pages["counts"])
    assert coef is not None
    assert ratio is not None
    assert float(ratio[1]) == pytest.approx(np.exp(float(coef[1])), rel=1e-3)


def test_several_classes_have_no_ratios() -> None:
    assert ratio_name(ResponseModel("multinomial", "logit", ("a", "b", "c"))) == ""
    assert ratio_name(ResponseModel("gamma", "log")) == "ratio of means"
    assert ratio_name(ResponseModel("binomial", "probit", ("0", "1"))) == ""


def test_every_picture_has_a_text(pages: dict[str, str]) -> None:
    for page in pages.values():
        for picture in re.findall(r"<svg.*?>", page):
            assert 'role="img"' in picture
        assert page.count("<svg") == page.count("<desc")


def test_coefficients_are_compared_per_standard_deviation() -> None:
    """Two columns with the same effect of one standard deviation are drawn at the same place, whatever their units."""
    plot = forest(
        ("metres", "kilometres"),
        [(0.5, 0.4, 0.6), (500.0, 400.0, 600.0)],
        bars="95% intervals",
        deviation=np.array([2.0, 0.002]),
    )
    one, other = plot.rows
    assert (one.low, one.at, one.high) == (other.low, other.at, other.high)
    assert one.label != other.label
    assert 50 < one.low < one.at < one.high <= 98


@pytest.mark.parametrize("reach", [1e-12, 3e-4, 0.7, 1.0, 6.0, 9.9, 1e9])
@pytest.mark.parametrize("ratio", ["", "odds ratio"])
def test_ticks_are_inside_the_plot(reach: float, ratio: str) -> None:
    plot = forest(("a", "b"), [(reach, reach / 2, np.inf), (-reach, np.nan, np.nan)], bars="", ratio=ratio)
    assert any(tick.none for tick in plot.ticks)
    for tick in plot.ticks:
        assert 0 <= tick.at <= 100
    for row in plot.rows:
        assert 0 <= row.low <= row.at <= row.high <= 100


def test_tables_for_documents(pages: dict[str, str]) -> None:
    page = pages["counts"]
    assert r"\begin{tabular}" in page
    assert "border-top:1.5pt solid" in page  # a word processor keeps styles of cells, and no style sheet


def test_no_column_is_cut_on_a_phone(pages: dict[str, str], tmp_path: Path) -> None:
    """In a frame 390 pixels wide, no page is wider than the frame; dark and paper have colours of their own."""
    for name, page in pages.items():
        assert "prefers-color-scheme: dark" in page
        assert "@media print" in page
        assert 'name="viewport"' in page
        frame = f'<iframe id="f" width="390" height="800" style="border:0" srcdoc="{html.escape(page)}"></iframe>'
        script = "onload=()=>{const d=document.getElementById('f').contentDocument.documentElement;"
        script += "document.title='wide '+d.scrollWidth+' of '+d.clientWidth}"
        file = tmp_path / f"{name}.html"
        file.write_text(f"<!doctype html><meta charset=utf-8>{frame}<script>{script}</script>", encoding="utf-8")
        command = [tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
        command += ["--disable-background-networking", "--disable-component-update", "--virtual-time-budget=3000"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", file.as_uri()]
        shown = subprocess.run(command, check=True, capture_output=True, timeout=120, text=True).stdout
        wide = re.search(r"<title>wide (\d+) of (\d+)</title>", shown)
        assert wide, "the page was not measured"
        assert int(wide[1]) <= int(wide[2]), f"{name} is {wide[1]} pixels wide"

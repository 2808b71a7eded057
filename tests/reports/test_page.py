"""The report: self-contained, escaped, and readable by a browser."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dpregress import GDP, ApproxDP, MemoryLedger, PrivacyStatement, PureDP
from dpregress.accounting import Event, compose_statements, gaussian_promise
from dpregress.errors import InvalidInput
from dpregress.estimators.summary import summary_of
from dpregress.releases import Coefficients
from dpregress.reports import Fitted, fit_page, words
from tests.support import tool


def statement(budget: Event) -> PrivacyStatement:
    promise = gaussian_promise(budget)
    reservation = MemoryLedger(promise).reserve(promise)
    reservation.draw(promise)
    return PrivacyStatement(
        budget=budget,
        promise=promise,
        events=reservation.drawn,
        relation=reservation.relation,
        unit="record",
        assumed_public=("the number of private records",),
        seeded=False,
        recorded=None,
    )


def page(name: str = "age", error: float = 0.5) -> str:
    found = Coefficients(
        (name, "zero"), np.array([2.0, 0.0]), 1.0, "y", 100, np.array([0.4, 0.0]), np.array([error, 0]), np.zeros(2)
    )
    privacy = statement(ApproxDP(1, 1e-6))
    summary = summary_of("Model", found, privacy)
    return fit_page("A <fit>", [Fitted("Coefficients", found, privacy, summary)], software="dpregress")


def test_page_is_self_contained_and_escaped() -> None:
    text = page("<script>alert(1)</script>")
    assert "<script" not in text
    assert "A &lt;fit&gt;" in text
    seen: list[str] = []

    class Outside(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.extend(f"{tag} {key}" for key, value in attrs if key in {"src", "href"} and (value or "")[:1] != "#")

    Outside().feed(text)
    # links inside a drawing to other pages would be drawn by nobody, but must not be there
    assert seen == []


def test_fits_on_one_page_are_promised_together() -> None:
    one = statement(GDP(0.6))
    both = compose_statements([one, statement(GDP(0.8))])
    assert both.mu == pytest.approx(1.0)
    assert len(both.events.parts) == 2
    assert compose_statements([one]) is one
    with pytest.raises(InvalidInput, match="different units"):
        compose_statements([one, replace(one, unit="person")])


def test_a_report_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it is an error
    assert '<svg class="forest"' in page()


def test_unknown_errors_do_not_break_the_page() -> None:
    assert "not known" in page(error=float("nan"))


@pytest.mark.parametrize("budget", [ApproxDP(1, 1e-6), GDP(0.5)])
def test_words_state_the_guarantee(budget: Event) -> None:
    said = " ".join(words.guarantee(statement(budget)))
    assert "any one record" in said
    assert "mu is k times as large" in said
    assert "not recorded" in said


def test_power_of_the_strongest_test() -> None:
    assert "5.1% of the time" in words.attacker(GDP(1e-9))  # "at most": rounded up
    assert "99.1%" in words.attacker(GDP(4.0))  # Phi(-1.645 + 4) = .9908
    assert "98.3%" in words.attacker(PureDP(4.0))  # 1 - .95 e^-4 = .98260
    assert "13.6%" in words.attacker(PureDP(1.0))  # .05 e = .1359


def test_a_pure_guarantee_keeps_its_epsilon() -> None:
    """A user's report of epsilon 4 is told as epsilon 4, not as that of the mu which covers it."""
    unit, price = "user, whose own device adds the noise (local model)", PureDP(4.0)
    local = replace(statement(GDP(1.0)), budget=price, promise=price, unit=unit)
    said = " ".join(words.guarantee(local))
    assert "any one user had been replaced" in said
    assert (
        "one user, whose own device adds the noise (local model). For a person who answers k times, epsilon is" in said
    )
    assert [round(epsilon, 3) for _, _, epsilon in words.group_rows(local)] == [4, 8, 12, 20]


def test_group_rows_are_k_mu() -> None:
    rows = words.group_rows(statement(GDP(0.5)))
    assert [(k, mu) for k, mu, _ in rows] == [(1, 0.5), (2, 1.0), (3, 1.5), (5, 2.5)]


def test_a_browser_draws_it(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page(), encoding="utf-8")
    command = [tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={tmp_path / 'page.png'}"]
    command += [(tmp_path / "report.html").as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert (tmp_path / "page.png").stat().st_size > 10_000

"""The tables about local messages hold the library's own numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpregress.accounting import GDP, ApproxDP, PureDP
from dpregress.accounting.shuffle import shuffled_epsilon
from dpregress.mechanisms import UnitVector

DOCS = Path(__file__).parents[2] / "docs"


def row(page: str, label: str) -> list[str]:
    """The cells of the table row with this label."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(label)} \| (.*) \|$", text, flags=re.MULTILINE)
    assert found, f"docs/{page} has no row {label!r}"
    return found.group(1).split(" | ")


def test_variances_of_messages() -> None:
    unit = [f"{1 / UnitVector(PureDP(epsilon)).cap(10).gain ** 2 / 10:.2f}" for epsilon in (0.5, 1.0, 2.0, 5.0)]
    assert row("mechanisms.md", "unit vector") == unit
    gaussian = [f"{4 / ApproxDP(epsilon, 1e-6).gaussian_mu ** 2:.1f}" for epsilon in (0.5, 1.0, 2.0, 5.0)]
    assert row("mechanisms.md", "Gaussian, delta 1e-6") == gaussian


@pytest.mark.slow
def test_shuffled_epsilons() -> None:
    for label, message in (
        ("unit vectors, epsilon = 1", PureDP(1.0)),
        ("Gaussian, (1, 1e-6)", GDP(ApproxDP(1.0, 1e-6).gaussian_mu)),
    ):
        found = [f"{shuffled_epsilon(message, n, 1e-6, entries=20):.4f}" for n in (10**4, 10**5, 10**6)]
        assert row("privacy/local-messages.md", label) == found

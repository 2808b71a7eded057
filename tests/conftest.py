"""One seed for all tests, the same in every run unless told otherwise; ``make test-nightly`` tells fresh ones.

``make test`` draws nothing fresh: the seed is fixed, Hypothesis derives its examples from the tests themselves, and
tests of the operating system's noise, which takes no seed, are nightly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

_VARIABLE = "DPREGRESS_TEST_SEED"
#: The day on which it was fixed, not one chosen among others.
_DEFAULT = 20261122
_SEED = int(os.environ.get(_VARIABLE) or _DEFAULT)  # workers of pytest-xdist inherit the environment

settings.register_profile("fixed", derandomize=True)
settings.register_profile("fresh", derandomize=False, print_blob=True)  # --hypothesis-profile=fresh
settings.load_profile("fixed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what another seed makes another test: ``make test-nightly`` repeats it."""
    for item in items:
        if "seed" in getattr(item, "fixturenames", ()) or item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.seeded)


def _line() -> str:
    return f"seed of this run: {_SEED} (repeat it with {_VARIABLE}={_SEED})"


def pytest_report_header() -> str:
    return _line()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Repeat the seed below the failures: with ``-q`` there is no header."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(_line())


@pytest.fixture
def seed() -> int:
    """The seed of this run: tests make their generators from it and must pass whatever it is."""
    return _SEED


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """A client of two worker processes on this machine, for the tests that harm none of them."""
    from dpregress.rows.dask_cluster import LOCAL, connected

    with connected(LOCAL, 2) as client:
        yield client

"""One fresh seed a run, so that every run tests other random data; a failure says how to repeat it."""

from __future__ import annotations

import os

import pytest

_VARIABLE = "DPREGRESS_TEST_SEED"
_SEED = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", {}).get(_VARIABLE) or os.environ.get(_VARIABLE)
    config.stash[_SEED] = int(given) if given else int.from_bytes(os.urandom(4), "big")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Hand the seed of the run to the workers of pytest-xdist."""
    node.workerinput[_VARIABLE] = node.config.stash[_SEED]  # type: ignore[attr-defined]


def _line(config: pytest.Config) -> str:
    return f"seed of this run: {config.stash[_SEED]} (repeat it with {_VARIABLE}={config.stash[_SEED]})"


def pytest_report_header(config: pytest.Config) -> str:
    return _line(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Repeat the seed below the failures: with ``-q`` there is no header."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(_line(config))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run: tests make their generators from it and must pass whatever it is."""
    return request.config.stash[_SEED]

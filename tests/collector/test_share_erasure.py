"""What a real Chromium keeps of two shares: nothing before they are sent, nothing once they are refused or erased."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpregress.collector.rehearsal import serving
from dpregress.collector.server.app import Settings
from dpregress.collector.store import Outcome, open_store
from tests.collector.support import ADMIN_KEY
from tests.collector.test_browser_pages import Watched, link, play
from tests.collector.test_two_cli import free_addresses
from tests.collector.two import HOLDERS, two_study

pytestmark = pytest.mark.slow  # a browser starts for each scene


@contextmanager
def refusing(
    folder: Path, seed: int, refusals: tuple[Outcome | None, Outcome | None]
) -> Iterator[tuple[str, list[Watched]]]:
    """A link to a study of two collectors, each of which refuses the first share with its refusal."""
    holders = [replace(each, address=address) for each, address in zip(HOLDERS, free_addresses(), strict=True)]
    study = replace(two_study(folder, seed), holders=tuple(holders))
    ports = [int(each.address.rpartition(":")[2]) for each in holders]
    with ExitStack() as opened:
        collectors = []
        for place, refusal in enumerate(refusals):
            where = folder / f"{place}.db"
            open_store(where, study, place).close()
            made = Watched(study, partial(open_store, where), Settings(ADMIN_KEY, holder=place))
            made.refusal, made.wait = refusal, 30.0
            collectors.append(made)
            opened.enter_context(serving(made, ports[place]))
        yield link(ports[0], study), collectors


def check_erased(seen: dict[str, Any], says: str, arrived: list[bool], ended: str) -> None:
    """Nothing is kept, shown or offered but the mark, now and after a reload; addresses of blobs lead nowhere."""
    for when in ("now", "later"):
        assert says in seen[when]["text"]
        assert seen[when]["offered"] == []
        mark = {"shares": [None, None], "arrived": arrived, "ended": ended}
        assert seen[when]["kept"] == {"databases": ["dpregress"], "reports": [mark], "rest": '[[],[],""]'}
    assert (seen["hrefs"], seen["dead"], seen["focus"]) == (0, [True, True], "review")


@pytest.mark.parametrize(
    ("refusals", "says", "arrived", "why"),
    [
        (
            (Outcome(403, "unknown-token"), Outcome(403, "unknown-token")),
            "refused for good",
            [False, False],
            "know this",
        ),
        ((None, Outcome(409, "changed-report")), "one collector has its share", [True, False], "with other content"),
        pytest.param(
            (None, Outcome(403, "late")),
            "one collector has its share",
            [True, False],
            "study is closed",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            (Outcome(404, "wrong-study"), None),
            "one collector has its share",
            [False, True],
            "another study",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_shares_refused_for_good_are_erased(
    tmp_path: Path, seed: int, refusals: tuple[Outcome | None, Outcome | None], says: str, arrived: list[bool], why: str
) -> None:
    """Nothing is kept before the participant sends; what a collector refuses for good is erased, and not made again."""
    with refusing(tmp_path, seed, refusals) as (address, collectors):
        seen = play("refusedShares", link=address, says="not be counted", size="phone")
        assert [len(each.bodies) for each in collectors] == [1, 1]
    assert seen["keptUnsent"]["reports"] == []
    assert "Nothing is kept" in seen["textUnsent"]
    assert (seen["eraseUnsent"], seen["formAgain"]) == (False, True)
    assert why in seen["outcome"]
    check_erased(seen, says, arrived, "refused")


@pytest.mark.parametrize("refusal", [Outcome(403, "early"), Outcome(503, "busy")])
def test_a_participant_erases_what_the_browser_keeps(tmp_path: Path, seed: int, refusal: Outcome) -> None:
    """With the keyboard, after a refusal that is not for good or while the page waits to send again."""
    with refusing(tmp_path, seed, (None, refusal)) as (address, collectors):
        seen = play("eraseShares", link=address, size="phone")
        assert [len(each.bodies) for each in collectors] == [1, 1]
    (kept,) = seen["keptSent"]["reports"]
    assert [share is None for share in kept["shares"]] == [True, False]
    check_erased(seen, "has erased", [True, False], "erased")
    assert seen["outcome"] == "clinic: received."


def test_two_tabs_send_two_shares(tmp_path: Path, seed: int) -> None:
    """Each tab splits the answers; those of the tab that sends first count, and each collector hears of no others."""
    with refusing(tmp_path, seed, (None, None)) as (address, collectors):
        seen = play("shareTabs", link=address)
        assert [len(set(each.bodies)) for each in collectors] == [1, 1]
    assert [each["arrived"] for each in seen["keptAfter"]["reports"]] == [[True, True]]

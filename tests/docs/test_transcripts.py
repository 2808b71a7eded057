"""What a page says that a command prints is what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.transcripts import PAGES, rendered


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_transcripts_are_up_to_date(page: Path) -> None:
    """``python -m tests.docs.transcripts`` refreshes them."""
    text = page.read_text(encoding="utf-8")
    assert rendered(text) == text

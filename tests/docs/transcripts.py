"""Transcripts on documentation pages: what the commands print, by running them.

``python -m tests.docs.transcripts`` writes the output below every ``$ dpregress ..`` line of the pages anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from dpregress.accounting import ledger, sqlite_ledger
from dpregress.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "privacy" / "ledger.md",)
_BLOCK = re.compile(r"(?<=^```\n)\$ .*?(?=^```$)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ dpregress (?:.*\\\n)*.*\n", re.MULTILINE)


@contextlib.contextmanager
def example_tables() -> Iterator[None]:
    """A folder with the tables of the command-line page, made the current one; the clock stands still."""
    setup = re.search(r"```python\n(.*?)```", (DOCS / "command-line.md").read_text(encoding="utf-8"), re.DOTALL)
    assert setup is not None
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.ExitStack() as patches:
        for module in (ledger, sqlite_ledger):
            patches.enter_context(patch.object(module, "now", lambda: "2026-11-22T09:00:00+00:00"))
        patches.enter_context(patch.dict(os.environ, {"COLUMNS": "124"}))
        exec(compile(setup.group(1), "command-line.md", "exec"), {})
        yield


def printed(command: str) -> str:
    """What one command prints; nothing where it is sent to a file."""
    _, *arguments = shlex.split(command.removeprefix("$ ").replace("\\\n", " "))
    hidden = arguments[-2:-1] == [">"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main(arguments[:-2] if hidden else arguments)
    return "" if hidden else "".join(f"{line.rstrip()}\n" for line in said.getvalue().splitlines())


def rendered(text: str) -> str:
    """A page with the output of its commands."""

    def run(block: re.Match[str]) -> str:
        return "".join(found.group() + printed(found.group()) for found in _COMMAND.finditer(block.group()))

    with example_tables():
        return _BLOCK.sub(run, text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")

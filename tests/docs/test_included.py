"""The code that pages include is the code of the package, and the tables of pages are those of the package."""

from __future__ import annotations

import re

import pytest

from dpregress.models import FAMILIES
from tests.docs.included import DIRECTIVE, PAGES, ROOT, refreshed, source_of

INCLUDING = [page for page in PAGES if "<!-- source:" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", INCLUDING, ids=lambda page: page.stem)
def test_included_code_is_that_of_the_package(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- source:") == len(DIRECTIVE.findall(text)), "a directive is misspelt"
    assert refreshed(text) == text, "run python -m tests.docs.included"


def test_every_page_of_extending_includes_code() -> None:
    pages = {page for page in PAGES if page.parent.name == "extending"}
    assert len(pages) == 6
    assert {page for page in pages if page.stem != "index"} <= set(INCLUDING)


def test_a_page_that_lags_behind_is_found() -> None:
    """The test itself works."""
    page = "# Title\n\n<!-- source: dpregress/models/links.py:IdentityLink -->\n```python\nold\n```\nMore.\n"
    new = refreshed(page)
    assert source_of("dpregress/models/links.py", "IdentityLink") in new
    assert "old" not in new
    assert new.endswith("```\nMore.\n")
    assert refreshed(new) == new
    with pytest.raises(LookupError, match="Nothing"):
        refreshed("<!-- source: dpregress/models/links.py:Nothing -->\n")


def test_the_table_of_families_is_that_of_the_package() -> None:
    """docs/queries.md has every family with its links, the default first, and says whose dispersion is 1."""
    text = (ROOT / "docs" / "queries.md").read_text(encoding="utf-8").split("\n## Families")[1]
    rows = re.findall(r"^\| ([\w-]+) \| [^|]+ \| ([\w, ]+) \| (\w+) \|$", text, flags=re.MULTILINE)
    listed = {name: (links.split(", "), dispersion) for name, links, dispersion in rows if name != "distribution"}
    assert listed == {
        name: (
            [family.link.name for family in offered],
            "1" if offered[0].distribution.fixed_dispersion else "estimated",
        )
        for name, offered in FAMILIES.items()
    }

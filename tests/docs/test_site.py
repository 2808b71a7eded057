"""The site: its navigation, its generated pages, its tutorials, and the README of the package index."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scipy.special import ndtr
from website import hooks, tutorials

import dpregress
from dpregress.accounting import GDP
from tests.docs.test_docs import COMMANDS, DOCS, PAGES, ROOT


def paths(nav: Any) -> list[str]:
    """Every page of a navigation."""
    if isinstance(nav, str):
        return [nav]
    return [path for part in (nav.values() if isinstance(nav, dict) else nav) for path in paths(part)]


def test_every_page_is_in_the_navigation_once() -> None:
    found = paths(hooks.navigation((DOCS / "index.md").read_text(encoding="utf-8")))
    assert len(set(found)) == len(found)
    assert {page.relative_to(DOCS).as_posix() for page in PAGES} <= set(found)


def test_a_new_page_enters_the_navigation_by_a_line_of_the_index() -> None:
    nav = hooks.navigation(
        "# Title\n\n**New**\n\n- [a page](new/page.md#part): and [another](other.md), [home](index.md)\n"
    )
    assert nav[1]["New"][:2] == [{"A page": "new/page.md"}, {"Another": "other.md"}]


def test_every_public_name_has_a_page_and_every_estimator_says_when_to_prefer_it() -> None:
    pages = hooks.python_reference()
    assert {Path(path).stem for path in pages} == set(dpregress.__all__) - {"__version__"}
    for path, text in pages.items():
        if Path(path).stem.startswith("DP") or Path(path).stem.endswith(("Regression", "GLM")):
            assert "**When to prefer it:**" in text, f"docs/api.md does not say when to prefer {Path(path).stem}"


def test_every_command_is_on_the_generated_page() -> None:
    text = hooks.command_reference()
    for name, command in COMMANDS.items():
        assert f"## `{name}`\n" in text
        for parameter in command.params:
            assert all(option in text for option in parameter.opts if option.startswith("-"))


def test_the_plots_of_the_papers_are_drawn_from_the_kept_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mark of the page is a picture that is made; one of them is drawn here."""
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    kept = hooks.read_summaries(hooks._KEPT)
    assert set(hooks._PLOT.findall(text)) == set(kept)
    monkeypatch.setattr(hooks, "read_summaries", lambda _: {"wu-3": kept["wu-3"]})
    assert hooks.plots()["reproduction/wu-3.svg"].startswith(b"<?xml")
    assert "![small eigenvalues and large distances](reproduction/wu-3.svg)" in hooks.with_plots("<!-- plot: wu-3 -->")


def test_a_parameter_that_another_class_describes_links_to_it() -> None:
    text = "As in <code>DPRidge</code>. As in <code>Nobody</code>."
    linked = 'As in <a href="../DPRidge/"><code>DPRidge</code></a>. As in <code>Nobody</code>.'
    assert hooks._linked(text) == linked


def test_a_data_frame_has_no_empty_line_above_it() -> None:
    style = "<style scoped>\n  th { }\n\n  td { }\n</style>\n"
    markup = f'<div>\n{style}<table border="1" class="dataframe">\n</table>\n</div>'
    assert tutorials._one_block(markup) == "<div>\n<table>\n</table>\n</div>"


def test_links_out_of_the_site_become_text() -> None:
    text = "[in](api.md) [out](../README.md) [there](https://host/) [part](#part)"
    assert hooks.inside(text, DOCS) == "[in](api.md) out [there](https://host/) [part](#part)"


def test_the_readme_of_a_package_index_has_no_link_that_leads_nowhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "README.md").read_text(encoding="utf-8") + "\n![a picture](docs/assets/idea.svg)\n"
    for rule in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert not [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert "a picture" not in text
    assert "proof" in text


def test_the_page_for_officers_has_the_numbers_of_the_library() -> None:
    text = (DOCS / "privacy" / "promise.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+)[^|]*\| ([\d.]+) \|$", text, flags=re.MULTILINE)
    assert len(rows) == 5
    for epsilon, power in rows:
        mus = [mu for mu in (0.2367, 0.5, 1.0, 2.0) if f"{GDP(mu).epsilon(1e-6):.2f}" == epsilon]
        mu = mus[0] if float(epsilon) else 0.0
        assert f"{100 * ndtr(mu - 1.6448536269514722):.1f}" == power


@pytest.mark.parametrize("name", ["idea", "promise"])
def test_drawings_take_the_colours_of_the_page(name: str) -> None:
    svg = (DOCS / "assets" / f"{name}.svg").read_text(encoding="utf-8")
    assert "var(--dp-ink," in svg
    assert "prefers-color-scheme: dark" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_a_page_becomes_a_notebook(tmp_path: Path) -> None:
    """Text, cells, commands and hidden checks, in their order."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n```python\n1 + 1\n```\n\n```\ndpregress --version\n```\n\n<!-- check\nassert True\n-->\n",
        encoding="utf-8",
    )
    cells = tutorials.notebook_of(page).cells
    assert [cell.cell_type for cell in cells] == ["code", "markdown", "code", "code", "code"]
    assert cells[3].source == "%%bash -e\ndpregress --version"
    assert cells[4].source == "assert True"
    assert [bool(cell.metadata.get("tags")) for cell in cells] == [True, False, False, False, True]


#: Tutorials that CI runs; `make docs` and the nightly run have all of them.
SHORT = ("statistician", "marginals", "quote-a-summary")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(one, marks=pytest.mark.slow if one.stem in SHORT else pytest.mark.nightly)
        for one in tutorials.SOURCES
    ],
    ids=lambda source: source.stem,
)
def test_tutorials_run(source: Path, tmp_path: Path) -> None:
    """Every cell and every check. The checks hold but with a probability far below 1e-6: each says why."""
    page = tutorials.page_of(tutorials.run(source, tmp_path))
    assert page.startswith("# ")
    assert "dp-output" in page
    assert "<!-- check" not in page


@pytest.mark.slow
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    """In a copy of the checkout, with tutorials that have not been run in place of their results."""
    copied = tmp_path / "copy"
    for name in ("docs", "website", "src", "benchmarks/reproduction"):
        shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "README.md"):
        shutil.copy(ROOT / name, copied / name)
    built = copied / "build" / "tutorials"
    built.mkdir(parents=True)
    for source in tutorials.SOURCES:
        shutil.copy(source, built / source.name)
        for ending in (".ipynb", ".svg"):
            (built / f"{source.stem}{ending}").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": f"{copied}:{copied / 'src'}"}
    done = subprocess.run(command, cwd=copied, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip()
    home = (copied / "build" / "site" / "index.html").read_text(encoding="utf-8")
    assert "<svg" in home
    assert "DPLinearRegression" in home
    for page in (copied / "build" / "site").rglob("*.html"):
        outside = re.findall(r'(?:src|href)="?(?:https?:)?//[^">\s]+', page.read_text(encoding="utf-8"))
        assert not outside, f"{page.name} fetches {outside[:2]}"

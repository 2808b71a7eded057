"""Hooks of MkDocs: the navigation, generated pages, results of tutorials, and pictures in the colours of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website.tutorials import BUILT, DOCS, ROOT, SOURCES

_SECTION = re.compile(r"^\*\*(.+)\*\*$")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")
_NAME = re.compile(r"^\| `(\w+)` \|(.*)\|$")
_PYTHON, _COMMANDS = "reference/python.md", "reference/commands.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation: every page that docs/index.md links to, under its bold headings."""
    config.nav = navigation((DOCS / "index.md").read_text(encoding="utf-8"))
    return config


def navigation(index: str) -> list[dict[str, Any]]:
    """Sections and pages as the index lists them; a page stands where it is linked first."""
    sections: list[dict[str, Any]] = [{"Home": "index.md"}]
    listed = {"index.md"}
    pages: list[dict[str, str]] = []
    for line in index.splitlines():
        heading = _SECTION.match(line)
        if heading:
            pages = []
            sections.append({heading[1]: pages})
        for title, path in _LINK.findall(line):
            if path not in listed and len(sections) > 1:
                listed.add(path)
                pages.append({title[0].upper() + title[1:].replace("\n", " "): path})
    pages += [{"Python reference": _PYTHON}, {"Options of commands": _COMMANDS}]
    return sections


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Pages made from docstrings and from the program, and what the tutorials left behind."""
    files.append(File.generated(config, _PYTHON, content=python_reference()))
    files.append(File.generated(config, _COMMANDS, content=_COMMAND_PAGE))
    for source in SOURCES:
        place = source.relative_to(DOCS).parent
        for name in (f"{source.stem}.ipynb", f"{source.stem}.svg", f"{source.stem}-report.html"):
            if (BUILT / name).is_file():
                files.append(File.generated(config, (place / name).as_posix(), abs_src_path=str(BUILT / name)))
    return files


def python_reference() -> str:
    """A page with the docstring of every public name, in the order and with the descriptions of docs/api.md."""
    parts = ["# Python reference", "This page is made from the docstrings. [Python names](../api.md) is the overview.\n"]
    for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines():
        found = _NAME.match(line)
        if found:
            cells = [cell.strip() for cell in found[2].split(" | ")]
            if len(cells) > 1:
                words = re.sub(r"\]\((?!\w+:)", "](../", cells[1])
                parts.append(f'<p class="dp-prefer" markdown>**`{found[1]}`: when to prefer it.** {words}</p>\n')
            parts.append(f"::: dpregress.{found[1]}\n")
    return "\n".join(parts)


_COMMAND_PAGE = """# Options of commands

This page is made from the program, as `--help` prints it. [Command line](../command-line.md) explains the commands with
examples that can be run in order.

::: mkdocs-click
    :module: dpregress.cli.main
    :command: cli
    :prog_name: dpregress
    :depth: 1
    :style: table
    :list_subcommands: True
"""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Tutorials with their results, the gallery, and the example of the README."""
    source = DOCS / page.file.src_uri
    if source in SOURCES:
        built = BUILT / f"{source.stem}.md"
        if not built.is_file():
            raise PluginError(f"{page.file.src_uri} has not been run: make tutorials")
        title, _, rest = built.read_text(encoding="utf-8").partition("\n")
        links = [f"[Download this page as a notebook]({source.stem}.ipynb)"]
        if (BUILT / f"{source.stem}-report.html").is_file():
            links.append(f"[see the report that it writes]({source.stem}-report.html)")
        return f"{title}\n\n{'; '.join(links)}.\n{rest}"
    markdown = markdown.replace("<!-- gallery -->\n", gallery()).replace("<!-- example -->\n", readme_example())
    return inside(markdown, source.parent)


def inside(markdown: str, folder: Path) -> str:
    """The page without its links to files of the repository that are not in docs/; their texts stay."""

    def kept(found: re.Match[str]) -> str:
        target = found[2].partition("#")[0]
        outside = "://" not in target and DOCS not in (folder / target).resolve().parents
        return found[1] if target and outside else found[0]

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", kept, markdown)


def gallery() -> str:
    """A picture of each tutorial that draws one, with a link to it."""
    cards = []
    for source in SOURCES:
        if (BUILT / f"{source.stem}.svg").is_file():
            title = source.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            place = source.relative_to(DOCS).with_suffix("").as_posix()
            cards.append(f"-   [![{title}]({place}.svg)]({place}.md)\n\n    [{title}]({place}.md)\n")
    return '<div class="grid cards" markdown>\n\n' + "\n".join(cards) + "\n</div>\n"


def readme_example() -> str:
    """The first Python block of the README, so that it stands in one place."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text[text.index("```python") :].partition("\n```\n")[0] + "\n```\n"


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Our own drawings become part of the page, whose colours they take."""

    def inlined(found: re.Match[str]) -> str:
        name = Path(found[2]).name
        svg = (DOCS / "assets" / name).read_text(encoding="utf-8")
        return f'<figure class="dp-drawing" role="img" aria-label="{found[1]}">{svg}</figure>'

    return re.sub(r'<p><img alt="([^"]*)" src="([^"]*assets/[\w-]+\.svg)" ?/?></p>', inlined, html)

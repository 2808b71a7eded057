"""Hooks of MkDocs: the navigation, generated pages, results of tutorials, and pictures in the colours of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from dpregress.cli.main import cli
from dpregress.experiments.catalogue import EXPERIMENTS
from dpregress.experiments.plots import draw
from dpregress.experiments.summaries import read_summaries
from website.tutorials import BUILT, DOCS, ROOT, SOURCES

_SECTION = re.compile(r"^\*\*(.+)\*\*$")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")
#: A role of reStructuredText in a docstring: ``:class:`dpregress.SQLQuery```, perhaps with a tilde.
_ROLE = re.compile(r":(?:class|meth|func|mod|attr):<code>~?([\w.]+)</code>")
#: The type of a parameter that shares its description with others: it is that of the first.
_SHARED = re.compile(r"(</code></b>)\s*\(<code>(?:(?!</li>).)*?\)(?=\s*\u2013\s*<div[^>]*>\s*<p>As in)", re.DOTALL)
#: A parameter that another class describes.
_ELSEWHERE = re.compile(r"\bAs in <code>(\w+)</code>")
#: A page that a docstring names.
_PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
_NAME = re.compile(r"^\| `(\w+)` \|")
_COMMANDS = "reference/commands.md"
#: The kept summaries of the papers' figures, and where a page wants the plot of one.
_KEPT = ROOT / "benchmarks" / "reproduction"
_PLOT = re.compile(r"^<!-- plot: ([\w-]+) -->$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation: every page that docs/index.md links to, under its bold headings."""
    config.nav = navigation((DOCS / "index.md").read_text(encoding="utf-8"))
    return config


def navigation(index: str) -> list[dict[str, Any]]:
    """Sections and pages as the index lists them, each where it is linked first; generated pages come last."""
    sections: list[dict[str, Any]] = [{"Home": "index.md"}]
    listed = {"index.md"}
    pages: list[dict[str, Any]] = []
    for line in index.splitlines():
        heading = _SECTION.match(line)
        if heading:
            pages = []
            sections.append({heading[1]: pages})
        for title, path in _LINK.findall(line):
            if path not in listed and len(sections) > 1:
                listed.add(path)
                pages.append({title[0].upper() + title[1:].replace("\n", " "): path})
    names = [{Path(path).stem: path} for path in python_reference()]
    pages += [{"Help of every command": _COMMANDS}, {"Python reference": names}]
    return sections


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Pages made from docstrings and from the program, and what the tutorials left behind."""
    for path, text in {**python_reference(), _COMMANDS: command_reference()}.items():
        files.append(File.generated(config, path, content=text))
    for source in SOURCES:
        place = source.relative_to(DOCS).parent
        for name in (f"{source.stem}.ipynb", f"{source.stem}.svg", f"{source.stem}-report.html"):
            if (BUILT / name).is_file():
                files.append(File.generated(config, (place / name).as_posix(), abs_src_path=str(BUILT / name)))
    for path, picture in plots().items():
        files.append(File.generated(config, path, content=picture))
    return files


def plots() -> dict[str, bytes]:
    """Paths and contents of the plots of the papers' figures, drawn from the kept summaries."""
    drawn = {}
    for name, summary in read_summaries(_KEPT).items():
        picture = BytesIO()
        draw(EXPERIMENTS[name], summary, picture, "svg")
        drawn[f"reproduction/{name}.svg"] = picture.getvalue()
    return drawn


def python_reference() -> dict[str, str]:
    """Paths and texts of a page for every public name, with its docstring and what docs/api.md says of its use."""
    pages, text = {}, (DOCS / "api.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        found = _NAME.match(line)
        if found:
            use = re.search(rf"^- `{found[1]}`: (.*)$", text, flags=re.MULTILINE)
            parts = [f"# {found[1]}\n", *([f"**When to prefer it:** {use[1]}\n"] if use else [])]
            parts.append(f"::: dpregress.{found[1]}\n")
            pages[f"reference/python/{found[1]}.md"] = "\n".join(parts)
    return pages


def command_reference() -> str:
    """A page with what every command prints for ``--help``."""
    parts = [
        "# Help of every command\n\nThis page is made from the program. [Command line](../command-line.md) explains "
    ]
    parts.append("the commands with examples that can be run in order.\n\n")
    for name, command in commands(cli, "dpregress"):
        context = click.Context(command, info_name=name, terminal_width=88, max_content_width=88)
        parts.append(f"## `{name}`\n\n```text\n{command.get_help(context)}\n```\n\n")
    return "".join(parts)


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command with its subcommands, by what is typed for them."""
    yield name, command
    if isinstance(command, click.Group):
        for each, inner in command.commands.items():
            yield from commands(inner, f"{name} {each}")


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
    markdown = (
        with_plots(markdown).replace("<!-- gallery -->\n", gallery()).replace("<!-- example -->\n", readme_example())
    )
    return inside(markdown, source.parent)


def with_plots(markdown: str) -> str:
    """The page with the plots of the papers' figures at their marks."""
    return _PLOT.sub(lambda found: f"![{EXPERIMENTS[found[1]].title}](reproduction/{found[1]}.svg)", markdown)


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

    if page.file.src_uri.startswith("reference/"):
        html = _ROLE.sub(lambda found: f"<code>{found[1].rpartition('.')[2]}</code>", html)
        html = _linked(_SHARED.sub(r"\1", html))
        html = _PAGE.sub(lambda found: f'<a href="../../../{found[1]}/">{found[1].rpartition("/")[2]}</a>', html)
    return re.sub(r'<p><img alt="([^"]*)" src="([^"]*assets/[\w-]+\.svg)" ?/?></p>', inlined, html)


def _linked(html: str) -> str:
    """The page with a link where a parameter is described with another public name."""
    names = {Path(path).stem for path in python_reference()}

    def link(found: re.Match[str]) -> str:
        return f'As in <a href="../{found[1]}/"><code>{found[1]}</code></a>' if found[1] in names else found[0]

    return _ELSEWHERE.sub(link, html)

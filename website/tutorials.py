"""Tutorials: one Markdown source each, run as a notebook; from the results follow the page, the notebook and a picture.

``python -m website.tutorials [NAME ...]`` runs them in ``build/tutorials``. A fence of ``python`` is a cell, a fence
without a language that begins with ``dpregress`` is typed into a shell, and a comment ``<!-- check ... -->`` holds
Python that must pass and is shown nowhere.
"""

from __future__ import annotations

import html
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jupytext
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = ROOT / "build" / "tutorials"
SOURCES = [
    *sorted((DOCS / "tutorials").glob("*.md")), DOCS / "vertical-walkthrough.md", DOCS / "how-to" / "quote-a-summary.md"
]  # fmt: skip
_SHELL = re.compile(r"^```\n(?=dpregress )", re.MULTILINE)
_CHECK = re.compile(r"^<!-- check\n(.*?)^-->\n", re.MULTILINE | re.DOTALL)
_SECONDS = 600
_BASH = "%%bash -e\n"
#: Colours that can be read on a light and on a dark page.
_SETUP = """
import os
os.environ["COLUMNS"] = "100"
for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):  # set by the kernel
    os.environ.pop(name, None)
%config InlineBackend.figure_formats = ["svg"]
import matplotlib as mpl
grey = "#7d8590"
mpl.rcParams.update({
    "svg.fonttype": "none", "figure.facecolor": "none", "axes.facecolor": "none", "figure.figsize": (7, 3.6),
    "axes.edgecolor": grey, "axes.labelcolor": grey, "text.color": grey, "xtick.color": grey, "ytick.color": grey,
    "legend.frameon": False, "axes.spines.top": False, "axes.spines.right": False,
    "figure.constrained_layout.use": True,
})
"""


def notebook_of(source: Path) -> Any:
    """The notebook of a page, not yet run. Its first cell prepares pictures; it and the checks are tagged."""
    text = source.read_text(encoding="utf-8")
    text = _CHECK.sub(
        lambda found: f'```python tags=["check"]\n{found[1]}```\n', _SHELL.sub(f"```python\n{_BASH}", text)
    )
    notebook = jupytext.reads(text, fmt="md")
    setup = jupytext.reads(f'```python tags=["check"]\n{_SETUP}```\n', fmt="md").cells[0]
    notebook.cells.insert(0, setup)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook


def run(source: Path, folder: Path) -> Any:
    """The notebook of a page with its outputs, run in a folder; a cell or a check that fails raises.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
    """
    notebook = notebook_of(source)
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "MPLCONFIGDIR": str(folder)}
    client = NotebookClient(
        notebook,
        timeout=_SECONDS,
        startup_timeout=_SECONDS,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--log-level=ERROR"],
    )
    client.execute(env=environment)
    notebook.cells = [cell for cell in notebook.cells if "check" not in cell.metadata.get("tags", ())]
    return notebook


def page_of(notebook: Any) -> str:
    """The page in Markdown, with what each cell printed and drew below it."""
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell)) + "\n"


def first_picture(notebook: Any) -> str | None:
    """The first picture that the notebook draws, as SVG."""
    pictures = (_picture(output) for cell in notebook.cells for output in cell.get("outputs", ()))
    return next((picture for picture in pictures if picture), None)


def _parts(cell: Any) -> Iterator[str]:
    if cell.cell_type != "code":
        yield cell.source
        return
    shell, code = cell.source.startswith(_BASH), cell.source.removeprefix(_BASH)
    yield f"```{'bash' if shell else 'python'}\n{code}\n```"
    for output in cell.outputs:
        yield _shown(output)


def _shown(output: Any) -> str:
    picture = _picture(output)
    if picture:
        return f'<div class="dp-output">{picture}</div>'
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="dp-output dp-table">{_one_block(data["text/html"])}</div>'
    text = output.get("text", "") or data.get("text/plain", "")
    return f'<div class="dp-output"><pre><code>{_one_block(html.escape(text.rstrip()))}</code></pre></div>'


def _one_block(markup: str) -> str:
    """HTML without empty lines and without its styles, so that Markdown takes it for one block."""
    markup = re.sub(r"<style.*?</style>\s*", "", markup, flags=re.DOTALL).replace(' border="1" class="dataframe"', "")
    return re.sub(r"\n(?=\n)", "\n&#8203;", markup)


def _picture(output: Any) -> str | None:
    found = output.get("data", {}).get("image/svg+xml")
    if found is None:
        return None
    svg = found[found.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)


def build(sources: Sequence[Path]) -> None:
    """Run the pages and write what follows from them."""
    BUILT.mkdir(parents=True, exist_ok=True)
    for source in sources:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            notebook = run(source, Path(folder))
            report = next(Path(folder).rglob("report.html"), None)
            if report is not None:
                (BUILT / f"{source.stem}-report.html").write_bytes(report.read_bytes())
        (BUILT / f"{source.stem}.md").write_text(page_of(notebook), encoding="utf-8")
        jupytext.write(notebook, BUILT / f"{source.stem}.ipynb", fmt="ipynb")
        picture = first_picture(notebook)
        if picture is not None:
            (BUILT / f"{source.stem}.svg").write_text(picture, encoding="utf-8")
        print(f"{source.stem}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    asked = sys.argv[1:]
    build([source for source in SOURCES if not asked or source.stem in asked])

"""The documentation names everything there is, its links lead somewhere, and its examples run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import ndtr

import dpregress
from dpregress.accounting import GDP, Event, Ledger
from dpregress.cli.main import cli
from dpregress.estimators.fit_statistics import FitStatistics
from dpregress.estimators.inferential import InferenceMixin
from dpregress.mechanisms import Mechanism, Sampler
from dpregress.queries import Query
from dpregress.solvers import Solver
from dpregress.trust import TrustModel
from tests.laws.test_registry import concrete
from tests.support import run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of one language; console text has none."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [block for found, block in fenced if found == language]


# ---------------------------------------------------------------- everything is named


@pytest.mark.parametrize("name", dpregress.__all__)
def test_every_exported_name_is_on_its_page(name: str) -> None:
    assert f"`{name}`" in (DOCS / "api.md").read_text(encoding="utf-8")


def test_no_page_lists_a_name_that_is_not_exported() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(listed) <= set(dpregress.__all__)


@pytest.mark.parametrize(
    "name", [name for kind in (InferenceMixin, FitStatistics) for name in vars(kind) if not name.startswith("_")]
)
def test_every_name_of_inference_is_on_its_page(name: str) -> None:
    assert re.search(rf"`{name}\b", (DOCS / "inference.md").read_text(encoding="utf-8"))


def commands(group: click.Command, path: tuple[str, ...] = ("dpregress",)) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by what is typed for it."""
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, (*path, name))
    else:
        yield " ".join(path), group


COMMANDS = dict(commands(cli))


def section_of(command: str) -> str:
    """The part of the page about one command."""
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    found = re.search(rf"^## `{re.escape(command)}( [A-Z]+)*`\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/command-line.md has no section about {command}"
    return found.group(2)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_section_of_its_command(command: str) -> None:
    section = section_of(command)
    for parameter in COMMANDS[command].params:
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert f"`{option}`" in section, f"docs/command-line.md does not say what {option} of {command} does"


@pytest.mark.parametrize("command", COMMANDS)
def test_no_section_names_an_option_that_is_not_there(command: str) -> None:
    known = {option for parameter in COMMANDS[command].params for option in parameter.opts}
    table = "\n".join(line.split("|")[1] for line in section_of(command).splitlines() if line.startswith("| `-"))
    assert set(re.findall(r"`(-[\w-]+)`", table)) <= known


@pytest.mark.parametrize(
    ("page", "base"),
    [
        ("queries.md", Query),
        ("mechanisms.md", Mechanism),
        ("mechanisms.md", Sampler),
        ("trust.md", TrustModel),
        ("solvers.md", Solver),
        ("privacy/accounting.md", Event),
        ("privacy/accounting.md", Ledger),
    ],
)
def test_every_class_is_on_its_page(page: str, base: type) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    missing = [cls.__name__ for cls in concrete(base) if not re.search(rf"`{cls.__name__}\b", text)]
    assert not missing, f"docs/{page} does not describe {missing}"


@pytest.mark.parametrize("page", ["queries.md", "mechanisms.md", "trust.md", "solvers.md"])
def test_every_class_has_a_source(page: str) -> None:
    """Each section with the name of a class says on which theorem it rests."""
    text = (DOCS / page).read_text(encoding="utf-8")
    sections = re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert sections
    for name, section in sections:
        assert "Source:" in section, f"docs/{page} does not name the source of {name}"


# ---------------------------------------------------------------- links and style


def heading_anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        assert to.exists(), f"{name_of(page)} links to {target}, which is not there"
        assert not anchor or anchor in heading_anchors(to), f"{name_of(page)} links to no heading of {target}"


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_modules_that_pages_name_are_there(page: Path) -> None:
    named = re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)+\.py)`", page.read_text(encoding="utf-8"))
    places = (ROOT, ROOT / "src", ROOT / "src" / "dpregress")
    assert not [module for module in named if not any((place / module).is_file() for place in places)]


def test_no_name_is_listed_twice() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(set(listed)) == len(listed)


def test_every_page_is_reached_from_the_index() -> None:
    index = DOCS / "index.md"
    linked = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)\s#]+)", index.read_text(encoding="utf-8"))}
    assert {page.resolve() for page in PAGES} - {index.resolve()} <= linked


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_no_page_holds_a_path_of_a_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.~/-])/(home|root|tmp|usr|opt|mnt|var|etc|work|Users)/|\b[A-Z]:\\", text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_are_plain(page: Path) -> None:
    """A title at the top, no line beyond 130 characters."""
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# ")
    for number, line in enumerate(text.splitlines(), 1):
        assert len(line) <= 130, f"{name_of(page)}:{number} has {len(line)} characters"


# ---------------------------------------------------------------- examples


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", DOCS / "api.md", DOCS / "formulas.md", DOCS / "solvers.md", DOCS / "release.md"],
    ids=name_of,
)
def test_python_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they stand, and once more in the same folder, with the secure sampler: a warning is an error here."""
    monkeypatch.chdir(tmp_path)
    examples = blocks(page.read_text(encoding="utf-8"), "python")
    assert examples
    for example in (*examples, *examples):
        names: dict[str, object] = {}
        exec(compile(example, name_of(page), "exec"), names)
        printed = capsys.readouterr().out
        assert "replace-one neighbours, one record" in printed
        assert not names["model"].privacy_.seeded  # type: ignore[attr-defined]


def test_command_line_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command on the page, in order, in one folder; every command has an example."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPREGRESS_DATA", str(tmp_path / "tables"))
    (tmp_path / "tables").mkdir()
    pq.write_table(
        pa.table({"class": [0, 1]}), tmp_path / "tables" / "banknote.parquet"
    )  # there: nothing is downloaded
    monkeypatch.setattr("dpregress.datasets.check_dataset", lambda *_: None)  # tests/datasets checks the check
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    (setup,) = blocks(text, "python")
    exec(compile(setup, "command-line.md", "exec"), {})
    typed = [line for block in blocks(text, "") for line in block.replace("\\\n", " ").splitlines()]
    shown = set()
    for line in typed:
        program, *arguments = shlex.split(line)
        assert program == "dpregress"
        outcome = run(capsys, *arguments)
        assert outcome.code == 0, f"{line}: {outcome.err}"
        assert outcome.out
        shown |= {command for command in COMMANDS if f"{line} ".startswith(command + " ")}
    assert shown == set(COMMANDS)


def test_table_of_the_guarantee() -> None:
    """The numbers of docs/privacy/guarantee.md are those of the library."""
    text = (DOCS / "privacy" / "guarantee.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+)% \| ([\d.]+) \|$", text, flags=re.MULTILINE)
    assert len(rows) == 6
    for mu, power, epsilon in rows:
        assert f"{100 * ndtr(float(mu) - 1.6448536269514722):.1f}" == power
        decimals = len(epsilon.partition(".")[2])
        found = GDP(float(mu)).epsilon(1e-6) if float(mu) else 0.0
        assert f"{found:.{decimals}f}" == epsilon


def test_the_first_command_says_what_it_does() -> None:
    """Installation takes a minute: one line before it, and pip's own lines while it lasts."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("$(STAMP):")[1].split("\n\n")[0]
    said, installed = recipe.index("@echo"), recipe.index("pip install")
    assert said < installed
    assert "--quiet" not in recipe


# ---------------------------------------------------------------- the tests themselves


def test_planted_faults_are_found(tmp_path: Path) -> None:
    """A command without a section, an option that does not exist and a broken link are noticed."""
    with pytest.raises(AssertionError, match="no section about dpregress nothing"):
        section_of("dpregress nothing")
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n[there](#title) [nowhere](#nowhere)\n", encoding="utf-8")
    assert heading_anchors(page) == {"title"}

"""The import order of the design, read off the source: data flows one way, and nothing reaches past the barrier."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dpregress

SOURCE = Path(dpregress.__file__).parent

_LEFT = (
    "version",
    "display",
    "errors",
    "json_files",
    "accounting",
    "coordinates",
    "models",
    "releases",
    "public",
    "rows",
    "queries",
    "mechanisms",
    "trust",
)
_RIGHT = (
    "version",
    "display",
    "errors",
    "json_files",
    "accounting",
    "coordinates",
    "models",
    "releases",
    "public",
    "queries",
)
_METHODS = (*_LEFT, "solvers", "inference")
_ABOVE = (*_METHODS, "inputs", "curator", "papers", "baselines", "reports", "estimators")
_TOP = ("collector", "parties", "datasets", "experiments")

#: What each package may import besides itself.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    **{name: _LEFT[:place] for place, name in enumerate(_LEFT)},
    "solvers": _RIGHT,
    "inference": _RIGHT,
    "curator": _LEFT,
    "inputs": _METHODS,
    "papers": (*_METHODS, "baselines"),
    "baselines": _METHODS,
    "reports": ("version", "display", "errors", "accounting", "coordinates", "models", "releases"),
    "estimators": (*_METHODS, "inputs", "curator", "papers", "reports"),
    **dict.fromkeys((*_TOP, "cli"), (*_ABOVE, *_TOP)),
    "__main__": ("cli",),
}
#: Slow to import, or an optional extra: these may be imported where they are used.
LATE = {
    "opendp", "pyarrow", "matplotlib", "statsmodels", "rich", "pandas", "polars", "duckdb", "fsspec",
    "dask", "distributed", "adbc_driver_postgresql", "formulaic", "cryptography", "mbi", "jax", "segno", "psycopg",
    "jinja2",
}  # fmt: skip
#: The only places that make a random generator: for noise, and for simulated data.
GENERATORS = ("dpregress.mechanisms.randomness", "dpregress.experiments.")
_MAKERS = {"default_rng", "RandomState", "Generator", "SeedSequence", "PCG64", "Philox", "MT19937", "SFC64", "seed"}
#: Nothing is unpickled or evaluated.
_UNSAFE = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


@dataclass(frozen=True)
class Import:
    """One imported module, and whether the statement stands inside a function or only for type checkers."""

    target: str
    late: bool
    types_only: bool


@cache
def sources() -> dict[str, str]:
    """The text of every module of the package, by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


@cache
def parsed(text: str) -> ast.Module:
    """The syntax tree of a module, parsed once for all laws."""
    return ast.parse(text)


@cache
def _written(text: str) -> tuple[tuple[str, str, bool, bool], ...]:
    """What a module imports, found once for all laws: from where, which name, whether late, whether for types only."""
    found: list[tuple[str, str, bool, bool]] = []

    def walk(node: ast.AST, late: bool, types_only: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, "", late, types_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found.extend((node.module or "", alias.name, late, types_only) for alias in node.names)
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        types_only = types_only or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for child in ast.iter_child_nodes(node):
            walk(child, late, types_only)

    walk(parsed(text), False, False)
    return tuple(found)


@cache
def called(text: str) -> tuple[str, ...]:
    """What a module calls, as it is written there."""
    return tuple(ast.unparse(node.func) for node in ast.walk(parsed(text)) if isinstance(node, ast.Call))


def imports_of(text: str, modules: Mapping[str, str]) -> Iterator[Import]:
    """Every import of a module's source; ``from package import submodule`` counts as the submodule."""
    for base, name, late, types_only in _written(text):
        whole = f"{base}.{name}"
        yield Import(whole if name and whole in modules else base, late, types_only)


def package_of(module: str) -> str:
    """``dpregress.rows.bounded`` is in ``rows``; the root itself is in ""."""
    return module.split(".")[1] if "." in module else ""


def check_order(modules: Mapping[str, str]) -> None:
    """Every package is known, and imports only what the design lets it see."""
    for name, text in modules.items():
        package = package_of(name)
        if package == "":
            continue
        assert package in MAY_IMPORT, f"where does {package!r} stand? Add it to MAY_IMPORT and to the design"
        for imported in imports_of(text, modules):
            if imported.target.split(".")[0] == "dpregress":
                seen = package_of(imported.target)
                allowed = seen == package or seen in MAY_IMPORT[package] or (seen == "" and package == "cli")
                assert allowed, f"{name} imports {imported.target}: {package} may see {MAY_IMPORT[package]} only"


def check_rooms(modules: Mapping[str, str]) -> None:
    """Rooms of solvers see ``base`` and ``shared``, but not each other."""
    for name, text in modules.items():
        room = name.removeprefix("dpregress.solvers.").split(".")[0]
        if not name.startswith("dpregress.solvers.") or room == "base":
            continue
        for imported in imports_of(text, modules):
            if imported.target.startswith("dpregress.solvers."):
                seen = imported.target.split(".")[2]
                assert seen in (room, "base", "shared"), f"{name} imports {imported.target}: another room"


def check_no_cycles(modules: Mapping[str, str]) -> None:
    """Neither modules nor packages import each other in a circle; imports inside functions count."""
    by_module: dict[str, set[str]] = {}
    by_package: dict[str, set[str]] = {}
    for name, text in modules.items():
        for imported in imports_of(text, modules):
            if imported.target in modules and not (name == "dpregress" and imported.types_only):
                by_module.setdefault(name, set()).add(imported.target)
                if package_of(name) != package_of(imported.target) != "":
                    by_package.setdefault(package_of(name), set()).add(package_of(imported.target))
    for graph in (by_module, by_package):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            raise AssertionError(f"a circle of imports: {' -> '.join(error.args[1])}") from error


def check_late_imports(modules: Mapping[str, str]) -> None:
    """Imports inside functions are for slow and optional packages; a command loads what it needs when it runs."""
    for name, text in modules.items():
        for imported in imports_of(text, modules):
            root = imported.target.split(".")[0]
            allowed = root in LATE or (package_of(name) == "cli" and root == "dpregress")
            assert not imported.late or allowed, f"{name} imports {imported.target} inside a function"


def check_generators(modules: Mapping[str, str]) -> None:
    """Random generators are made in one module, and in experiments."""
    for name, text in modules.items():
        if name.startswith(GENERATORS):
            continue
        for imported in imports_of(text, modules):
            assert imported.target not in ("random", "secrets"), f"{name} imports {imported.target}"
        for call in called(text):
            made = call.split(".")[-1] in _MAKERS and ("random" in call or "." not in call)
            drawn = call.startswith(("np.random.", "numpy.random.", "os.urandom"))
            assert not made, f"{name} makes a generator: {call}"
            assert not drawn, f"{name} draws from a global generator: {call}"


def check_no_unpickling(modules: Mapping[str, str]) -> None:
    """Files are decoded into fixed types; nothing is unpickled or evaluated."""
    for name, text in modules.items():
        for imported in imports_of(text, modules):
            assert imported.target.split(".")[0] not in _UNSAFE, f"{name} imports {imported.target}"
        for call in called(text):
            assert call not in ("eval", "exec"), f"{name} calls {call}"


LAWS = (check_order, check_rooms, check_no_cycles, check_late_imports, check_generators, check_no_unpickling)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_source(law: Callable[[Mapping[str, str]], None]) -> None:
    law(sources())


PLANTED = {
    "a solver that sees rows": (check_order, "dpregress.solvers.peek", "from dpregress.rows import RawRows"),
    "a room that sees another": (
        check_rooms,
        "dpregress.solvers.glm.odd",
        "from dpregress.solvers.linear.residual import Residual",
    ),
    "a query that sees a mechanism": (check_order, "dpregress.queries.odd", "import dpregress.mechanisms.gaussian"),
    "a package nobody placed": (check_order, "dpregress.misc.helpers", "import math"),
    "an upward import, late": (
        check_order,
        "dpregress.rows.odd",
        "def f():\n    from dpregress.estimators import DPRidge\n    return DPRidge",
    ),
    "a circle": (check_no_cycles, "dpregress.errors", "from dpregress.releases import svec"),
    "a late import": (check_late_imports, "dpregress.rows.odd", "def f():\n    import scipy.stats"),
    "a generator": (check_generators, "dpregress.papers.odd", "import numpy as np\nrng = np.random.default_rng(1)"),
    "an imported maker": (check_generators, "dpregress.rows.odd", "from x import default_rng\nr = default_rng(1)"),
    "a global draw": (check_generators, "dpregress.rows.odd", "import numpy as np\nx = np.random.normal()"),
    "pickle": (check_no_unpickling, "dpregress.releases.odd", "import pickle"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted(planted: str) -> None:
    """The laws find what they look for."""
    law, name, text = PLANTED[planted]
    modules = sources()
    with pytest.raises(AssertionError):
        law({**modules, name: modules.get(name, "") + "\n" + text})

"""What the package promises to export is there, documented, and quick to reach."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import subprocess
import sys

import pytest

import dpregress

_HEAVY = (
    "numpy", "scipy", "sklearn", "opendp", "pyarrow", "matplotlib", "pandas", "polars", "statsmodels", "rich", "jinja2",
)  # fmt: skip
PACKAGES = ["dpregress", *(m.name for m in pkgutil.iter_modules(dpregress.__path__, "dpregress.") if m.ispkg)]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(dpregress.__path__, "dpregress.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", PACKAGES)
def test_all_resolves(name: str) -> None:
    """Every name in ``__all__`` is there, once."""
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert len(set(exported)) == len(exported)
    for each in exported:
        assert getattr(module, each) is not None


def test_all_is_what_resolves() -> None:
    """The lazy table of the root, its ``__all__`` and its ``dir`` agree; other names are refused."""
    assert set(dpregress._EXPORTS) | {"__version__"} == set(dpregress.__all__)
    assert set(dir(dpregress)) == set(dpregress.__all__)
    for name, package in dpregress._EXPORTS.items():
        assert name in importlib.import_module(f"dpregress.{package}").__all__
    with pytest.raises(AttributeError, match="no attribute"):
        _ = dpregress.NoSuchName


def test_type_checkers_see_the_same_names() -> None:
    """The imports for type checkers are the lazy table."""
    tree = ast.parse(inspect.getsource(dpregress))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    seen = {
        alias.name: statement.module
        for block in blocks
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen == {name: f"dpregress.{package}" for name, package in dpregress._EXPORTS.items()}


def test_import_is_light() -> None:
    """``import dpregress`` alone loads nothing slow."""
    code = f"import sys, dpregress; print([m for m in {_HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def public_members(name: str) -> list[tuple[str, object]]:
    """Exported classes and functions of a package, with the public methods that the classes define."""
    module = importlib.import_module(name)
    found = []
    for each in getattr(module, "__all__", []):
        value = getattr(module, each)
        if inspect.isclass(value) or inspect.isfunction(value):
            found.append((each, value))
        if inspect.isclass(value):
            found.extend(
                (f"{each}.{key}", getattr(value, key))
                for key, member in vars(value).items()
                if not key.startswith("_")
                and (inspect.isfunction(member) or isinstance(member, staticmethod | classmethod | property))
            )
    return found


@pytest.mark.parametrize("name", PACKAGES)
def test_documented(name: str) -> None:
    """Every exported class and function, and every public method, says what it does (an inherited text counts)."""
    for label, member in public_members(name):
        text = inspect.getdoc(member)
        if text is None and "." in label:
            owner = getattr(importlib.import_module(name), label.split(".")[0])
            text = next((inspect.getdoc(getattr(base, label.split(".")[1], None)) for base in owner.__mro__[1:]), None)
        assert text, f"{name}.{label} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    """Docstring examples print what they say."""
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        if not test.examples:
            continue
        if any("statsmodels" in example.source for example in test.examples) and not _installed("statsmodels"):
            continue
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
        assert result.failed == 0, f"an example of {test.name} fails"


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None

"""The house stays readable: no long module, no long function, one name for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.laws.test_layers import parsed, sources

LONGEST_MODULE, LONGEST_FUNCTION = 430, 50


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function with the number of lines of its statements, without its signature and docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            yield node.name, (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_module_is_long() -> None:
    assert not {name: text.count("\n") for name, text in sources().items() if text.count("\n") > LONGEST_MODULE}


def test_no_function_is_long() -> None:
    lengths = {f"{name}.{label}": lines for name, text in sources().items() for label, lines in functions(parsed(text))}
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION}


def test_public_names_are_defined_once() -> None:
    """A class or function of a module that begins with no underscore has a name of its own in the package."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, text in sources().items():
        for node in parsed(text).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert not {name: where for name, where in places.items() if len(where) > 1}

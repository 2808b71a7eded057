"""The page of tuned constants has every constant of the solvers, with the value that the code has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import dpregress

PAGE = Path(__file__).parents[2] / "docs" / "constants.md"
ROW = re.compile(r"^\| `(\w+\.\w+)` \| `([^`]+)` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def constants(source: str) -> dict[str, str]:
    """Names in capitals that a module assigns, one of a tuple at a time, and what they are set to."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            names, value = node.targets[0], node.value
            parts = zip(names.elts, value.elts, strict=True) if _both_tuples(names, value) else [(names, value)]
            found |= {
                name.id: ast.unparse(to) for name, to in parts if isinstance(name, ast.Name) and name.id.isupper()
            }
    return found


def _both_tuples(names: ast.expr, value: ast.expr) -> bool:
    return isinstance(names, ast.Tuple) and isinstance(value, ast.Tuple)


def test_every_constant_of_a_solver_is_on_its_page() -> None:
    solvers = Path(dpregress.__file__).parent / "solvers"
    code = {
        f"{path.stem}.{name}": value
        for path in solvers.rglob("*.py")
        for name, value in constants(path.read_text(encoding="utf-8")).items()
    }
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert {name: value for name, value, _ in rows} == code, "bring docs/constants.md up to date"
    assert len(rows) == len(code), "a constant is on the page twice"


def test_where_it_was_measured_is_said() -> None:
    """By a word, or by the number of a note below the table."""
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        for name, _, where in ROW.findall(section):
            assert where in ("no", "safeguard") or f"\n{where}. " in section, f"{name} refers to no note"

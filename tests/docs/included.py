"""Code that pages include: a comment names a class, function or table of the package, and its source follows.

``python -m tests.docs.included`` writes the code of all pages anew; ``tests/docs/test_included.py`` fails where a page
differs from the code.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
#: ``<!-- source: dpregress/queries/count.py:UsableRowCount -->``, and the block below it, if there is one.
DIRECTIVE = re.compile(r"^<!-- source: ([\w./]+):(\w+) -->\n(?:\n?```python\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def source_of(module: str, name: str) -> str:
    """The source of a class, function or assigned name of a module, with its decorators.

    Raises
    ------
    LookupError
        When the module does not define the name.
    """
    text = (ROOT / "src" / module).read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        first = node.lineno
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = [node.name]
            first = min([first, *(each.lineno for each in node.decorator_list)])
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for each in targets if isinstance(each, ast.Name)]
        else:
            continue
        if name in names:
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise LookupError(f"{module} defines no {name}")


def refreshed(page: str) -> str:
    """The page with the present source below every directive."""
    return DIRECTIVE.sub(
        lambda found: f"<!-- source: {found[1]}:{found[2]} -->\n```python\n{source_of(found[1], found[2])}\n```\n", page
    )


if __name__ == "__main__":
    for path in PAGES:
        old = path.read_text(encoding="utf-8")
        if refreshed(old) != old:
            path.write_text(refreshed(old), encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")

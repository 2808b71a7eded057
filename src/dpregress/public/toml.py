"""Names and values in TOML, which the standard library reads and does not write."""

from __future__ import annotations

import json
import numbers
from typing import Any


def toml_key(name: str) -> str:
    """A column's name as a TOML key."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else toml_value(name)


def toml_value(value: Any) -> str:
    """A text, a number or a list of texts in TOML."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, numbers.Integral) else repr(float(value))

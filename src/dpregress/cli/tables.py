"""Schemas, columns and classes given on the command line."""

from __future__ import annotations

from pathlib import Path

from dpregress.errors import InvalidInput
from dpregress.public import Categorical, Numeric, Schema
from dpregress.rows.design.formula import response_column


def load_schema(path: Path | None) -> Schema | None:
    """The schema of --schema."""
    return None if path is None else Schema.from_toml(path)


def split_names(text: str | None) -> list[str] | None:
    """``a,b,c`` as a list."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise InvalidInput("--features takes different column names separated by commas")
    return names


def split_classes(family: str, classes: str | None, declared: Numeric | Categorical | None) -> tuple[str, ...] | None:
    """The classes of --classes, ``no, yes``, else the levels that the schema declares; None where neither says."""
    if family not in ("binomial", "multinomial"):
        if classes is not None:
            raise InvalidInput("--classes goes with --family binomial or multinomial")
        return None
    names = declared.levels if isinstance(declared, Categorical) else ()
    names = names if classes is None else tuple(name.strip() for name in classes.split(","))
    if family == "multinomial" and len(names) < 3:
        raise InvalidInput(
            "name the classes of a multinomial target, three or more: --classes low,middle,high, or in the schema"
        )
    if family == "binomial" and len(names) > 2:
        raise InvalidInput(f"--family binomial is for two classes, not {len(names)}: choose --family multinomial")
    return names or None


def declared_response(target: str | None, formula: str | None, schema: Schema | None) -> Numeric | Categorical | None:
    """What the schema declares of the response, which a formula names itself."""
    if schema is None:
        return None
    if formula is not None:
        target = response_column(formula)
    return None if target is None else schema.column(target)

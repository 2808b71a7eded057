r"""Texts in SQL, compared by bytes whatever the collation of their column: places of public levels, and ids of units.

No cell makes a comparison fail, because no text is read as a number. Only letters, digits, spaces and ``+ - .`` are
written as they are. Other characters are written by their codes, and in most dialects a level is written as the digits
of its bytes. So no level is read as anything else, or holds a name that the statement replaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from dpregress.rows.design.encoder import TOLD_APART, text_of, to_codes, to_numbers

_PLAIN = re.compile(r"[A-Za-z0-9 .+-]*")
#: Characters in a call of SQLite's ``char``, which takes up to 127.
_CALL = 100
#: Whole numbers of SQLite.
_WHOLE = re.compile(r"-?[0-9]{1,18}")

#: A cell as bytes, as their digits, or as a text of PostgreSQL, which ``concat`` also pads to the length of CHAR(n).
_CELL = {
    "duckdb": "ENCODE(CAST({0} AS VARCHAR))",
    "postgres": "CASE WHEN {0} IS NOT NULL THEN CONCAT({0}) END",
    "snowflake": "HEX_ENCODE({0})",
    "bigquery": "TO_HEX(CAST({0} AS BYTES))",
    "databricks": "HEX(CAST({0} AS BINARY))",
}
_BLANKS = "' ' || CHR(9) || CHR(10) || CHR(13)"
#: An id as text without blanks around it, which is empty or NULL for none. A number of SQLite is one if it is whole.
_ID = {
    "duckdb": "TRIM(CAST({0} AS VARCHAR), {1})",
    "postgres": 'BTRIM(CASE WHEN {0} IS NOT NULL THEN CONCAT({0}) END COLLATE "C", {1})',
    "sqlite": "CASE TYPEOF({0}) WHEN 'integer' THEN CAST({0} AS TEXT) WHEN 'text' THEN TRIM({0}, CHAR(32, 9, 10, 13)) "
    "WHEN 'real' THEN CASE WHEN ABS({0}) < 9007199254740992 AND +{0} = CAST({0} AS INTEGER) "
    "THEN CAST(CAST({0} AS INTEGER) AS TEXT) END END",
    "snowflake": "TRIM(CAST({0} AS VARCHAR), {1})",
    "bigquery": "TRIM(CAST({0} AS STRING), CODE_POINTS_TO_STRING([32, 9, 10, 13]))",
    "databricks": "TRIM(BOTH {1} FROM CAST({0} AS STRING))",
}
#: Such an id for comparison, and its digest with a whole number: of its own digest, as no text has room for both.
_UNIT = {
    "duckdb": ("ENCODE({0})", "MD5(CONCAT(MD5({0}), '/', {1}))"),
    "postgres": ('{0} COLLATE "C"', "MD5(CONCAT(MD5({0}), '/', {1})) COLLATE \"C\""),
    "sqlite": ("{0} COLLATE BINARY", "MD5(CAST(MD5(CAST({0} AS BLOB)) || '/' || {1} AS BLOB))"),
    "snowflake": ("HEX_ENCODE({0})", "MD5(CONCAT(MD5({0}), '/', CAST({1} AS VARCHAR)))"),
    "bigquery": ("CAST({0} AS BYTES)", "TO_HEX(MD5(CONCAT(TO_HEX(MD5({0})), '/', CAST({1} AS STRING))))"),
    "databricks": (
        "CAST({0} AS BINARY)",
        "MD5(CAST(CONCAT(MD5(CAST({0} AS BINARY)), '/', CAST({1} AS STRING)) AS BINARY))",
    ),
}


def id_text(cell: str, dialect: str) -> str:
    """A cell as the text of an id."""
    return _ID[dialect].format(cell, _BLANKS)


def length_of_id(unit: str, dialect: str) -> str:
    """The length of the text of an id. That of SQLite ends at the first NUL, so that bytes are counted there."""
    return f"LENGTH(CAST({unit} AS BLOB))" if dialect == "sqlite" else f"LENGTH({unit})"


def unit_and_digest(unit: str, number: str, dialect: str) -> tuple[str, str]:
    """The text of an id as it is compared, and its digest with a number."""
    compared, digest = _UNIT[dialect]
    return compared.format(unit), digest.format(unit, number)


def _bytes_of_duckdb(text: str) -> str:
    return "'" + "".join(f"\\x{byte:02X}" for byte in text.encode()) + "'::BLOB"


def _text_of_postgres(text: str) -> str:
    """Without regard to the setting that gives backslashes another meaning."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return "E'" + "".join(mark if _PLAIN.fullmatch(mark) else f"\\U{ord(mark):08X}" for mark in text) + "'"


def _text_of_sqlite(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    parts = (text[at : at + _CALL] for at in range(0, len(text), _CALL))
    return " || ".join(f"CHAR({', '.join(str(ord(mark)) for mark in part)})" for part in parts)


_LEVEL: dict[str, Callable[[str], str]] = {
    "duckdb": _bytes_of_duckdb,
    "postgres": lambda text: f'{_text_of_postgres(text)} COLLATE "C"',
    "snowflake": lambda text: f"'{text.encode().hex().upper()}'",
    "bigquery": lambda text: f"'{text.encode().hex()}'",
    "databricks": lambda text: f"'{text.encode().hex().upper()}'",
}


def text_literal(text: str, dialect: str) -> str:
    """A public text in a dialect of a database that is asked about test rows."""
    if dialect == "duckdb":
        return f"DECODE({_bytes_of_duckdb(text)})"
    return _text_of_postgres(text) if dialect == "postgres" else _text_of_sqlite(text)


def level_case(cell: str, levels: Sequence[str], dialect: str, number: Callable[[float], str]) -> str:
    """The place of a cell among levels, NULL for another cell.

    Parameters
    ----------
    cell : str
        A name of a column.
    levels : sequence of str
    dialect : str
    number : callable
        Writes a float.
    """
    if dialect == "sqlite":
        return _level_of_sqlite(cell, levels, number)
    spelt = ((_LEVEL[dialect](level), place) for place, level in enumerate(levels) if _known(level, dialect))
    return _case(_CELL[dialect].format(cell), spelt, number)


def _known(level: str, dialect: str) -> bool:
    """Whether a text of the database can be this one."""
    return dialect != "postgres" or "\0" not in level


def _case(of: str, places: Iterable[tuple[str, int]], number: Callable[[float], str]) -> str:
    branches = " ".join(f"WHEN {level} THEN {number(float(place))}" for level, place in places)
    return f"CASE {of} {branches} END" if branches else "NULL"


def _level_of_sqlite(cell: str, levels: Sequence[str], number: Callable[[float], str]) -> str:
    """A cell has a type of its own. A number is the level as which its reader spells it, or that has its value."""
    values = to_numbers(pa.array(levels, pa.large_string()))
    real = sorted(set(values[np.isfinite(values)].tolist()))
    whole = {int(level) for level in levels if _WHOLE.fullmatch(level)}
    whole |= {int(value) for value in real if value.is_integer() and abs(value) < TOLD_APART}
    kinds = {
        "text": _case(f"CAST({cell} AS TEXT) COLLATE BINARY",
                      ((_text_of_sqlite(level), place) for place, level in enumerate(levels)), number),
        "integer": _case(f"+{cell}", ((str(value), place) for value, place in _spelt(sorted(whole), levels)), number),
        "real": _case(f"+{cell}", ((number(value), place) for value, place in _spelt(real, levels)), number),
        "blob": _case(cell, ((f"X'{level.encode().hex()}'", place) for place, level in enumerate(levels)), number),
    }  # fmt: skip
    branches = " ".join(f"WHEN '{kind}' THEN {place}" for kind, place in kinds.items())
    return f"CASE TYPEOF({cell}) {branches} END"


def _spelt(numbers: Sequence[float], levels: Sequence[str]) -> list[tuple[float, int]]:
    """Those of numbers that are levels as their reader has them, with the place of the level."""
    found = to_codes(pa.array([text_of(number) for number in numbers], pa.large_string()), levels)
    return [(number, int(place)) for number, place in zip(numbers, found.tolist(), strict=True) if place >= 0]

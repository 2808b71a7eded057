"""Linear hypotheses ``R b = q`` from matrices or from text such as ``"x1 = x2, x3 = 0"``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.display import ShownInShort, plain
from dpregress.errors import InvalidInput, one_line
from dpregress.releases.estimates import INTERCEPT

#: How the intercept is written in a hypothesis, as formulas call it.
_WRITTEN = "Intercept"
_LONGEST = 10_000
#: Names of coefficients that a refusal lists.
_OFFERED = 12
_QUOTED = re.compile(r"`[^`]*`")
#: Quoted names by themselves, and what stands between them.
_PIECES = re.compile(r"(`[^`]*`)")
#: A number with an exponent, which formulaic does not read.
_EXPONENT = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)[eE][+-]?\d{1,2}(?![\w.])")
#: Sizes of numbers, beyond which squares over- or underflow.
_SMALLEST, _LARGEST = 1e-100, 1e100


@dataclass(frozen=True, eq=False, repr=False)
class LinearHypothesis(ShownInShort):
    """``R b = q``.

    Parameters
    ----------
    matrix : ndarray of shape (r, k)
        R.
    value : ndarray of shape (r,)
        q.
    labels : tuple of str
        What each row says, for tables.
    """

    matrix: Matrix
    value: Vector
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.matrix) or not np.abs(self.matrix).any(axis=1).all():
            raise InvalidInput("every row of a hypothesis names a coefficient: leave rows of zeros out")
        sizes = np.abs(np.column_stack([self.matrix, self.value]))
        if not ((sizes == 0) | ((sizes >= _SMALLEST) & (sizes <= _LARGEST))).all():
            raise InvalidInput("the numbers of a hypothesis must be 0 or between 1e-100 and 1e100 in size")
        solved = np.linalg.lstsq(self.matrix, self.value, rcond=None)[0]
        if not np.allclose(self.matrix @ solved, self.value, rtol=1e-9, atol=1e-9 * float(np.abs(self.value).max())):
            raise InvalidInput("the rows of this hypothesis contradict each other: no coefficients satisfy all of them")


def linear_hypothesis(names: Sequence[str], spec: Any) -> LinearHypothesis:
    """Read a hypothesis about coefficients with these names.

    Parameters
    ----------
    names : sequence of str
    spec : str, sequence of str, array-like of shape (k,) or (r, k), or pair (R, q)
        In a text, parts are separated by commas, names that are not plain words stand in backticks
        (```plan=full` = 0``), and the intercept is ``Intercept``. A part without ``=`` says that it is 0.

    Raises
    ------
    InvalidInput
        For what is none of these, names no coefficient, or contradicts itself.
    """
    if isinstance(spec, str):
        return _read(names, [spec])
    if isinstance(spec, list | tuple) and spec and all(isinstance(part, str) for part in spec):
        return _read(names, spec)
    given, value = spec if isinstance(spec, tuple) and len(spec) == 2 and _numbers(spec[0]).ndim == 2 else (spec, 0.0)
    matrix = np.atleast_2d(_numbers(given))
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        raise InvalidInput(f"R has shape {matrix.shape}: give a column for each of the {len(names)} coefficients")
    goal = np.atleast_1d(_numbers(value))
    if goal.shape not in ((1,), (len(matrix),)):
        raise InvalidInput(f"q has shape {goal.shape}: give one value for each of the {len(matrix)} rows of R")
    goal = np.broadcast_to(goal, (len(matrix),)).copy()
    labels = tuple(_label(names, row, float(each)) for row, each in zip(matrix, goal, strict=True))
    return LinearHypothesis(matrix, goal, labels)


def of_coefficients(names: Sequence[str], chosen: Sequence[str]) -> LinearHypothesis:
    """All of the chosen coefficients are 0."""
    rows = np.eye(len(names))[[list(names).index(name) for name in chosen]]
    return LinearHypothesis(rows, np.zeros(len(chosen)), tuple(f"{name} = 0" for name in chosen))


def _numbers(given: Any) -> Matrix:
    found = None
    with suppress(TypeError, ValueError, OverflowError):  # their texts show what was given
        array = np.asarray(given)
        if array.dtype.kind in "biufO" and not np.ma.is_masked(given):
            found = array.astype(np.float64)
    if found is None:
        raise InvalidInput(f"a hypothesis is text such as 'x1 = x2', a matrix R, or (R, q), not {one_line(given)}")
    if not np.isfinite(found).all():
        raise InvalidInput("the numbers of a hypothesis must be finite")
    return found


def _read(names: Sequence[str], texts: Sequence[str]) -> LinearHypothesis:
    """A hypothesis from text; one at a time, so that each part can be named in an error."""
    try:
        from formulaic.utils.constraints import LinearConstraints
    except ImportError as error:
        raise InvalidInput(
            'hypotheses in text are read by formulaic: pip install "dpregress[formulas]", or give a matrix R'
        ) from error
    alias = INTERCEPT if _WRITTEN in names else _WRITTEN  # of a column that is called so, it is the name
    written = [alias if name == INTERCEPT else name for name in names]
    rows, goals, labels = [], [], []
    for part in (part for text in texts for part in _parts(text, names)):
        try:
            found = LinearConstraints.from_spec(_plain(part, alias), variable_names=written)
            row, goal = _numbers(found.constraint_matrix), _numbers(found.constraint_values)
        except KeyError as error:
            raise InvalidInput(f"hypothesis {one_line(part)}: {_unknown(str(error.args[0]), names)}") from error
        except RecursionError as error:
            raise InvalidInput("this hypothesis is nested too deeply: give a matrix R") from error
        except Exception as error:  # of a parser that is not ours, about a text that is public
            raise InvalidInput(
                f"hypothesis {one_line(part)} is not linear: write it as in 'x1 - 2 * x2 = 0'"
            ) from error
        rows.append(row)
        goals.append(goal)
        labels.append(part if "=" in _QUOTED.sub("", part) else f"{part} = 0")
    return LinearHypothesis(np.vstack(rows), np.concatenate(goals), tuple(labels))


def _parts(text: str, names: Sequence[str]) -> list[str]:
    """The parts between commas that are not in backticks; a chain such as ``a = b = c`` is refused."""
    if len(text) > _LONGEST:
        raise InvalidInput(f"this hypothesis has more than {_LONGEST:,} characters: give a matrix R")
    hidden = _QUOTED.sub(lambda found: "q" * len(found.group()), text)
    ends = [place for place, letter in enumerate(hidden) if letter == ","]
    parts = [text[start:end].strip() for start, end in zip([0, *(end + 1 for end in ends)], [*ends, None], strict=True)]
    for part in parts:
        if not part:
            raise InvalidInput(f"hypothesis {one_line(text)} has an empty part: write it as in 'x1 = x2, x3 = 0'")
        if not all(side.strip("( )") for side in _QUOTED.sub("q", part).split("=")):
            raise InvalidInput(f"hypothesis {one_line(part)} has an empty side: write it as in 'x1 = x2, x3 = 0'")
        if _QUOTED.sub("", part).count("=") > 1:  # formulaic reads a = b = c as a - b + c = 0
            raise InvalidInput(f"hypothesis {one_line(part)} has several '=': {_several(part, names)}")
    return parts


def _unknown(name: str, names: Sequence[str]) -> str:
    """What to write in place of a name that no coefficient has."""
    offered = ", ".join(f"`{plain(each)}`" for each in names[:_OFFERED])
    more = ", .." if len(names) > _OFFERED else ""
    return f"no coefficient is called {one_line(name)}; choose from {offered}{more} (with these backticks)"


def _several(part: str, names: Sequence[str]) -> str:
    """What to write in place of a part with several equality signs: perhaps a name that holds one."""
    meant = [each for each in names if "=" in each and part.startswith(each)]
    return f"write `{plain(max(meant, key=len))}` = 0, with backticks" if meant else "write 'a = b, b = c'"


def _plain(part: str, alias: str) -> str:
    """A part as formulaic reads it: it knows neither exponents nor a sign after ``=``."""

    def outside(text: str) -> str:
        digits = _EXPONENT.sub(lambda found: f"{Decimal(found.group()):f}", text)
        return digits.replace(INTERCEPT, alias).replace("=", "=(")

    pieces = _PIECES.split(part)  # every second one is in backticks
    pieces[::2] = map(outside, pieces[::2])
    pieces[1::2] = [f"`{alias}`" if name == f"`{INTERCEPT}`" else name for name in pieces[1::2]]
    return "".join(pieces) + ")" * sum(text.count("=(") for text in pieces[::2])


def _label(names: Sequence[str], row: Vector, goal: float) -> str:
    terms = [(float(factor), name) for factor, name in zip(row, names, strict=True) if factor]
    text = " ".join(
        ("- " if factor < 0 else "+ " if place else "") + ("" if abs(factor) == 1 else f"{abs(factor):g} * ") + name
        for place, (factor, name) in enumerate(terms)
    )
    return f"{text} = {goal:g}"

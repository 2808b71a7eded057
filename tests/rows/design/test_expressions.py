"""Arithmetic of columns: values, domains, and bounds that hold whatever the cells."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

from dpregress.errors import InvalidInput
from dpregress.rows.design.expressions import parse_expression

#: Cells that no column should hold, and some do.
STRANGE = [0.0, -0.0, -1.0, -1e-320, 1e-320, 1e308, -1e308, 710.0, math.inf, -math.inf, math.nan]
#: Expressions of a and b that Python reads too.
EXPRESSIONS = [
    "a",
    "a + b",
    "a - 2 * b",
    "a / b",
    "-a",
    "+a",
    "a ** 2",
    "a ** 3",
    "a ** -2",
    "a ** 0.5",
    "a ** (1 / 3)",
    "a ** -0.5",
    "(a - 50) / 10",
    "log(a)",
    "log1p(a * b)",
    "exp(-a)",
    "sqrt(a + b)",
    "abs(a - b)",
    "I(a * I(b))",
    "1 / (1 + exp(-a))",
    "log(exp(a))",
    "log10(a)",
    "min(a, 2)",
    "max(a, b, 1.5)",
    "I(a > 2)",
    "a <= b + 1",
    "(a > 1) * (b < 2)",
    "a == a",
    "a != 2",
]
#: What the names in them are to NumPy.
NUMPY = {
    "min": lambda *numbers: reduce(np.minimum, numbers),
    "max": lambda *numbers: reduce(np.maximum, numbers),
    "log10": np.log10,
    "log": np.log,
    "log1p": np.log1p,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "I": np.asarray,
}
BOXES = [((1.0, 3.0), (0.5, 2.0)), ((-2.0, 3.0), (-1.0, 1.0)), ((0.0, 1.0), (0.0, 4.0)), ((-5.0, -1.0), (2.0, 3.0))]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_values_are_numpys(text: str, seed: int) -> None:
    """Those of Python and NumPy on positive cells, up to rounding."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.1, 5, (2, 100))
    a += b  # a and b are positive, and so is a - b
    expected = eval(text, {**NUMPY, "a": a, "b": b})
    np.testing.assert_allclose(parse_expression(text).values({"a": a, "b": b}), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_no_cell_raises_warns_or_stays_infinite(text: str) -> None:
    """Every pair of strange cells is a finite number or missing."""
    a, b = (grid.ravel() for grid in np.meshgrid(STRANGE, STRANGE))
    values = parse_expression(text).values({"a": a, "b": b})
    if text != "a" and text != "+a":  # a column is handed on as it is; the design makes its infinite cells missing
        assert not np.isinf(values).any()
    assert np.isnan(values[np.isnan(a)]).all()


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("cell", STRANGE, ids=str)
def test_a_cell_stands_alone(text: str, cell: float, seed: int) -> None:
    """Replacing one row leaves every bit of the others as it was, at any place in the column."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-5, 5, (2, 37))
    expression = parse_expression(text)
    before = np.broadcast_to(expression.values({"a": a, "b": b}), a.shape).copy()
    for place in (0, 3, 18, 36):
        changed = a.copy()
        changed[place] = cell
        after = np.broadcast_to(expression.values({"a": changed, "b": b}), a.shape)
        others = np.arange(len(a)) != place
        np.testing.assert_array_equal(after[others], before[others])


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("box", BOXES, ids=str)
def test_intervals_hold_every_value(text: str, box: tuple[tuple[float, float], tuple[float, float]], seed: int) -> None:
    """On random points of a box, and on its corners."""
    rng = np.random.default_rng(seed)
    (a0, a1), (b0, b1) = box
    a = np.concatenate([rng.uniform(a0, a1, 500), [a0, a0, a1, a1]])
    b = np.concatenate([rng.uniform(b0, b1, 500), [b0, b1, b0, b1]])
    expression = parse_expression(text)
    values = expression.values({"a": a, "b": b})
    values = values[np.isfinite(values)]
    lower, upper = expression.interval({"a": box[0], "b": box[1]})
    slack = 1e-12 * max(1.0, np.abs(values).max(initial=0.0))
    assert lower <= upper
    assert (values >= lower - slack).all()
    assert (values <= upper + slack).all()


@pytest.mark.parametrize(
    ("text", "bounds", "expected"),
    [
        ("a ** 2", (-3, 2), (0, 9)),
        ("a ** 2", (2, 3), (4, 9)),
        ("a ** 3", (-2, 2), (-8, 8)),
        ("a ** -1", (2, 4), (0.25, 0.5)),
        ("a ** -1", (-1, 4), (-math.inf, math.inf)),
        ("1 / a", (0, 4), (-math.inf, math.inf)),
        ("abs(a)", (-3, 2), (0, 3)),
        ("sqrt(a)", (-3, 4), (0, 2)),
        ("log(a)", (0, math.e), (-math.inf, 1)),
        ("log1p(a)", (0, 0), (0, 0)),
        ("exp(a)", (0, 1e6), (1, math.inf)),
        ("2 - a", (0, 1), (1, 2)),
        ("b", (0, 1), (-math.inf, math.inf)),
        ("0 * b", (0, 1), (0, 0)),
        ("log10(a)", (1, 1000), (0, 3)),
        ("min(a, 50)", (18, 90), (18, 50)),
        ("max(a, 50)", (18, 90), (50, 90)),
        ("max(a, b)", (18, 90), (18, math.inf)),
        ("a > 50", (18, 90), (0, 1)),
        ("a > 50", (60, 90), (1, 1)),
        ("a > 90", (18, 90), (0, 0)),
        ("a >= 90", (18, 90), (0, 1)),
        ("a < 18", (18, 90), (0, 0)),
        ("a <= 90", (18, 90), (1, 1)),
        ("a == 91", (18, 90), (0, 0)),
        ("a != 91", (18, 90), (1, 1)),
        ("b > 0", (0, 1), (0, 1)),
    ],
)
def test_intervals(text: str, bounds: tuple[float, float], expected: tuple[float, float]) -> None:
    assert parse_expression(text).interval({"a": bounds}) == pytest.approx(expected)


def test_quoted_names() -> None:
    expression = parse_expression("log(`blood pressure (mm)` + `a.b`) / `blood pressure (mm)`")
    assert expression.columns == {"blood pressure (mm)", "a.b"}


@pytest.mark.parametrize(
    "text", ["a.b", "a[0]", "f(a)", "[a]", "a if a else 1", "1 < a < 2", "a in b", "lambda: a", "'a'", "a := 1"]
)
def test_nothing_else_is_arithmetic(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_expression(text)

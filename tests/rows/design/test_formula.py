"""Formulas as designs: formulaic's own matrix is the oracle for the columns, NumPy for what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpregress import Categorical, Numeric, Schema
from dpregress.errors import DPRegressError, InvalidInput, UnboundedData
from dpregress.rows import FormulaEncoder
from dpregress.rows.readers.files import to_table

formulaic = pytest.importorskip("formulaic")

SCHEMA = Schema(
    {
        "a": Numeric(1, 3),
        "c": Numeric(0.1, 2),
        "free": Numeric(),
        "zero": Numeric(0, 4),
        "blood pressure": Numeric(50, 200),
        "b": Categorical(("x", "y", "z")),
        "d": Categorical(("p", "q")),
        "y": Numeric(0.5, 5),
    }
)
FUNCTIONS = {
    "log1p": np.log1p, "sqrt": np.sqrt, "abs": np.abs, "log": np.log, "exp": np.exp, "log10": np.log10,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
FORMULAS = [
    "y ~ a",
    "y ~ a + c - 1",
    "y ~ 0 + a",
    "y ~ a + C(b) + a:b",
    "y ~ a*b",
    "y ~ 0 + b",
    "y ~ 0 + a + b + d",
    "y ~ 0 + b*d",
    "y ~ b:d",
    "y ~ a:b",
    "y ~ a + a:b",
    "y ~ 0 + a:b",
    "y ~ a*b*d",
    "y ~ 0 + b:d + b",
    "y ~ b/d",
    "y ~ (a + b + c)**2",
    "y ~ (a + b + d)**3 - a:b:d",
    "y ~ a:b:c + a",
    "y ~ log(a) + I(a**2) + sqrt(c) + exp(c) + log1p(c) + abs(c - 1)",
    "y ~ I((a - c) / a) + I(-c) + I(2*a + 1)",
    "y ~ log(a):b + C(d):I(c**2)",
    "y ~ `blood pressure` + log(`blood pressure`)",
    "y ~ {a + 1}",
    "log(y) ~ a",
    "I(y**2) ~ a + b",
    "y ~ a + b - b",
    "y ~ a %in% b",
    "y ~ log10(a) + I(log10(c) + 1) + min(a, 2) + I(max(a, c)**2)",
    "y ~ I((a > 2)*1.0) + I((c <= a) + 0*a)",
    'y ~ a + C(b, Treatment(reference="y"))',
    'y ~ 0 + C(b, Treatment(reference="y"))',
    'y ~ a:C(b, Treatment(reference="z")) + a',
    'y ~ C(b, Treatment("z"))*C(d, Treatment("q"))',
    "y ~ bs(a, knots=[1.5, 2], lower_bound=0.5, upper_bound=4)",
    "y ~ bs(a, knots=[1.5, 2], degree=2, lower_bound=0.5, upper_bound=4):b + c",
    "y ~ bs(log(a), knots=[], degree=1, lower_bound=0, upper_bound=2) + d",
    "y ~ 0 + cr(c, knots=[0.5, 1], lower_bound=0, upper_bound=2)",
    "y ~ 0 + cr(c, knots=[0.5, 1], lower_bound=0, upper_bound=2) + cr(c, knots=[1.5], lower_bound=0, upper_bound=2):a",
]


def space(rng: np.random.Generator, n: int = 80) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": rng.uniform(1, 3, n),
            "c": rng.uniform(0.1, 2, n),
            "blood pressure": rng.uniform(50, 200, n),
            "b": pd.Categorical(rng.choice(["x", "y", "z"], n), categories=["x", "y", "z"]),
            "d": pd.Categorical(rng.choice(["p", "q"], n), categories=["p", "q"]),
            "y": rng.uniform(0.5, 5, n),
        }
    )


@pytest.mark.parametrize("text", FORMULAS)
def test_columns_are_formulaics(text: str, seed: int) -> None:
    """Column for column, for whatever the rows hold, as long as formulaic knows the same levels."""
    rows = space(np.random.default_rng(seed))
    encoder = FormulaEncoder.of(text, SCHEMA)
    right = formulaic.model_matrix(text, rows, context=FUNCTIONS)
    expected = np.asarray(right.rhs, dtype=float)[:, int(encoder.intercept) :]
    assert encoder.intercept == ("Intercept" in right.rhs.columns)
    table = to_table(rows)
    found = encoder.x(table)
    assert found.shape == expected.shape == (len(rows), len(encoder.features))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    response = encoder.y(table)
    assert response is not None
    np.testing.assert_allclose(response, np.asarray(right.lhs)[:, 0], rtol=1e-12)
    assert len(set(encoder.features)) == len(encoder.features)


@pytest.mark.parametrize("text", FORMULAS)
def test_bounds_hold_the_columns(text: str, seed: int) -> None:
    rows = space(np.random.default_rng(seed), 500)
    encoder = FormulaEncoder.of(text, SCHEMA)
    derived = encoder.schema(SCHEMA, needed=True)
    assert derived is not None
    x = encoder.x(to_table(rows))
    for name, column in zip(encoder.features, x.T, strict=True):
        lower, upper = derived.bounds_of(name)
        assert lower - 1e-9 <= column.min() <= column.max() <= upper + 1e-9, name
    assert derived.bounds_of(encoder.response.label)


def test_names() -> None:
    encoder = FormulaEncoder.of("log(y) ~ a*b + I(c**2):d", SCHEMA)
    assert encoder.features == (
        "a", "b=y", "b=z", "a:b=y", "a:b=z", "I(c ** 2):d=p", "I(c ** 2):d=q",
    )  # fmt: skip
    assert encoder.needed == ("a", "b", "c", "d", "y")
    assert encoder.right.needed == ("a", "b", "c", "d")
    assert encoder.response.label == "log(y)"
    assert encoder.levels == {"b": ("x", "y", "z"), "d": ("p", "q")}


def test_strange_cells_are_missing_and_never_raise() -> None:
    """Text, gaps, cells outside a domain and undeclared levels, in one table."""
    table = pa.table(
        {
            "a": ["-1", "x", "0", "inf", None, "1e308", "2"],
            "b": ["y", "?", None, "z", "y", "y", "z"],
            "y": ["-1", "0", "x", None, "1", "2", "nan"],
        }
    )
    encoder = FormulaEncoder.of("log(y) ~ log(a) + I(a**2) + a:b", SCHEMA)
    nan = np.nan
    np.testing.assert_allclose(
        encoder.x(table),
        [
            [nan, 1, 0, -1, 0],
            [nan, nan, nan, nan, nan],
            [nan, 0, 0, 0, 0],
            [nan, nan, nan, nan, nan],
            [nan, nan, nan, nan, nan],
            [np.log(1e308), nan, 0, 1e308, 0],
            [np.log(2), 4, 0, 0, 2],
        ],
    )
    np.testing.assert_allclose(encoder.y(table), [nan, nan, nan, nan, 0, np.log(2), nan])


def test_a_row_stands_alone(seed: int) -> None:
    """Replacing one private row changes no bit of another row's design columns."""
    rows = space(np.random.default_rng(seed), 41)
    encoder = FormulaEncoder.of("y ~ log(a)*b + exp(c)*sqrt(c) + I(a ** 0.3)", SCHEMA)
    before = encoder.x(to_table(rows))
    for place in (0, 17, 40):
        for cells in ({"a": -1.0, "c": 1e308}, {"a": np.inf, "b": None}, {"a": np.nan, "c": -0.0}):
            changed = rows.copy()
            for name, cell in cells.items():
                changed.loc[place, name] = cell
            others = np.arange(len(rows)) != place
            np.testing.assert_array_equal(encoder.x(to_table(changed))[others], before[others])


def test_classes() -> None:
    encoder = FormulaEncoder.of("d ~ a", SCHEMA, ("p", "q"))
    np.testing.assert_array_equal(encoder.y(pa.table({"a": [1, 2, 3], "d": ["q", "p", "?"]})), [1, 0, np.nan])
    with pytest.raises(InvalidInput, match="is categorical"):
        FormulaEncoder.of("d ~ a", SCHEMA)
    with pytest.raises(InvalidInput, match="a response of classes is a column"):
        FormulaEncoder.of("log(y) ~ a", SCHEMA, ("0", "1"))


#: What is no formula, or would read private data, and words of the refusal.
REFUSED: list[tuple[Any, str]] = [
    # not a formula
    ("", "name the response"),
    ("a", "name the response"),
    ("~ a", "name the response"),
    ("y ~", "nothing to regress on"),
    ("y ~ 1", "nothing to regress on"),
    ("y ~ 0", "nothing to regress on"),
    ("y ~ a - a", "nothing to regress on"),
    ("y ~ a +", "write it as in"),
    ("y ~ log(a", "write it as in"),
    ("y ~ a)", "write it as in"),
    ("y ~ a ~ c", "write it as in"),
    ("y ~ `a", "write it as in"),
    ("y ~ a c", "write it as in"),
    ("y ~ a, c", "write it as in"),
    ("y ~ 'a'", "write it as in"),
    ("y ~ 2*a", "write it as in"),
    ("y ~ \N{BOMB}", "write it as in"),
    ("y ~ \x00a", "cannot be printed"),
    ("y ~ \u202ea", "cannot be printed"),
    ("y ~ a | c", "several parts"),
    ("y ~ .", "does not say which columns"),
    ("y ~ 5:a", "is a number"),
    ("y ~ I(2)", "is a number"),
    (5, "a formula is text, not an int"),
    (None, "a formula is text"),
    # the response
    ("y + c ~ a", "the left side must be one column"),
    ("y:c ~ a", "the left side must be one column"),
    ("1 ~ a", "the left side must be one column"),
    ("I(y + c) ~ a", "must depend on one column"),
    ("y ~ y", "on the right side too"),
    ("log(y) ~ a + sqrt(y)", "on the right side too"),
    # reads private data
    ("y ~ center(a)", "center() would read private data"),
    ("y ~ scale(a)", "scale() would read private data"),
    ("y ~ standardize(a)", "standardize() would read private data"),
    ("y ~ bs(a, df=3)", "bs() would read private data"),
    ("y ~ cr(a, df=3)", "cr() would read private data"),
    ("y ~ cs(a)", "cs() would read private data"),
    ("y ~ poly(a, 2)", "poly() would read private data"),
    ("y ~ log(center(a))", "center() would read private data"),
    ("y ~ lag(a)", "would mix the rows"),
    ("y ~ C(a)", "levels of 'a' are not declared"),
    ("y ~ C(unknown)", "levels of 'unknown' are not declared"),
    # not offered
    ("y ~ C(b, contr.sum)", "C() stands alone"),
    ("y ~ C(b, Treatment(reference='w'))", "the reference 'w' of 'b' is none of its levels"),
    ("y ~ C(b, Treatment(base='y'))", "C() stands alone"),
    ("y ~ C(b, Treatment(a))", "C() stands alone"),
    ("y ~ C(b) + a:C(b, Treatment('y'))", "two reference levels"),
    ("y ~ factor(a)", "levels of 'a' are not declared"),
    ("y ~ log(factor(b))", "factor() stands alone"),
    ("y ~ min(a)", "use a public number, as in min(x, 50)"),
    ("y ~ I(1 < a < 2)", "write I((x > 18) * (x < 65))"),
    ("y ~ scale(a)", "as in I((x - 50) / 10)"),
    ("y ~ center(a)", "as in I(x - 50)"),
    ("y ~ poly(a, 2)", "as in x + I(x ** 2)"),
    ("y ~ bs(a, df=5)", "as in bs(x, knots=[40, 60], lower=18, upper=90)"),
    ("y ~ ns(a)", "ns() would read private data"),
    ("y ~ bs(a, knots=[2])", "bs() without lower= and upper= would read private data"),
    ("y ~ bs(a, knots=[2], lower=0)", "bs() without lower= and upper= would read private data"),
    ("y ~ bs(a, knots=[2], df=5, lower=0, upper=4)", "bs() takes no df="),
    ("y ~ cr(a, knots=[2], constraints='center', lower=0, upper=4)", "cr() takes no constraints="),
    ("y ~ ns(a, knots=[2], degree=2, lower=0, upper=4)", "ns() takes no degree="),
    ("y ~ bs(a, knots=c, lower=0, upper=4)", "a list of knots"),
    ("y ~ bs(a, knots=[c], lower=0, upper=4)", "is no public number"),
    ("y ~ bs(a, knots=[2], lower=c, upper=4)", "is no public number"),
    ("y ~ bs(a, knots=[3, 2], lower=0, upper=4)", "knots increase"),
    ("y ~ bs(a, knots=[2, 2], lower=0, upper=4)", "knots increase"),
    ("y ~ bs(a, knots=[2], lower=4, upper=0)", "knots increase"),
    ("y ~ bs(a, knots=[2], degree=9, lower=0, upper=4)", "whole number from 1 to 5"),
    ("y ~ bs(b, knots=[2], lower=0, upper=4)", "'b' has levels"),
    ("y ~ bs(2, knots=[2], lower=0, upper=4)", "is a number"),
    ("y ~ log(bs(a, knots=[2], lower=0, upper=4))", "stands alone or in interactions"),
    ("bs(y, knots=[2], lower=0, upper=4) ~ a", "stands alone or in interactions"),
    ("y ~ cr(a, knots=[2], lower=0, upper=4)", "sum to 1"),
    ("y ~ 0 + cr(a, knots=[2], lower=0, upper=4) + cr(c, knots=[1], lower=0, upper=2)", "sum to 1"),
    ("y ~ log(C(b))", "C() stands alone"),
    ("y ~ C(log(a))", "C() takes one column"),
    ("y ~ C()", "is not arithmetic"),
    ("y ~ log(b)", "'b' has levels"),
    ("y ~ I(b * 2)", "'b' has levels"),
    ("y ~ np.log(a)", "np.log is not offered"),
    ("y ~ I(a.mean())", "a.mean is not offered"),
    ("y ~ a[0]", "is not arithmetic"),
    ("y ~ f(a)", "unknown function f()"),
    ("y ~ log(a, 2)", "log() takes one column"),
    ("y ~ log()", "log() takes one column"),
    ("y ~ Q('a')", "in backticks"),
    ("y ~ a ** 0.5", "whole number"),
    ("y ~ I(2 ** a)", "must be a number"),
    ("y ~ I(a // 2)", "is not arithmetic"),
    ("y ~ I(a if a else 1)", "is not arithmetic"),
    ("y ~ I(1j * a)", "is not arithmetic"),
    ("y ~ I(1e999 * a)", "too large"),
    ("y ~ I(9**9**9**9 * a)", "too large"),
    # hostile
    ("y ~ __import__('os')", "unknown function __import__()"),
    ("y ~ __import__('os').system('true')", "formula"),
    ("y ~ exec('1')", "unknown function exec()"),
    ("y ~ I((lambda: 1)())", "is not offered"),
    ("y ~ I([a for a in ().__class__.__bases__])", "is not arithmetic"),
    ("y ~ I(a := 3)", "is not arithmetic"),
    ("y ~ I(f'{a}')", "is not arithmetic"),
    ("y ~ a; import os", "write it as in"),
    ("y ~ a\nimport os", "write it as in"),
    # huge
    ("y ~ " + "+".join(f"a{i}" for i in range(5000)), "more than 10,000 characters"),
    ("y ~ " + "*".join(f"a{i}" for i in range(30)), "more than 2,000 terms"),
    ("y ~ " + ":".join(["a", "b", "c", "d", "e", "f", "g", "h", "i"]), "an interaction of 9 columns"),
    ("y ~ (a + c)**99999", "more than 2,000 terms"),
    ("y ~ I(" + "-" * 900 + "a)", "nested too deeply"),
    ("y ~ I(" + "9" * 5000 + " * a)", "formula"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[str(case[0])[:40] for case in REFUSED])
def test_refusals_are_one_line(text: Any, words: str) -> None:
    with pytest.raises(DPRegressError) as refused:
        FormulaEncoder.of(text, SCHEMA)
    message = str(refused.value)
    assert words in message
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 400


def test_long_sums() -> None:
    """A sum is a deep tree: no recursion may end it."""
    names = tuple(f"a{i}" for i in range(1500))
    assert FormulaEncoder.of("y ~ " + "+".join(names), None).features == names


def test_columns_of_one_name() -> None:
    with pytest.raises(InvalidInput, match="'b=y' has the name of an indicator"):
        FormulaEncoder.of("y ~ b + `b=y`", Schema({"b": Categorical(("x", "y"))}))
    with pytest.raises(InvalidInput, match="2 of its columns are called 'a:b'"):
        FormulaEncoder.of("y ~ a:b + `a:b`", None)


def test_too_many_columns() -> None:
    wide = Schema({name: Categorical(tuple(f"{name}{i}" for i in range(50))) for name in "pqr"})
    with pytest.raises(InvalidInput, match=r"makes 1\d\d,\d{3} columns"):
        FormulaEncoder.of("y ~ p*q*r", wide)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y ~ free", "'free': declare lower and upper of 'free'"),
        ("y ~ a:free:b", "'a:free:b=x': declare lower and upper of 'free'"),
        ("y ~ log(unknown)", "'log(unknown)': declare lower and upper of 'unknown'"),
        ("y ~ log(zero)", "no finite public bounds for 'log(zero)' with zero in [0, 4]"),
        ("y ~ I(1 / zero)", "no finite public bounds"),
        ("y ~ exp(exp(`blood pressure`))", "no finite public bounds"),
        ("y ~ I(a * 0)", "is constant"),
    ],
)
def test_columns_without_bounds_are_named(text: str, words: str) -> None:
    encoder = FormulaEncoder.of(text, SCHEMA)
    with pytest.raises(UnboundedData) as refused:
        encoder.schema(SCHEMA, needed=True)
    assert words in str(refused.value)
    assert encoder.schema(SCHEMA) is not None  # public rows may bound them
    assert encoder.schema(None) is None


def test_missing_columns_are_named() -> None:
    encoder = FormulaEncoder.of("y ~ a + nothing", SCHEMA)
    with pytest.raises(InvalidInput, match="no column 'nothing'"):
        encoder.check_types(pa.schema({"a": pa.float64(), "y": pa.float64()}))


def test_without_formulaic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "formulaic.parser", None)
    with pytest.raises(InvalidInput, match=r"pip install \"dpregress\[formulas\]\""):
        FormulaEncoder.of("y ~ a", SCHEMA)


def test_missing_rules_of_the_schema_hold_in_formulas() -> None:
    schema = Schema(
        {
            "a": Numeric(0, 9, fill=4.0, missing="indicator"),
            "b": Categorical(("x", "y"), missing="level"),
            "c": Categorical(("u", "v"), missing="v"),
        }
    )
    encoder = FormulaEncoder.of("z ~ a + b + c", schema)
    assert encoder.features == ("a", "b=y", "b=missing", "c=v")
    cells = encoder.x(pa.table({"a": [1.0, None], "b": ["y", None], "c": ["u", "w"], "z": [0.0, 0.0]}))
    np.testing.assert_array_equal(cells, [[1, 1, 0, 0], [np.nan, 0, 1, 1]])
    derived = encoder.schema(schema)
    assert derived is not None
    assert derived.fill_of("a") == 4.0
    assert encoder.stand_ins == {"b": "level", "c": "v"}

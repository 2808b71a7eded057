"""Numbers in words: digits that errors support, small p-values, plurals, notes."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.display import how_many, p_equals, p_value, some_and_more, to_its_error
from dpregress.inference import PredictedIntervals
from dpregress.reports import SummaryTable


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0501511, 0.000735328, "0.05015"),
        (0.000735328, 0.000735328, "0.00074"),
        (3.00956, 0.043862, "3.010"),
        (-0.0004, 0.12, "0.00"),
        (0.0, 0.5, "0.00"),
        (9.72541e-06, 4.99729e-07, "9.73e-06"),
        (4.99729e-07, 4.99729e-07, "5.0e-07"),
        (1e-9, 4.99729e-07, "1e-09"),
        (0.0, 1e-9, "0"),
        (12345.678, 0.012, "12345.7"),
        (1234567.0, 250.0, "1.23457e+06"),
        (98765.4, 12345.6, "98765"),
        (0.999, 0.0996, "1.00"),
        (1.5, 0.0, "1.5"),
        (1.5, np.nan, "1.5"),
        (1.5, np.inf, "1.5"),
        (1.23456789, None, "1.23457"),
        (np.nan, 0.1, "nan"),
    ],
)
def test_numbers_have_the_digits_that_their_error_supports(value: float, error: float | None, text: str) -> None:
    assert to_its_error(value, error) == text


def test_small_p_values_are_below_a_bound() -> None:
    assert [p_value(value) for value in (0.0, 3.33067e-16, 0.00012, 0.5, np.nan)] == [
        "<0.0001", "<0.0001", "0.0001", "0.5000", "nan",
    ]  # fmt: skip
    assert (p_equals(0.0), p_equals(0.0312)) == ("p < 0.0001", "p = 0.0312")


def test_plurals_and_lists() -> None:
    assert [how_many(number, "row") for number in (0, 1, 1500)] == ["0 rows", "1 row", "1,500 rows"]
    assert some_and_more(list("abc"), 3) == "a, b, c"
    assert some_and_more(list("abcde"), 3) == "a, b, c and 2 more"


def test_a_coefficient_that_is_not_identified_shows_no_number() -> None:
    table = SummaryTable("", ("coef", "std err"), ("age",), ((1.25, 0.5),), (False,))
    for text in (str(table), table.to_html()):
        assert "not identified" in text
        assert "1.2" not in text
    assert table.to_frame().loc["age", "coef"] == 1.25


def test_predicted_intervals_print_their_first_rows() -> None:
    ends = np.arange(12.0)
    text = str(PredictedIntervals(ends, np.where(ends == 1, np.nan, ends - 1), ends + 1, "mean", 0.9))
    lines = text.splitlines()
    assert lines[0].split() == ["mean", "[0.05", "0.95]"]
    assert lines[1].split() == ["0", "0", "-1", "1"]
    assert lines[2].split() == ["1", "1", "not", "identified"]
    assert len(lines) == 12
    assert lines[-1].startswith("12 rows; intervals of mean responses, level 0.9 (the first 10 are shown")
    several = np.arange(4.0).reshape(2, 2) / 10
    text = str(PredictedIntervals(several, several, several, "mean", 0.95, ("no", "yes")))
    assert [line.split()[:2] for line in text.splitlines()[1:5]] == [
        ["0", "no"],
        ["0", "yes"],
        ["1", "no"],
        ["1", "yes"],
    ]

"""What the curator may look at: counts of the cells that a fit would map."""

from __future__ import annotations

import pyarrow as pa

from dpregress import Categorical, Numeric, Schema
from dpregress.curator.inspection import inspect_response, inspect_rows
from dpregress.models import family_of

SCHEMA = Schema({"age": Numeric(0, 110), "sex": Categorical(("f", "m"))})


def test_cells_are_counted_by_what_is_wrong_with_them() -> None:
    table = pa.table(
        {
            "age": [30.0, -1.0, 200.0, None, float("nan"), float("inf")],
            "sex": ["f", "m", "x", None, "", "m"],
            "dose": ["1", "two", None, "1e999", "inf", " 3 "],
        }
    )
    age, sex, dose = inspect_rows(table, SCHEMA)
    assert (age.name, age.kind, age.missing, age.not_a_number) == ("age", "number", 1, 0)
    assert (age.not_finite, age.out_of_bounds) == (2, 2)
    assert (sex.name, sex.kind, sex.counts) == ("sex", "level", (1, 0, 0, 2, 0))
    assert (dose.name, dose.kind, dose.counts) == ("dose", "number", (1, 2, 1, 0, 0))


def test_without_a_schema_everything_is_a_number() -> None:
    (sex,) = inspect_rows(pa.table({"sex": ["f", "m", "3"]}), None)
    assert sex.counts == (0, 2, 0, 0, 0)


def test_a_response_is_judged_by_its_family() -> None:
    table = pa.table({"y": ["1.0", "-2", "well", None, "0"], "sick": ["yes", "no", "?", None, "no"]})
    poisson = inspect_response(table, "y", None, (), family_of("poisson").distribution.possible)
    assert (poisson.kind, poisson.counts, poisson.impossible) == ("response", (1, 1, 0, 0, 0), 1)
    gamma = inspect_response(table, "y", None, (), family_of("gamma").distribution.possible)
    assert gamma.impossible == 2
    for name, classes in (("sick", ("no", "yes")), ("y", ("0", "1"))):
        found = inspect_response(table, name, None, classes, family_of("binomial").distribution.possible)
        assert (found.kind, found.missing, found.undeclared) == ("class", 1, 1 if name == "sick" else 2)

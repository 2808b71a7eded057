"""The law of arguments: private rows given where a name, a number or an option belongs never show in the error."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpregress
from dpregress import (
    GDP,
    ApproxDP,
    Categorical,
    DPLogisticRegression,
    DPRidge,
    Numeric,
    Policy,
    Schema,
    VerticalRegression,
    estimators,
    load,
)
from dpregress.accounting import Unit
from dpregress.errors import DPRegressError, InvalidInput, abridged, check_choice, one_line
from tests.rows.leaks import everything_said

#: Digits that are in private cells and nowhere else.
CELL = "31337"
NUMBERS = [float(CELL), float(CELL) + 0.25, 3.0]
TEXTS = [f"a{CELL}", f"b{CELL}", "c"]
#: What somebody may give by mistake: a column of a table, in any form.
PRIVATE: dict[str, Any] = {
    "Series": pd.Series(NUMBERS, name="w"),
    "Series of text": pd.Series(TEXTS, name="w"),
    "array": np.array(NUMBERS),
    "array of text": np.array(TEXTS),
    "objects": np.array([*NUMBERS, *TEXTS], dtype=object),
    "column": np.array(NUMBERS)[:, None],
    "list": NUMBERS,
    "tuple": tuple(NUMBERS),
    "list of text": TEXTS,
    "set": set(TEXTS),
    "Polars": pl.Series("w", NUMBERS),
    "Arrow": pa.array(NUMBERS),
    "DataFrame": pd.DataFrame({"w": NUMBERS}),
}
#: At night all of them, else those whose texts differ most.
FORMS = [
    pytest.param(form, marks=[pytest.mark.nightly] if form in ("column", "tuple", "set", "Arrow", "objects") else [])
    for form in PRIVATE
]
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.uniform(0, 1, (60, 2)), columns=["a", "b"]).assign(
    y=RNG.integers(0, 2, 60) * 1.0, e=1.0, i=RNG.integers(0, 30, 60)
)
SCHEMA = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1), "y": Numeric(0, 1), "e": Numeric(0.5, 2)})
CODED = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1), "y": Categorical(("0", "1"))})
X, Y = TABLE[["a", "b"]], TABLE["y"]
#: Parameters that take lists of names, whose texts are names and shown; of a series only the type is.
NAMES = ("features", "columns", "complete", "dropped", "spec", "trust", "table", "compare", "t_test", "wald_test")
TEXT_FORMS = ("list of text", "array of text", "set")
#: Not called by users with arguments of theirs, or scikit-learn's own.
SKIPPED = ("get_params", "set_params", "get_metadata_routing")


def parameters_of(function: Callable[..., Any]) -> Iterator[str]:
    """Names of the parameters that can be given by name."""
    for name, each in inspect.signature(function).parameters.items():
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) and name != "self":
            yield name


def said_by(call: Callable[[], Any]) -> str:
    """All that an error and the warnings say."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
            said = ""
        except Exception as error:
            # a location is the caller's own word
            said = "" if str(error).startswith("no file ") else everything_said(error)
    return said + "".join(str(each.message) for each in caught)


def leaks(where: str, function: Callable[..., Any], usual: dict[str, Any], value: Any) -> list[str]:
    """Parameters of a function whose error shows a cell."""
    return [
        f"{where}({name}=)"
        for name in parameters_of(function)
        if not is_named(name, value) and CELL in said_by(partial(function, **{**usual, name: value}))
    ]


def is_named(name: str, value: Any) -> bool:
    """Whether these texts are names of columns, which are public."""
    return name in NAMES and any(value is PRIVATE[form] for form in TEXT_FORMS)


#: Parameters with which every estimator fits.
USUAL: dict[str, Any] = {"privacy": ApproxDP(2.0, 1e-6), "schema": SCHEMA, "random_state": 0}


def usual_of(kind: type[Any]) -> dict[str, Any]:
    """The same with what only this estimator needs."""
    return {**USUAL, "cuts": (0.5, 2.0)} if kind is dpregress.DPSurvival else USUAL


def given_to(kind: type[Any], method: str) -> dict[str, Any]:
    """Arguments with which a method works."""
    parties = {"one": X[["a"]], "other": TABLE[["b", "y"]]}
    vertical = kind is VerticalRegression
    rows: dict[str, Any] = {"X": [X[["a"]], X[["b"]]], "y": Y} if vertical else {"X": X, "y": Y}
    table = {"table": parties if vertical else TABLE, "target": "y"} | ({} if vertical else {"features": ["a", "b"]})
    if kind is dpregress.DPSurvival:
        rows, table = {**rows, "time": TABLE["e"] + TABLE["a"]}, {**table, "time": "e"}
    return {
        "fit": rows,
        "fit_table": table,
        "predict": {"X": parties if vertical else X},
        "predict_proba": {"X": X},
        "survival": {"X": X, "times": [0.5, 1.0]},
        "cumulative_hazard": {"X": X, "times": [0.5, 1.0]},
        "decision_function": {"X": X},
        "diagnose": {"X": X, "y": Y, "privacy": GDP(0.5), "random_state": 0},
        "t_test": {"spec": "a = 0"},
        "wald_test": {"spec": "a = 0"},
        "compare": {"dropped": "a"},
        "regress": {"target": "y"},
        "regression_moments": {"target": "y"},
        "plan": {"features": ("a", "b"), "n": 100},
        "from_formula": {"formula": "y ~ a"},
    }.get(method, {})


def fitted(kind: type[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**usual_of(kind)).fit(**given_to(kind, "fit"))


KINDS = [getattr(estimators, name) for name in estimators.__all__]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_parameter_of_an_estimator_shows_cells(kind: type[Any], form: str) -> None:
    found = []
    for name in parameters_of(kind):
        given = {**usual_of(kind), name: PRIVATE[form]}
        for act in (
            lambda given=given: kind(**given).fit(**given_to(kind, "fit")),
            lambda given=given: kind(**given).fit_table(**given_to(kind, "fit_table")),
            lambda given=given: repr(kind(**given)),
        ):
            found += [name] if CELL in said_by(act) else []
    assert not found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_argument_of_a_method_shows_cells(kind: type[Any], form: str) -> None:
    model, found = fitted(kind), []
    for name, _ in inspect.getmembers(type(model), callable):
        if name.startswith(("_", "set_")) or name in SKIPPED:
            continue
        usual, value = given_to(kind, name), PRIVATE[form]
        bound = getattr(kind(**usual_of(kind)) if name.startswith("fit") else model, name)
        found += leaks(name, bound, usual, value)
        first = next(parameters_of(bound), "")
        found += [name] if not is_named(first, value) and CELL in said_by(partial(bound, value)) else []
    assert not found


def test_no_argument_of_a_saved_model_shows_cells(tmp_path: Any) -> None:
    fitted(DPRidge).save(tmp_path / "model")
    saved, found = load(tmp_path / "model"), []
    for name, _ in inspect.getmembers(type(saved), inspect.isfunction):
        for value in () if name.startswith("_") else PRIVATE.values():
            found += leaks(name, getattr(saved, name), given_to(DPRidge, name), value)
    assert not found


#: Functions and classes that take arguments of users, with arguments that work.
OTHERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "release_moments": (
        dpregress.release_moments, {"table": TABLE[["a", "b", "y"]], "schema": SCHEMA, "privacy": GDP(1.0)}
    ),
    "shared_space": (dpregress.shared_space, {"columns": ["a", "b"], "n": 100, "schema": SCHEMA, "privacy": GDP(1.0)}),
    "plan": (
        dpregress.plan,
        {"n": 100, "privacy": GDP(1.0), "schema": SCHEMA, "features": ["a"], "response": (1.0, 1.0), "repeats": 1},
    ),
    "combine": (dpregress.combine, {}),
    "load": (dpregress.load, {}),
    "GDP": (dpregress.GDP, {}),
    "ZCDP": (dpregress.ZCDP, {}),
    "PureDP": (dpregress.PureDP, {}),
    "ApproxDP": (dpregress.ApproxDP, {"epsilon": 1.0, "delta": 1e-6}),
    "MemoryLedger": (dpregress.MemoryLedger, {"budget": GDP(1.0)}),
    "SQLiteLedger": (dpregress.SQLiteLedger, {"path": "nowhere.db", "dataset": "d"}),
    "Policy": (Policy, {}),
    "Numeric": (Numeric, {"lower": 0.0, "upper": 1.0}),
    "Categorical": (Categorical, {"levels": ("a", "b")}),
    "Schema": (Schema, {}),
    "SQLQuery": (dpregress.SQLQuery, {"url": "duckdb://", "query": "SELECT 1"}),
    "Unit": (Unit, {"name": "pid"}),
    "epsilon": (GDP(1.0).epsilon, {}),
    "delta": (GDP(1.0).delta, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_no_argument_of_a_function_shows_cells(name: str) -> None:
    function, usual = OTHERS[name]
    assert not [each for value in PRIVATE.values() for each in leaks(name, function, usual, value)]


def test_columns_where_names_belong_are_refused_by_type() -> None:
    model = DPRidge(ApproxDP(1.0, 1e-6), schema=SCHEMA)
    for role, column in (("weights", "weights"), ("exposure", "exposures"), ("unit", "ids")):
        said = rf"^{role}= of fit_table takes the name of the column of the {column}, not a Series: fit\(X, y\) takes"
        with pytest.raises(InvalidInput, match=said):
            model.fit_table(TABLE, "y", ["a"], **{role: TABLE["e"]})
    with pytest.raises(InvalidInput, match=r"^diagnose= takes the share .* not a Series$"):
        model.fit(X, Y, diagnose=Y)


def test_the_law_is_about_every_public_function() -> None:
    exempt = {"PrivacyStatement", "ReleasedMoments", "SharedSpace", "PublicMoments", "__version__"}
    assert set(dpregress.__all__) - set(estimators.__all__) - exempt <= set(OTHERS)


def test_what_messages_show() -> None:
    assert [one_line(each) for each in ("a", 1, 0.5, True, None)] == ["'a'", "1", "0.5", "True", "None"]
    assert one_line(np.float64(2.5)) == "np.float64(2.5)"
    assert [one_line(each) for each in (NUMBERS, Y, np.array(1.0))] == ["a list", "a Series", "a ndarray"]
    assert abridged(["a"]) == "['a']"
    with pytest.raises(DPRegressError, match=r"^recipe must be one of a, b, not a Series$"):
        check_choice("recipe", Y, ("a", "b"))


def test_the_law_finds_a_leak() -> None:
    def planted(name: Any = None) -> None:
        raise ValueError(f"no column {name}")

    assert leaks("planted", planted, {}, PRIVATE["Series"]) == ["planted(name=)"]
    assert DPLogisticRegression in KINDS

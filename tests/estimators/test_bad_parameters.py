"""Parameters of the wrong type or beyond reason: one line that says the mend, and nothing charged."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpregress import (
    GDP,
    ZCDP,
    ApproxDP,
    Categorical,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    LocalGLM,
    MarginalsRegression,
    MemoryLedger,
    Numeric,
    Schema,
    SQLiteLedger,
    VerticalRegression,
    estimators,
)
from dpregress.accounting import Relation
from dpregress.errors import BudgetExceeded, DPRegressError, InvalidInput, LedgerError

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.uniform(-1, 1, 200), "b": RNG.uniform(-1, 1, 200), "y": RNG.poisson(1.0, 200) * 1.0})
SCHEMA = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1), "y": Numeric(0, 9)})


@pytest.mark.parametrize(
    "make",
    [
        lambda: GDP("1"),
        lambda: GDP(None),
        lambda: GDP(np.array([1.0, 2.0])),
        lambda: GDP(1j),
        lambda: GDP(10**400),
        lambda: ZCDP("x"),
        lambda: ApproxDP("1", 1e-6),
        lambda: ApproxDP(1.0, "1e-6"),
        lambda: MemoryLedger("x"),
        lambda: MemoryLedger(GDP(1.0), ""),
        lambda: SQLiteLedger(3, "x"),
    ],
)
def test_budgets_and_ledgers(make: Any) -> None:
    with pytest.raises(DPRegressError, match=r"^[^\n]+$"):
        make()


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"random_state": "a"}, "random_state= takes"),
        ({"random_state": -1}, "random_state= takes"),
        ({"random_state": 1.5}, "random_state= takes"),
        ({"fit_intercept": "no"}, "fit_intercept= takes True or False"),
        ({"fit_intercept": None}, "fit_intercept= takes True or False"),
        ({"privacy": 1.0}, r"privacy= takes a budget such as ApproxDP\(epsilon=1.0, delta=1e-6\), not a float"),
        ({"privacy": 1}, "not an int"),
        ({"schema": {}}, r"schema= takes a Schema such as Schema\(.*\), not a dict"),
        ({"row_bound": -1}, "row_bound must be positive and between"),
        ({"cov_type": "HC3"}, "cov_type must be one of robust, model, not 'HC3'"),
        ({"cov_type": "HC3"}, "not 'HC3': write cov_type='robust'$"),
        ({"cov_type": "nonrobust"}, "not 'nonrobust': write cov_type='model'$"),
        ({"cov_type": None}, "cov_type must be one of robust, model"),
        ({"alpha": 10**400}, "alpha must be finite and not negative"),
        ({"row_bound": 1e150, "schema": None}, "row_bound must be positive and between"),
        ({"row_bound": 1e-150, "schema": None}, "row_bound must be positive and between"),
    ],
)
@pytest.mark.parametrize("model", [DPPoissonRegressor, DPRidge])
def test_parameters(model: Any, parameters: dict[str, Any], said: str) -> None:
    ledger = MemoryLedger(GDP(9.0))
    with pytest.raises(InvalidInput, match=said):
        model(**{"privacy": GDP(1.0), "schema": SCHEMA, "ledger": ledger, **parameters}).fit_table(TABLE, "y")
    assert not ledger.charges


NO_PARAMETER: tuple[Any, ...] = (
    3, -1, True, 1e308, 10**400, float("nan"), 1 + 2j, "nonsense", "", b"x", [1, 2], [], ["a"], (1, 2, 3), ("a", "b"),
    (1, 0), {"a": 1}, np.arange(3), pd.NA, pd.DataFrame({"q": [1, 2]}), object(), len, Path("/nope"),
)  # fmt: skip


#: At night also those that are another one with a fixed family or no penalty.
_ALIKE = ("DPLinearRegression", "DPPoissonRegressor", "DPGammaRegressor", "DPGLMRegressor")
KINDS = [
    pytest.param(getattr(estimators, name), marks=[pytest.mark.nightly] if name in _ALIKE else [])
    for name in estimators.__all__
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning", "ignore::dpregress.errors.NoScaleWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_no_parameter_fails_late(kind: type[Any]) -> None:
    """Whatever a parameter is given, a fit works, or is refused in one line before any charge."""
    x, y = RNG.uniform(-1, 1, (60, 2)), RNG.integers(0, 2, 60).astype(float)
    schema = Schema({"x0": Numeric(-1, 1), "x1": Numeric(-1, 1), "y": Numeric(0, 1)})
    for name in inspect.signature(kind).parameters:
        for value in NO_PARAMETER:
            relation = Relation.ADD_REMOVE if kind is MarginalsRegression else Relation.REPLACE_ONE
            ledger = MemoryLedger(ApproxDP(99.0, 1e-3), relation=relation)
            vertical = kind is VerticalRegression
            given = {"privacy": ApproxDP(2.0, 1e-6), "schema": schema}
            given["ledger"] = {"party0": ledger, "party1": ledger} if vertical else ledger
            refusal = ""
            try:
                kind(**{**given, name: value}).fit([x[:, :1], x[:, 1:]] if vertical else x, y)
            except DPRegressError as error:
                refusal = str(error)
            assert "\n" not in refusal
            assert len(refusal) < 400
            assert not (refusal and ledger.charges), f"{name}= was charged, and then refused: {refusal}"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"rows": True}, r"rows= takes a whole number from 1 to 2\^31, not True"),
        ({"rows": "many"}, "rows= takes a whole number"),
        ({"bounds": 3}, r"bounds= takes two numbers such as \(0, 1\), not 3"),
        ({"bounds": (1, 0)}, "lower must be less than upper"),
        ({"recipe": ["sparse"]}, "recipe must be one of"),
        ({"schema": {}}, "schema= takes a Schema"),
    ],
)
def test_parameters_of_parties(parameters: dict[str, Any], said: str) -> None:
    ledgers = {"party0": MemoryLedger(GDP(9.0)), "party1": MemoryLedger(GDP(9.0))}
    model = VerticalRegression(**{"privacy": GDP(1.0), "schema": SCHEMA, "ledger": ledgers, **parameters})
    with pytest.raises(InvalidInput, match=said):
        model.fit([TABLE[["a"]], TABLE[["b"]]], TABLE["y"])
    assert not any(ledger.charges for ledger in ledgers.values())


@pytest.mark.parametrize("second", [MemoryLedger(GDP(1e-3)), MemoryLedger(GDP(9.0), relation=Relation.ADD_REMOVE)])
def test_no_party_is_charged_where_one_is_refused(second: MemoryLedger) -> None:
    first = MemoryLedger(GDP(9.0))
    model = VerticalRegression(GDP(1.0), schema=SCHEMA, ledger={"party0": first, "party1": second})
    with pytest.raises((BudgetExceeded, LedgerError)):
        model.fit([TABLE[["a"]], TABLE[["b"]]], TABLE["y"])
    assert first.charges == second.charges == ()


def test_a_ledger_of_two_parties_holds_both() -> None:
    for budget, charged in ((1.0, 0), (1.5, 2)):
        ledger = MemoryLedger(GDP(budget))
        model = VerticalRegression(GDP(1.0), schema=SCHEMA, ledger={"party0": ledger, "party1": ledger})
        with nullcontext() if charged else pytest.raises(BudgetExceeded):
            model.fit([TABLE[["a"]], TABLE[["b"]]], TABLE["y"])
        assert len(ledger.charges) == charged


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"target": None}, "by its name or its place, not by None"),
        ({"target": ["y"]}, "by its name or its place, not by a list"),
        ({"target": "y", "features": "ab"}, "features takes a list"),
        ({"target": "y", "features": 3}, "features takes a list"),
        ({"target": "y", "features": [1.5]}, "features takes a list .* and a float in it is no name"),
    ],
)
def test_columns_of_parties(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        VerticalRegression(GDP(1.0), schema=SCHEMA).fit_table([TABLE[["a"]], TABLE[["b", "y"]]], **columns)


@pytest.mark.parametrize("kind", [DPRidge, MarginalsRegression])
def test_features_that_are_no_list(kind: type[Any]) -> None:
    relation = Relation.ADD_REMOVE if kind is MarginalsRegression else Relation.REPLACE_ONE
    ledger = MemoryLedger(GDP(9.0), relation=relation)
    for features in ("a", 3):
        with pytest.raises(InvalidInput, match="features takes a list"):
            kind(GDP(1.0), schema=SCHEMA, ledger=ledger).fit_table(TABLE, "y", features)
    assert not ledger.charges


def test_a_path_where_rows_are_expected() -> None:
    model = DPRidge(GDP(1.0), schema=SCHEMA).fit_table(TABLE, "y")
    for path in ("rows.csv", Path("rows.csv")):
        with pytest.raises(InvalidInput, match="not rows: give an array or a table; fit_table reads files"):
            model.predict(path)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.plan(3, 10),
        lambda model: model.plan("abc", 10),
        lambda model: model.plan(("a", "b"), -3),
        lambda model: model.plan(("a", "b"), "many"),
        lambda model: model.fit_release(3, 4),
        lambda model: model.fit_release(3, model.plan(("a", "b"), 10)),
    ],
)
def test_plans_and_releases_of_studies(call: Any) -> None:
    ledger = MemoryLedger(GDP(9.0))
    with pytest.raises(InvalidInput, match=r"^[^\n]+$"):
        call(LocalGLM(ApproxDP(1.0, 1e-6), schema=SCHEMA, public=TABLE[["a", "b"]], ledger=ledger))
    assert not ledger.charges


def test_a_party_without_columns_or_with_a_response_of_text() -> None:
    ledger = MemoryLedger(GDP(9.0))
    model = VerticalRegression(GDP(1.0), ledger={"party0": ledger, "party1": ledger})
    with pytest.raises(InvalidInput, match="a party holds no columns"):
        model.fit_table([TABLE[["a"]], TABLE[[]]])
    with pytest.raises(InvalidInput, match="column 'y' is text"):
        model.fit_table([TABLE[["a"]], TABLE[["b"]].assign(y="no")], "y")
    with pytest.raises(InvalidInput, match="column 'y' is text"):
        model.fit([TABLE[["a"]], TABLE[["b"]]], TABLE["y"].astype(str))
    assert not ledger.charges


@pytest.mark.parametrize("classes", [3, {0, 1}, (0, float("nan")), "ab"])
def test_classes(classes: Any) -> None:
    with pytest.raises(InvalidInput, match="classes must be at least two"):
        DPLogisticRegression(GDP(1.0), classes=classes, schema=SCHEMA).fit_table(TABLE, "y")


def test_families_and_bounds_on_rows() -> None:
    with pytest.raises(InvalidInput, match="family must be one of"):
        DPGLMRegressor(GDP(1.0), family=[], schema=SCHEMA).fit_table(TABLE, "y")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="max_rows_per_unit must be"):
        DPRidge(GDP(1.0), schema=SCHEMA).fit(
            TABLE[["a", "b"]], TABLE["y"], unit=np.arange(200), max_rows_per_unit=10**400
        )
    with pytest.raises(InvalidInput, match="exposure should be a 1d array"):
        DPPoissonRegressor(GDP(1.0), schema=SCHEMA).fit(TABLE[["a", "b"]], TABLE["y"], exposure=TABLE[["a", "b"]])


@pytest.mark.parametrize("formula", [None, "smoker ~ a"])
def test_classes_that_are_no_levels_of_the_response(formula: str | None) -> None:
    """Every row would have weight 0, and the budget would be spent on nothing."""
    schema = Schema({**SCHEMA.columns, "smoker": Categorical(("no", "yes"))})
    rows = TABLE[["a"]].assign(smoker=np.where(TABLE["b"] > 0, "yes", "no"))
    ledger = MemoryLedger(GDP(9.0))
    model = DPLogisticRegression(GDP(1.0), schema=schema, ledger=ledger, formula=formula, classes=(0, 1))
    with pytest.raises(InvalidInput, match="'0' is a class of 'smoker' but no level of it in the schema"):
        model.fit_table(rows, None if formula else "smoker")
    assert not ledger.charges
    model.set_params(classes=("no", "yes")).fit_table(rows, None if formula else "smoker")
    coded = rows.assign(smoker=(rows["smoker"] == "yes") * 1)  # positions, as fit takes them
    if formula is None:
        model.set_params(classes=(0, 1)).fit(coded[["a"]], coded["smoker"])
    assert len(ledger.charges) == (2 if formula is None else 1)


def test_private_rows_in_the_place_of_public_ones(tmp_path: Path) -> None:
    """By whatever name: the same object, path, pattern or link."""
    private, other = tmp_path / "private.csv", tmp_path / "other.csv"
    TABLE.to_csv(private, index=False)
    TABLE[:50].to_csv(other, index=False)
    (tmp_path / "link.csv").hardlink_to(private)
    x, y = TABLE[["a", "b"]], TABLE["y"]
    for public in (private, str(private), tmp_path / "link.csv", [other, private], str(tmp_path / "p*.csv")):
        ledger = MemoryLedger(GDP(9.0))
        for formula in (None, "y ~ a + b"):
            with pytest.raises(InvalidInput, match="is the private table itself"):
                DPRidge(GDP(1.0), public=public, formula=formula, ledger=ledger).fit_table(
                    private, None if formula else "y"
                )
        assert not ledger.charges
    with pytest.raises(InvalidInput, match="public= is the private table itself"):
        DPRidge(GDP(1.0), public=TABLE).fit_table(TABLE, "y")
    with pytest.raises(InvalidInput, match="public= is the private table itself"):
        DPRidge(GDP(1.0), public=x).fit(x, y)
    DPRidge(GDP(1.0), public=other).fit_table(private, "y")


@pytest.mark.parametrize("response", [np.zeros((137, 2)), np.zeros((137, 2, 2))], ids=["columns", "dimensions"])
def test_a_refused_response_does_not_tell_the_number_of_rows(response):
    """Where neighbours differ by a row that is there or not, how many there are is private."""
    schema = Schema({"x0": Numeric(0, 1), "y": Numeric(0, 1)})
    model = MarginalsRegression(ApproxDP(1.0, 1e-6), schema=schema)
    with pytest.raises(InvalidInput) as refused:
        model.fit(np.zeros((137, 1)), response)
    assert "137" not in str(refused.value)


@pytest.mark.parametrize("kind", [DPRidge, DPLogisticRegression, DPPoissonRegressor, LocalGLM])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sample_weight", "^fit takes no sample_weight=: give weights=, for survey weights$"),
        ("freq_weights", "give weights="),
        ("offset", r"give exposure=np.exp\(offset\)"),
        ("groups", "give unit="),
        ("cov_type", "of the estimator"),
    ],
)
def test_arguments_of_other_libraries_are_told_in_the_names_of_this_one(kind: type[Any], name: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        kind(GDP(1.0), schema=SCHEMA).fit(TABLE[["a", "b"]], TABLE["y"], **{name: TABLE["a"]})
    assert name not in inspect.signature(kind.fit).parameters


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (DPRidge, "epsilon", r"^DPRidge takes no epsilon=: give privacy=ApproxDP\(epsilon, delta\)$"),
        (DPPoissonRegressor, "epsilon", "^DPPoissonRegressor takes no epsilon="),
        (LocalGLM, "data_norm", "give row_bound="),
        (DPLogisticRegression, "C", "give alpha="),
        (DPLinearRegression, "alpha", "take DPRidge"),
    ],
)
def test_parameters_of_other_libraries_are_told_in_the_names_of_this_one(kind: type[Any], name: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        kind(**{name: 1.0})
    assert name not in inspect.signature(kind).parameters


def test_predict_tells_that_it_takes_a_level() -> None:
    with pytest.raises(TypeError, match="predict takes no alpha=: give level="):
        DPRidge(GDP(1.0), schema=SCHEMA).predict(TABLE[["a", "b"]], interval="mean", alpha=0.1)

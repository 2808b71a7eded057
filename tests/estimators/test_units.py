"""``unit`` and ``max_rows_per_unit`` of fits."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpregress import GDP, DPLogisticRegression, DPRidge, MemoryLedger, Numeric, Schema
from dpregress.errors import InvalidInput, LedgerError, SeededNoiseWarning
from dpregress.releases.model_files import privacy_text
from dpregress.reports import words

SCHEMA = Schema({"a": Numeric(-1, 1), "b": Numeric(-1, 1), "y": Numeric(-4, 4)})
pytestmark = pytest.mark.filterwarnings("ignore", category=SeededNoiseWarning)


def table(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, n))
    return pd.DataFrame({"a": a, "b": b, "who": rng.integers(n // 3, size=n), "y": a - 2 * b})


def model(**parameters: Any) -> DPRidge:
    return DPRidge(GDP(1.0), **{"recipe": "one-shot", "schema": SCHEMA, "random_state": 0, **parameters})


def test_rows_beyond_k_have_no_say_in_the_fit() -> None:
    whole = table()
    extra = whole.groupby("who").cumcount() >= 2
    other = whole.copy()
    other.loc[extra, ["a", "b", "y"]] = [np.nan, 1e300, -7.0]
    fits = [model().fit_table(t, "y", unit="who", max_rows_per_unit=2) for t in (whole, other)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].coefficients_.features == ("a", "b")
    assert not np.array_equal(fits[0].coef_, model().fit_table(other, "y", ["a", "b"]).coef_)


def test_rows_without_an_id_have_no_say() -> None:
    whole = table()
    whole["who"] = whole["who"].astype("Int64").where(np.arange(600) % 5 > 0)
    other = whole.copy()
    other.loc[other["who"].isna(), ["a", "y"]] = 1.0
    fits = [model().fit_table(t, "y", unit="who", max_rows_per_unit=3) for t in (whole, other)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_tables_and_arrays_agree() -> None:
    whole = table()
    x, y = whole[["a", "b"]], whole["y"]
    fits = [model().fit_table(whole, "y", unit="who", max_rows_per_unit=2)]
    columns = (whole["who"], whole["who"].tolist(), whole["who"].astype(str), pa.array(whole["who"]))
    fits += [model().fit(x, y, unit=ids, max_rows_per_unit=2) for ids in columns]
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fitted.coef_, fits[0].coef_)


def test_one_row_a_unit_is_the_fit_of_records() -> None:
    whole = table().assign(who=np.arange(600))
    x, y = whole[["a", "b"]], whole["y"]
    bounded = model().fit(x, y, unit=whole["who"], max_rows_per_unit=1)
    np.testing.assert_array_equal(bounded.coef_, model().fit(x, y).coef_)


def test_noise_is_k_times_as_large() -> None:
    whole = table()
    released = [model().fit_table(whole, "y", unit="who", max_rows_per_unit=k).moments_ for k in (1, 2, 5)]
    sigmas = [moments.noise.sigma / moments.space.joint_radius**2 for moments in released]
    np.testing.assert_allclose(np.array(sigmas) / sigmas[0], [1, 2, 5], rtol=1e-9)


def test_it_says_whom_it_protects() -> None:
    fitted = model(random_state=None).fit_table(table(), "y", unit="who", max_rows_per_unit=4)
    unit = "value of who, with all its rows, of which only 4 are used"
    for text in (str(fitted.summary()), words.total(fitted.privacy_), " ".join(words.guarantee(fitted.privacy_))):
        assert unit in text
    assert "any one who had been replaced" in " ".join(words.guarantee(fitted.privacy_))
    record = json.loads(privacy_text(fitted.privacy_, software="test"))
    assert (record["unit"], record["max_rows_per_unit"], record["relation"]) == ("who", 4, "replace-one")
    assert (record["unit_mu"], record["record_mu"]) == (1.0, 0.5)
    assert "the largest number of rows of one who that count, 4" in record["assumed_public"]
    assert sum(event["mu"] ** 2 for event in record["events"]) == pytest.approx(1.0)


def test_clones_and_cross_validation_still_protect_records() -> None:
    whole, ledger = table(), MemoryLedger(GDP(10.0))
    estimator = clone(model(ledger=ledger))
    cross_val_score(estimator, whole[["a", "b"]], whole["y"], cv=3)
    assert len(ledger.charges) == 3
    with pytest.raises(LedgerError, match="ledger is record, and the unit of this fit is who"):
        estimator.fit_table(whole, "y", unit="who", max_rows_per_unit=2)
    assert len(ledger.charges) == 3


def test_cross_validation_passes_ids_on() -> None:
    whole, ledger = table(), MemoryLedger(GDP(10.0), unit="who")
    passed = {"unit": whole["who"], "max_rows_per_unit": 2}
    cross_val_score(model(ledger=ledger), whole[["a", "b"]], whole["y"], cv=3, params=passed)
    assert len(ledger.charges) == 3


def test_classifiers_take_units() -> None:
    whole = table()
    labels = np.where(whole["y"] > 0, "yes", "no")
    fitted = DPLogisticRegression(GDP(5.0), schema=SCHEMA, classes=("no", "yes"))
    fitted.fit(whole[["a", "b"]], labels, unit=whole["who"], max_rows_per_unit=3)
    assert fitted.privacy_.record_mu == pytest.approx(10 / 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"unit": "who"}, "unit goes with max_rows_per_unit"),
        ({"max_rows_per_unit": 2}, "max_rows_per_unit goes with unit"),
        ({"unit": "who", "max_rows_per_unit": 0}, "at least 1, not 0"),
        ({"unit": "who", "max_rows_per_unit": -3}, "at least 1, not -3"),
        ({"unit": "who", "max_rows_per_unit": 1.5}, "whole number"),
        ({"unit": "who", "max_rows_per_unit": True}, "whole number"),
        ({"unit": "who", "max_rows_per_unit": 10**12}, "too small"),
        ({"unit": "nobody", "max_rows_per_unit": 2}, "no column 'nobody'"),
        ({"unit": "y", "max_rows_per_unit": 2}, "is the target"),
        ({"unit": "a", "features": ["a", "b"], "max_rows_per_unit": 2}, "among the features"),
        ({"unit": 3, "max_rows_per_unit": 2}, "the name of the column of the ids, not an int"),
    ],
)
def test_refusals_charge_nothing(arguments: dict[str, Any], said: str) -> None:
    ledger = MemoryLedger(GDP(2.0), unit="who")
    with pytest.raises(InvalidInput, match=said):
        model(ledger=ledger).fit_table(table(), "y", **arguments)
    assert not ledger.charges


def test_arrays_are_refused_too() -> None:
    whole = table()
    x, y = whole[["a", "b"]], whole["y"]
    for unit, said in (("who", "fit_table"), (whole["who"][:-1], "unit has 599"), (x.to_numpy(), "shape")):
        with pytest.raises(InvalidInput, match=said):
            model().fit(x, y, unit=unit, max_rows_per_unit=2)
    for kind in (pa.timestamp("s"), pa.list_(pa.int64())):
        odd = pa.table({"a": [0.5], "y": [0.5], "who": pa.nulls(1, kind)})
        with pytest.raises(InvalidInput, match="unit column 'who' is of type"):
            model().fit_table(odd, "y", unit="who", max_rows_per_unit=2)


@pytest.mark.parametrize("name", [" who ", "who\xa0", "w\nho", "w" * 300])
def test_a_column_of_ids_may_be_called_anything(name: str) -> None:
    """Names that no ledger's file takes are those of tables all the same, and so are those of responses."""
    whole = table().rename(columns={"who": name})
    fitted = model(random_state=None).fit_table(whole, "y", ["a", "b"], unit=name, max_rows_per_unit=2)
    assert fitted.privacy_.unit == name


@pytest.mark.parametrize("name", [" y ", "y\n", "\x1b[2J", "y" * 3000])
def test_a_response_may_be_called_anything(name: str) -> None:
    ledger, whole = MemoryLedger(GDP(10.0)), table()
    DPRidge(GDP(1.0), row_bound=10.0, ledger=ledger).fit(whole[["a", "b"]], whole["y"].rename(name))
    assert ledger.charges[0].note.isprintable()

"""A release of moments is paid for once, before it reads; what is computed from it draws, reads and charges nothing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from dpregress import (
    GDP,
    ApproxDP,
    Categorical,
    DPLinearRegression,
    DPRidge,
    MemoryLedger,
    Numeric,
    PublicMoments,
    ReleasedMoments,
    Schema,
    combine,
    release_moments,
    shared_space,
)
from dpregress.coordinates import svec
from dpregress.errors import BudgetExceeded, InvalidInput, SeededNoise, UnboundedData
from tests import registry
from tests.laws.spies import CHARGE, DRAW, NOISE, READ, Silent, watched

#: Relative error of a whole fit.
CLOSE = 1e-8
#: At this mu the noise is below rounding and no row is shrunk.
HUGE = GDP(1e12)
NAMES = ("a", "b", "c", "y")
SCHEMA = Schema({name: Numeric(-40, 40) for name in NAMES})

Facts = Callable[[np.random.Generator], dict[str, Any]]


def table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Correlated columns away from 0."""
    x = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.5, 0.3], [0.0, 0.0, 2.0]]) + [3.0, -1.0, 0.0]
    return pd.DataFrame(np.column_stack([x, x @ [1.0, -2.0, 0.5] + rng.normal(size=n)]), columns=list(NAMES))


def published(rng: np.random.Generator) -> PublicMoments:
    """Moments without the rows."""
    rows = table(rng, 300).to_numpy()
    return PublicMoments.from_matrix(rows.T @ rows / len(rows), n=len(rows), mean=rows.mean(axis=0), names=NAMES)


#: What is public, for every way in which coordinates are found.
FACTS: dict[str, Facts] = {
    "public rows": lambda rng: {"public": table(rng, 300)},
    "few public rows": lambda rng: {"public": table(rng, 30)},
    "very few public rows": lambda rng: {"public": table(rng, 15), "schema": SCHEMA},
    "a public moment": lambda rng: {"public": published(rng)},
    "a schema": lambda _: {"schema": SCHEMA},
    "a bound": lambda _: {"row_bound": 50.0},
    "shared coordinates": lambda rng: {"like": shared_space(n=2_000, privacy=GDP(1.0), public=table(rng, 300))},
}  # fmt: skip


def released(facts: str, seed: int, n: int = 2_000, **parameters: Any) -> ReleasedMoments:
    rng = np.random.default_rng(seed)
    return release_moments(table(rng, n), **{"privacy": GDP(0.9), **FACTS[facts](rng), **parameters})


def exact(rows: Any, privacy: GDP = HUGE, **parameters: Any) -> ReleasedMoments:
    with patch("dpregress.trust.session.noise_sampler", return_value=Silent()):
        return release_moments(rows, privacy=privacy, **parameters)


# ---------------------------------------------------------------- paid once


@pytest.mark.parametrize("facts", FACTS)
def test_draws_are_the_promise_and_the_promise_is_the_budget(facts: str, seed: int) -> None:
    for budget in (GDP(0.9), ApproxDP(5.0, 1e-6)):
        ledger = MemoryLedger(GDP(2.0))
        statement = released(facts, seed, privacy=budget, ledger=ledger).privacy_
        assert math.isclose(statement.events.mu, statement.promise.mu, rel_tol=1e-9)
        assert math.isclose(statement.promise.mu, budget.gaussian_mu, rel_tol=1e-9)
        assert [charge.event for charge in ledger.charges] == [statement.promise]
        assert not statement.seeded


@pytest.mark.parametrize("facts", FACTS)
def test_it_is_paid_before_it_reads(facts: str, seed: int) -> None:
    with watched() as steps:
        released(facts, seed)
    assert steps[0] == CHARGE
    assert steps.count(CHARGE) == 1
    assert READ in steps
    assert steps.count(NOISE) == steps.count(DRAW) >= 1
    drawn = answered = 0
    for step in steps[1:]:
        drawn += step == DRAW
        answered += step == NOISE
        assert answered <= drawn
        assert step != READ or answered < drawn, f"rows read unpaid: {steps}"


@pytest.mark.parametrize("facts", FACTS)
def test_a_refused_charge_reads_and_draws_nothing(facts: str, seed: int) -> None:
    ledger = MemoryLedger(GDP(0.5))
    with watched() as steps, pytest.raises(BudgetExceeded):
        released(facts, seed, ledger=ledger)
    assert steps == []
    assert not ledger.charges


@pytest.mark.parametrize("facts", FACTS)
def test_no_private_cell_raises_or_warns(facts: str, seed: int) -> None:
    """Warnings are errors in this suite."""
    rng = np.random.default_rng(seed)
    rows = registry.wild_rows(rng, 900)
    wild = pd.DataFrame(np.column_stack([rows.x, rows.y]), columns=list(NAMES))
    found = release_moments(wild, privacy=GDP(0.9), complete=["y"], **FACTS[facts](rng))
    model = DPLinearRegression.from_moments(found, "y")
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(found.correlations().value).all()


def test_a_seed_is_recorded(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = released("a schema", seed, random_state=seed)
    with pytest.raises(SeededNoise):
        found.privacy_.epsilon(1e-6)
    assert "no protection" in str(DPLinearRegression.from_moments(found, "y").summary())


def test_units_divide_the_budget(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = table(rng, 2_000).assign(person=np.arange(2_000) // 4)
    found = release_moments(rows, privacy=GDP(0.8), schema=SCHEMA, unit="person", max_rows_per_unit=2)
    assert math.isclose(found.privacy_.mu, 0.8)
    assert found.rows_of_a_unit == 2
    assert "person" not in found.names
    assert abs(found.n - 1_000) < 200  # half of the rows count; their noisy number, far within its noise


# ---------------------------------------------------------------- everything after it is free


def test_what_follows_draws_nothing(seed: int) -> None:
    """Ten regressions, paths, selections, components, sites and files: no charge, draw, noise or read."""
    rng = np.random.default_rng(seed)
    first = released("public rows", seed, site="first")
    second = release_moments(table(rng, 1_500), privacy=GDP(0.5), like=first, site="second")
    with watched() as steps:
        for target in NAMES:
            others = [name for name in NAMES if name != target]
            for features in (None, others[:2], others[1:]):
                model = DPLinearRegression.from_moments(first, target, features)
                str(model.summary()), model.conf_int(), model.wald_test_terms()
        DPRidge.from_moments(first, "y", alpha=10.0)
        model.path("lasso").refit(), model.path("ridge"), model.path("elastic-net")
        model.select("forward").refit("aic"), model.select("best").refit()
        both = combine([first, second])
        both.heterogeneity(), both.heterogeneity("y"), both.partial_correlations(), both.principal_components()
    assert steps == []


def test_selection_from_any_fit_draws_nothing(seed: int) -> None:
    """The same of the default fit: penalty paths cost nothing there either."""
    rng = np.random.default_rng(seed)
    model = DPLinearRegression(GDP(1.0), public=table(rng, 300)).fit_table(table(rng, 5_000), "y")
    with watched() as steps:
        model.path("ridge"), model.path("lasso").refit(), model.select("best")
    assert steps == []


# ---------------------------------------------------------------- without noise it is least squares


@pytest.mark.parametrize("facts", [name for name in FACTS if name != "shared coordinates"])
@pytest.mark.parametrize("target", NAMES)
def test_without_noise_it_is_least_squares(facts: str, target: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = table(rng, 600)
    found = exact(rows, **FACTS[facts](rng))
    x, y = rows.drop(columns=target), rows[target]
    for alpha, right in ((0.0, LinearRegression().fit(x, y)), (30.0, Ridge(alpha=30.0, solver="svd").fit(x, y))):
        model = DPRidge.from_moments(found, target, alpha=alpha)
        np.testing.assert_allclose(model.coef_, right.coef_, rtol=CLOSE, atol=CLOSE)
        np.testing.assert_allclose(model.intercept_, right.intercept_, rtol=CLOSE, atol=CLOSE)
        np.testing.assert_allclose(model.predict(x), right.predict(x), rtol=1e-6)


def test_through_the_origin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = table(rng, 600)
    model = DPLinearRegression.from_moments(exact(rows, schema=SCHEMA), "y", ["a", "b"], fit_intercept=False)
    right = LinearRegression(fit_intercept=False).fit(rows[["a", "b"]], rows["y"])
    np.testing.assert_allclose(model.coef_, right.coef_, rtol=CLOSE)
    assert model.intercept_ == 0.0


def test_all_columns_are_treated_alike(seed: int) -> None:
    """In another order of the columns the same statistics come out."""
    rng = np.random.default_rng(seed)
    rows, public = table(rng, 2_000), table(rng, 300)
    there = exact(rows, GDP(1.0), public=public)
    turned = list(reversed(NAMES))
    back = exact(rows[turned], GDP(1.0), public=public[turned])
    assert math.isclose(there.space.radius, back.space.radius, rel_tol=1e-9)
    for target in NAMES:
        features = [name for name in NAMES if name != target]
        ways = [DPLinearRegression.from_moments(found, target, features) for found in (there, back)]
        np.testing.assert_allclose(ways[0].coef_, ways[1].coef_, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ways[0].bse, ways[1].bse, rtol=1e-7)


def test_rows_without_a_required_cell_count_nowhere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, public = table(rng, 800), table(rng, 300)
    gaps = rows.assign(y=np.where(rng.random(800) < 0.3, np.nan, rows["y"]))
    whole = gaps.dropna()
    for facts in ({"public": public}, {"schema": SCHEMA}):
        found, right = exact(gaps, complete=["y"], **facts), exact(whole, **facts)
        assert found.n == right.n == len(whole)
        models = [DPLinearRegression.from_moments(each, "y") for each in (found, right)]
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-7)
        np.testing.assert_allclose(models[0].bse, models[1].bse, rtol=1e-6)


def test_levels_are_columns_of_their_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = table(rng, 900).assign(plan=rng.choice(["free", "basic", "full"], 900))
    schema = Schema({**SCHEMA.columns, "plan": Categorical(("free", "basic", "full"))})
    found = exact(rows, schema=schema)
    assert found.names[-2:] == ("plan=basic", "plan=full")
    model = DPLinearRegression.from_moments(found, "y", ["a", "plan"])
    design = np.column_stack([rows["a"], rows["plan"] == "basic", rows["plan"] == "full"]).astype(float)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(design, rows["y"]).coef_, rtol=CLOSE)
    np.testing.assert_allclose(
        model.predict(rows[["a", "plan"]]), LinearRegression().fit(design, rows["y"]).predict(design)
    )
    assert "plan" in model.wald_test_terms().terms
    assert "plan=basic" not in DPLinearRegression.from_moments(found, "plan=full").coefficients_.features
    by_formula = DPLinearRegression.from_moments(found, formula="y ~ a + C(plan)")
    np.testing.assert_allclose(by_formula.coef_, model.coef_, rtol=1e-9)
    np.testing.assert_allclose(by_formula.predict(rows), model.predict(rows[["a", "plan"]]))
    for wrong in ("y ~ a * b", "y ~ log(a)"):
        with pytest.raises(InvalidInput, match="was not released"):
            DPLinearRegression.from_moments(found, formula=wrong)
    with pytest.raises(InvalidInput, match="is categorical"):
        DPLinearRegression.from_moments(found, "plan")


# ---------------------------------------------------------------- sites


def test_sites_add_up_to_one_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, space = table(rng, 1_500), shared_space(n=500, privacy=HUGE, public=table(rng, 300))
    parts = [exact(rows[i : i + 500], like=space, site=f"site {i}") for i in (0, 500, 1_000)]
    both, whole = combine(parts), exact(rows, like=space)
    assert both.n == whole.n == 1_500
    for target in NAMES:
        models = [DPLinearRegression.from_moments(found, target) for found in (both, whole)]
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=CLOSE, atol=CLOSE)


def test_combined_guarantee_is_the_weakest_site(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = shared_space(n=500, privacy=GDP(1.0), public=table(rng, 300))
    ledgers = [MemoryLedger(GDP(2.0)) for _ in range(2)]
    parts = [
        release_moments(table(rng, 500), privacy=GDP(mu), like=space, ledger=ledger)
        for mu, ledger in zip((0.5, 1.5), ledgers, strict=True)
    ]
    found = combine(parts)
    assert math.isclose(found.privacy_.mu, 1.5)
    assert "no person is in two" in " ".join(found.privacy_.assumed_public)
    assert [math.isclose(ledger.spent.mu, mu) for ledger, mu in zip(ledgers, (0.5, 1.5), strict=True)] == [True, True]
    assert [site.name for site in found.sites] == ["site 1", "site 2"]


def test_other_coordinates_are_refused(seed: int) -> None:
    first, other = (released("public rows", each, site=f"s{each % 2}") for each in (seed, seed + 1))
    with pytest.raises(InvalidInput, match="different coordinates"):
        combine([first, other])
    with pytest.raises(InvalidInput, match="two sites are called"):
        combine([first, first])
    with pytest.raises(InvalidInput, match="given twice"):
        combine([first, replace(first, sites=(replace(first.sites[0], name="another"),))])
    with pytest.raises(InvalidInput, match="two sites or more"):
        first.heterogeneity()


def test_the_first_release_may_fix_the_coordinates(seed: int) -> None:
    """By a schema alone the first site whitens privately; the others follow it, all their budget in one release."""
    rng = np.random.default_rng(seed)
    first = released("a schema", seed, site="first")
    second = release_moments(table(rng, 2_000), privacy=GDP(0.9), like=first, site="second")
    assert len(first.sites[0].privacy.events.parts) == 4
    assert len(second.sites[0].privacy.events.parts) == 1
    assert combine([first, second]).n == first.n + second.n


# ---------------------------------------------------------------- files and refusals


def test_a_file_holds_all_of_it(seed: int, tmp_path: Path) -> None:
    found = combine([released("very few public rows", seed)])
    found.save(tmp_path / "m.json")
    read = ReleasedMoments.load(tmp_path / "m.json")
    assert read.text() == found.text()
    np.testing.assert_array_equal(read.moments.total, found.moments.total)
    models = [DPLinearRegression.from_moments(each, "y") for each in (found, read)]
    np.testing.assert_array_equal(models[0].bse, models[1].bse)
    assert read.privacy_.promise == found.privacy_.promise
    release_moments(table(np.random.default_rng(seed), 100), privacy=GDP(1.0), like=tmp_path / "m.json")


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({}, UnboundedData, "public bound"),
        ({"privacy": None}, InvalidInput, "privacy= is not set"),
        ({"columns": ["a"], "schema": SCHEMA}, InvalidInput, "fewer than two columns"),
        ({"columns": ["a", "z"], "schema": SCHEMA}, InvalidInput, "'z'"),
        ({"schema": SCHEMA, "complete": ["z"]}, InvalidInput, "'z' is required"),
        ({"schema": {"a": 1}}, InvalidInput, "schema= takes"),
        ({"public": 3}, InvalidInput, "public= takes"),
        ({"like": 3}, InvalidInput, "like= takes"),
        ({"like": 3, "schema": SCHEMA}, InvalidInput, "leave the other parameters out"),
        ({"schema": SCHEMA, "site": "two\nlines"}, InvalidInput, "one line"),
    ],
)
def test_refusals_come_before_the_charge(parameters: dict[str, Any], error: type[Exception], said: str) -> None:
    ledger = MemoryLedger(GDP(2.0))
    with watched() as steps, pytest.raises(error, match=said):
        release_moments(table(np.random.default_rng(0), 50), **{"privacy": GDP(1.0), "ledger": ledger, **parameters})
    assert steps == []


def test_columns_that_were_not_released_are_refused(seed: int) -> None:
    found = released("a schema", seed)
    for target, features, said in (
        ("z", None, "not among the released columns"),
        ("y", ["z"], "not among the released columns"),
        ("y", ["y"], "not on itself"),
        ("y", [], "at least one other column"),
        ("y", "a", "list of column names"),
        (None, None, "name the response"),
    ):
        with pytest.raises(InvalidInput, match=said):
            DPLinearRegression.from_moments(found, target, features)


# ---------------------------------------------------------------- the sensitivity of what is summed


@pytest.mark.parametrize("facts", ["public rows", "a schema"])
def test_replacing_a_row_moves_the_sum_by_no_more_than_its_sensitivity(facts: str, seed: int) -> None:
    """Rows of every size and direction in the place of one another; orthogonal far rows reach the bound."""
    rng = np.random.default_rng(seed)
    rows = table(rng, 40)
    known = FACTS[facts](rng)
    space = shared_space(n=40, privacy=GDP(1.0), **known)
    back = np.linalg.inv(space.space.whitening)
    far = 1e9 * (np.linalg.qr(rng.normal(size=(5, 5)))[0] @ back.T)[:, 1:]
    others = [*far, *(10.0 ** rng.integers(-3, 9, size=(20, 1)) * rng.normal(size=(20, 4))), np.full(4, np.nan)]
    totals = []
    for other in others:
        changed = rows.copy()
        changed.iloc[7] = other
        totals.append(svec.svec(exact(changed, GDP(1.0), like=space).moments.total))
    moved = max(float(np.linalg.norm(one - two)) for one in totals for two in totals)
    sensitivity = math.sqrt(2) * space.space.radius**2
    assert 0.99 * sensitivity <= moved <= sensitivity * (1 + 1e-12)

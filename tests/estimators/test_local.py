"""LocalGLM: paid for first, blind to strange cells, calibrated, and one release for every model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from dpregress import Categorical, LocalGLM, Numeric, PublicMoments, Schema
from dpregress.accounting import GDP, ZCDP, ApproxDP, MemoryLedger, PureDP, Relation
from dpregress.accounting.shuffle import shuffled_epsilon
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import BudgetExceeded, InvalidInput, LedgerError, UnboundedData
from dpregress.models import family_of
from dpregress.models.mean_responses import LOSSES, MEAN_RESPONSES, MeanResponse
from tests import registry
from tests.laws.expected_failures import EVERY
from tests.laws.spies import CHARGE, DRAW, NOISE, READ, watched

seeded = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
W = np.array([1.0, -0.5, 0.25])
MESSAGES = ("unit-vector", "gaussian", "joint")
BUDGET = ApproxDP(2.0, 1e-6)


def sample(rng: np.random.Generator, n: int, shift: float = 0.0) -> tuple[Matrix, Vector]:
    x = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + shift
    z = (x - shift) / [1.0, 10.0, 0.1]
    return x, (rng.random(n) < 1 / (1 + np.exp(-(z @ W) - 0.5))).astype(float)


def model_of(rng: np.random.Generator, labelled: bool = False, **more: Any) -> LocalGLM:
    x, y = sample(rng, 300)
    return LocalGLM(**{"privacy": BUDGET, "public": PublicMoments.from_rows(x, y if labelled else None), **more})


# ------------------------------------------------------------------ privacy


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("recipe", MESSAGES)
def test_paid_first_and_once(recipe: str, labelled: bool, seed: int) -> None:
    """One charge, one draw, then the rows: a user answers once."""
    rng = np.random.default_rng(seed)
    x, y = sample(rng, 200)
    model = model_of(rng, labelled, recipe=recipe)
    with watched() as steps:
        model.fit(x, y)
    assert [step for step in steps if step != NOISE] == [CHARGE, DRAW, READ]
    budget = BUDGET
    assert budget.covers(model.privacy_.promise)
    assert model.privacy_.events.parts == (model.privacy_.promise,)
    if recipe == "unit-vector":
        assert model.privacy_.promise == PureDP(2.0)
    else:  # the whole budget, less what integer messages add to delta
        assert (1 - 1e-6) * budget.gaussian_mu < model.privacy_.promise.mu < budget.gaussian_mu
    assert model.privacy_.relation is Relation.REPLACE_ONE
    assert "local model" in str(model.summary())
    assert not model.privacy_.seeded


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("recipe", MESSAGES)
def test_no_cell_raises_or_warns(recipe: str, labelled: bool, seed: int) -> None:
    """However strange; the answer is finite."""
    rng = np.random.default_rng(seed)
    rows = registry.wild_rows(rng, 300)
    table = pd.DataFrame({**{f"x{i}": column for i, column in enumerate(rows.x.T)}, "y": rows.y})
    model = model_of(rng, labelled, recipe=recipe)
    for fitted in (model.fit(rows.x, rows.y), model.fit_table(table, "y")):
        assert np.isfinite(fitted.coef_).all()
        assert math.isfinite(fitted.intercept_)


@seeded
@pytest.mark.parametrize("recipe", MESSAGES)
def test_the_plan_sees_public_facts_only(recipe: str, seed: int) -> None:
    """Other rows, the same questions."""
    rng = np.random.default_rng(seed)
    model = model_of(rng, recipe=recipe, random_state=0)
    fits = [clone(model).fit(*sample(np.random.default_rng(i), 200, 100.0 * i)) for i in range(2)]
    message_plans = [fit.message_plan_ for fit in fits]
    assert message_plans[0].space.same_as(message_plans[1].space)
    assert message_plans[0].spend == message_plans[1].spend
    assert model.plan(("x0", "x1", "x2"), 200).space.same_as(message_plans[0].space)


@pytest.mark.parametrize("unit", ["record", "user"])
def test_a_ledger_of_what_a_user_spends(unit: str, seed: int) -> None:
    """Each study once, with the event of its message; refits are free; fitting a collected study again is free."""
    rng = np.random.default_rng(seed)
    ledger = MemoryLedger(PureDP(5.0), unit=unit)
    model = model_of(rng, ledger=ledger)
    for _ in range(2):
        model.fit(*sample(rng, 200)).refit("poisson")
        model.set_params(family="binomial")
    assert [charge.event for charge in ledger.charges] == [PureDP(2.0)] * 2
    assert "local model" in model.privacy_.unit
    with watched() as steps, pytest.raises(BudgetExceeded):
        model.fit(*sample(rng, 200))
    assert not steps
    collected = model_of(rng).fit(*sample(rng, 200))
    ledger = MemoryLedger(PureDP(3.0), unit=unit)
    model.set_params(ledger=ledger)
    for _ in range(2):
        model.fit_release(collected.release_, collected.message_plan_)
    assert [charge.event for charge in ledger.charges] == [PureDP(2.0)]
    another = model_of(rng).fit(*sample(rng, 200))
    with pytest.raises(BudgetExceeded):
        model.fit_release(another.release_, another.message_plan_)
    model.set_params(ledger=MemoryLedger(PureDP(3.0), unit="household"))
    with pytest.raises(LedgerError, match="unit='user'"):
        model.fit_release(another.release_, another.message_plan_)
    with pytest.raises(LedgerError, match="unit='user'"):
        model.fit(*sample(rng, 200))
    assert not model.ledger.charges


@pytest.mark.parametrize("recipe", ["auto", *MESSAGES])
def test_a_ledger_of_the_budget_of_a_study_covers_the_study(recipe: str, seed: int) -> None:
    """Once: unit vectors count by their epsilon, so that nothing is left."""
    rng = np.random.default_rng(seed)
    ledger = MemoryLedger(BUDGET, unit="user")
    model = model_of(rng, recipe=recipe, ledger=ledger).fit(*sample(rng, 200))
    assert [charge.event for charge in ledger.charges] == [model.privacy_.promise]
    assert ledger.spent.epsilon(BUDGET.delta0) <= BUDGET.epsilon0 * (1 + 1e-9)
    with pytest.raises(BudgetExceeded):
        model.fit(*sample(rng, 200))
    assert len(ledger.charges) == 1


def test_families_have_the_means_of_the_paper() -> None:
    z = np.linspace(-3, 3, 7)
    for family, loss in {"gaussian": "squared", "binomial": "logistic", "poisson": "exponential"}.items():
        np.testing.assert_array_equal(MEAN_RESPONSES[family].mean(z), LOSSES[loss].mean(z))
        np.testing.assert_allclose(MEAN_RESPONSES[family].mean(z), family_of(family).mean(z), rtol=1e-12)


def test_shuffling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = model_of(rng).fit(*sample(rng, 5_000))
    assert model.shuffled_epsilon() == shuffled_epsilon(PureDP(2.0), 5_000, 1e-6) < 1.0
    assert model.shuffled_epsilon(1e-3) < model.shuffled_epsilon()
    assert "If shuffled" in str(model.summary())


# ------------------------------------------------------------------ accuracy


@seeded
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("recipe", MESSAGES)
def test_many_users_find_the_truth(recipe: str, labelled: bool, seed: int) -> None:
    """A million users, 3,000 public rows, eps 8: within 6 stated standard errors plus 0.1 for what they leave out."""
    rng = np.random.default_rng(seed)
    public = (
        PublicMoments.from_rows(*sample(rng, 3_000)) if labelled else PublicMoments.from_rows(sample(rng, 3_000)[0])
    )
    model = LocalGLM(ApproxDP(8.0, 1e-6), public=public, recipe=recipe, random_state=rng).fit(*sample(rng, 300_000))
    scale = np.array([1.0, 10.0, 0.1])
    found = model.coefficients_
    allowed = 6 * found.standard_error * scale + 0.1
    assert (np.abs(found.coef * scale - W) <= allowed).all()
    assert (found.privacy_error <= found.standard_error * (1 + 1e-9)).all()
    assert abs(model.intercept_ - 0.5) < 0.3


@pytest.mark.nightly
@seeded
def test_intervals_cover(seed: int) -> None:
    """100 campaigns, 90% intervals: counts that true coverages of 85% stay below less than once in 10^8."""
    repeats, inside = 100, np.zeros(3)
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        public = PublicMoments.from_rows(sample(rng, 1_000)[0])
        found = LocalGLM(ApproxDP(4.0, 1e-6), public=public, random_state=rng).fit(*sample(rng, 5_000)).coefficients_
        off = np.abs(found.coef - W / [1.0, 10.0, 0.1])
        inside += off <= 1.645 * found.standard_error
    assert (inside >= binom.ppf(1e-9, repeats, 0.85)).all(), inside / repeats


@seeded
@pytest.mark.parametrize("facts", ["a schema", "a row bound", "a matrix"])
def test_other_public_facts(facts: str, seed: int) -> None:
    """Without public rows the Gram matrix is collected too. Signs of the two large slopes; noise is far below them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(100_000, 2))
    y = x @ [1.0, -1.0] + rng.uniform(-1, 1, size=100_000)
    given: dict[str, Any] = {
        "a schema": {"schema": Schema({"x0": Numeric(-1, 1), "x1": Numeric(-1, 1), "y": Numeric(-3, 3)})},
        "a row bound": {"row_bound": 1.5, "response_bounds": (-3.0, 3.0)},
        "a matrix": {
            "public": PublicMoments.from_matrix(np.eye(2) / 3, n=500, mean=np.zeros(2)),
            "response_bounds": (-3.0, 3.0),
        },
    }[facts]
    model = LocalGLM(ApproxDP(8.0, 1e-6), family="gaussian", random_state=rng, **given).fit(x, y)
    np.testing.assert_allclose(model.coef_, [1.0, -1.0], atol=0.35)


@seeded
def test_columns_with_levels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema({"kind": Categorical(("a", "b")), "v": Numeric(0, 1)})
    table = pd.DataFrame({"kind": rng.choice(["a", "b"], 20_000), "v": rng.random(20_000)})
    y = (rng.random(20_000) < np.where(table["kind"] == "b", 0.8, 0.2)).astype(float)
    model = LocalGLM(ApproxDP(8.0, 1e-6), schema=schema, random_state=rng).fit(table, y)
    assert list(model.coefficients_.features) == ["kind=b", "v"]
    assert model.predict(table).shape == (20_000,)


# ------------------------------------------------------------------ one release, many models


def test_refits_are_free(seed: int) -> None:
    """No model but the first asks anybody; going back gives the first answer again."""
    rng = np.random.default_rng(seed)
    model = model_of(rng).fit(*sample(rng, 2_000))
    first = model.coef_
    own = MeanResponse("arctan", lambda z: 0.5 + np.arctan(z) / np.pi, lambda z: 1 / (np.pi * (1 + z**2)))
    with watched() as steps:
        for family in (*MEAN_RESPONSES, own):
            coef = model.coef_for(family)
            assert np.isfinite(coef).all()
            np.testing.assert_array_equal(model.refit(family).coef_, coef)
        np.testing.assert_array_equal(model.refit("binomial").coef_, first)
    assert not steps


# ------------------------------------------------------------------ public input


def test_wrong_public_input_is_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = sample(rng, 50)
    public = PublicMoments.from_rows(x)
    refused: list[tuple[dict[str, Any], str]] = [
        *(({"family": name}, "family must be one of gaussian") for name in ("hinge", "logistic", "squared", "gamma")),
        ({"privacy": None}, "privacy= is not set"),
        ({"privacy": 1.0}, "privacy= takes a budget"),
        *(({"privacy": budget}, "take a budget ApproxDP") for budget in (GDP(1.0), ZCDP(0.5), PureDP(1.0))),
        ({"ledger": "budget.db"}, "ledger= takes a ledger"),
        ({"recipe": "letter"}, "recipe must be"),
        ({"privacy": ApproxDP(50.0, 1e-6), "recipe": "unit-vector"}, "take an epsilon from"),
        ({"response_bounds": (1.0, 0.0)}, "bounds of the response"),
        ({"public": x}, "takes a PublicMoments"),
    ]
    for wrong, said in refused:
        with watched() as steps, pytest.raises(InvalidInput, match=said):
            LocalGLM(**{"privacy": BUDGET, "public": public, **wrong}).fit(x, y)
        assert not steps
    with pytest.raises(UnboundedData, match="response_bounds"):
        LocalGLM(BUDGET, family="gaussian", public=public).fit(x, y)
    with pytest.raises(UnboundedData, match="public bound"):
        LocalGLM(BUDGET).fit(x, y)
    with pytest.raises(InvalidInput, match="Gram matrix"):
        LocalGLM(BUDGET, row_bound=1.0, recipe="gaussian").fit(x, y)


def test_bounds_of_the_response_may_come_from_public_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(500, 2))
    public = PublicMoments.from_rows(x, x @ [1.0, 2.0])
    response = LocalGLM(BUDGET, family="gaussian", public=public).fit(x, x @ [1.0, 2.0]).message_plan_.space.response
    assert response is not None
    labels = x @ [1.0, 2.0]
    assert math.isclose(response.centre + response.scale, labels.max())
    assert math.isclose(response.centre - response.scale, labels.min())


# ------------------------------------------------------------------ scikit-learn


def estimator() -> BaseEstimator:
    # a budget at which the few rows of these checks tell a mean; at a smaller one a study of ten users is refused
    return LocalGLM(ApproxDP(8.0, 1e-6), family="gaussian", row_bound=10.0, response_bounds=(-1000.0, 1000.0))


@seeded
@parametrize_with_checks([estimator()], expected_failed_checks=lambda _: EVERY)
def test_contract(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


@seeded
@pytest.mark.parametrize("name", EVERY)
def test_expected_failures_fail(name: str) -> None:
    for check in [check for _, check in estimator_checks_generator(estimator()) if check.func.__name__ == name]:
        with pytest.raises(AssertionError):
            check(estimator())


@seeded
@pytest.mark.filterwarnings("ignore::dpregress.errors.NoScaleWarning")
def test_a_cube_is_fitted_where_the_noise_hides_it() -> None:
    """Its slope at coefficients of 0 is 0: the fit says 0 and claims to know nothing, instead of failing once paid."""
    rng = np.random.default_rng(0)
    x = rng.choice([-0.1, 0.1], size=(2_000, 10))
    model = LocalGLM(
        ApproxDP(0.5, 1e-6), family="cubic", public=PublicMoments.from_rows(x[:200]), response_bounds=(-1.05, 1.05),
        fit_intercept=False, random_state=0,
    )  # fmt: skip
    model.fit(x, (x @ np.full(10, 0.3)) ** 3)
    assert not model.coef_.any()
    errors = model.coefficients_.standard_error
    assert np.isfinite(errors).all()
    assert (errors > 1e3).all()

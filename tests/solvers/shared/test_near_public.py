"""Public rows that many private rows lie far beyond are left out: the fit is then by the schema alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpregress import (
    ApproxDP,
    Categorical,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.accounting import GDP
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import start
from dpregress.queries import ShortenedRows
from dpregress.solvers import Residual
from dpregress.solvers.shared.near_public import NearPublic, unless_far

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

N, M = 20_000, 100
SCHEMA = Schema({"day": Numeric(0, 1_000), "x": Numeric(0, 200), "y": Numeric(-50, 300)})


def table(rng: np.random.Generator, n: int, last: float) -> pd.DataFrame:
    """A response that grows from day to day."""
    day, x = rng.uniform(0, last, n), rng.lognormal(1, 0.5, n)
    return pd.DataFrame({"day": day, "x": x, "y": 10 + 0.02 * day + 0.5 * x + 2 * rng.normal(size=n)})


def facts_of(public: PublicMoments | None, schema: Schema | None = SCHEMA) -> PublicFacts:
    begin = start(("day", "x"), intercept=True, public=public, schema=schema, row_bound=None)
    return PublicFacts(N, "y", begin, public, schema)


def solver_of(facts: PublicFacts, mu: float = 0.1) -> Any:
    return unless_far(facts, GDP(mu), lambda facts, budget: Residual(facts, budget, 0.0))


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("last", [3.0, 100.0, 1_000.0])
def test_a_fit_with_public_rows_of_the_first_days(last: float, labelled: bool, seed: int) -> None:
    """n mu = 1,680. With public rows of 3 or 100 days the error was 7 to 11 times that of least squares without labels.

    Noise alone makes it 1.06 times, with a standard deviation of .03; 1.5 is fifteen of these away.
    """
    rng = np.random.default_rng(seed)
    public, private, new = table(rng, M, last), table(rng, N, 1_000), table(rng, 5_000, 1_000)
    known = public if labelled else public.drop(columns="y")
    model = DPLinearRegression(ApproxDP(0.3, 1e-6), schema=SCHEMA, public=known, random_state=rng)
    model.fit_table(private, "y", progress=False)
    assert float(np.mean((new.y - model.predict(new[["day", "x"]])) ** 2)) / 4 < 1.5
    assert model.suitability_ is not None
    assert model.suitability_.left_out == (last < 1_000)
    assert ("The public rows were not used" in str(model.summary())) == (last < 1_000)


@pytest.mark.parametrize("model", [DPLogisticRegression, DPPoissonRegressor])
def test_generalised_linear_models_and_classes_ask_too(model: type[Any], seed: int) -> None:
    """A third of the private rows is in grams, no public one is: with these rows classes had 1.5 times the deviance."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(70, 10, N)
    rows = pd.DataFrame({"weight": np.where(np.arange(N) % 3 == 0, 1_000 * weight, weight), "y": rng.integers(0, 2, N)})
    schema = Schema({"weight": Numeric(0, 150_000), "y": Numeric(0, 1)})
    public = pd.DataFrame({"weight": rng.normal(70, 10, M)})
    classes = {"classes": (0, 1)} if model is DPLogisticRegression else {}
    fit = model(ApproxDP(1.0, 1e-6), schema=schema, public=public, random_state=rng, **classes)
    fit.fit_table(rows, "y", progress=False)
    few = pd.DataFrame({"weight": [70.0, 70_000.0]})
    found = fit.predict_proba(few)[:, 1] if classes else fit.predict(few)
    np.testing.assert_allclose(found, 0.5, atol=0.1)


def test_several_classes_ask_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema({"day": Numeric(0, 1_000), "y": Categorical(("a", "b", "c"))})
    private = pd.DataFrame({"day": rng.uniform(0, 1_000, N), "y": rng.choice(["a", "b", "c"], N)})
    public = pd.DataFrame({"day": rng.uniform(0, 3, M)})
    fit = DPLogisticRegression(
        ApproxDP(1.0, 1e-6), schema=schema, public=public, classes=("a", "b", "c"), random_state=rng
    ).fit_table(private, "y", progress=False)
    np.testing.assert_allclose(fit.predict_proba(pd.DataFrame({"day": [0.0, 1_000.0]})), 1 / 3, atol=0.1)


def test_it_is_asked_only_where_a_count_can_tell_and_a_schema_is_an_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(table(rng, M, 1_000)[["day", "x"]].to_numpy(), names=("day", "x"))
    asked = solver_of(facts_of(public))
    assert isinstance(asked, NearPublic)
    assert asked.asks is not None
    assert ShortenedRows in asked.asks
    assert asked.rounds == 1 + max(asked.public.rounds, asked.schema.rounds)
    for facts, mu in (
        (facts_of(public), 0.003),  # noise hides half of the rows
        (facts_of(None), 0.1),
        (facts_of(public, None), 0.1),
        (facts_of(public, Schema({"day": Numeric(0, 1_000)})), 0.1),
    ):
        assert isinstance(solver_of(facts, mu), Residual)


def test_the_number_that_counts_as_many_is_beyond_noise_and_what_public_rows_have(seed: int) -> None:
    """Half of the rows with a small n mu; else a tenth more than of the public rows, with the errors of that share."""
    rng = np.random.default_rng(seed)
    near = rng.normal(size=(M, 2))
    far = np.where(np.arange(M)[:, None] < 5, 30.0, 1.0) * near
    for rows, least in ((near, 0.1), (far, 0.14)):
        for mu, noise in ((0.01, 5 / (0.01 * np.sqrt(0.005)) / N), (0.1, 5 / (0.1 * np.sqrt(0.005)) / N)):
            asked = solver_of(facts_of(PublicMoments.from_rows(rows, names=("day", "x"))), mu)
            assert max(least, noise, 0.5 if mu < 0.03 else 0.0) <= asked.most / N < max(0.35, 0.6 if mu < 0.03 else 0.0)


@pytest.mark.parametrize("rows", [10, 30, 60])
def test_rows_of_the_same_population_are_near(rows: int, seed: int) -> None:
    """A log-normal column with a logarithm of deviation 2, of which a quarter lies beyond four medians.

    In 2,000 tables with 30 or 60 public rows there were at most .92 times as many far rows as count as many, and .74
    times in 99 of 100.
    """
    rng = np.random.default_rng(seed)
    public = PublicMoments.from_rows(rng.lognormal(0, 2, (rows, 1)), names=("a",))
    schema = Schema({"a": Numeric(0, 1e6), "y": Numeric(-1, 1)})
    begin = start(("a",), intercept=False, public=public, schema=schema, row_bound=None)
    asked = solver_of(PublicFacts(N, "y", begin, public, schema))
    if rows < 30:
        assert isinstance(asked, Residual)
        return
    private = rng.lognormal(0, 2, (N, 1))
    far = np.linalg.norm(asked.far.space.whiten(private), axis=1) > asked.far.space.radius
    assert float(np.sum(far)) < 1.3 * asked.most


def test_good_labels_are_kept_where_a_schema_alone_would_tell_little(seed: int) -> None:
    """n mu = 300: a third of the private rows is eight times as far out, and the model holds there too.

    The squared error with the 5,000 labels is .005 to .02; by the schema alone it was 7 to 54.
    """
    rng = np.random.default_rng(seed)
    names, slopes = list("abcd"), np.array([1, -1, 0.5, 2.0])
    public, private = rng.normal(size=(5_000, 4)), rng.normal(size=(3_000, 4))
    private *= np.where(rng.random(len(private)) < 0.3, 8, 1)[:, None]
    schema = Schema({**{name: Numeric(-100, 100) for name in names}, "y": Numeric(-300, 300)})
    known = pd.DataFrame(public, columns=names).assign(y=public @ slopes + rng.normal(size=len(public)))
    rows = pd.DataFrame(private, columns=names).assign(y=private @ slopes + rng.normal(size=len(private)))
    model = DPLinearRegression(GDP(0.1), schema=schema, public=known, random_state=rng)
    model.fit_table(rows, "y", progress=False)
    assert float(np.mean((model.predict(rows[names]) - private @ slopes) ** 2)) < 0.5


def test_a_recipe_of_one_release_asks_nothing_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    public, private = table(rng, M, 3.0), table(rng, N, 1_000)
    model = DPLinearRegression(ApproxDP(1.0, 1e-6), schema=SCHEMA, public=public, recipe="one-shot", random_state=rng)
    model.fit_table(private, "y", progress=False)
    assert model.suitability_ is not None
    assert not model.suitability_.left_out

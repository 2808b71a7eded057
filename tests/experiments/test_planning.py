"""Plans from public facts: what fits then have, what is needed, and what is refused."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpregress import ApproxDP, Categorical, DPLinearRegression, DPLogisticRegression, Numeric, PublicMoments, Schema
from dpregress.errors import InvalidInput
from dpregress.experiments import plan
from tests.support import run, write_csv

BUDGET = ApproxDP(1.0, 1e-6)


def tables(seed: int, n: int = 12_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5]
    return x, x @ [1.0, -0.5, 2.0] + rng.normal(size=n)


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_fits_have_the_planned_errors(family: str, seed: int) -> None:
    """The median ratio within 15%, each within 25%: standard errors vary by 3% between tables of this size.

    Eight and five standard deviations fail with probability below 1e-6. The public rows are many, so that their own
    sampling error is small.
    """
    x, y = tables(seed)
    y = y if family == "gaussian" else (y + np.random.default_rng(seed).logistic(size=len(y)) > 0).astype(float)
    public = PublicMoments.from_rows(x[:3_000], y[:3_000])
    kind = DPLinearRegression if family == "gaussian" else DPLogisticRegression
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [kind(BUDGET, public=public, random_state=seed + k).fit(x[3_000:], y[3_000:]).bse for k in range(3)]
    found = plan(9_000, BUDGET, public=public, family=family, seed=seed)
    np.testing.assert_allclose(found.bse(), np.median(fits, axis=0), rtol=0.25)
    ratio = found.bse() / np.median(fits, axis=0)
    assert abs(math.log(float(np.median(ratio)))) < math.log(1.15)


def test_unlabelled_and_schema(seed: int) -> None:
    """With the right assumptions they agree with the labelled plan. Independent columns."""
    x, y = tables(seed)
    public = PublicMoments.from_rows(x[:2_000], y[:2_000])
    given = {"response": (float(y.mean()), float(y.std())), "explained": 1 - 1 / float(y.var())}
    labelled = plan(9_000, BUDGET, public=public, seed=seed).bse()[1:]
    unlabelled = plan(9_000, BUDGET, public=public.unlabelled(), seed=seed, **given).bse()[1:]
    np.testing.assert_allclose(unlabelled, labelled, rtol=0.35)
    schema = Schema({"x0": Numeric(-4, 4), "x1": Numeric(-8, 8), "x2": Numeric(-2, 2), "y": Numeric(-15, 15)})
    assume = {"x0": (0.0, 1.0), "x1": (0.0, 2.0), "x2": (0.0, 0.5)}
    by_schema = plan(9_000, BUDGET, schema=schema, assume=assume, seed=seed, **given).bse()[1:]
    np.testing.assert_allclose(by_schema, labelled, rtol=0.5)


@pytest.mark.parametrize("levels", [("a", "b", "c"), ("a", "b", "c", "d")])
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_schema_with_several_levels(levels: tuple[str, ...], family: str, seed: int) -> None:
    """The assumed rows hold every level, the reference too: errors within a factor of 2 of those of a fit."""
    rng = np.random.default_rng(seed)
    x, code = rng.uniform(size=20_000), rng.integers(len(levels), size=20_000)
    y = 1 + 1.2 * x + np.array([0, 0.5, -0.5, 0.3])[code] + rng.normal(0, 0.9, len(x))
    known = {"x": Numeric(0, 1), "g": Categorical(levels)}
    kind, response, bounds = DPLinearRegression, (1.0, 1.0), {"y": Numeric(-5, 8)}
    if family == "binomial":
        kind, response, bounds = DPLogisticRegression, (0.5, 0.5), {}
        y = (y - 1.5 + rng.logistic(size=len(x)) > 0).astype(float)
    schema = Schema({**known, **bounds})
    found = plan(len(x), BUDGET, schema=schema, family=family, response=response, seed=seed).bse()
    table = pd.DataFrame({"x": x, "g": np.array(levels)[code], "y": y})
    fit = kind(BUDGET, schema=schema, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit.fit_table(table)
    assert (np.abs(np.log(found / fit.bse)) < math.log(2)).all()


@pytest.mark.slow
def test_more_rows_and_budget_are_better(seed: int) -> None:
    x, y = tables(seed, 500)
    public = PublicMoments.from_rows(x, y)
    small, large = plan(4_000, BUDGET, public=public, seed=seed), plan(400_000, BUDGET, public=public, seed=seed)
    assert (large.bse() < small.bse() / 5).all()
    assert (large.power(0.05) >= small.power(0.05)).all()
    width = 0.05
    n = small.rows_for(width, "x0")
    reached = plan(n, BUDGET, public=public, seed=seed).bse()[1] * 2 * 1.96
    assert reached == pytest.approx(width, rel=0.1)
    epsilon = small.epsilon_for(0.2, "x0")
    assert plan(4_000, ApproxDP(epsilon, 1e-6), public=public, seed=seed).bse()[1] * 2 * 1.96 < 0.2 * 1.1
    assert small.epsilon_for(1e-6, "x0") == math.inf
    assert "<svg" in small.picture()
    assert list(small.to_frame().columns) == ["trust", "name", "std err", "sampling", "privacy"]


def test_every_trust_model(seed: int) -> None:
    x, y = tables(seed, 400)
    found = plan(200_000, ApproxDP(4.0, 1e-6), public=PublicMoments.from_rows(x, y), seed=seed, repeats=1,
                 trust=("central", "local", "vertical"))  # fmt: skip
    assert (found.bse("central") < found.bse("local")).all()
    assert (found.bse("central") < found.bse("vertical")).all()
    assert "vertical" in str(found)


def test_refusals(seed: int) -> None:
    x, y = tables(seed, 400)
    public = PublicMoments.from_rows(x)
    for given, words in (
        ({}, "public="), ({"public": public}, "response="), ({"public": public, "response": (1.0, -1.0)}, "response="),
        ({"public": public, "response": (0.0, 1.0), "explained": 1.0}, "explained="),
        ({"schema": Schema({"a": Numeric()}), "response": (0.0, 1.0)}, "bounds"),
        ({"public": public, "trust": ("nobody",)}, "trust"), ({"public": public, "family": "nothing"}, "family"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            plan(1_000, BUDGET, **given)
    with pytest.raises(InvalidInput, match="whole number"):
        plan(0, BUDGET, public=PublicMoments.from_rows(x, y))
    found = plan(1_000, BUDGET, public=PublicMoments.from_rows(x, y), repeats=1, seed=seed)
    for effect in (math.nan, math.inf):
        with pytest.raises(InvalidInput, match="effect"):
            found.power(effect)
    for width in (math.nan, math.inf, 0.0, -1.0):
        with pytest.raises(InvalidInput, match="width"):
            found.rows_for(width, "x0")


def test_command(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = tables(seed, 400)
    public = write_csv(tmp_path / "public.csv", ["a", "b", "c", "y"], *x.T, y)
    done = run(
        capsys, "plan", "--n", 5000, "--public", public, "--epsilon", 1, "--delta", 1e-6, "--effect", 0.1, "--width",
        0.1, "--coefficient", "a", "--out", tmp_path / "plan.html",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "power" in done.out
    assert "needs" in done.out
    assert "<svg" in (tmp_path / "plan.html").read_text()
    schema = Schema({"a": Numeric(0, 9), "b": Categorical(("u", "v", "w"))})
    schema.save(tmp_path / "s.toml")
    done = run(
        capsys, "plan", "--n", 5000, "--schema", tmp_path / "s.toml", "--response", "0.3,0.46", "--family", "binomial",
        "--epsilon", 2, "--delta", 1e-6,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "b=v" in done.out
    wrong = ["--schema", tmp_path / "s.toml", "--response", "x", "--epsilon", 2, "--delta", 1e-6]
    assert run(capsys, "plan", "--n", 5000, *wrong).code == 2
    asked = ("plan", "--n", 5000, "--public", public, "--epsilon", 1, "--delta", 1e-6)
    for odd in (
        ("--effect", "nan"), ("--width", -1, "--coefficient", "a"), ("--width", 1, "--coefficient", "z"),
        ("--out", public), ("--out", tmp_path),
    ):  # fmt: skip
        refused = run(capsys, *asked, *odd)
        assert (refused.code, refused.out) == (2, ""), odd
        assert refused.err.count("\n") == 1


def test_a_response_that_the_schema_does_not_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = Schema({"age": Numeric(0, 90), "cost": Numeric(0, 1000)})
    said = r"^no column 'costs' in the schema: did you mean 'cost'\?$"
    with pytest.raises(InvalidInput, match=said):
        plan(1_000, BUDGET, schema=schema, target="costs", response=(100.0, 50.0))
    with pytest.raises(InvalidInput, match=r"^no column 'weight' in the schema: it declares age, cost$"):
        plan(1_000, BUDGET, schema=schema, target="weight", response=(100.0, 50.0))
    with pytest.raises(InvalidInput, match=r"^privacy= takes a budget such as ApproxDP\(.*, not an int$"):
        plan(1_000, 1, schema=schema, target="cost", response=(100.0, 50.0))
    schema.save(tmp_path / "schema.toml")
    outcome = run(
        capsys, "plan", "--n", 1000, "--target", "costs", "--schema", tmp_path / "schema.toml", "--epsilon", 1,
        "--delta", 1e-6, "--response", "100,50",
    )  # fmt: skip
    assert outcome.code == 2
    assert "no column 'costs' in the schema: did you mean 'cost'?" in outcome.err

"""Parties that hold different columns: one answer, two guarantees, any response, refusals that name the mend."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone

from dpregress import (
    GDP,
    ZCDP,
    ApproxDP,
    Categorical,
    MemoryLedger,
    Numeric,
    PublicMoments,
    PureDP,
    Schema,
    VerticalRegression,
)
from dpregress.errors import BudgetExceeded, InvalidInput, SeededNoiseWarning
from dpregress.inference import privacy_covariance
from dpregress.releases import Entrywise
from dpregress.solvers import solve_moments
from tests.laws.spies import CHARGE, DRAW, NOISE, READ, watched

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

COEF = np.array([0.5, -0.3, 0.1, 0.2])
LAVISH = ApproxDP(1e6, 1e-5)
BUDGET = ApproxDP(1.0, 1e-5)
ROWS = PublicMoments.from_rows(np.eye(3)[:, :2])


def people(rng: np.random.Generator, n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-1, 1, size=(n, 4))
    x[:, 1] = (x[:, 0] + x[:, 1]) / 2
    return x, x @ COEF + 0.1 * rng.uniform(-1, 1, size=n)


def columns(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [x[:, :2], x[:, 2:], y[:, None]]


@pytest.mark.parametrize("recipe", ["sparse", "dense", "hadamard"])
def test_close_to_least_squares_without_noise(recipe: str, seed: int) -> None:
    """At a vanishing price only sketching is left: correlations are off by less than ``14 / sqrt k``.

    Each is a mean of k products with variance at most 2/k; 14 standard deviations of a subexponential sum.
    """
    rng = np.random.default_rng(seed)
    x, y = people(rng)
    model = VerticalRegression(LAVISH, recipe=recipe, rows=4000, random_state=rng).fit_table(columns(x, y))
    assert np.abs(model.coef_ - COEF).max() < 14 / math.sqrt(4000)
    assert model.rows_ == 4000


def test_full_hadamard_is_least_squares(seed: int) -> None:
    """All 2^12 rows of an orthogonal matrix keep every product; what is left is shrinkage by 1/k of each."""
    rng = np.random.default_rng(seed)
    x, y = people(rng, 4096)
    model = VerticalRegression(LAVISH, recipe="hadamard", rows=4096, random_state=rng).fit_table(columns(x, y))
    design = np.column_stack([np.ones(len(x)), x])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    assert np.allclose(model.coef_, expected[1:], atol=0.03)
    assert math.isclose(model.intercept_, expected[0], abs_tol=0.01)


def test_any_response_is_free(seed: int) -> None:
    """Another column on some others, from the same releases, in the order asked for."""
    rng = np.random.default_rng(seed)
    x, y = people(rng, 4096)
    model = VerticalRegression(LAVISH, recipe="hadamard", rows=4096, random_state=rng).fit_table(columns(x, y))
    spent = model.joint_privacy_.promise.mu
    found = model.regress("x1", ["x4", "x0"])
    design = np.column_stack([np.ones(len(x)), y, x[:, 0]])
    expected = np.linalg.lstsq(design, x[:, 1], rcond=None)[0]
    assert found.features == ("x4", "x0")
    assert np.allclose(found.coef, expected[1:], atol=0.05)
    assert model.joint_privacy_.promise.mu == spent
    # the moments serve any solver that takes moments
    moments = model.regression_moments("x1", ["x4", "x0"])
    coef, system = solve_moments(moments, alpha=0.0)
    again, _ = moments.space.pull_back(coef)
    assert np.allclose(again[[1, 0]], expected[1:], atol=0.05)
    assert np.isfinite(privacy_covariance(moments, coef, system)).all()


def test_both_guarantees(seed: int) -> None:
    """Each party's epsilon is the budget's; a person's is the composition over parties."""
    rng = np.random.default_rng(seed)
    model = VerticalRegression(BUDGET).fit_table(columns(*people(rng)))
    mu = ApproxDP(1.0, 1e-5).gaussian_mu
    assert len(model.privacy_) == 3
    for statement in model.privacy_:
        assert math.isclose(statement.mu, mu, rel_tol=1e-9)
        assert math.isclose(statement.events.mu, mu, rel_tol=1e-9)
        assert not statement.seeded
    assert math.isclose(model.joint_privacy_.mu, math.sqrt(3) * mu, rel_tol=1e-9)
    assert "over all parties" in str(model.summary())


def test_paid_first(seed: int) -> None:
    """All ledgers are charged before any party's rows are read; four draws and four noises a party."""
    rng = np.random.default_rng(seed)
    names = ("party0", "party1", "party2")
    ledgers = {name: MemoryLedger(GDP(1.0)) for name in reversed(names)}
    with watched() as steps:
        VerticalRegression(BUDGET, ledger=ledgers).fit_table(columns(*people(rng)))
    assert steps[:3] == [CHARGE] * 3
    assert steps.count(DRAW) == steps.count(NOISE) == 12
    assert CHARGE not in steps[3:]
    assert all(len(ledger.charges) == 1 for ledger in ledgers.values())
    broke = dict(zip(names, (MemoryLedger(GDP(mu)) for mu in (1.0, 1e-3, 1.0)), strict=True))
    with watched() as steps, pytest.raises(BudgetExceeded):
        VerticalRegression(BUDGET, ledger=broke).fit_table(columns(*people(rng)))
    assert READ not in steps
    assert NOISE not in steps


def test_noise_of_the_cross_block(seed: int) -> None:
    """Independent columns: the spread of a released correlation is what the moments say.

    Squares of 300 standardised entries (9 of each of some releases, nearly normal): between 0.5 and 2 times 300 except
    with probability 1e-9 for chi-square; heavier tails of sketching at k = 64 add less than 1e-6.
    """
    rng = np.random.default_rng(seed)
    squares = []
    for _ in range(34):
        x = rng.uniform(-1, 1, size=(3000, 6))
        with pytest.warns(SeededNoiseWarning):
            joint = VerticalRegression(ApproxDP(3.0, 1e-5), random_state=rng).fit_table([x[:, :3], x[:, 3:]]).joint_
        assert isinstance(joint.moments.noise, Entrywise)
        block = joint.moments.total[1:4, 4:] / joint.moments.noise.sigma[1:4, 4:]
        squares.append(block.ravel() ** 2)
    assert 0.5 < np.mean(squares) < 2.0


def test_noise_alone_predicts_the_mean(seed: int) -> None:
    """A budget that tells nothing: correlations have noise of hundreds, of which next to nothing is kept."""
    rng = np.random.default_rng(seed)
    sizes = [
        np.abs(
            VerticalRegression(ApproxDP(0.05, 1e-5), random_state=rng).fit_table(columns(*people(rng, 500))).coef_
        ).max()
        for _ in range(21)
    ]
    assert np.max(sizes) < 1e-4


def test_a_response_that_depends_on_nothing(seed: int) -> None:
    """What noise and sampling leave of correlations explains less than 2% of it, with any budget.

    Half of 20 runs would have to exceed what one in a hundred does (less often than once in 10^14).
    """
    rng = np.random.default_rng(seed)
    for epsilon in (0.5, 2.0, 8.0):
        explained = []
        for _ in range(20):
            parts = [rng.uniform(-1, 1, size=(5_000, 3)), rng.uniform(-1, 1, size=(5_000, 3))]
            model = VerticalRegression(ApproxDP(epsilon, 1e-6), random_state=rng)
            model.fit(parts, rng.uniform(-1, 1, size=5_000))
            explained.append(3 * np.var(model.predict(np.hstack(parts))))
        assert np.median(explained) < 0.02, epsilon


def test_logistic(seed: int) -> None:
    """Coefficients of normal rows and their intercept, whatever the two ends are called; probabilities out.

    All rows of an orthogonal matrix keep every product, so errors are those of sampling: of deviation
    1 / (0.3 sqrt(0.2 n)) = 0.058 a coefficient and 0.018 the intercept, six of which are exceeded with probability
    1e-8.
    """
    rng = np.random.default_rng(seed)
    n, truth = 16_384, np.array([1.5, -1.0, 0.5])
    x = np.clip(0.3 * rng.normal(size=(n, 3)), -1, 1)
    chance = expit(0.7 + x @ truth)
    label = np.where(rng.random(n) < chance, 3.0, 1.0)
    model = VerticalRegression(
        LAVISH, recipe="hadamard", rows=n, family="binomial", schema=Schema({"x3": Numeric(1, 3)}), random_state=rng
    )  # fmt: skip
    model.fit_table([x[:, :1], np.column_stack([x[:, 1:], label])])
    assert np.allclose(model.coef_, truth, atol=0.4)
    assert math.isclose(model.intercept_, 0.7, abs_tol=0.15)
    found = model.predict(x)
    assert ((found > 0) & (found < 1)).all()
    assert abs(found.mean() - (label == 3).mean()) < 0.05


def test_tables_and_public_rows(seed: int) -> None:
    """Named columns with a schema, levels included; a party with public moments instead of bounds."""
    rng = np.random.default_rng(seed)
    x, y = people(rng, 4096)
    first = pd.DataFrame({"age": 50 + 50 * x[:, 0], "smoker": np.where(x[:, 1] > 0, "yes", "no")})
    second = pd.DataFrame({"dose": x[:, 2], "cost": 100 * y})
    schema = Schema({"age": Numeric(0, 100), "smoker": Categorical(("no", "yes"))})
    public = PublicMoments.from_rows(rng.uniform(-1, 1, size=(400, 2)) * [1, 100], names=["dose", "cost"])
    model = VerticalRegression(
        LAVISH, recipe="hadamard", rows=4096, schema=schema, public={"lab": public}, random_state=rng
    )
    model.fit_table({"clinic": first, "lab": second}, "cost")
    assert model.coefficients_.features == ("age", "smoker=yes", "dose")
    design = np.column_stack([np.ones(len(x)), first["age"], x[:, 1] > 0, x[:, 2]])
    expected = np.linalg.lstsq(design, 100 * y, rcond=None)[0]
    assert np.allclose(model.coef_, expected[1:], rtol=0.1, atol=0.5)
    assert model.predict(pd.concat([first, second], axis=1)).shape == (4096,)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_read_as_tables(ending: str, tmp_path: Path, seed: int) -> None:
    """To the last bit, for a shared seed."""
    x, y = people(np.random.default_rng(seed), 500)
    tables = [pd.DataFrame(x[:, :2], columns=["a", "b"]), pd.DataFrame({"c": x[:, 2], "y": y})]
    paths: list[Path | str] = [tmp_path / f"0.{ending}", str(tmp_path / f"1.{ending}")]
    for table, path in zip(tables, paths, strict=True):
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    fits = [VerticalRegression(BUDGET, rows=64, random_state=1).fit_table(each, "y") for each in (tables, paths)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_the_response_of_the_last_party(seed: int) -> None:
    """``fit(X, y)`` is ``fit_table`` of the parties with y as the last party's last column; arrays and frames."""
    rng = np.random.default_rng(seed)
    x, y = people(rng)
    model = VerticalRegression(BUDGET, random_state=seed)
    expected = clone(model).fit_table([x[:, :2], np.column_stack([x[:, 2:], y])])
    arrays = clone(model).fit({"clinic": x[:, :2], "lab": x[:, 2:]}, y)
    np.testing.assert_array_equal(arrays.coef_, expected.coef_)
    assert arrays.joint_.moments.space.features == ("x0", "x1", "x2", "x3", "y")
    lab = pd.DataFrame(x[:, 2:], columns=["x2", "x3"])
    frames = clone(model).fit([x[:, :2], lab], pd.Series(y, name="cost"))
    np.testing.assert_array_equal(frames.coef_, expected.coef_)
    assert frames.coefficients_.target == "cost"
    for wrong, said in ((None, "requires y"), (y[:-1], "rows"), (np.full(len(y), "a"), "needs a number")):
        for rows in ([x[:, :2], x[:, 2:]], [x[:, :2], lab]):
            if said == "needs a number" and rows[1] is lab:
                continue  # a column of text in a table: the schema says what its levels are
            with watched() as steps, pytest.raises(InvalidInput, match=said):
                clone(model).fit(rows, wrong)
            assert not steps


def test_a_response_of_several_columns_is_named_in_fit_table(seed: int) -> None:
    """The other indicators of the response would be its features."""
    x, y = people(np.random.default_rng(seed), 50)
    model = VerticalRegression(BUDGET, schema=Schema({"y": Categorical(("a", "b", "c"))}))
    rows = [x[:, :2], pd.DataFrame(x[:, 2:], columns=["x2", "x3"])]
    with watched() as steps, pytest.raises(InvalidInput, match="name one of them in fit_table"):
        model.fit(rows, np.where(y > 0, "a", "b"))
    assert not steps
    model.set_params(schema=Schema({"y": Categorical(("a", "b"))})).fit(rows, np.where(y > 0, "a", "b"))
    assert model.coefficients_.target == "y=b"


def test_other_budgets(seed: int) -> None:
    """GDP and ZCDP are spent as they are; the summary has no delta then."""
    rng = np.random.default_rng(seed)
    for budget in (GDP(0.5), ZCDP(0.125)):
        model = VerticalRegression(budget).fit_table(columns(*people(rng, 500)))
        assert [statement.promise for statement in model.privacy_] == [GDP(0.5)] * 3
        said = "For a person over all parties: mu = 0.866.\nCoefficients are those of numbers within these ranges"
        assert said in str(model.summary())
    for refused, said in ((PureDP(1.0), "pure epsilon"), (None, "privacy= is not set"), (1.0, "takes a budget")):
        with watched() as steps, pytest.raises(InvalidInput, match=said):
            VerticalRegression(refused).fit_table(columns(*people(rng, 500)))
        assert not steps


def test_wild_cells(seed: int) -> None:
    """No cell raises or warns; the answer is finite."""
    rng = np.random.default_rng(seed)
    x, y = people(rng, 600)
    strange = np.array([np.nan, np.inf, -np.inf, 1e300, -1e308, 5e-324])
    for block in (x, y):
        hit = rng.random(block.shape) < 0.2
        block[hit] = rng.choice(strange, hit.sum())
    model = VerticalRegression(BUDGET).fit_table(columns(x, y))
    assert np.isfinite(model.coef_).all()
    assert math.isfinite(model.intercept_)


@pytest.mark.parametrize(
    ("parties", "call", "options", "said"),
    [
        ([np.zeros((3, 2))], {}, {}, "two parties"),
        ([np.zeros((3, 2)), np.zeros((4, 1))], {}, {}, "align"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {"target": "z"}, {}, "no column 'z'"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {"target": 3}, {}, "no column 3"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {"features": [0, 2]}, {}, "not the target"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"recipe": "gaussian"}, "recipe must be"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"family": "poisson"}, "family must be"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"ledger": {}}, "one each"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"ledger": MemoryLedger(GDP(1.0))}, "mapping of party name"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"ledger": {"party0": 3}}, "ledger= of party0 takes a Ledger"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"public": [ROWS, None]}, "mapping of party name"),
        (np.zeros((3, 2)), {}, {}, "a list of tables"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"public": {"lab": ROWS}}, "none of the parties party0, party1"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], {}, {"rows": 0}, "rows= takes a whole number from 1"),
        ([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.0]})], {}, {}, "rename"),
    ],
)
def test_refusals(parties: list[Any], call: dict[str, Any], options: dict[str, Any], said: str) -> None:
    """One line, and nothing charged."""
    with watched() as steps, pytest.raises(InvalidInput, match=said):
        VerticalRegression(**{"privacy": BUDGET, **options}).fit_table(parties, **call)
    assert not steps


def test_nothing_before_fit() -> None:
    for call in (lambda m: m.predict(np.zeros((1, 1))), lambda m: m.summary(), lambda m: m.regress(0)):
        with pytest.raises(InvalidInput, match="call fit first"):
            call(VerticalRegression())


def frames(x: np.ndarray) -> dict[str, pd.DataFrame]:
    return {"clinic": pd.DataFrame(x[:, :2], columns=["a", "b"]), "lab": pd.DataFrame(x[:, 2:], columns=["c", "d"])}


def test_rows_to_predict_for_are_those_of_the_parties() -> None:
    rng = np.random.default_rng(1)
    x, y = people(rng)
    parties, new = frames(x), frames(x[:9])
    model = VerticalRegression(LAVISH, random_state=1).fit(parties, y)
    joined = pd.concat(new.values(), axis=1)
    expected = model.predict(joined)
    for given in (new, list(new.values()), tuple(reversed(new.values())), [x[:9, :2], x[:9, 2:]], x[:9]):
        np.testing.assert_allclose(model.predict(given), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(x[:9].tolist()), expected, rtol=1e-12)  # rows, not parties
    np.testing.assert_array_equal(
        model.predict(new, interval="mean").lower, model.predict(joined, interval="mean").lower
    )


def test_rows_of_parties_that_do_not_belong_together_are_refused() -> None:
    rng = np.random.default_rng(1)
    x, y = people(rng)
    new = frames(x[:9])
    clinic, lab = new["clinic"], new["lab"]
    model = VerticalRegression(LAVISH, random_state=1).fit(frames(x), y)
    for given, words in (
        ([clinic, lab[:5]], "parties hold 9, 5 rows: align them on the same people first"),
        ([x[:9, :2], x[:5, 2:]], "parties hold 9, 5 rows"),
        ([clinic, lab[::-1]], "the same index in another order"),
        ([clinic, lab.assign(a=1.0)], "two parties hold a column 'a'"),
        ([clinic, x[:9, 2:]], "tables of all parties, or arrays of all"),
        ([clinic], "no column 'c'"),
        ([x[:9, :2]], "X has 2 columns, the model 4 features"),
    ):
        with pytest.raises(InvalidInput, match=words) as caught:
            model.predict(given)
        assert "\n" not in str(caught.value)
    other = VerticalRegression(LAVISH, random_state=1)
    other.fit_table([x[:, :2], np.column_stack([x[:, 2:], y])], -1, ["x2", "x0"])
    with pytest.raises(InvalidInput, match="not in the order of the parties: give tables, or one array"):
        other.predict([x[:9, :1], x[:9, 2:3]])

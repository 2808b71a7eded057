"""Regressions on released marginals as models: units, files, other regressions, and intervals of classes and counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.special import expit
from scipy.stats import binom

import dpregress
from dpregress import ApproxDP, Categorical, MarginalsRegression, Numeric, Schema
from dpregress.errors import InvalidInput

LARGE = ApproxDP(1e4, 1e-6)
SCHEMA = Schema(
    {
        "age": Numeric(20, 80), "weight": Numeric(0.04, 0.12), "plan": Categorical(("a", "b", "c")),
        "dose": Categorical(("1", "2", "10"), ordered=True), "cost": Numeric(0, 4000),
        "sick": Categorical(("no", "yes")),
    }
)  # fmt: skip
FEATURES = ["age", "weight", "plan", "dose"]


def people(seed: int, n: int = 4000) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, weight, dose = rng.uniform(20, 80, n), rng.uniform(0.04, 0.12, n), rng.integers(3, size=n)
    plan = rng.choice(["a", "b", "c"], n)
    cost = 500 + 10 * age + 5000 * weight + 200 * (plan == "c") + 100 * dose + 50 * rng.normal(size=n)
    sick = np.where(rng.random(n) < expit(-3 + 0.05 * age + (plan == "b")), "yes", "no")
    level = np.array(["1", "2", "10"])[dose]
    return pa.table({"age": age, "weight": weight, "plan": plan, "dose": level, "cost": cost, "sick": sick})


def fitted(target: str, family: str, seed: int = 0, recipe: str = "residuals") -> MarginalsRegression:
    model = MarginalsRegression(LARGE, schema=SCHEMA, family=family, recipe=recipe, bins=16, random_state=seed)
    with pytest.warns(dpregress.errors.SeededNoiseWarning):
        return model.fit_table(people(seed), target, FEATURES, progress=False)


def test_coefficients_are_in_the_units_of_users() -> None:
    """A year, a ton, a level of unevenly spaced doses; bins of a sixteenth of the range blur less than these bounds."""
    model = fitted("cost", "gaussian")
    assert model.coefficients_.features == ("age", "weight", "plan=b", "plan=c", "dose")
    np.testing.assert_allclose(model.coef_, [10, 5000, 0, 200, 100], rtol=0.05, atol=15)
    np.testing.assert_allclose(model.params[1:], model.coef_, rtol=0.02, atol=5)
    assert abs(model.intercept_ - 500) < 50
    rows = people(1, 200)
    assert np.abs(model.predict(rows) - rows["cost"].to_numpy()).mean() < 100


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_a_summary_names_the_ranges_of_numbers(tmp_path: Path) -> None:
    """Those that released histograms narrowed, within their bounds, and not those whose bounds are exact."""
    assert ": cost " in str(fitted("cost", "gaussian").summary()).splitlines()[-1]
    wide = Schema({**SCHEMA.columns, "age": Numeric(0, 5000), "cost": Numeric(0, 1e6)})
    model = MarginalsRegression(LARGE, schema=wide, bins=16, random_state=0).fit_table(people(0), "cost", FEATURES)
    last = str(model.summary()).splitlines()[-1]
    assert last.startswith(
        "Coefficients are those of numbers within these ranges, beyond which they count as the ends: age "
    )
    assert "weight" not in last
    assert "cost" in last
    model.save(tmp_path)
    saved = str(dpregress.load(tmp_path).summary()).splitlines()[-1]
    assert saved == last


@pytest.mark.parametrize(("target", "family"), [("cost", "gaussian"), ("sick", "binomial"), ("plan", "multinomial")])
def test_saved_models_are_those_that_were_fitted(target: str, family: str, tmp_path: Path) -> None:
    """Predictions, intervals and summaries of files; the release beside them gives other regressions."""
    features = [name for name in ("age", "weight", "plan", "dose") if name != target]
    model = MarginalsRegression(ApproxDP(1.0, 1e-6), schema=SCHEMA, family=family, bins=8)
    model.fit_table(people(2), target, features, progress=False)
    model.save(tmp_path / "m")
    model.report(tmp_path)
    saved, rows = dpregress.load(tmp_path / "m"), people(3, 50)
    assert saved.predict(rows).tolist() == model.predict(rows).tolist()
    arrays = np.column_stack([rows[name].to_numpy(zero_copy_only=False) for name in features])
    np.testing.assert_array_equal(saved.predict(arrays), model.predict(rows))
    assert target in (tmp_path / "report.html").read_text()
    assert saved.summary().to_frame().equals(model.summary().to_frame())
    if family != "gaussian":
        np.testing.assert_allclose(saved.predict_proba(rows), model.predict_proba(rows), rtol=1e-12)
    if model.estimates_ is not None:
        np.testing.assert_array_equal(saved.conf_int(), model.conf_int())
        for each in (saved, model):
            found = each.predict(rows, interval="mean")
            assert found.lower.shape == (50,)
    again = MarginalsRegression.from_release(tmp_path / "m" / "marginals.json", target, features, family=family)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-12)
    if model.estimates_ is not None:
        np.testing.assert_allclose(again.params, model.params, rtol=1e-9)
    assert again.privacy_ == model.privacy_
    other = MarginalsRegression.from_release(model, features[0], features[1:])
    assert other.coefficients_.target == features[0]


def test_other_schemas_are_refused(tmp_path: Path) -> None:
    """A model of coded columns holds its levels."""
    fitted("cost", "gaussian").save(tmp_path)
    pa.csv.write_csv(people(1, 5), tmp_path / "rows.csv")
    saved = dpregress.load(tmp_path)
    assert saved.predict_file(tmp_path / "rows.csv").num_rows == 5
    with pytest.raises(InvalidInput, match="leave the schema out"):
        saved.predict_file(tmp_path / "rows.csv", SCHEMA)


def wide(rng: np.random.Generator, n: int) -> pa.Table:
    """Twelve correlated columns of few levels, of which three matter to a class and to a count."""
    hidden = rng.normal(size=n)
    cells = {f"c{j}": (rng.random(n) < expit(-1 + hidden)) * 1 for j in range(8)}
    cells |= {f"s{j}": np.clip(np.round(2 + hidden + rng.normal(size=n)), 0, 4).astype(int) for j in range(4)}
    eta = -1.5 + 1.5 * cells["c0"] + 0.8 * cells["c1"] + 0.3 * (cells["s0"] - 2)
    cells["y"] = (rng.random(n) < expit(eta)) * 1
    cells["visits"] = np.minimum(rng.poisson(np.exp(0.2 * eta + 0.3)), 15)
    return pa.table(cells)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "family", "scale"),
    [("y", "binomial", 1.0), pytest.param("visits", "poisson", 0.2, marks=pytest.mark.nightly)],
)
def test_slopes_of_wide_tables_are_not_attenuated(target: str, family: str, scale: float, seed: int) -> None:
    """30 releases at epsilon 1: each of three 90% intervals holds the truth in 15 or more.

    With a coverage of 90%, fewer hold it with probability 4e-9 a slope.
    """
    names = [*(f"c{j}" for j in range(8)), *(f"s{j}" for j in range(4))]
    levels = {**dict.fromkeys(names[:8], 2), **dict.fromkeys(names[8:], 5), target: 2 if target == "y" else 16}
    schema = Schema.from_levels(levels, numeric=[*names[8:], *(["visits"] if target == "visits" else [])])
    truth, inside, total = scale * np.array([1.5, 0.8, 0.3]), np.zeros(3), np.zeros(3)
    for repeat in range(30):
        rng = np.random.default_rng([seed, repeat])
        model = MarginalsRegression(ApproxDP(1.0, 1e-6), schema=schema, family=family, random_state=rng)
        with pytest.warns(dpregress.errors.SeededNoiseWarning):
            model.fit_table(wide(rng, 20_000), target, names, progress=False)
        places = [model.param_names.index(name) for name in ("c0=1", "c1=1", "s0")]
        assert model.estimates_ is not None
        assert model.estimates_.identified[places].all()
        ends = model.conf_int(level=0.9)[places]
        inside += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        total += model.params[places]
    assert (inside >= binom.ppf(2e-8, 30, 0.9)).all(), inside
    np.testing.assert_allclose(total[:2] / 30, truth[:2], rtol=0.2)


def numbers(seed: int, n: int = 20_000) -> pa.Table:
    """Two numbers that matter and four that do not, and a response, in a small part of their bounds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    cells = {f"x{j}": 3 + x[:, j] for j in range(6)}
    return pa.table(cells | {"y": 20 + x[:, 0] + x[:, 1] + rng.normal(size=n)})


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize(("epsilon", "most"), [(0.3, 0.9), (1.0, 0.4), (5.0, 0.36)])
def test_wide_bounds_cost_little(epsilon: float, most: float) -> None:
    """Squared errors over the variance of the response, of which two slopes leave a third; bounds are 200 wide.

    With bins of the bounds a fit was no better than the mean at any epsilon.
    """
    columns = {f"x{j}": Numeric(-100, 100) for j in range(6)}
    model = MarginalsRegression(
        ApproxDP(epsilon, 1e-6), schema=Schema({**columns, "y": Numeric(-200, 800)}), random_state=3
    )
    model.fit_table(numbers(0), "y", progress=False)
    rows = numbers(1)
    y = rows["y"].to_numpy()
    assert np.mean((y - model.predict(rows)) ** 2) < most * y.var()
    lower, upper = model.marginals_.domain.attributes[-1].ends
    assert lower < 16
    assert upper > 24
    assert upper - lower < 40
    far = pa.table({f"x{j}": [1e6, -1e6] for j in range(6)})
    assert ((lower <= model.predict(far)) & (model.predict(far) <= upper)).all()


@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_noise_in_many_columns_is_not_taken_for_a_few_that_matter() -> None:
    """Forty columns without a slope, at a budget that tells nothing: at most 1.02 times the error of the mean.

    With a size for the slopes of each column alone it was 1.1.
    """
    rng = np.random.default_rng(1)
    cells = {f"x{j}": rng.normal(size=4_000) for j in range(40)} | {"y": rng.normal(size=4_000)}
    schema = Schema({name: Numeric(-8, 8) for name in cells})
    for seed in range(3):
        model = MarginalsRegression(ApproxDP(0.5, 1e-6), schema=schema, random_state=seed)
        predicted = model.fit_table(pa.table(cells), "y", progress=False).predict(pa.table(cells))
        assert predicted.var() < 0.02


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_intervals_of_binned_numbers_cover(seed: int) -> None:
    """60 releases: each of six slopes is held by 39 or more of its 90% intervals.

    With a coverage of 90%, fewer have probability 4e-8 for a slope.
    """
    schema = Schema({**{f"x{j}": Numeric(-20, 20) for j in range(6)}, "y": Numeric(-50, 100)})
    truth, inside = np.array([1.0, 1.0, 0, 0, 0, 0]), np.zeros((60, 6), dtype=bool)
    for repeat in range(60):
        model = MarginalsRegression(ApproxDP(2.0, 1e-6), schema=schema, random_state=seed + repeat)
        model.fit_table(numbers(seed + repeat), "y", progress=False)
        ends = model.conf_int(level=0.9)[1:]
        inside[repeat] = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    assert (inside.sum(axis=0) >= 39).all(), inside.sum(axis=0)

"""Linear models from released moments: errors, coverage, files, and several sites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import dpregress
from dpregress import (
    GDP,
    DPLinearRegression,
    DPRidge,
    Numeric,
    ReleasedMoments,
    Schema,
    SharedSpace,
    combine,
    release_moments,
    shared_space,
)
from dpregress.errors import InvalidInput
from dpregress.inference import intervals

NAMES = ("a", "b", "c", "y")
MIXING = np.array([[1.0, 0, 0, 0], [0.5, 0.8, 0, 0], [0.0, 0.3, 0.1, 0], [0.7, -1.0, 0.2, 0.5]])
COVARIANCE = MIXING @ MIXING.T
SCHEMA = Schema(dict(zip(NAMES, (Numeric(-9, 9), Numeric(-9, 9), Numeric(-3, 3), Numeric(-12, 12)), strict=True)))


def table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(n, 4)) @ MIXING.T + [1.0, 0.0, 0.5, -2.0], columns=list(NAMES))


def slopes(target: str) -> np.ndarray:
    place = NAMES.index(target)
    others = [i for i in range(4) if i != place]
    return np.linalg.solve(COVARIANCE[np.ix_(others, others)], COVARIANCE[others, place])


def released(rng: np.random.Generator, n: int, mu: float, public: str) -> ReleasedMoments:
    facts: dict[str, Any] = {"public": table(rng, 200)} if public == "rows" else {"schema": SCHEMA}
    return release_moments(table(rng, n), privacy=GDP(mu), random_state=rng, **facts)


def test_the_budget_may_be_the_second_argument() -> None:
    rows = table(np.random.default_rng(0), 2_000)
    assert release_moments(rows, GDP(1.0), schema=SCHEMA).privacy_.budget == GDP(1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
@pytest.mark.parametrize("public", ["rows", "schema"])
def test_intervals_cover_for_every_target(public: str, seed: int) -> None:
    """100 releases, 90% intervals of 12 slopes: counts that coverages of 83% stay below less than once in 10^9 each."""
    inside, repeats = {target: np.zeros(3) for target in NAMES}, 100
    for repeat in range(repeats):
        found = released(np.random.default_rng([seed, repeat]), 5_000, 1.0, public)
        for target in NAMES:
            model = DPLinearRegression.from_moments(found, target)
            assert model.estimates_ is not None
            assert model.estimates_.identified.all()
            lower, upper = intervals(model.estimates_, 0.9)[1:].T
            inside[target] += (lower <= slopes(target)) & (slopes(target) <= upper)
    least = binom.ppf(1e-9, repeats, 0.83)
    assert all((counts >= least).all() for counts in inside.values()), inside


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_one_release_is_as_good_as_the_default_fit(seed: int) -> None:
    """At n mu = 1e4 d the root mean squared error over four targets is at most 1.2 times that of four whole fits.

    Both are near least squares there, whose error has a relative standard deviation of 10% in the mean of 12 slopes at
    6 tables; the same rows are used for both, so that only the noise differs: the ratio exceeds 1.2 less than once in
    10^6.
    """
    squares = {"release": 0.0, "default": 0.0}
    for repeat in range(6):
        rng = np.random.default_rng([seed, repeat])
        rows, public = table(rng, 40_000), table(rng, 200)
        found = release_moments(rows, privacy=GDP(1.0), public=public, random_state=rng)
        for target in NAMES:
            default = DPLinearRegression(GDP(1.0), public=public, random_state=rng).fit_table(rows, target)
            place = [name for name in NAMES if name != target]
            within = COVARIANCE[np.ix_([NAMES.index(name) for name in place], [NAMES.index(name) for name in place])]
            for name, coef in (
                ("release", DPLinearRegression.from_moments(found, target).coef_),
                ("default", default.coef_),
            ):
                left = coef - slopes(target)
                squares[name] += float(left @ within @ left)
    assert np.sqrt(squares["release"] / squares["default"]) <= 1.2


def test_a_model_from_moments_is_a_model(seed: int, tmp_path: Path) -> None:
    """It predicts, is saved and shown as any other."""
    rng = np.random.default_rng(seed)
    found = release_moments(table(rng, 5_000), privacy=GDP(1.0), schema=SCHEMA)
    model = DPRidge.from_moments(found, "y", ["a", "b"], alpha=5.0)
    rows = table(rng, 10)[["a", "b"]]
    model.save(tmp_path / "model")
    loaded = dpregress.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(loaded.conf_int(), model.conf_int())
    assert loaded.path().coef.shape == (100, 2)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.get_params()["alpha"] == 5.0
    assert model.privacy_.promise == GDP(1.0)
    assert "DPRidge of y" in str(model.summary())
    assert 0.5 < model.rsquared < 1.0
    model.report(tmp_path / "report.html")
    with pytest.raises(TypeError):
        DPLinearRegression.from_moments(found, "y", alpha=5.0)
    with pytest.raises(InvalidInput, match="alpha must be finite"):
        DPRidge.from_moments(found, "y", alpha=-1.0)
    with pytest.raises(InvalidInput, match="moments are those"):
        DPRidge.from_moments(model.moments_, "y")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")
def test_five_sites_are_nearly_one(seed: int) -> None:
    """Root mean squared errors of 60 tables, on the same rows: five sites of 1,000 are within 10% of one of 5,000.

    Noise is a hundredth of the sampling variance, so that both errors are nearly the same number in every table.
    """
    squares = {"one": 0.0, "five": 0.0}
    for repeat in range(60):
        rng = np.random.default_rng([seed, repeat])
        rows, space = table(rng, 5_000), shared_space(n=1_000, privacy=GDP(3.0), public=table(rng, 200))
        one = release_moments(rows, privacy=GDP(3.0), like=space, random_state=rng)
        five = combine([
            release_moments(rows[i : i + 1_000], privacy=GDP(3.0), like=space, random_state=rng)
            for i in range(0, 5_000, 1_000)
        ])  # fmt: skip
        for name, found in (("one", one), ("five", five)):
            squares[name] += float(np.sum((DPLinearRegression.from_moments(found, "y").coef_ - slopes("y")) ** 2))
    assert np.sqrt(squares["five"] / squares["one"]) <= 1.1


def test_shared_coordinates_are_public(seed: int, tmp_path: Path) -> None:
    """They are a function of what is given, and nothing else."""
    rng = np.random.default_rng(seed)
    public = table(rng, 200)
    first, again = (shared_space(n=500, privacy=GDP(1.0), public=public) for _ in range(2))
    assert first.space.same_as(again.space)
    first.save(tmp_path / "space.json")
    assert SharedSpace.load(tmp_path / "space.json").space.same_as(first.space)
    by_schema = shared_space(n=500, privacy=GDP(1.0), schema=SCHEMA)
    assert by_schema.columns == NAMES
    assert by_schema.space.radius == pytest.approx(np.sqrt(5))
    wider = shared_space(n=5_000_000, privacy=GDP(1.0), public=public)
    assert wider.space.radius > first.space.radius
    for parameters in ({"n": 0}, {"n": 10, "columns": ["z"]}, {"n": True}):
        with pytest.raises(InvalidInput):
            shared_space(privacy=GDP(1.0), public=public, **parameters)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="give the columns"):
        shared_space(n=10, privacy=GDP(1.0))


def test_arrays_have_the_names_of_the_public_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = release_moments(table(rng, 500).to_numpy(), privacy=GDP(1.0), public=table(rng, 100))
    assert found.names == NAMES
    plain = release_moments(rng.normal(size=(300, 3)), privacy=GDP(1.0), row_bound=10.0)
    assert plain.names == ("x0", "x1", "x2")
    assert repr(plain) == "<ReleasedMoments of 3 columns, 300 rows>"
    assert "<table" in plain._repr_html_()

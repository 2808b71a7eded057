"""A regression within released moments: its coordinates, its noise, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from dpregress import GDP, Numeric, ReleasedMoments, Schema, SharedSpace, release_moments, shared_space
from dpregress.coordinates import WhitenedSpace, svec
from dpregress.errors import InvalidInput
from dpregress.releases import Isotropic, Moments
from dpregress.releases.subsets import regression_moments

NAMES = ("a", "b", "c", "y")
ROWS, SIGMA = 500, 7.0


def space(rng: np.random.Generator) -> WhitenedSpace:
    """Whitened with an intercept, in units far apart."""
    root = rng.normal(size=(4, 4)) * 10.0 ** np.array([-6.0, 0.0, 3.0, 8.0])
    whitening = np.block([[np.ones((1, 1)), np.zeros((1, 4))], [rng.normal(size=(4, 1)), root]])
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    return WhitenedSpace(NAMES, turn @ whitening, 3.0, np.zeros(4), intercept=True)


def moments(rng: np.random.Generator, noise: float = 0.0) -> tuple[Moments, np.ndarray]:
    """Exact moments with noise of this scale, and the raw rows."""
    there = space(rng)
    whitened = rng.normal(size=(ROWS, 5))
    whitened[:, 0] = 1
    raw = whitened @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    raw = np.column_stack([np.ones(ROWS), raw[:, 1:] / 10.0 ** np.array([-6.0, 0.0, 3.0, 8.0])])
    joint = raw @ there.whitening.T
    total = joint.T @ joint + svec.unsvec(rng.normal(0.0, noise, svec.length(5)), 5)
    return Moments((total + total.T) / 2, ROWS, Isotropic(noise), (), there), raw


@pytest.mark.parametrize("features", [("a",), ("c", "a"), ("a", "b", "c")])
def test_it_is_the_regression_of_the_columns(features: tuple[str, ...], seed: int) -> None:
    found, raw = moments(np.random.default_rng(seed))
    own = regression_moments(found, "y", features)
    assert own.moments.space.response is not None
    whitened = np.linalg.solve(own.moments.gram, own.moments.cross)
    coef = own.baseline + own.moments.space.response.scale * own.moments.space.whitening.T @ whitened
    x = raw[:, [0, *(1 + NAMES.index(name) for name in features)]]
    unit = np.abs(x).max(axis=0)
    right = np.linalg.lstsq(x / unit, raw[:, -1], rcond=None)[0] / unit
    np.testing.assert_allclose(coef * unit, right * unit, rtol=1e-6, atol=1e-6 * np.abs(right * unit).max())


def test_its_noise_has_the_law_of_the_release(seed: int) -> None:
    """300 noises: entries of svec in the regression's coordinates have the scale of the release.

    Their sum of squares lies within chi-square quantiles of 1e-8 on either side.
    """
    rng = np.random.default_rng(seed)
    there, squares, repeats = space(rng), 0.0, 300
    for _ in range(repeats):
        noise = svec.unsvec(rng.normal(0.0, SIGMA, svec.length(5)), 5)
        own = regression_moments(Moments(noise, ROWS, Isotropic(SIGMA), (), there), "b", ("y", "a"))
        squares += float(np.sum(svec.svec(own.moments.total) ** 2)) / SIGMA**2
        assert own.moments.noise == Isotropic(SIGMA)
        np.testing.assert_allclose(own.axes.T @ own.axes, np.eye(4), atol=1e-9)
    df = repeats * svec.length(4)
    assert chi2.ppf(1e-8, df) < squares < chi2.isf(1e-8, df)


def test_the_inverse_keeps_its_digits(seed: int) -> None:
    there = space(np.random.default_rng(seed))
    np.testing.assert_allclose(there.whitening @ there.back, np.eye(5), atol=1e-9)


# ------------------------------------------------------------------ the file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    schema = Schema({"x0": Numeric(-5, 5), "x1": Numeric(-5, 5)})
    release_moments(rng.normal(size=(200, 2)), privacy=GDP(1.0), schema=schema).save(tmp_path / "m.json")
    return tmp_path / "m.json"


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("format", to="dpregress.moments/9"),
        _set("sites", 0, "moments", "n", to=0),
        _set("sites", 0, "moments", "sigma", to=-1.0),
        _set("sites", 0, "moments", "sigma", to=None),
        _set("sites", 0, "moments", "total", 0, 1, to=5.0),
        _set("sites", 0, "moments", "total", to=[[1.0]]),
        _set("sites", 0, "lost", to=[[1.0]]),
        _set("sites", 0, "privacy", to={}),
        _set("space", "radius", to=None),
        _set("space", "radius", to=-1.0),
        _set("space", "intercept", to=False),
        _set("space", "weighting", to="features"),
        _set("schema", to=3),
        _set("schema", to="no schema"),
        _set("columns", to=None),
    ],
)
def test_wild_files_are_refused_in_one_line(change: Callable[[dict[str, Any]], None], file: Path) -> None:
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))
    with pytest.raises(InvalidInput) as caught:
        ReleasedMoments.load(file)
    assert "\n" not in str(caught.value)


def test_two_sites_of_one_name_are_refused(file: Path) -> None:
    record = json.loads(file.read_text())
    record["sites"] *= 2
    file.write_text(json.dumps(record))
    with pytest.raises(InvalidInput, match="two sites"):
        ReleasedMoments.load(file)


def test_coordinates_alone_are_no_release(tmp_path: Path) -> None:
    schema = Schema({"x0": Numeric(-5, 5), "x1": Numeric(-5, 5)})
    shared_space(n=100, privacy=GDP(1.0), schema=schema).save(tmp_path / "s.json")
    assert SharedSpace.load(tmp_path / "s.json").columns == ("x0", "x1")
    with pytest.raises(InvalidInput, match="no moments"):
        ReleasedMoments.load(tmp_path / "s.json")

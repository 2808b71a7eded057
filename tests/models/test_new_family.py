"""A new family is one entry of the table in ``models/families.py``: estimators, files and commands then know it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from dpregress import GDP, DPGLMRegressor, DPPoissonRegressor, DPRidge, PublicMoments
from dpregress.cli.fit import fit
from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput
from dpregress.estimators.families import OWN_ESTIMATORS, estimator_of
from dpregress.estimators.marginals_fit import TABLE_FAMILIES
from dpregress.models import Family, families, family_names
from dpregress.models.families import Distribution
from dpregress.models.links import LogLink
from tests.support import run


@dataclass(frozen=True)
class CompoundPoissonDistribution(Distribution):
    """V = m^1.5, y >= 0: Tweedie's family of power 1.5, with a positive probability of 0."""

    name: ClassVar[str] = "compound-poisson"
    support: ClassVar[str] = "y >= 0"
    fixed_dispersion: ClassVar[bool] = False

    def possible(self, y: Vector) -> NDArray[np.bool_]:
        return np.asarray(y >= 0)

    def variance(self, mean: Vector) -> Vector:
        return np.asarray(mean**1.5)

    def unit_deviance(self, y: Vector, mean: Vector) -> Vector:
        return np.asarray(4 * (np.sqrt(y) - np.sqrt(mean)) ** 2 / np.sqrt(mean))

    def saturated(self, y: Vector, dispersion: float) -> Vector:
        """By the saddlepoint approximation; a perfect fit of 0 is certain."""
        return np.where(y > 0, -0.5 * np.log(2 * np.pi * dispersion * np.maximum(y, 1e-300) ** 1.5), 0.0)


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its distribution and its line stood in models/families.py; the registry and its own test are the rest."""
    family = Family(CompoundPoissonDistribution(), LogLink())
    monkeypatch.setattr(families, "FAMILIES", {**families.FAMILIES, "compound-poisson": (family,)})


def rows(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, rng.gamma(rng.poisson(4.0, size=n), np.exp(0.5 + x @ [0.6, -0.4]) / 4)


def test_the_estimator_fits_it(seed: int) -> None:
    """The privacy and sampling errors of a coefficient are below 0.02: 0.25 is beyond 10 of them."""
    x, y = rows(seed, 40_000)
    public = PublicMoments.from_rows(x[:400], y[:400])
    model = DPGLMRegressor(GDP(2.0), family="compound-poisson", public=public).fit(x[400:], y[400:])
    assert np.abs(model.coef_ - [0.6, -0.4]).max() < 0.25
    assert model.response_model.family == "compound-poisson"
    with pytest.raises(InvalidInput, match="y >= 0"):
        DPGLMRegressor(GDP(2.0), family="compound-poisson", public=PublicMoments.from_rows(x, -1 - y)).fit(x, y)


def test_the_command_line_fits_and_predicts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = rows(0, 6000)
    for name, part in (("pilot.csv", slice(0, 300)), ("rows.csv", slice(300, None))):
        np.savetxt(name, np.column_stack([x, y])[part], delimiter=",", header="a,b,y", comments="")
    assert "compound-poisson" in CliRunner().invoke(fit, ["--help"]).output
    budget = ("--epsilon", 5, "--delta", 1e-6)
    family = ("--target", "y", "--family", "compound-poisson")
    done = run(capsys, "fit", "rows.csv", *family, "--public", "pilot.csv", *budget, "--out", "out")
    assert done.code == 0, done.err
    assert '"compound-poisson"' in (tmp_path / "out" / "model.json").read_text()
    done = run(capsys, "predict", "out/model.json", "rows.csv", "--out", "predicted.csv")
    assert done.code == 0, done.err
    predicted = np.loadtxt("predicted.csv", delimiter=",", skiprows=1, ndmin=2)[:, -1]
    assert (predicted > 0).all()
    assert run(capsys, "check", "rows.csv", *family).code == 0


def test_the_tables_agree() -> None:
    """What has an estimator or a fit to marginals of its own is a family; every family has an estimator."""
    names = set(family_names())
    assert set(OWN_ESTIMATORS) <= names
    assert set(TABLE_FAMILIES) <= names
    assert estimator_of("compound-poisson") is DPGLMRegressor
    assert {estimator_of("gaussian"), estimator_of("poisson")} == {DPRidge, DPPoissonRegressor}
    assert estimator_of("poisson", "identity") is DPGLMRegressor
    for name in names:
        assert estimator_of(name)
    with pytest.raises(InvalidInput, match="link"):
        estimator_of("multinomial", "probit")
    with pytest.raises(InvalidInput, match="family"):
        estimator_of("nonsense")


def test_an_unknown_family_is_refused_by_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """It once fitted a Gamma model."""
    done = run(capsys, "fit", "rows.csv", "--target", "y", "--family", "nonsense", "--epsilon", 1, "--delta", 1e-6)
    assert done.code != 0
    assert "'compound-poisson'" in done.err

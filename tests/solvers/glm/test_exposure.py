"""Exposures in score steps: the limit without noise, and surrogate rows with the private rows' exposures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpregress import GDP, MemoryLedger, PublicMoments
from dpregress.accounting import Composed
from dpregress.coordinates import Exposure, Matrix, Vector, WhitenedSpace
from dpregress.mechanisms import Sampler
from dpregress.models import Family, family_of
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import Start, from_public
from dpregress.queries import ExposureHistogram, ExposureScore, ResponseHistogram, SecondMoment
from dpregress.releases import Histogram, Isotropic
from dpregress.rows import ArraySource, ExposedSource, PrivateRows
from dpregress.solvers import ScoreSteps
from dpregress.solvers.glm.exposures import released_exposures
from dpregress.solvers.shared.magnitudes import EDGES, Magnitudes
from dpregress.solvers.shared.public_fit import fit_public
from dpregress.solvers.shared.surrogate import SurrogateRows
from dpregress.trust import Central, Session
from tests.laws.spies import Silent
from tests.registry import responses
from tests.support import kinds, statsmodels_family

ROWS = 600
LOG_FAMILIES = tuple(family_of(name, "log") for name in ("poisson", "gamma", "gaussian"))


def data(family: Family, rng: np.random.Generator, spread: float = 4.0) -> tuple[Matrix, Vector, Vector]:
    """Rows of the model, with exposures that go with the first column."""
    x = rng.uniform(-1, 1, size=(ROWS, 3)) * [1.0, 10.0, 0.1]
    exposure = rng.uniform(1, spread, size=ROWS) * np.exp(0.3 * x[:, 0])
    mean = exposure * np.exp(x @ [0.4, 0.03, -2.0] + 0.2)
    return x, responses(family, mean, rng, dispersion=0.1), exposure


def statsmodels_fit(family: Family, x: Matrix, y: Vector, exposure: Vector) -> Vector:
    theirs = statsmodels_family(family)
    import statsmodels.api as sm

    begin = np.array([math.log(y.mean() / exposure.mean()), 0.0, 0.0, 0.0])
    model = sm.GLM(y, np.column_stack([np.ones(len(x)), x]), family=theirs, offset=np.log(exposure))
    return model.fit(start_params=begin, maxiter=300, tol=1e-14, tol_criterion="params").params


def facts(x: Matrix, exposure: Exposure | None) -> PublicFacts:
    public = PublicMoments.from_rows(x)
    space = replace(from_public(public, intercept=True), radius=1e6)
    return PublicFacts(len(x), "y", Start(space, refinements=0), public, None, exposure)


def solve(solver: ScoreSteps, rows: ArraySource, exposure: Vector | None, sampler: Sampler) -> Vector:
    """Intercept and slopes."""
    budget = GDP(1e30)
    exposed = rows if exposure is None else ExposedSource(rows, exposure)
    found = solver.solve(Session(Central(), PrivateRows(exposed), sampler, MemoryLedger(budget).reserve(budget)))
    slopes, constant = found.space.pull_back(found.whitened)
    return np.concatenate([[constant], slopes])


@pytest.mark.parametrize("family", LOG_FAMILIES, ids=lambda f: f.distribution.name)
def test_without_noise_it_is_statsmodels(family: Family, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The slopes to 1e-6, for counts the intercept too; for others it makes the mean prediction right."""
    x, y, exposure = data(family, np.random.default_rng(seed))
    monkeypatch.setattr(Magnitudes, "best_clip", lambda *_, least=0.0, **__: max(1e9, least))
    solver = ScoreSteps(facts(x, Exposure("e")), family, GDP(1e30), 0.0, steps=(1.0,) * 60)
    found = solve(solver, ArraySource(x, y), exposure, Silent())
    expected, scale = statsmodels_fit(family, x, y, exposure), np.concatenate([[1.0], x.std(axis=0)])
    size = np.linalg.norm(expected * scale)
    assert np.linalg.norm(((found - expected) * scale)[1:]) <= 1e-6 * size
    if family.distribution.name == "poisson":
        assert abs(found[0] - expected[0]) <= 1e-6 * size
    mean = exposure * np.exp(x @ found[1:] + found[0])
    assert float(mean.mean()) == pytest.approx(float(y.mean()), rel=0.05)  # surrogate rows have other exposures


@pytest.mark.slow
@pytest.mark.parametrize("constant", [1e-3, 0.7, 40.0])
@pytest.mark.parametrize("family", LOG_FAMILIES[:2], ids=lambda f: f.distribution.name)
def test_a_constant_exposure_moves_the_intercept(
    family: Family, constant: float, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """By minus its logarithm, and nothing else."""
    x, y, _ = data(family, np.random.default_rng(seed))
    monkeypatch.setattr(Magnitudes, "best_clip", lambda *_, least=0.0, **__: max(1e9, least))
    fits = []
    for exposure, values in ((None, None), (Exposure("e"), np.full(ROWS, constant))):
        solver = ScoreSteps(facts(x, exposure), family, GDP(1e30), 0.0, steps=(1.0,) * 60)
        fits.append(solve(solver, ArraySource(x, y), values, Silent()))
    moved = fits[1] - fits[0]
    np.testing.assert_allclose(moved[1:], 0, atol=1e-7)
    # the gamma model's intercept makes the mean right as far as half an octave tells exposures
    assert moved[0] == pytest.approx(-math.log(constant), abs=1e-7 if family.distribution.name == "poisson" else 0.05)


@pytest.mark.parametrize("bounds", [(1.0, 1e7), (0.0, 1e6), (100.0, 1e5)])
def test_exposures_that_noise_hides_are_the_likely_ones_within_their_bounds(
    bounds: tuple[float, float], seed: int
) -> None:
    """Of 5,000 exposures no bin stands out from a noise of 100 rows, and the largest may be one of noise anywhere. The
    mean is within a factor of 8: six standard deviations, each a factor of 1.4 at most (under 1e-8 a test).
    """
    rng = np.random.default_rng([seed, 11])
    exposure = np.exp(rng.normal(9, 1.2, 5_000)).clip(*bounds)
    space = replace(facts(rng.normal(size=(5_000, 3)), None).start.space, exposure=Exposure("e", *bounds))
    counted = np.histogram(np.log(exposure), np.log([1e-300, *EDGES[1:-1], 1e300]))[0]
    total = counted + rng.normal(0, 100.0, len(counted))
    seen = Histogram(total, 5_000, Isotropic(100.0), (), space, EDGES)
    found = released_exposures(lambda *_: seen, space, space.exposure, GDP(0.01))  # type: ignore[arg-type]
    assert bounds[0] <= found.size.min()
    assert found.size.max() <= bounds[1]
    assert 1 / 8 < found.mean / exposure.mean() < 8


def test_exposures_cost_a_tenth(seed: int) -> None:
    """Of what the start leaves, which takes 5% or more."""
    family = family_of("poisson")
    x, y, exposure = data(family, np.random.default_rng(seed))
    asked: list[tuple[type, float]] = []
    solver = ScoreSteps(facts(x, Exposure("e")), family, GDP(2.0), 0.0)
    reservation = MemoryLedger(GDP(2.0)).reserve(GDP(2.0))
    door = Session(Central(), PrivateRows(ExposedSource(ArraySource(x, y), exposure)), Silent(), reservation)

    def ask(query, spend):  # type: ignore[no-untyped-def]
        asked.append((kinds([(query, spend)])[0], spend.mu**2 / 4))
        return door(query, spend)

    solver.solve(ask)
    assert [kind for kind, _ in asked[:4]] == [SecondMoment, ExposureHistogram, ExposureScore, ResponseHistogram]
    begun = asked[3][1]
    assert 0.05 <= begun <= 0.12  # columns are three
    assert [share for _, share in asked[1:3]] == pytest.approx([0.05 * (1 - begun) / 0.95] * 2)
    assert len(asked) <= solver.rounds <= len(asked) + 1  # a wrong model would be asked for a wider remainder
    assert Composed.of(reservation.drawn.parts).mu == pytest.approx(2.0)


def test_public_rows_are_fitted_with_their_exposures(seed: int) -> None:
    """Exposures 100 times as large give rates a hundredth as large: the intercept falls by log 100."""
    x, y, exposure = data(family_of("poisson"), np.random.default_rng(seed))
    fits = []
    for size in (1.0, 100.0):
        public = PublicMoments.from_rows(x, y, exposure=size * exposure)
        space = replace(from_public(public, intercept=True), exposure=Exposure("e"))
        found = fit_public(public, space, family_of("poisson"))
        slopes, constant = space.pull_back(found.coef)
        fits.append(np.concatenate([[constant], slopes]))
    np.testing.assert_allclose(fits[1] - fits[0], [-math.log(100), 0, 0, 0], atol=1e-9)


def test_stand_ins_have_the_private_exposures() -> None:
    """Of the released distribution, in the order of the features that exposures go with."""
    levels = Magnitudes(np.array([1.0, 4.0, 16.0]), np.array([0.5, 0.25, 0.25]))
    plain = SurrogateRows(np.linspace(-1, 1, 300)[:, None], np.ones(300), np.zeros((1, 1)))
    apart = plain.exposed(Exposure("e"), levels, np.zeros(1))
    along = plain.exposed(Exposure("e"), levels, np.array([100.0]))
    for rows in (apart, along):
        assert len(rows.x) >= 2048
        assert float(np.mean(np.exp(rows.offset))) == pytest.approx(levels.mean, rel=0.01)
    assert abs(np.corrcoef(apart.x[:, 0], apart.offset)[0, 1]) < 0.03
    assert (np.diff(along.offset) >= 0).all()


def test_spaces_with_exposures_are_written_and_read() -> None:
    space = WhitenedSpace(("a",), np.eye(1), 1.0, np.zeros(1), exposure=Exposure("years", 0.0, 30.0))
    again = WhitenedSpace.decode(space.encode())
    assert again.same_as(space)
    assert not again.same_as(replace(space, exposure=None))


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_how_sure_a_public_fit_is_does_not_depend_on_the_unit_of_exposures(unit: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, years = rng.normal(size=(300, 2)), rng.exponential(2.0, 300) + 0.1
    y = rng.poisson(years * np.exp(x @ [0.5, -0.5])) * 1.0
    fits = []
    for exposure in (years, years * unit):
        public = PublicMoments.from_rows(x, y, exposure=exposure)
        space = replace(from_public(public, intercept=True), exposure=Exposure("e"))
        fits.append(fit_public(public, space, family_of("poisson")))
    assert fits[1].dispersion == pytest.approx(fits[0].dispersion, rel=1e-2)
    covariances = [np.linalg.inv(fit.precision) for fit in fits]
    np.testing.assert_allclose(covariances[1], covariances[0], rtol=0.1, atol=1e-4)

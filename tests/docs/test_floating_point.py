"""The steps of docs/privacy/floating-point.md, in exact arithmetic where the page speaks of real numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.accounting import GDP, Relation
from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace
from dpregress.coordinates.exact import FINE, ExactVector
from dpregress.coordinates.products import _wild
from dpregress.errors import InvalidInput, UnsafeNoise
from dpregress.mechanisms import Gaussian, randomness
from dpregress.mechanisms.base import exact_total, float_sensitivity
from dpregress.models import BinomialFamily, GaussianFamily
from dpregress.queries import (
    ClippedGradient,
    ClippedScore,
    MeanClassResidual,
    MultinomialScore,
    PublishedHessian,
    Query,
    ScoreRemainder,
    ScoreSquares,
    SecondMoment,
)
from dpregress.queries.base import _row
from dpregress.rows import ArraySource, BoundedRows, PrivateRows, RawRows, ThreadedEngine, WhitenedRows
from tests import registry

UNIT = Fraction(1, 2**53)


def space_of(order: int, radius: float = 1.5, whitening: Matrix | None = None) -> WhitenedSpace:
    names = tuple(f"x{i}" for i in range(order))
    response = ResponseScale("y", scale=0.5, bound=3.0, cross=0.4)
    return WhitenedSpace(
        names, np.eye(order) if whitening is None else whitening, radius, np.zeros(order), response=response
    )


def squared(vector: Vector) -> Fraction:
    """The squared norm as a real number."""
    return sum((Fraction(float(value)) ** 2 for value in vector), Fraction(0))


# ---------------------------------------------------------------- part 1: rows


@pytest.mark.parametrize("radius", [1e-90, 1.0, 3.3, 1e90])
@pytest.mark.parametrize("order", [1, 2, 7, 40, 300])
def test_rows_lie_in_the_ball_in_real_arithmetic(order: int, radius: float, seed: int) -> None:
    """``||x|| <= (1 - 12 (p + 4) u) R`` exactly, for rows of every size around the ball. No seed can break it."""
    rng = np.random.default_rng(seed)
    size = radius * 10.0 ** rng.choice([-200.0, -160, -1, -1e-15, 0, 1e-15, 1, 150], size=(25, 1))
    x = rng.normal(size=(25, order)) / np.sqrt(order) * size
    allowed = Fraction(radius) * (1 - 12 * (order + 4) * UNIT)
    for words in (1, FINE):
        for row in WhitenedRows(space_of(order, radius))(RawRows(x, np.zeros(25)), words).x:
            assert squared(row) <= allowed**2


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e100, 1e-100), (1e30, 1e-90), (1e-100, 1e-100), (1e100, 1e100)])
def test_rows_that_overflow_lie_in_the_ball(units: tuple[float, float]) -> None:
    """``||x|| <= R`` exactly for huge rows and for missing cells beside them, however far apart the units are."""
    cells = [0.0, 3.0, -1e154, 1e200, -1e250, 1.7e308, np.nan]
    x = np.array([[a, b] for a in cells for b in cells])
    for radius in (1e-3, 1.5, 1e90):
        bounded = WhitenedRows(space_of(2, radius, np.diag(units)))(RawRows(x, np.ones(len(x))))
        for row, before in zip(bounded.x, x, strict=True):
            assert squared(row) <= Fraction(radius) ** 2, f"{before} became {row} in a ball of {radius}"


@pytest.mark.parametrize("order", [1, 7, 40])
def test_gradients_are_clipped_in_real_arithmetic(order: int, seed: int) -> None:
    """``||x|| |r| <= C`` exactly, for the residual as it is clipped. No seed can break it."""
    rng = np.random.default_rng(seed)
    space = replace(space_of(order), radius=np.inf)
    query = ClippedGradient(space, GaussianFamily, rng.normal(size=order), 0.3)
    x = rng.normal(size=(25, order)) * 10.0 ** rng.integers(-9, 9, size=(25, 1))
    y = rng.normal(size=25) * 10.0 ** rng.integers(-9, 9, size=25)
    row_map = WhitenedRows(space)
    for i in range(25):
        # one row at a time: its value is x times the clipped residual, of norm ||x|| |r| up to one rounding
        value = query.value(row_map(RawRows(x[i : i + 1], y[i : i + 1])))
        assert squared(value) <= (Fraction(0.3) * (1 + UNIT)) ** 2


def single_rows(space: WhitenedSpace, bound: float, largest: int, rng: np.random.Generator) -> Iterator[BoundedRows]:
    """Rows of every size, one at a time, with responses of up to so many powers of ten beyond a bound."""
    x = rng.normal(size=(25, space.order)) * 10.0 ** rng.integers(-9, 9, size=(25, 1))
    rows = WhitenedRows(space.with_response(replace(space.response, bound=np.inf)))(
        RawRows(x, bound * rng.normal(size=25) * 10.0 ** rng.integers(-3, largest, size=25))
    )
    for i in range(25):
        yield BoundedRows(rows.x[i : i + 1], rows.y[i : i + 1], rows.weight[i : i + 1], i)


@pytest.mark.parametrize("order", [1, 7, 40])
@pytest.mark.parametrize("bound", [1e-60, 0.3, 1e60])
def test_gradients_and_remainders_are_bounded_in_real_arithmetic(order: int, bound: float, seed: int) -> None:
    """``||v|| <= K`` exactly, for rows and residuals of every size. No seed can break it."""
    space = space_of(order, radius=1.5)
    score = ClippedScore(space, GaussianFamily, np.zeros(order), bound)
    gradient = ClippedGradient(space, GaussianFamily, np.zeros(order), bound)
    for query in (gradient, ScoreRemainder(score, bound), ScoreRemainder(gradient, bound)):
        for row in single_rows(space, bound, 9, np.random.default_rng(seed)):
            assert squared(query.value(row)) <= Fraction(bound) ** 2


@pytest.mark.parametrize("order", [1, 7, 40])
@pytest.mark.parametrize("bound", [1e-60, 0.3, 1e60])
def test_squares_of_scores_are_bounded_in_real_arithmetic(order: int, bound: float, seed: int) -> None:
    """``||v v'||_F <= K^2`` exactly, for scores of every size around K. No seed can break it."""
    space = space_of(order, radius=1.5)
    query = ScoreSquares(ClippedScore(space, GaussianFamily, np.zeros(order), bound), bound)
    for row in single_rows(space, bound, 3, np.random.default_rng(seed)):
        assert squared(query.value(row)) <= Fraction(bound) ** 4


def check_rows_do_not_depend_on_each_other(space: WhitenedSpace, rows: RawRows, strange: Vector) -> None:
    """Replacing the last row by a strange one leaves every bit of the others as it was."""
    row_map = WhitenedRows(space)
    before = row_map(rows)
    x = rows.x.copy()
    x[-1] = strange
    after = row_map(RawRows(x, rows.y))
    for name in ("x", "y", "weight"):
        one, other = getattr(before, name)[:-1], getattr(after, name)[:-1]
        np.testing.assert_array_equal(one, other, err_msg=f"{name} of other rows changed with the last row")


@pytest.mark.parametrize("broken", [0, 1, 9, 100])
@pytest.mark.parametrize("order", [2, 5, 20, 40])
def test_rows_do_not_depend_on_each_other(order: int, broken: int, seed: int) -> None:
    """Neither a missing cell nor a huge one has a say in the rounding of another row. No seed can break it."""
    rng = np.random.default_rng(seed)
    rows = RawRows(rng.normal(size=(300, order)) + 1e3, rng.normal(size=300))
    rows.x[:broken, 0] = np.nan
    space = space_of(order, whitening=rng.normal(size=(order, order)))
    for strange in (rng.normal(size=order), np.full(order, np.nan), np.full(order, 1e300)):
        check_rows_do_not_depend_on_each_other(space, rows, strange)


def orders(terms: Matrix) -> dict[str, Vector]:
    """Sums of each row in the order of the columns, and in three others."""
    forward = np.cumsum(terms, axis=1)[:, -1]
    halves = np.cumsum(terms[:, ::2], axis=1)[:, -1] + np.cumsum(terms[:, 1::2], axis=1)[:, -1]
    return {"forward": forward, "backward": np.cumsum(terms[:, ::-1], axis=1)[:, -1], "every other": halves}


def fused(row: Vector, weights: Vector) -> float:
    """The sum of products in the order of the columns, each product and sum rounded once together."""
    total = 0.0
    for cell, weight in zip(row, weights, strict=True):
        total = float(Fraction(float(cell)) * Fraction(float(weight)) + Fraction(total))
    return total


@pytest.mark.parametrize("order", [3, 4, 9, 40])
def test_a_trial_tells_orders_apart(order: int) -> None:
    """Two orders of additions, and fused operations, change more than a third of a trial's entries: fixed numbers."""
    rows, matrices = _wild(order, 1)
    pairs = [(row, matrix[0]) for matrix in matrices for row in rows]
    sums = orders(np.array([row * weights for row, weights in pairs]))
    sums["fused"] = np.array([fused(row, weights) for row, weights in pairs])
    assert len(pairs) >= 576
    for name in ("backward", "every other", "fused"):
        assert (sums[name] != sums["forward"]).mean() > 1 / 3, name


# ---------------------------------------------------------------- part 2: sums


def test_every_row_query_is_in_the_table() -> None:
    """Proposition 2 names the terms of each row query of the registry and their grids."""
    page = (Path(__file__).parents[2] / "docs/privacy/floating-point.md").read_text(encoding="utf-8")
    table = page.split("| query | term |")[1].split("\n\n")[0]
    rng = np.random.default_rng(0)
    queries = [entry.make(registry.SPACES["plain"](rng), rng) for entry in registry.QUERIES]
    missing = {type(query).__name__ for query in queries if f"`{type(query).__name__}`" not in table}
    assert not missing


@pytest.mark.parametrize("words", [1, FINE])
@pytest.mark.parametrize("n", [1, 255, 2048, 5000])
@pytest.mark.parametrize("which", range(5))
def test_sums_are_exact(which: int, n: int, words: int, seed: int) -> None:
    """A total is the sum of the values of single rows as rational numbers. No seed can break it."""
    rng = np.random.default_rng(seed)
    query = query_of(which, space_of(2))
    rows = query.row_map(RawRows(rng.normal(size=(n, 2)), rng.normal(size=n)), words)
    terms = [_fractions(query.exact(_row(rows, i))) for i in range(n)]
    assert _fractions(query.exact(rows)) == [sum(column, Fraction(0)) for column in zip(*terms, strict=True)]


def _fractions(vector: ExactVector) -> list[Fraction]:
    units = np.broadcast_to(vector.unit, vector.whole.shape).tolist()
    return [whole * Fraction(unit) for whole, unit in zip(vector.whole.tolist(), units, strict=True)]


@pytest.mark.parametrize("exponent", [-60, -3, 0, 5, 400])
def test_the_answer_is_moved_to_the_nearest_point_of_the_grid(exponent: int, seed: int) -> None:
    """By at most half a step, in exact arithmetic. No seed can break it."""
    rng = np.random.default_rng(seed)
    whole = np.array([*(int(k) << 70 for k in rng.integers(-(2**62), 2**62, size=50)), 0, 1, -1], dtype=object)
    vector = ExactVector(whole, rng.normal(size=len(whole)) * 2.0**exponent)
    for exact, steps in zip(_fractions(vector), vector.multiples(exponent), strict=True):
        assert abs(exact - steps * Fraction(2) ** exponent) <= Fraction(2) ** exponent / 2


@pytest.mark.parametrize("classes", [2, 3, 40, 300])
def test_residuals_of_classes_are_within_their_bounds_in_real_arithmetic(classes: int, seed: int) -> None:
    """``||r|| <= sqrt 2`` and, cut, ``||x|| ||r|| <= R C`` exactly. No seed can break it."""
    rng = np.random.default_rng(seed)
    space = space_of(1).with_response(ResponseScale("y"))
    coef = rng.normal(size=(1, classes - 1)) * 10.0 ** rng.integers(0, 5, size=(1, classes - 1))
    x = rng.normal(size=(25, 1)) * 10.0 ** rng.integers(-3, 9, size=(25, 1))
    rows = WhitenedRows(space)(RawRows(x, rng.integers(0, classes, size=25).astype(float)))
    for i in range(25):
        row = BoundedRows(rows.x[i : i + 1], rows.y[i : i + 1], rows.weight[i : i + 1], i)
        assert squared(MeanClassResidual(space, coef).value(row)) <= 2
        cut = MultinomialScore(space, coef, 0.3)
        assert squared(cut.value(row)) <= (Fraction(0.3) * Fraction(space.radius)) ** 2


def test_sensitivities_cover_the_rounding_of_public_numbers() -> None:
    """There is no term for rounded sums, in which it could hide."""
    rng = np.random.default_rng(0)
    for entry in registry.CODED_QUERIES:
        query = entry.make(registry.DOMAINS["mixed"], rng)
        for relation in Relation:
            assert float_sensitivity(query, relation) >= query.sensitivity(relation) * (1 + 2.0**-41)


# ---------------------------------------------------------------- part 3: the sampler's grid


@pytest.mark.parametrize("mu", [2.0**-40 * (1 + 2e-12), 1e-12, 1e-9, 1e-6, 0.3, 1.0, 1e6, 1e30])
@pytest.mark.parametrize("length", [1, 3, 210, 9999])
def test_the_grid_has_its_share_of_every_mu(length: int, mu: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """``mu sigma >= Delta + sqrt(m) g``, up to five roundings of sigma, for the grid that is drawn on."""
    scales: list[float] = []

    def measurement(size: int, scale: float) -> Callable[[list[int]], list[int]]:
        scales.append(scale)
        return lambda values: values if size else []

    monkeypatch.setattr(randomness, "_integer_measurement", measurement)
    query, mechanism = ClippedScore(space_of(2), GaussianFamily, np.zeros(2), 1.0), Gaussian(GDP(mu))
    sigma = mechanism.sigma(query, Relation.REPLACE_ONE)
    randomness.SecureSampler().add_gaussian(np.zeros(length), sigma)
    scale, step = Fraction(sigma), Fraction(sigma) / Fraction(scales[0])
    room = Fraction(mu) * scale - Fraction(float_sensitivity(query, Relation.REPLACE_ONE)) * (1 - 5 * UNIT)
    assert room > 0
    assert length * step**2 <= room**2


def test_a_mu_below_the_share_of_the_grid_is_refused() -> None:
    rows = PrivateRows(ArraySource(np.zeros((9, 2)), np.zeros(9)), ThreadedEngine(workers=1))
    query = ClippedScore(space_of(2), GaussianFamily, np.zeros(2), 1.0)
    for mu in (1e-13, 2.0**-40, 2.0**-40 * (1 + 1e-13)):
        with pytest.raises(UnsafeNoise, match="spend more"):
            Gaussian(GDP(mu)).check(query, rows, Relation.REPLACE_ONE)


def test_totals_that_can_overflow_are_refused() -> None:
    """However large mu is: infinity less infinity is no number, and would count as 0."""
    rows = PrivateRows(ArraySource(np.zeros((9, 2)), np.zeros(9)), ThreadedEngine(workers=1))
    query = ClippedScore(space_of(2, radius=1e100), GaussianFamily, np.zeros(2), 8e207)
    with pytest.raises(UnsafeNoise):
        Gaussian(GDP(1e40)).check(query, rows, Relation.REPLACE_ONE)


def query_of(which: int, space: WhitenedSpace, slope: float = 1.0) -> Query[Any]:
    """One of five queries; the last three look at coefficients."""
    coef = np.zeros(space.order)
    coef[0] = slope  # a prediction without rounding, however a product is computed
    make: tuple[Callable[[], Query[Any]], ...] = (
        lambda: SecondMoment(space),
        lambda: SecondMoment(space.with_response(None)),
        lambda: PublishedHessian(space, BinomialFamily, coef, 0.25),
        lambda: ClippedScore(space, GaussianFamily, coef, 1.0),
        lambda: ClippedGradient(space, GaussianFamily, coef, 1.0),
    )
    return make[which]()


# ---------------------------------------------------------------- no cell is anything but a number afterwards


Strange = Callable[[], tuple[WhitenedSpace, RawRows]]


def overflowing_response() -> tuple[WhitenedSpace, RawRows]:
    """A row so far out that its weight is 0, with a response that overflows when it is scaled."""
    space = space_of(2, whitening=np.eye(2) * 1e20)
    space = space.with_response(ResponseScale("y", scale=1e-3, bound=3.0, cross=0.5))
    return space, RawRows(np.array([[1.7e308, 1e308], [1e-20, 2e-20]]), np.array([1.7e308, 1.0]))


def overflowing_columns() -> tuple[WhitenedSpace, RawRows]:
    """Columns in units so large that a huge cell overflows even after it has been cut."""
    space = space_of(2, whitening=np.array([[1.0, 1e300], [-1e300, 1e300]]))
    return space, RawRows(np.array([[1e200, 1e200], [-1e290, 1e290], [1.0, np.nan]]), np.ones(3))


def response_without_scale() -> tuple[WhitenedSpace, RawRows]:
    """A scale of 0, as half of a minute range can be: 0/0 is no number, 1/0 is infinite."""
    space = space_of(2).with_response(ResponseScale("y", scale=0.0, bound=3.0, cross=0.4))
    return space, RawRows(np.ones((2, 2)), np.array([0.0, 1.0]))


STRANGE = [overflowing_response, overflowing_columns, response_without_scale]


@pytest.mark.parametrize("make", STRANGE, ids=lambda f: f.__name__)
def test_bounded_rows_are_numbers(make: Strange) -> None:
    """A total that is not a number is replaced by 0: no row may bring that about, or it would show in the release."""
    try:
        space, rows = make()
    except InvalidInput:
        return  # such public numbers are refused
    bounded = WhitenedRows(space)(rows)
    for name in ("x", "y", "weight"):
        assert np.isfinite(getattr(bounded, name)).all(), f"{name} is not a number"


@pytest.mark.parametrize("strange", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("which", [2, 3, 4])
def test_coefficients_are_numbers(which: int, strange: float) -> None:
    """Infinity times 0 is no number: which rows hold a 0 would show in the total."""
    with pytest.raises(InvalidInput):
        query_of(which, space_of(2), slope=strange)


@pytest.mark.parametrize("size", [1.7e308, 1e300, 1e290, 1e200])
@pytest.mark.parametrize("which", range(5))
def test_no_warning_tells_of_a_huge_row(which: int, size: float) -> None:
    """A warning that depends on a private cell is a leak: none is given, and the answer is a number."""
    rows = PrivateRows(ArraySource(np.array([[size, size], [1.0, 2.0]]), np.array([1.0, 1.0])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total = exact_total(query_of(which, space_of(2), slope=2.0**40), rows)
    assert np.isfinite(total).all()

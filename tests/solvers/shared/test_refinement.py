"""Private second moments that whiten in turn: what rows beyond the radius hide is not magnified."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import GDP, MemoryLedger, Numeric, Schema
from dpregress.coordinates import Matrix
from dpregress.mechanisms import SeededSampler
from dpregress.public.radius import RowNorms
from dpregress.public.whitening import start
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers.shared.whitening import Rewhitened, refined_in_turn
from dpregress.trust import Central, Session

NAMES = ("age", "income", "rare")
SCHEMA = Schema({"age": Numeric(-6, 6), "income": Numeric(-6, 6), "rare": Numeric(0, 1)})
N, LEVEL = 50_000, 150


def rows(seed: int) -> Matrix:
    """Two normal columns and an indicator of three in a thousand rows."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(N, 2)), rng.permutation(N) < LEVEL])


def refined_by(x: Matrix, mu: float, seed: int, schema: Schema | None) -> Rewhitened:
    """From the bounds of the schema, three times, at this mu each."""
    space = start(NAMES, intercept=True, public=None, schema=SCHEMA, row_bound=None).space
    spends = [GDP(mu)] * 3
    ledger = MemoryLedger(GDP(2 * mu)).reserve(GDP(2 * mu))
    ask = Session(
        Central(), PrivateRows(ArraySource(x, np.zeros(N))), SeededSampler(np.random.default_rng(seed)), ledger
    )
    return refined_in_turn(ask, Rewhitened(space, RowNorms.of(None, space, refined=True)), spends, schema)


@pytest.mark.parametrize("mu", [0.2, 1.0, 5.0])
def test_a_rare_level_is_not_magnified_by_each_moment_that_cuts_it(mu: float, seed: int) -> None:
    """Whitened by all rows it would be 18 long; the first moment that cuts it makes that twice as much, others no more.

    Before, it was 1,130 to 1,850 long. In 600 fits it was 34.6 to 48.2, with a standard deviation of 2.7 at most.
    """
    x = rows(seed)
    better = refined_by(x, mu, seed, None)
    assert float(np.median(np.linalg.norm(better.space.whiten(x[x[:, 2] == 1]), axis=1))) <= 80


@pytest.mark.parametrize("radius", [3.0, 9.0, 40.0])
def test_levels_that_a_schema_declares_are_within_the_radius(radius: float, seed: int) -> None:
    """Or, if that is less, about as long as their share makes them.

    In 200 fits it was at most a thousandth longer than the reach, with a standard deviation of .0005.
    """
    x = rows(seed)
    space = refined_by(x, 1.0, seed, SCHEMA).truncated(radius)
    assert space.radius == radius
    reach = max(radius, np.sqrt(2 * space.order))
    assert float(np.linalg.norm(space.whiten(x[x[:, 2] == 1]).mean(axis=0))) <= 1.1 * reach


@pytest.mark.parametrize("rate", [(2, 600), (2, 60), (60, 2), (5, 5)])
def test_rates_between_0_and_1_are_no_levels(rate: tuple[int, int], seed: int) -> None:
    """Whitened like the same column with other bounds, to the last digit: nobody has a rate of 1."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(N, 2)), rng.beta(*rate, N)])
    found = [refined_by(x, 1.0, seed, schema).truncated(9.0).whitening for schema in (SCHEMA, None)]
    np.testing.assert_array_equal(*found)


def test_a_moment_of_noise_alone_whitens_nothing(seed: int) -> None:
    """All its eigenvalues may be negative."""
    for again in range(20):
        better = refined_by(np.zeros((N, 3)), 1e-6, seed + again, None)
        assert np.isfinite(better.space.whitening).all()

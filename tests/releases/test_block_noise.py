"""The noise of second moments made from tables: every unit of it is carried through, and the squares are added."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpregress.coordinates import Domain
from dpregress.coordinates.domain import Attribute
from dpregress.releases import Clique, Tables
from dpregress.releases.block_noise import BlockNoise
from dpregress.releases.noise import Isotropic
from dpregress.solvers.marginals.tables import OneWays, moments_of_tables

DOMAIN = Domain(
    (
        Attribute("a", ("0", "1", "2"), (0.0, 1.0, 2.0)),
        Attribute("b", ("x", "y", "z")),
        Attribute("c", ("u", "v")),
    )
)
SIGMAS: dict[Clique, float] = {(0,): 2.0, (1,): 3.0, (2,): 1.0, (0, 1): 4.0, (0, 2): 0.5, (1, 2): 2.5}


def moments(blocks: dict[Clique, np.ndarray]) -> np.ndarray:
    """Second moments of these blocks; large counts keep totals positive."""
    counts = {clique: block + 1e6 * (len(clique) == 1) for clique, block in blocks.items()}
    tables = Tables(np.zeros(1), 1, Isotropic(1.0), (), DOMAIN, counts, SIGMAS)
    return moments_of_tables(DOMAIN, OneWays(tables, DOMAIN).count, counts)


def empty() -> dict[Clique, np.ndarray]:
    singles: dict[Clique, np.ndarray] = {(j,): np.zeros(size) for j, size in enumerate(DOMAIN.sizes)}
    widths = [len(attribute.columns) for attribute in DOMAIN.attributes]
    return singles | {pair: np.zeros((widths[pair[0]], widths[pair[1]])) for pair in DOMAIN.pairs}


@pytest.mark.parametrize("kept", [tuple(range(7)), (0, 1, 3, 4, 6)])
def test_covariance_of_products(kept: tuple[int, ...], seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=len(kept))
    law = BlockNoise(DOMAIN, SIGMAS, tuple(range(DOMAIN.width))).cut(kept)
    expected = np.zeros((len(kept), len(kept)))
    for clique, block in empty().items():
        for entry in itertools.product(*map(range, block.shape)):
            blocks = empty()
            blocks[clique][entry] = SIGMAS[clique]
            moved = (moments(blocks) - moments(empty()))[np.ix_(kept, kept)] @ vector
            expected += np.outer(moved, moved)
    np.testing.assert_allclose(law.product_covariance(vector), expected, atol=1e-6)
    assert law.spectral_norm(len(kept)) > 0


def test_numbers_of_rows_that_are_other_sums_are_not_added() -> None:
    """The same scales add up; other proportions of the one-way tables change what the number of rows sums."""
    law = BlockNoise(DOMAIN, SIGMAS, (0, 1))
    vector = np.array([1.0, 2.0])
    np.testing.assert_allclose((law + law).product_covariance(vector), 2 * law.product_covariance(vector))
    with pytest.raises(TypeError):
        _ = law + BlockNoise(DOMAIN, SIGMAS | {(0,): 9.0}, (0, 1))

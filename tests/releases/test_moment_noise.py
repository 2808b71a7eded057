"""The noise of second moments that were released as sums: every unit of it is carried through, squares are added."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress.releases import Clique
from dpregress.releases.moment_noise import MomentNoise
from dpregress.solvers.marginals.margins import Margins
from tests.releases.test_block_noise import DOMAIN

SIGMAS: dict[Clique, float] = {
    (): 1.5, (0,): 2.0, (0, 0): 2.0, (1,): 3.0, (2,): 1.0, (0, 1): 4.0, (0, 2): 0.5, (1, 2): 2.5,
}  # fmt: skip


def moments(noise: dict[Clique, np.ndarray]) -> np.ndarray:
    """Second moments of large counts with this noise."""
    widths = [len(attribute.columns) for attribute in DOMAIN.attributes]
    blocks = {pair: noise.get(pair, np.zeros((widths[pair[0]], widths[pair[1]]))) for pair in DOMAIN.pairs}
    tables = {j: 1e6 + noise.get((j,), np.zeros(size)) for j, size in enumerate(DOMAIN.sizes)}
    count = 1e6 + float(noise.get((), np.zeros(1))[0])
    margins = Margins(
        DOMAIN, count, {0: noise.get((0, 0), np.zeros(2))}, tables, SIGMAS, dict.fromkeys(range(3), 1.0), ()
    )
    return margins.moments(blocks)


@pytest.mark.parametrize("kept", [tuple(range(7)), (0, 1, 3, 4, 6)])
def test_covariance_of_products(kept: tuple[int, ...], seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=len(kept))
    law = MomentNoise(DOMAIN, SIGMAS, tuple(range(DOMAIN.width))).cut(kept)
    widths = [len(attribute.columns) for attribute in DOMAIN.attributes]
    shapes: dict[Clique, tuple[int, ...]] = {(): (1,), (0, 0): (2,), (1,): (3,), (2,): (2,)}
    shapes |= {(j, k): (widths[j], widths[k]) for j, k in DOMAIN.pairs}
    expected = np.zeros((len(kept), len(kept)))
    for clique, shape in shapes.items():
        for entry in np.ndindex(shape):
            noise = np.zeros(shape)
            noise[entry] = SIGMAS[clique]
            moved = (moments({clique: noise}) - moments({}))[np.ix_(kept, kept)] @ vector
            expected += np.outer(moved, moved)
    np.testing.assert_allclose(law.product_covariance(vector), expected, atol=1e-6)
    assert law.spectral_norm(len(kept)) > 0


def test_laws_of_disjoint_releases_add_up() -> None:
    law, vector = MomentNoise(DOMAIN, SIGMAS, (0, 1)), np.array([1.0, 2.0])
    np.testing.assert_allclose((law + law).product_covariance(vector), 2 * law.product_covariance(vector))
    with pytest.raises(TypeError):
        _ = law + MomentNoise(DOMAIN, SIGMAS, (0, 2))

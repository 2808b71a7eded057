"""AIM's moments are those of the model's own tables, and tables of a graphical model are exact."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from dpregress import Schema
from dpregress.accounting import ZCDP, Relation
from dpregress.coordinates import Matrix
from dpregress.mechanisms import SeededSampler
from dpregress.public.coding import domain_of
from dpregress.releases import Clique, Mixture
from dpregress.rows import CodedSource, PrivateRows
from dpregress.solvers.marginals.aim import AIM, MixtureEstimator
from dpregress.solvers.marginals.private_pgm import mixture_of_rows, summed_out
from dpregress.trust import Session

SCHEMA = Schema.from_levels({"a": range(4), "b": range(3), "y": range(5)}, numeric=["a", "y"])
DOMAIN = domain_of(SCHEMA)


class Drawn(MixtureEstimator):
    """Rows for whoever asks for a mixture, as Private-PGM has them; tables are exact."""

    def table(self, clique: Clique) -> Matrix:
        exact = super().mixture()
        return self.count * (exact.one_way(clique[0]) if len(clique) == 1 else exact.pair(*clique))

    def mixture(self) -> Mixture:
        rows = super().mixture().sample(50, np.random.default_rng(0))
        blocks = [np.eye(size)[rows[:, j]] for j, size in enumerate(self.domain.sizes)]
        return Mixture(self.domain, np.hstack(blocks))


def test_moments_are_of_the_models_tables(seed: int) -> None:
    """A sample of 50 rows stands beside them: its moments are off by hundreds of rows, the tables' by rounding."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(4, size=2_000), rng.integers(3, size=2_000)
    table = pa.table({"a": a, "b": b, "y": np.clip(a + b - 1, 0, 4)})
    promise, estimator = ZCDP(1.0), Drawn(DOMAIN)
    solver = AIM(DOMAIN, promise, estimator)
    session = Session.reserve(
        PrivateRows(CodedSource(table, DOMAIN)), promise, rounds=solver.rounds, relation=Relation.ADD_REMOVE,
        sampler=SeededSampler(rng),
    )  # fmt: skip
    found = solver.estimate(session)
    for first, second in DOMAIN.pairs:
        left, right = (DOMAIN.attributes[j].encoding for j in (first, second))
        block = found.gram[DOMAIN.columns_of(first), DOMAIN.columns_of(second)]
        np.testing.assert_allclose(block, left.T @ estimator.table((first, second)) @ right, rtol=1e-9, atol=1e-9)
    for j, attribute in enumerate(DOMAIN.attributes):
        own, counts = DOMAIN.columns_of(j), estimator.table((j,))
        np.testing.assert_allclose(found.gram[0, own], attribute.encoding.T @ counts, rtol=1e-9, atol=1e-9)


def test_attributes_are_summed_out_exactly(seed: int) -> None:
    """Beside the product of all factors over the whole domain; logarithms far from 0 stay finite."""
    rng = np.random.default_rng(seed)
    sizes = (3, 2, 4, 3, 2)
    cliques: list[Clique] = [(0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]
    for scale in (1.0, 400.0):
        factors = [(clique, scale * rng.normal(size=[sizes[j] for j in clique])) for clique in cliques]
        logs = np.zeros(sizes)
        for clique, values in factors:
            logs += values.reshape([size if j in clique else 1 for j, size in enumerate(sizes)])
        whole = np.exp(logs - logs.max())
        whole /= whole.sum()
        for kept in [*itertools.combinations(range(5), 2), (2,)]:
            others = tuple(j for j in range(5) if j not in kept)
            found = summed_out(factors, kept)
            assert found.shape == tuple(sizes[j] for j in kept)
            np.testing.assert_allclose(found, whole.sum(axis=others), rtol=1e-9, atol=1e-12)


def test_rows_of_small_integers_become_a_mixture() -> None:
    """More levels altogether than the rows' type can count."""
    domain = domain_of(Schema.from_levels({"a": range(200), "b": range(150)}))
    rows = np.array([[199, 149], [0, 7]], dtype=np.uint8)
    found = mixture_of_rows(domain, rows)
    for j in (0, 1):
        np.testing.assert_array_equal(found.one_way(j), np.bincount(rows[:, j], minlength=domain.sizes[j]) / 2)


def test_the_last_fit_holds_a_table_that_one_attribute_determines() -> None:
    """Beside other tables 100 components leave more than twice the error of 1,000; a wide domain has fewer."""
    domain = domain_of(Schema.from_levels({name: range(16) for name in "abcdef"}))
    size = np.arange(16)
    near = np.exp(-((size[:, None] - size) ** 2) / 8.0)
    tables: dict[Clique, Matrix] = {(j,): np.full(16, 1_000.0) for j in range(6)}
    tables |= {pair: 16_000 * near / near.sum() for pair in domain.pairs} | {(0, 1): 1_000.0 * np.eye(16)}
    errors = []
    for components in (100, 1_000):
        estimator = MixtureEstimator(domain, components)
        estimator.fit(tables, dict.fromkeys(tables, 10.0), last=True)
        assert len(estimator.mixture().chances) == components
        errors.append(float(np.abs(estimator.table((0, 1)) - tables[0, 1]).sum()))
    assert errors[1] < errors[0] / 2, errors
    wide = MixtureEstimator(domain_of(Schema.from_levels({f"x{j}": range(100) for j in range(5)})))
    assert wide._most() == int(1e8 / 501**2)

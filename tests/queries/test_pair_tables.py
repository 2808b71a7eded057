"""Counts by joint tables of narrow codes are those of each pair by itself."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from dpregress import Schema
from dpregress.public.coding import domain_of
from dpregress.queries.joint_tables import count_tables, cover
from dpregress.rows import CodedSource, LevelRows, RawRows
from dpregress.rows.codes import code_type


@pytest.mark.parametrize("sizes", [(2, 3, 5, 7, 2, 42), (256, 255, 3, 2), (300, 400, 2, 17), (1, 1, 2)])
def test_counts_are_those_of_each_clique(sizes: tuple[int, ...], seed: int) -> None:
    """In codes of one and two bytes, in tables within and beyond 2^16 cells."""
    rng = np.random.default_rng(seed)
    wide = np.stack([rng.integers(size, size=3000) for size in sizes], axis=1)
    cliques = [*((j,) for j in range(len(sizes))), *combinations(range(len(sizes)), 2)]
    found = count_tables(wide.astype(np.min_scalar_type(max(sizes)), order="F"), sizes, cover(sizes, cliques))
    assert set(found) == set(cliques)
    for clique in cliques:
        expected = np.zeros([sizes[j] for j in clique], dtype=np.int64)
        np.add.at(expected, tuple(wide[:, j] for j in clique), 1)
        np.testing.assert_array_equal(found[clique], expected)


@pytest.mark.parametrize("size", [2, 255, 256, 300])
def test_integers_beyond_the_levels_hold_none(size: int) -> None:
    """A number that would wrap round to a level in a narrow type is still none of them."""
    domain = domain_of(Schema.from_levels({"a": range(size), "b": range(2)})).select(["a"])
    cells = [0, size - 1, size, -1, 256 + 0, 65536, -(2**62), 2**62]
    attribute = domain.attributes[0]
    expected = [cell if 0 <= cell < size else attribute.unknown for cell in cells]
    coded = next(CodedSource(pa.table({"a": pa.array(cells, pa.int64())}), domain).chunks(99))
    assert coded.x.dtype == code_type(domain)
    assert LevelRows(domain)(coded).x[:, 0].tolist() == expected
    numbers = np.array([*cells, 0.5, -0.5, np.nan, np.inf, -np.inf])[:, None]
    expected += [0, *4 * [attribute.unknown]]
    assert LevelRows(domain)(RawRows(numbers, None)).x[:, 0].tolist() == expected

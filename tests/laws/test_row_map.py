"""Whatever is fed in, bounded rows lie in the ball, one row at a time, and nothing is raised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from dpregress.coordinates import Weighting, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.rows import BoundedRows, OrderedRows, RawRows, RowMap
from tests import registry
from tests.registry import ROW_MAPS, SPACES


def raw_rows(space: WhitenedSpace, seed: int) -> RawRows:
    rng = np.random.default_rng(seed)
    wild, tame = registry.wild_rows(rng, 300), registry.tame_rows(rng, space, 100)
    return registry.joined(wild, tame)


def check_ball(make: Callable[[WhitenedSpace], RowMap], space: WhitenedSpace, rows: RawRows) -> None:
    """Norms, responses and weights are within their bounds, and everything is a number."""
    row_map = make(space)
    bounded = row_map(rows)
    offset = np.zeros(len(rows.x)) if bounded.offset is None else bounded.offset
    for name, values in (("x", bounded.x), ("y", bounded.y), ("weight", bounded.weight), ("offset", offset)):
        assert np.isfinite(values).all(), f"{name} holds values that are not finite numbers"
    norms = np.linalg.norm(bounded.x, axis=1)
    assert norms.max() <= row_map.radius, f"a row of norm {norms.max()} in a ball of {row_map.radius}"
    if space.exposure is not None:
        assert offset.min() >= min(np.log(space.exposure.lower), 0)
        assert offset.max() <= max(np.log(space.exposure.upper), 0)
    assert bounded.weight.min() >= 0
    assert bounded.weight.max() <= 1
    if space.response is None:
        assert not bounded.y.any()
        return
    assert (bounded.offset is None) == (space.exposure is None)
    assert np.abs(bounded.y).max() <= space.response.bound
    if math.isfinite(space.radius):
        assert np.hypot(norms, space.response.cross * np.abs(bounded.y)).max() <= space.joint_radius


def check_rows_alone(make: Callable[[WhitenedSpace], RowMap], space: WhitenedSpace, rows: RawRows) -> None:
    """A row is mapped to the same place alone, in another order, and among other rows."""
    row_map = make(space)
    compose_statements = row_map(rows)
    order = np.random.default_rng(len(rows.x)).permutation(len(rows.x))
    _assert_same(_taken(compose_statements, order), row_map(registry.taken(rows, order)))
    alone = [row_map(registry.taken(rows, slice(i, i + 1))) for i in range(len(rows.x))]
    stacked = BoundedRows(*(np.concatenate([getattr(row, name) for row in alone]) for name in ("x", "y", "weight")), 0)
    if space.exposure is not None:
        stacked = dataclasses.replace(stacked, offset=np.concatenate([row.offset for row in alone]))
    _assert_same(compose_statements, stacked)


def check_input_kept(make: Callable[[WhitenedSpace], RowMap], space: WhitenedSpace, rows: RawRows) -> None:
    """The private arrays themselves are never written to."""
    before = rows.x.copy(), rows.y.copy(), rows.exposure.copy()
    make(space)(rows)
    np.testing.assert_array_equal(rows.x, before[0])
    np.testing.assert_array_equal(rows.y, before[1])
    np.testing.assert_array_equal(rows.exposure, before[2])


def check_weights(make: Callable[[WhitenedSpace], RowMap], space: WhitenedSpace, rows: RawRows) -> None:
    """A row without a finite response or a usable exposure counts for nothing; one inside the ball is left as it is."""
    bounded = make(space)(rows)
    lost = ~(np.isfinite(rows.y) & np.isfinite(rows.exposure) & (rows.exposure > 0))
    assert lost.any()
    # a query that reads neither, such as a Gram matrix, leaves the same rows out
    for found in (bounded, make(dataclasses.replace(space, response=None, exposure=None))(rows)):
        assert not found.weight[lost].any()
        assert not found.x[lost].any()
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(rows.x @ space.slopes.T + (0 if space.shift is None else space.shift), axis=1)
    inside = np.isfinite(rows.x).all(axis=1) & ~lost & (norms < 0.999 * space.radius)
    assert inside.any()
    assert (bounded.weight[inside] == 1).all()


def _taken(rows: BoundedRows, order: np.ndarray) -> BoundedRows:
    offset = None if rows.offset is None else rows.offset[order]
    return BoundedRows(rows.x[order], rows.y[order], rows.weight[order], 0, offset)


def _assert_same(one: BoundedRows, other: BoundedRows) -> None:
    """Bit for bit."""
    for name in ("x", "y", "weight", "offset"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def taken_or_refused(make: Callable[[WhitenedSpace], RowMap], space: WhitenedSpace) -> bool:
    """Whether a row map takes this space: that of databases needs a finite radius."""
    if make is OrderedRows and math.isinf(space.radius):
        with pytest.raises(InvalidInput):
            make(space)
        return False
    return True


VARIANTS = {
    "": lambda space: space,
    "without a response": lambda space: space.with_response(None),
    "without a radius": lambda space: dataclasses.replace(space, radius=math.inf),
    "features only": lambda space: dataclasses.replace(space, weighting=Weighting.FEATURES),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("make", ROW_MAPS, ids=lambda make: make.__name__)
def test_ball(make: Callable[[WhitenedSpace], RowMap], kind: str, variant: str, seed: int) -> None:
    """Deterministic: no seed can break it. Warnings are errors here, so a row that warns fails too."""
    space = VARIANTS[variant](SPACES[kind](np.random.default_rng(seed)))
    if taken_or_refused(make, space):
        check_ball(make, space, raw_rows(space, seed))


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("make", ROW_MAPS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("law", [check_rows_alone, check_input_kept, check_weights], ids=lambda law: law.__name__)
def test_rows(law: Callable[..., None], make: Callable[[WhitenedSpace], RowMap], kind: str, seed: int) -> None:
    """Deterministic: no seed can break it."""
    space = SPACES[kind](np.random.default_rng(seed))
    if taken_or_refused(make, space):
        law(make, space, raw_rows(space, seed))

"""Whatever is fed in, bounded rows lie in the ball, one row at a time, and nothing is raised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from dpregress.releases import Frame, Weighting
from dpregress.rows import BoundedRows, RawRows, RowMap
from tests import registry
from tests.registry import FRAMES, ROW_MAPS


def raw_rows(frame: Frame, seed: int) -> RawRows:
    rng = np.random.default_rng(seed)
    wild, tame = registry.wild_rows(rng, 300), registry.tame_rows(rng, frame, 100)
    return registry.joined(wild, tame)


def check_ball(make: Callable[[Frame], RowMap], frame: Frame, rows: RawRows) -> None:
    """Norms, responses and weights are within their bounds, and everything is a number."""
    row_map = make(frame)
    bounded = row_map(rows)
    offset = np.zeros(len(rows.x)) if bounded.offset is None else bounded.offset
    for name, values in (("x", bounded.x), ("y", bounded.y), ("weight", bounded.weight), ("offset", offset)):
        assert np.isfinite(values).all(), f"{name} holds something else than numbers"
    norms = np.linalg.norm(bounded.x, axis=1)
    assert norms.max() <= row_map.radius, f"a row of norm {norms.max()} in a ball of {row_map.radius}"
    if frame.exposure is not None:
        assert offset.min() >= min(np.log(frame.exposure.lower), 0)
        assert offset.max() <= max(np.log(frame.exposure.upper), 0)
    assert bounded.weight.min() >= 0
    assert bounded.weight.max() <= 1
    if frame.response is None:
        assert not bounded.y.any()
        return
    assert (bounded.offset is None) == (frame.exposure is None)
    assert np.abs(bounded.y).max() <= frame.response.bound
    if math.isfinite(frame.radius):
        assert np.hypot(norms, frame.response.cross * np.abs(bounded.y)).max() <= frame.joint_radius


def check_rows_alone(make: Callable[[Frame], RowMap], frame: Frame, rows: RawRows) -> None:
    """A row is mapped to the same place alone, in another order, and among other rows."""
    row_map = make(frame)
    together = row_map(rows)
    order = np.random.default_rng(len(rows.x)).permutation(len(rows.x))
    _assert_same(_taken(together, order), row_map(registry.taken(rows, order)))
    alone = [row_map(registry.taken(rows, slice(i, i + 1))) for i in range(len(rows.x))]
    stacked = BoundedRows(*(np.concatenate([getattr(row, name) for row in alone]) for name in ("x", "y", "weight")), 0)
    if frame.exposure is not None:
        stacked = dataclasses.replace(stacked, offset=np.concatenate([row.offset for row in alone]))
    _assert_same(together, stacked)


def check_input_kept(make: Callable[[Frame], RowMap], frame: Frame, rows: RawRows) -> None:
    """The private arrays themselves are never written to."""
    before = rows.x.copy(), rows.y.copy(), rows.exposure.copy()
    make(frame)(rows)
    np.testing.assert_array_equal(rows.x, before[0])
    np.testing.assert_array_equal(rows.y, before[1])
    np.testing.assert_array_equal(rows.exposure, before[2])


def check_weights(make: Callable[[Frame], RowMap], frame: Frame, rows: RawRows) -> None:
    """A row without a finite response or a usable exposure counts for nothing; one inside the ball is left as it is."""
    bounded = make(frame)(rows)
    lost = ~(np.isfinite(rows.y) & np.isfinite(rows.exposure) & (rows.exposure > 0))
    assert lost.any()
    # a query that reads neither, such as a Gram matrix, leaves the same rows out
    for found in (bounded, make(dataclasses.replace(frame, response=None, exposure=None))(rows)):
        assert not found.weight[lost].any()
        assert not found.x[lost].any()
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(rows.x @ frame.slopes.T + (0 if frame.shift is None else frame.shift), axis=1)
    inside = np.isfinite(rows.x).all(axis=1) & ~lost & (norms < 0.999 * frame.radius)
    assert inside.any()
    assert (bounded.weight[inside] == 1).all()


def _taken(rows: BoundedRows, order: np.ndarray) -> BoundedRows:
    offset = None if rows.offset is None else rows.offset[order]
    return BoundedRows(rows.x[order], rows.y[order], rows.weight[order], 0, offset)


def _assert_same(one: BoundedRows, other: BoundedRows) -> None:
    """Bit for bit."""
    for name in ("x", "y", "weight", "offset"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


VARIANTS = {
    "": lambda frame: frame,
    "without a response": lambda frame: frame.with_response(None),
    "without a radius": lambda frame: dataclasses.replace(frame, radius=math.inf),
    "features only": lambda frame: dataclasses.replace(frame, weighting=Weighting.FEATURES),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("make", ROW_MAPS, ids=lambda make: make.__name__)
def test_ball(make: Callable[[Frame], RowMap], kind: str, variant: str, seed: int) -> None:
    """Deterministic: no seed can break it. Warnings are errors here, so a row that warns fails too."""
    frame = VARIANTS[variant](FRAMES[kind](np.random.default_rng(seed)))
    check_ball(make, frame, raw_rows(frame, seed))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("make", ROW_MAPS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("law", [check_rows_alone, check_input_kept, check_weights], ids=lambda law: law.__name__)
def test_rows(law: Callable[..., None], make: Callable[[Frame], RowMap], kind: str, seed: int) -> None:
    """Deterministic: no seed can break it."""
    frame = FRAMES[kind](np.random.default_rng(seed))
    law(make, frame, raw_rows(frame, seed))

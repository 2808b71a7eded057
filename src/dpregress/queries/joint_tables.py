"""Counts of several tables of coded rows at once: joint tables that have them as margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.releases import Clique

#: Joint tables up to this size stay in the cache while they are counted.
_JOINT_CELLS = 2**13


def cover(sizes: Sequence[int], cliques: Sequence[Clique]) -> list[tuple[Clique, list[Clique]]]:
    """A small set of joint tables, of at most 2^13 cells, that have all cliques as margins: each with its cliques.

    Counting one joint table of four attributes and summing it costs less than counting its six pairs.
    """
    left = dict.fromkeys(sorted(cliques, key=lambda clique: (-math.prod(sizes[j] for j in clique), clique)))
    beside: dict[int, set[int]] = {}
    for clique in left:
        for j in clique:
            beside.setdefault(j, set()).update(clique)
    plan = []
    while left:
        joint = next(iter(left))
        cells = math.prod(sizes[j] for j in joint)
        while True:
            gains = {
                new: sum(tuple(sorted((new, old))) in left for old in joint)
                for new in set[int]().union(*(beside[j] for j in joint)).difference(joint)
                if cells * sizes[new] <= _JOINT_CELLS
            }
            best = max(gains, key=lambda new: (gains[new], -sizes[new], -new), default=None)
            if best is None or gains[best] == 0:
                break
            joint, cells = (*joint, best), cells * sizes[best]
        joint = tuple(sorted(joint))
        parts = chain(combinations(joint, 1), combinations(joint, 2))
        served = [clique for clique in parts if clique in left]
        for clique in served:
            del left[clique]
        plan.append((joint, served))
    return plan


def count_tables(
    codes: NDArray[Any], sizes: Sequence[int], plan: Sequence[tuple[Clique, list[Clique]]]
) -> dict[Clique, NDArray[np.int64]]:
    """Exact counts of cliques, by the joint tables of a plan.

    Positions in a table use the narrowest integer type, usually 16 bits, which is fast to multiply.
    """
    found: dict[Clique, NDArray[np.int64]] = {}
    for joint, served in plan:
        shape = tuple(sizes[j] for j in joint)
        place = codes[:, joint[0]].astype(np.min_scalar_type(math.prod(shape)))
        for j in joint[1:]:
            place *= place.dtype.type(sizes[j])
            np.add(place, codes[:, j], out=place, casting="unsafe")
        table = np.bincount(place, minlength=math.prod(shape)).reshape(shape)
        found |= margins(table, joint, served)
    return found


def margins(table: NDArray[np.int64], joint: Clique, served: Sequence[Clique]) -> dict[Clique, NDArray[np.int64]]:
    """The tables of some of the attributes of a joint table."""
    return {clique: table.sum(axis=tuple(axis for axis, j in enumerate(joint) if j not in clique)) for clique in served}

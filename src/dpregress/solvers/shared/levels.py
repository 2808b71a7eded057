r"""Coordinates in which no row is far out only because its level is uncommon.

Whitening makes a row with a level of the share p about ``1 / sqrt p`` long. Beyond the radius it would be shrunk, and
the level would seem less common than it is. The noise of whatever concerns a level falls no further once its rows reach
the radius, so nothing is lost where they are kept within it: the second moment A by which rows are whitened becomes

    A + sum_l c_l x_l x_l',    c_l = 1 / m - 1 / (x_l' A^{-1} x_l)    where that is positive,

as if each level had at least the share 1/m. x_l is the mean row of the level, by the released moment, as far as noise
tells it from the mean row of all but for the indicators. By the formula of Sherman and Morrison, ``x_l' (A + ..)^{-1}
x_l <= m``.
"""

from __future__ import annotations

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.public import Schema

#: The mean square of a number between 0 and 1 that seems to be an indicator: at least so many noise deviations, and
#: this share of its mean.
_CLEAR, _ALIKE = 4.0, 0.8


def levels_in_reach(space: WhitenedSpace, gram: Matrix, noise: float, schema: Schema | None, most: float) -> Matrix:
    """The second moment by which to whiten rows, so that the square of the length of a level's mean row is at most m.

    Parameters
    ----------
    space : WhitenedSpace
        With an intercept.
    gram : ndarray of shape (p, p)
        Positive definite: the second moment in this space.
    noise : float
        The standard deviation of an entry of it.
    schema : Schema or None
        It declares levels.
    most : float
        m.
    """
    rows = _level_rows(space, gram, noise, schema)
    lengths = np.einsum("ij,ij->i", rows, np.linalg.solve(gram, rows.T).T)
    missing = np.maximum(1 / most - 1 / np.maximum(lengths, 1e-300), 0.0)
    return np.asarray(gram + (rows.T * missing) @ rows)


def _level_rows(space: WhitenedSpace, gram: Matrix, noise: float, schema: Schema | None) -> Matrix:
    """The mean row of each level of each column, the first one included, in whitened coordinates."""
    columns = [] if schema is None else _places(space, gram, noise, schema)
    mean, back = space.mean_row(gram), space.back
    shares = np.clip((back @ mean)[1:], 0.0, 1.0)
    rows = []
    for places in columns:
        without = mean - space.slopes[:, places] @ shares[places]
        indicators = [back[0] - back[1:][places].sum(axis=0), *back[1:][places]]
        plain = [without, *(without + space.slopes[:, place] for place in places)]
        rows += [_told(gram, noise, *each) for each in zip(indicators, plain, strict=True)]
    return np.reshape(rows, (-1, space.order))


def _places(space: WhitenedSpace, gram: Matrix, noise: float, schema: Schema) -> list[list[int]]:
    """Places of the indicators of each categorical column, and of each number between 0 and 1 that seems to be one."""
    numbers = [
        [place]
        for place, name in enumerate(space.features)
        if not schema.indicates(name)
        and schema.bounds_all([name])
        and schema.bounds_of(name) == (0.0, 1.0)
        and _seems_indicator(space, gram, noise, space.back[1 + place])
        and _seems_indicator(space, gram, noise, space.back[0] - space.back[1 + place])
    ]
    return [*schema.indicator_places(space.features).values(), *numbers]


def _seems_indicator(space: WhitenedSpace, gram: Matrix, noise: float, number: Vector) -> bool:
    """Whether a number between 0 and 1 has about the mean square that it has if it is 0 or 1, beyond noise."""
    mean, square = float(space.back[0] @ gram @ number), float(number @ gram @ number)
    error = _CLEAR * noise * float(np.linalg.norm(number) * np.linalg.norm(space.back[0]))
    return square > error and square >= _ALIKE * mean


def _told(gram: Matrix, noise: float, indicator: Vector, plain: Vector) -> Vector:
    """``E x~ 1_l / E 1_l``, whose coordinates lie about 1 from the plain row and have the noise of its numerator."""
    found = gram @ indicator
    share = float(indicator @ found)
    if share <= 0:
        return plain
    gain = 1 / (1 + (noise * float(np.linalg.norm(indicator)) / share) ** 2)
    return np.asarray(plain + gain * (found / share - plain))

"""Charts of points with bars over two axes, as positions that a template draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.display import short_label

#: The area of the points in pixels: left, right, top and bottom.
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 470, 10, 250
#: Ticks of an axis, at most.
_TICKS = 5
#: Of a plot with a row for each name: where the rows begin, the height of a row, and the letters of a name.
_NAMES, _ROW, _LETTERS = 150, 26, 18


@dataclass(frozen=True, eq=False)
class Points:
    """A series of points.

    Parameters
    ----------
    name : str
        For the legend; empty for a chart of one series.
    at : ndarray of shape (m, 2)
    error : ndarray of shape (m,), optional
        Half the length of the bar of each point.
    joined : bool
        Whether a line joins the points.
    """

    name: str
    at: Matrix
    error: Vector | None = None
    joined: bool = False


@dataclass(frozen=True)
class Mark:
    """A point with its bar in pixels."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """Marks of one series; ``line`` are the corners of the line that joins them, if any."""

    name: str
    marks: tuple[Mark, ...]
    line: str


@dataclass(frozen=True)
class Chart:
    """A chart.

    Parameters
    ----------
    title, across, up, described : str
        The title, the names of the axes, and the numbers as text for readers who cannot see the chart.
    across_ticks, up_ticks : tuple of (float, str)
        Places in pixels and labels.
    reference : tuple of float or None
        Ends ``(x, y, x, y)`` of the line of comparison in pixels.
    series : tuple of Series
    left, bottom : int
        The corner of the area of the points in pixels.
    """

    title: str
    across: str
    up: str
    described: str
    across_ticks: tuple[tuple[float, str], ...]
    up_ticks: tuple[tuple[float, str], ...]
    reference: tuple[float, float, float, float] | None
    series: tuple[Series, ...]
    left: int = _LEFT
    bottom: int = _BOTTOM


def chart(title: str, across: str, up: str, points: Sequence[Points], *, slope: int | None) -> Chart:
    """A chart of up to three series.

    Parameters
    ----------
    title, across, up : str
    points : sequence of Points
    slope : int or None
        Of the line of comparison through the origin: 1 or 0, or None for no line.
    """
    shown = [_finite(series) for series in points]
    at = np.concatenate([series.at for series in shown] or [np.zeros((0, 2))])
    bars = [series.at[:, 1] + sign * _errors(series) for series in shown for sign in (-1, 1)]
    left, right = _range(at[:, 0])
    low, high = _range(np.concatenate([*bars, [slope * left, slope * right] if slope is not None else []]))

    def place(x: float, y: float) -> tuple[float, float]:
        across_share, up_share = (x - left) / (right - left), (y - low) / (high - low)
        return round(_LEFT + across_share * (_RIGHT - _LEFT), 2), round(_BOTTOM - up_share * (_BOTTOM - _TOP), 2)

    def marks(series: Points) -> tuple[Mark, ...]:
        pairs = zip(series.at.tolist(), _errors(series).tolist(), strict=True)
        return tuple(Mark(*place(x, y), place(x, y - bar)[1], place(x, y + bar)[1]) for (x, y), bar in pairs)

    return Chart(
        title,
        across,
        up,
        _described(shown),
        tuple((place(tick, low)[0], f"{tick:.4g}") for tick in _ticks(left, right)),
        tuple((place(left, tick)[1], f"{tick:.4g}") for tick in _ticks(low, high)),
        None if slope is None else (*place(left, slope * left), *place(right, slope * right)),
        tuple(Series(one.name, found := marks(one), _line(found) if one.joined else "") for one in shown),
    )


def dot_plot(title: str, across: str, names: Sequence[str], values: Mapping[str, Vector]) -> Chart:
    """A row for each name, with a positive number of each series on a logarithmic axis.

    Parameters
    ----------
    title, across : str
    names : sequence of str
    values : mapping of str to ndarray of shape (names,)
        The numbers of each series; those that are not finite are left out.
    """
    bottom = _TOP + _ROW * len(names)
    logs = {name: np.log10(np.where(np.isfinite(each) & (each > 0), each, np.nan)) for name, each in values.items()}
    known = np.concatenate([each[np.isfinite(each)] for each in logs.values()])
    low, high = _range(known)

    def place(value: float) -> float:
        return round(_NAMES + (value - low) / (high - low) * (_RIGHT - _NAMES), 2)

    rows = [_TOP + _ROW * (i + 0.5) for i in range(len(names))]
    return Chart(
        title,
        across,
        "",
        ". ".join(
            f"{series}: " + "; ".join(f"{name} {value:.3g}" for name, value in zip(names, each.tolist(), strict=True))
            for series, each in values.items()
        ),
        tuple((place(math.log10(tick)), f"{tick:g}") for tick in _decades(low, high)),
        tuple((row, short_label(name, _LETTERS)) for row, name in zip(rows, names, strict=True)),
        None,
        tuple(
            Series(series, tuple(_dot(place(x), y) for x, y in zip(each.tolist(), rows, strict=True) if x == x), "")
            for series, each in logs.items()
        ),
        _NAMES,
        bottom,
    )


def _dot(x: float, y: float) -> Mark:
    return Mark(x, y, y, y)


def _decades(low: float, high: float) -> list[float]:
    """Round numbers whose logarithms lie between the ends."""
    for parts in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [
            part * 10.0**k
            for k in range(math.floor(low), math.ceil(high) + 1)
            for part in parts
            if low <= math.log10(part) + k <= high
        ]
        if len(ticks) <= _TICKS:
            break
    return ticks[:: -(-len(ticks) // _TICKS) or 1]


def _finite(series: Points) -> Points:
    """The series without points that have no place."""
    known = np.isfinite(series.at).all(axis=1)
    error = None if series.error is None else np.nan_to_num(series.error[known], posinf=0.0)
    return Points(series.name, series.at[known], error, series.joined)


def _errors(series: Points) -> Vector:
    return np.zeros(len(series.at)) if series.error is None else series.error


def _range(values: Vector) -> tuple[float, float]:
    """The ends of an axis with a margin."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.04 * (high - low) or 0.5 * max(abs(high), 1e-300)
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the ends."""
    step = 10.0 ** np.floor(np.log10(high - low))
    step *= next(part for part in (0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / (part * step) <= _TICKS)
    return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _line(marks: Sequence[Mark]) -> str:
    return " ".join(f"{mark.x},{mark.y}" for mark in marks)


def _described(points: Sequence[Points]) -> str:
    texts = []
    for series in points:
        numbers = "; ".join(f"({x:.3g}, {y:.3g})" for x, y in series.at.tolist())
        texts.append(f"{series.name}: {numbers}" if series.name else numbers)
    return ". ".join(texts)

"""Coefficient plots: estimates with intervals on one scale, as positions that a template draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Vector
from dpregress.display import short_label

_LONGEST_NAME = 40
#: Estimates and intervals beyond this many times the largest estimate are cut at the edge of the plot.
_REACH = 4.0
#: Where the ticks of a ratio scale may stand, besides at 1.
_RATIOS = np.array([1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1e3, 1e4, 1e6])


@dataclass(frozen=True)
class Tick:
    """A labelled place on the axis; ``none`` marks that of no effect."""

    at: float
    label: str
    none: bool


@dataclass(frozen=True)
class Bar:
    """One coefficient: places in per cent of the width."""

    name: str
    label: str
    low: float
    at: float
    high: float
    other: float | None


@dataclass(frozen=True)
class Forest:
    """A coefficient plot.

    Parameters
    ----------
    title, described : str
        The short and the long text for readers who cannot see it.
    bars : str
        What the intervals are.
    other_name : str
        Of a second estimate; empty without one.
    axis, caption : str
    ticks : tuple of Tick
    rows : tuple of Bar
    """

    title: str
    described: str
    bars: str
    other_name: str
    axis: str
    caption: str
    ticks: tuple[Tick, ...]
    rows: tuple[Bar, ...]


def forest(
    names: Sequence[str],
    numbers: Sequence[tuple[float, float, float]],
    *,
    bars: str,
    deviation: Vector | None = None,
    ratio: str = "",
    other: Vector | None = None,
    other_name: str = "",
) -> Forest:
    """Coefficients on one scale.

    With the standard deviations of the columns, every row is the effect of one standard deviation. Without them a row
    is the effect of one unit where the scale is a ratio, and otherwise the estimate in units of its standard error.

    Parameters
    ----------
    names : sequence of str
    numbers : sequence of (float, float, float)
        Estimates with the ends of their intervals.
    bars : str
        What the intervals are, such as "95% interval".
    deviation : ndarray of shape (d,), optional
    ratio : str
        "odds ratio" or another name of ``exp(coefficient)``, or nothing for a scale of differences.
    other : ndarray of shape (d,), optional
        A second estimate to set beside the first.
    other_name : str
    """
    values = np.asarray(numbers, dtype=np.float64).reshape(len(names), 3)
    factor, unit = _units(values, deviation, ratio)
    ends = np.where(np.isfinite(values), values, values[:, :1])  # an unknown interval has no length
    scaled = np.nan_to_num(ends, posinf=0.0, neginf=0.0) * factor[:, None]
    second = None if other is None else np.asarray(other) * factor
    reach = _reach(scaled, second)
    places = 50 + 48 * np.clip(scaled / reach, -1, 1)
    seconds: Sequence[float | None] = [None] * len(names)
    if second is not None:
        seconds = (50 + 48 * np.clip(second / reach, -1, 1)).tolist()
    rows = tuple(
        Bar(short_label(name, _LONGEST_NAME), _label(value, ratio), round(low, 2), round(at, 2), round(high, 2), place)
        for name, value, (at, low, high), place in zip(names, values, places.tolist(), seconds, strict=True)
    )
    kind = ratio or "coefficient"
    return Forest(
        title=f"{kind[0].upper()}{kind[1:]}s with their intervals",
        described="; ".join(f"{row.name}: {row.label}" for row in rows),
        bars=bars,
        other_name=other_name,
        axis=f"{kind}, {unit}",
        caption=f"Bars are the {bars} and count the noise. {_caption(unit)} The numbers at the right are per unit.",
        ticks=_ratio_ticks(reach) if ratio else _ticks(reach),
        rows=rows,
    )


def _units(values: Vector, deviation: Vector | None, ratio: str) -> tuple[Vector, str]:
    """What each coefficient is multiplied by, and what its unit is then."""
    if deviation is not None:
        return np.where(np.isfinite(deviation), deviation, 0.0), "per standard deviation of the column"
    if ratio:
        return np.ones(len(values)), "per unit of the column"
    half = (values[:, 2] - values[:, 1]) / 2
    known = np.isfinite(half) & (half > 0)
    return np.where(known, 1 / np.where(known, half, 1.0), 0.0), "in half widths of its interval"


def _caption(unit: str) -> str:
    if unit.startswith("per standard"):
        return "Rows can be compared: each shows the effect of one standard deviation of its column."
    if unit.startswith("per unit"):
        return "Each row shows the effect of one unit of its column."
    return "Each row is on the scale of its own interval, which is 2 wide."


def _reach(scaled: Vector, second: Vector | None) -> float:
    """The end of the axis: at the furthest interval, unless that is out of proportion."""
    largest = float(np.abs(scaled[:, 0]).max(initial=0.0))
    if second is not None:
        largest = max(largest, float(np.abs(second).max(initial=0.0)))
    furthest = max(largest, float(np.abs(scaled).max(initial=0.0)))
    return min(furthest, _REACH * largest) if largest > 0 else furthest or 1.0


def _ticks(reach: float) -> tuple[Tick, ...]:
    """Zero, and one or two round numbers on either side."""
    step = 10.0 ** np.floor(np.log10(reach))
    step *= next(part for part in (5, 2, 1, 0.5) if part * step <= reach / 1.2)
    places = [k * step for k in (-2, -1, 0, 1, 2) if abs(k) * step <= reach]
    return tuple(Tick(round(50 + 48 * place / reach, 2), f"{place:.3g}", place == 0) for place in places)


def _ratio_ticks(reach: float) -> tuple[Tick, ...]:
    """One, and a round ratio on either side of it."""
    inside = _RATIOS[np.log(_RATIOS) <= reach]
    ends = [1 / inside[-1], 1.0, inside[-1]] if len(inside) else [1.0]
    return tuple(Tick(round(50 + 48 * float(np.log(end)) / reach, 2), f"{end:.2g}", end == 1) for end in ends)


def _label(value: Vector, ratio: str) -> str:
    """The estimate and its interval in the units of the column."""
    with np.errstate(over="ignore"):
        at, low, high = np.exp(value) if ratio else value
    known = np.isfinite(low) and np.isfinite(high)
    return f"{at:.4g} ({low:.4g} to {high:.4g})" if known else f"{at:.4g}"

"""Summaries of runs: means and standard deviations of every curve, small enough to be kept in the repository."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.errors import InvalidInput

#: A method with this mark in its name is one of several variants, of which the best mean counts.
VARIANT = " | "
#: The most points of a scatter plot that a summary keeps of each method.
_POINTS = 150


@dataclass(frozen=True)
class Curve:
    """The repeats of one method in one panel, at every x.

    Parameters
    ----------
    panel, line, method : str
    x, mean, sd, median : tuple of float
        Of the finite values.
    count, failed : tuple of int
        Repeats, and how many of them gave no finite value.
    """

    panel: str
    line: str
    method: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    median: tuple[float, ...]
    count: tuple[int, ...]
    failed: tuple[int, ...]

    def at(self, x: float) -> float:
        """The mean at x; infinite where any repeat failed."""
        place = self.x.index(x)
        return math.inf if self.failed[place] else self.mean[place]


@dataclass(frozen=True)
class RunSummary:
    """What a run found.

    Parameters
    ----------
    experiment : str
    quick : bool
    seed, repeats : int
    seconds : float
        Of all processes together.
    full_seconds : float
        What the full run is predicted to take, all processes together.
    left_out : tuple of str
        Data sets that were not there.
    curves : tuple of Curve
    points : mapping of str to pairs
        Scatter plots: ``panel/method`` and ``(x, value)`` of single repeats.
    software : str
    """

    experiment: str
    quick: bool
    seed: int
    repeats: int
    seconds: float
    full_seconds: float
    left_out: tuple[str, ...]
    curves: tuple[Curve, ...]
    points: Mapping[str, tuple[tuple[float, float], ...]]
    software: str

    @property
    def panels(self) -> tuple[str, ...]:
        """The panels with data, in their order."""
        names = [curve.panel for curve in self.curves] + [name.split("/")[0] for name in self.points]
        return tuple(dict.fromkeys(names))

    def find(self, method: str, panel: str | None = None, line: str | None = None) -> tuple[Curve, ...]:
        """The curves of a method; of one panel, or with one line, if asked."""
        return tuple(
            curve
            for curve in self.curves
            if curve.method == method
            and (panel is None or curve.panel == panel)
            and (line is None or curve.line == line)
        )

    def to_json(self) -> str:
        """Text with numbers of four digits; what is not finite is null."""
        return json.dumps(_rounded(asdict(self)), separators=(",", ":"), allow_nan=False).replace(
            '{"panel"', '\n{"panel"'
        )

    @classmethod
    def from_json(cls, text: str) -> RunSummary:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        InvalidInput
            For any other text.
        """
        try:
            held = json.loads(text)
            curves = tuple(Curve(**{name: _tuple(value) for name, value in curve.items()}) for curve in held["curves"])
            points = {name: tuple((float(x), float(y)) for x, y in each) for name, each in held["points"].items()}
            summary = cls(**{**held, "curves": curves, "points": points, "left_out": tuple(held["left_out"])})
            _check(summary)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidInput("this is no summary of a run") from error
        return summary


def read_summaries(folder: Path) -> dict[str, RunSummary]:
    """The summaries of a folder by experiment.

    Raises
    ------
    InvalidInput
        For a folder without any, or with a JSON file that is none.
    """
    found = [_read(path) for path in sorted(folder.glob("*.json"))]
    if not found:
        raise InvalidInput(f"{folder} holds no summaries: dpregress experiment run all --quick --out {folder}")
    return {summary.experiment: summary for summary in found}


def _read(path: Path) -> RunSummary:
    try:
        return RunSummary.from_json(path.read_text(encoding="utf-8"))
    except (InvalidInput, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is no summary of a run: remove it, or run its experiment again") from error


def _check(summary: RunSummary) -> None:
    """Refuse values of other types than those that :meth:`RunSummary.to_json` writes."""
    texts = [summary.experiment, summary.software, *summary.left_out, *summary.points]
    numbers = [summary.seed, summary.repeats, summary.seconds, summary.full_seconds]
    for curve in summary.curves:
        columns = (curve.x, curve.mean, curve.sd, curve.median, curve.count, curve.failed)
        if not all(isinstance(column, tuple) and len(column) == len(curve.x) for column in columns):
            raise TypeError
        texts += [curve.panel, curve.line, curve.method]
        numbers += [value for column in columns for value in column]
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(each, int | float) for each in numbers):
        raise TypeError


def curves_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Curve, ...]:
    """Curves of rows with panel, line, method, x and value; of variants only the one with the best mean."""
    held: dict[tuple[str, str, str], dict[float, list[float]]] = {}
    for row in rows:
        at = held.setdefault((row["panel"], row["line"], row["method"]), {})
        at.setdefault(row["x"], []).append(row["value"])
    return tuple(_curve(*key, at) for key, at in _best(held).items())


def _best(
    held: Mapping[tuple[str, str, str], Mapping[float, list[float]]],
) -> dict[tuple[str, str, str], dict[float, list[float]]]:
    kept: dict[tuple[str, str, str], dict[float, list[float]]] = {}
    for (panel, line, method), at in held.items():
        mine = kept.setdefault((panel, line, method.split(VARIANT)[0]), {})
        for x, values in at.items():
            if x not in mine or np.mean(values) < np.mean(mine[x]):
                mine[x] = values
    return kept


def _curve(panel: str, line: str, method: str, at: Mapping[float, Sequence[float]]) -> Curve:
    columns: list[tuple[Any, ...]] = []
    for x in sorted(at):
        values = np.array(at[x])
        good = values[np.isfinite(values)]
        spread = float(good.std(ddof=1)) if len(good) > 1 else 0.0
        middle = (float(good.mean()), spread, float(np.median(good))) if len(good) else (math.nan,) * 3
        columns.append((x, *middle, len(values), len(values) - len(good)))
    return Curve(panel, line, method, *(tuple(column) for column in zip(*columns, strict=True)))


def points_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[tuple[float, float], ...]]:
    """The first points of each panel and method."""
    held: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points = held.setdefault(f"{row['panel']}/{row['method']}", [])
        if len(points) < _POINTS:
            points.append((row["x"], row["value"]))
    return {name: tuple(points) for name, points in held.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _tuple(value: Any) -> Any:
    return tuple(_floats(value)) if isinstance(value, list) else value


def _floats(values: Sequence[Any]) -> Iterator[Any]:
    return (math.nan if value is None else value for value in values)

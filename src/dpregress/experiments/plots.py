"""The plot of a run, drawn from its summary: lines with a band of a standard deviation, as in the papers."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpregress.errors import InvalidInput
from dpregress.experiments.base import DEFAULT, PLAIN, PUBLIC_ONLY, TRIVIAL, Experiment, Panel
from dpregress.experiments.summaries import Curve, RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#0072b2", "#d55e00", "#e69f00", "#56b4e9", "#7f3c8d", "#a05a2c")
#: The library's own have the same colours in every plot without lines.
_OWN = ("#009e73", "#cc79a7")
_LINES = (*_COLOURS[:3], "#009e73", "#cc79a7", *_COLOURS[3:])
_DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
#: What is the same for everybody is grey.
_GREY = {PLAIN: "-", PUBLIC_ONLY: "--", TRIVIAL: ":"}
#: Panels beside each other, the size of each, and the least width of a figure.
_ACROSS, _WIDE, _HIGH, _LEAST = 4, 3.9, 3.2, 7.4
#: A logarithmic axis shows at most so many powers of ten, upwards from 1e-6.
_DECADES, _FLOOR = 12, 1e-6


def draw(experiment: Experiment, summary: RunSummary, target: Path | io.BytesIO, kind: str = "png") -> None:
    """Write the plot of a run.

    Parameters
    ----------
    experiment : Experiment
    summary : RunSummary
    target : Path or BytesIO
    kind : {"png", "svg"}

    Raises
    ------
    InvalidInput
        Without matplotlib.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InvalidInput("plots need matplotlib: pip install 'dpregress[plots]'") from error
    shown = [panel for panel in experiment.panels if panel.name in summary.panels]
    across = _columns(len(shown))
    down = math.ceil(len(shown) / across)
    with rc_context({"font.size": 9, "svg.hashsalt": experiment.name, "axes.grid": True, "grid.alpha": 0.25}):
        width = max(_WIDE * across, _LEAST)
        figure = Figure(figsize=(width, _HIGH * down + 1.1), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for place, ax in enumerate(axes):
            if place < len(shown):
                _panel(ax, shown[place], experiment, summary)
            else:
                ax.set_axis_off()
        labels: dict[str, Any] = {}
        for ax in axes:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                labels.setdefault(label, handle)
        repeats = f"{summary.repeats} repeat{'s' if summary.repeats > 1 else ''}"
        title = f"{experiment.paper}, {experiment.figure}: {experiment.title} ({repeats})"
        figure.suptitle(textwrap.fill(title, int(12 * width)), fontsize=10)
        longest = max(map(len, labels))
        columns = max(1, min(len(labels), int(width * 12 / (longest + 7))))
        figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=columns, frameon=False)
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(target, format=kind, dpi=110, metadata=metadata)


def _columns(panels: int) -> int:
    """A full last row where possible."""
    return next((across for across in (_ACROSS, 3) if panels % across == 0), min(panels, 3))


def _panel(ax: Axes, panel: Panel, experiment: Experiment, summary: RunSummary) -> None:
    ax.set_title(panel.name, fontsize=9)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    if panel.kind == "scatter":
        _scatter(ax, panel, summary)
    else:
        _lines(ax, panel, experiment, summary)
    _scale(ax, panel, [curve for curve in summary.curves if curve.panel == panel.name])


def _scatter(ax: Axes, panel: Panel, summary: RunSummary) -> None:
    names = [name for name in summary.points if name.split("/")[0] == panel.name]
    for name, colour, mark in zip(names, _COLOURS, _MARKS, strict=False):
        x, y = zip(*summary.points[name], strict=True)
        ax.scatter(x, y, s=14, color=colour, marker=mark, label=name.split("/")[1])


def _lines(ax: Axes, panel: Panel, experiment: Experiment, summary: RunSummary) -> None:
    methods = list(dict.fromkeys(c.method for c in summary.curves if c.method not in _GREY))
    lines = list(dict.fromkeys(c.line for c in summary.curves if c.line))
    for curve in (curve for curve in summary.curves if curve.panel == panel.name):
        style = _style(curve, methods, lines)
        label = f"{curve.method}, {curve.line}" if curve.line else curve.method
        mean = np.where(np.array(curve.failed) > 0, np.nan, np.array(curve.mean))
        if panel.y_scale == "log":
            mean = np.where(mean >= _FLOOR, mean, np.nan)
            hidden = all(max(each.mean) < _FLOOR for each in summary.find(curve.method))
            hidden = hidden and all(each.y_scale == "log" for each in experiment.panels)
            label += " (below 1e-6)" if hidden else ""
        ax.plot(curve.x, mean, label=label, lw=1.5, ms=4, **style)
        if panel.kind == "band" and len(curve.x) > 1:
            sd = np.array(curve.sd)
            low = np.maximum(mean - sd, mean / 100) if panel.y_scale == "log" else mean - sd
            ax.fill_between(curve.x, low, mean + sd, color=style["color"], alpha=0.07 if curve.line else 0.13, lw=0)
    for method in methods:
        marks = [(one.x, one.value) for one in experiment.published if (one.panel, one.method) == (panel.name, method)]
        if marks:
            look: dict[str, Any] = {"ls": "", "marker": "*", "ms": 9, "mfc": "none", "color": _colour(method, methods)}
            ax.plot(*zip(*marks, strict=True), label=f"{method}, printed", **look)


def _style(curve: Curve, methods: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """A colour for each line and a dash for each method, or without lines a colour for each method."""
    if curve.method in _GREY:
        return {"color": "#555555", "ls": _GREY[curve.method]}
    place = methods.index(curve.method)
    mark = _MARKS[place % len(_MARKS)]
    if len(lines) > 1 and curve.line:
        colour = _LINES[lines.index(curve.line) % len(_LINES)]
        return {"color": colour, "ls": _DASHES[place % len(_DASHES)], "marker": mark}
    return {"color": _colour(curve.method, methods), "ls": "-", "marker": mark}


def _colour(method: str, methods: Sequence[str]) -> str:
    own = [each for each in methods if each.startswith(DEFAULT)]
    others = [each for each in methods if each not in own]
    return _OWN[own.index(method) % 2] if method in own else _COLOURS[others.index(method) % len(_COLOURS)]


def _ticks(ax: Axes, panel: Panel, xs: Sequence[float]) -> None:
    """Plain numbers: at the settings along a logarithmic x axis, at 1, 2 and 5 times powers of ten along y."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    plain = FuncFormatter(lambda value, _: _number(value))
    if panel.kind == "scatter":
        for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            if axis.get_scale() == "log":
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
                axis.set_major_formatter(plain)
                axis.set_minor_formatter(NullFormatter())
        return
    if panel.x_scale != "linear":
        kept = [x for place, x in enumerate(xs) if len(xs) < 7 or place % 2 == 0]
        ax.xaxis.set_major_locator(FixedLocator(kept))
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(plain)
    if panel.y_scale == "log":
        low, high = ax.get_ylim()
        if high < 1000 * low:
            ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_minor_formatter(FuncFormatter(lambda _, __: ""))
        ax.yaxis.set_major_formatter(plain)


def _number(value: float) -> str:
    """``20k`` for 20,000 and ``1M`` for a million; other whole numbers as they are.

    Examples
    --------
    >>> _number(20_000), _number(1e6), _number(0.05), _number(4_649)
    ('20k', '1M', '0.05', '4,649')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size and value % (size / 10) == 0:
            return f"{value / size:.4g}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.4g}"


def _scale(ax: Axes, panel: Panel, curves: Sequence[Curve]) -> None:
    if panel.x_scale == "symlog":
        ax.set_xscale("symlog", linthresh=min(x for curve in curves for x in curve.x if x > 0))
    else:
        ax.set_xscale(panel.x_scale)
    ax.set_yscale(panel.y_scale)
    if panel.y_scale == "log" and panel.kind != "scatter":
        means = [value for curve in curves for value in curve.mean if math.isfinite(value) and value > _FLOOR]
        if means:
            bottom = min(means) / 2
            ax.set_ylim(bottom, min(max(means) * 3, bottom * 10**_DECADES))
    _ticks(ax, panel, sorted({x for curve in curves for x in curve.x}))

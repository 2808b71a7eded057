"""Plots as SVG text, so that a page needs nothing beside itself."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpregress.coordinates import Vector

_LONGEST_NAME = 40
_INK, _PRIVATE, _OTHER = "#222222", "#1f5fa8", "#c8641c"


def coefficient_plot(
    names: Sequence[str], estimate: Vector, error: Vector, *, other: Vector | None, other_name: str
) -> str:
    """Coefficients with bars of two standard errors, each in units of its own standard error's scale.

    Coefficients of columns in different units do not share an axis well, so each row is divided by the
    largest of |estimate| + 2 errors (and |other|) in that row; the labels carry the values.

    Parameters
    ----------
    names : sequence of str
    estimate, error : ndarray of shape (d,)
    other : ndarray of shape (d,) or None
        A second estimate to set beside the first.
    other_name : str
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    bars = np.where(np.isfinite(error), 2 * error, 0.0)
    reach = np.abs(estimate) + bars
    if other is not None:
        reach = np.maximum(reach, np.abs(other))
    reach = np.where(reach > 0, reach, 1.0)
    at = np.arange(len(names))[::-1]
    with (
        warnings.catch_warnings(),
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpregress", "font.size": 9}),
    ):
        figure = Figure(figsize=(7.2, 0.9 + 0.34 * len(names)), layout="constrained")
        axes = figure.subplots()
        axes.axvline(0, color=_INK, linewidth=0.8)
        axes.errorbar(
            estimate / reach, at + 0.1, xerr=bars / reach, fmt="o", color=_PRIVATE, capsize=3, label="private, ± 2 s.e."
        )
        if other is not None:
            axes.plot(other / reach, at - 0.18, "D", color=_OTHER, markersize=5, label=other_name)
        labels = [f"{_shown(name)}  {value:.3g}" for name, value in zip(names, estimate, strict=True)]
        axes.set_yticks(at, labels, parse_math=False)
        axes.set_xticks([0], ["0"])
        axes.set_xlim(-1.1, 1.1)
        axes.set_ylim(-0.7, len(names) - 0.3)
        axes.set_xlabel("coefficient, each row on its own scale")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.grid(axis="y", color="#eeeeee")
        axes.set_axisbelow(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False, borderaxespad=-1.8)
        return _svg(figure)


class Picture:
    """A plot that is being drawn; its SVG text stands once it is finished."""

    def __init__(self, figure: Any, axes: Any) -> None:
        self.figure = figure
        self.axes = axes
        self.text = ""


@contextmanager
def drawn(title: str, across: str, up: str) -> Iterator[Picture]:
    """A plot with a title and labelled axes, which becomes text at the end.

    Parameters
    ----------
    title, across, up : str
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with (
        warnings.catch_warnings(),
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpregress", "font.size": 9}),
    ):
        figure = Figure(figsize=(5.2, 3.4), layout="constrained")
        picture = Picture(figure, figure.subplots())
        picture.axes.set_title(title)
        picture.axes.set_xlabel(across)
        picture.axes.set_ylabel(up)
        picture.axes.spines[["top", "right"]].set_visible(False)
        yield picture
        picture.text = _svg(figure)


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    warnings.simplefilter("ignore", UserWarning)  # a name the measuring font lacks: the reader's browser has it
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _shown(name: str) -> str:
    """A column's name as a label: printable, and short enough to leave room for the plot."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in name)
    return printable if len(printable) <= _LONGEST_NAME else printable[: _LONGEST_NAME - 2] + ".."

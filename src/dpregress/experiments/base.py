"""What an experiment is: the settings of a figure or table, how one repeat is simulated, and what the paper claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from dpregress.experiments.summaries import RunSummary

#: The curves that stand beside the methods of a paper in every plot.
DEFAULT, PLAIN, PUBLIC_ONLY, TRIVIAL = "dpregress", "not private", "public rows only", "trivial"

Verdict = Literal["yes", "partly", "no", "not run"]
_Setting = TypeVar("_Setting")


class Reading(NamedTuple):
    """One number of one repeat: a point of a curve of a panel.

    Parameters
    ----------
    panel : str
    line : str
        What tells several curves of one method apart, such as ``"epsilon 5"``; empty if there is one.
    method : str
    x, value : float
    """

    panel: str
    line: str
    method: str
    x: float
    value: float


@dataclass(frozen=True)
class Panel:
    """One plot of a figure, with its axes.

    Parameters
    ----------
    name : str
    x_label, y_label : str
    x_scale, y_scale : {"linear", "log", "symlog"}
    kind : {"band", "share", "scatter"}
        Means with a band of a standard deviation, shares without one, or single points.
    """

    name: str
    x_label: str
    y_label: str
    x_scale: str = "linear"
    y_scale: str = "log"
    kind: str = "band"


class Finding(NamedTuple):
    """Whether a run shows what a paper claims, and what it shows."""

    verdict: Verdict
    seen: str


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and how it is judged.

    Parameters
    ----------
    text : str
    judge : callable
        Of the summary of a run.
    why : str
        The reason where a run does not show it.
    """

    text: str
    judge: Callable[[RunSummary], Finding]
    why: str = ""


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper.

    Parameters
    ----------
    name : str
        Of the command line, such as ``"cao-1"``.
    paper, figure, title : str
    panels : sequence of Panel
    settings, quick : sequence
        The full run, and a smaller one. Each is a frozen dataclass, whose text is its key in the file of a run.
    simulate : callable
        ``(setting, rng) -> readings``: one repeat.
    repeats, quick_repeats : int
    weight : callable
        The relative cost of one repeat of a setting.
    claims : sequence of Claim
    choices : sequence of str
        What the paper leaves open, and what we chose.
    table : callable
        The data set that a setting needs; empty without one.
    published : sequence of Reading
        Figures that the paper prints.
    package : str
        An optional package that it needs.
    """

    name: str
    paper: str
    figure: str
    title: str
    panels: Sequence[Panel]
    settings: Sequence[Any]
    quick: Sequence[Any]
    simulate: Callable[[Any, np.random.Generator], Iterable[Reading]]
    repeats: int
    quick_repeats: int
    weight: Callable[[Any], float]
    claims: Sequence[Claim]
    choices: Sequence[str]
    table: Callable[[Any], str] = field(default=lambda _: "")
    published: Sequence[Reading] = ()
    package: str = ""

    def asked(self, quick: bool) -> Sequence[Any]:
        """The settings of a full or a quick run."""
        return self.quick if quick else self.settings


def everywhere(xs: Iterable[float], panel: str, line: str, method: str, value: float) -> Iterable[Reading]:
    """A horizontal line: the same value at every x."""
    return (Reading(panel, line, method, float(x), value) for x in xs)


def settings_of(kind: Callable[..., _Setting], **values: Sequence[Any]) -> tuple[_Setting, ...]:
    """A setting for every combination of values, the first varying slowest.

    Examples
    --------
    >>> settings_of(lambda n, mu: (n, mu), n=[1, 2], mu=[3, 4])
    ((1, 3), (1, 4), (2, 3), (2, 4))
    """
    made: list[dict[str, Any]] = [{}]
    for name, each in values.items():
        made = [{**one, name: value} for one in made for value in each]
    return tuple(kind(**one) for one in made)

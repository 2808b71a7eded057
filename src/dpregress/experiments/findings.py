"""How claims are judged: comparisons of curves, each with the figures that it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from scipy.stats import spearmanr

from dpregress.experiments.base import Finding, Verdict
from dpregress.experiments.summaries import Curve, RunSummary

Judge = Callable[[RunSummary], Finding]


def _shown(value: float) -> str:
    return "no finite value" if not math.isfinite(value) else f"{value:.3g}"


def _judged(held: int, of: int, text: str) -> Finding:
    """All is yes, fewer than half no."""
    if not of:
        return Finding("not run", "the data are not there")
    verdict: Verdict = "yes" if held == of else "no" if 2 * held < of else "partly"
    return Finding(verdict, f"{text} ({held} of {of})")


def _pairs(
    summary: RunSummary, method: str, other: str, panels: Sequence[str] | None, last: bool
) -> list[tuple[float, float]]:
    """Values of both methods at the same panel, line and x (or the last x); a curve without lines stands beside all."""
    found = []
    for curve in summary.find(method):
        others = summary.find(other, curve.panel, curve.line) or summary.find(other, curve.panel, "")
        if others and (panels is None or curve.panel in panels):
            places = curve.x[-1:] if last else curve.x
            found += [(curve.at(x), others[0].at(x)) for x in places if x in others[0].x]
    return found


def below(
    method: str, other: str, *, factor: float = 1.0, panels: Sequence[str] | None = None,
    higher_is_better: bool = False, last: bool = False,
) -> Judge:  # fmt: skip
    """The mean of a method is below ``factor`` times that of another (or above it), at every point or the last ones."""

    def judge(summary: RunSummary) -> Finding:
        pairs = _pairs(summary, method, other, panels, last)
        good = [mine > factor * its if higher_is_better else mine < factor * its for mine, its in pairs]
        ratios = sorted(mine / its for mine, its in pairs if its and math.isfinite(mine) and math.isfinite(its))
        seen = f"{method} over {other}: {_range(ratios)}"
        return _judged(sum(good), len(good), f"{seen}; {'above' if higher_is_better else 'below'} {factor:g}")

    return judge


def _ratio(one: float, other: float) -> float:
    """Of numbers that are not negative; standard deviations of a single repeat are 0."""
    return one / other if other else math.inf if one else 1.0


def _range(values: Sequence[float]) -> str:
    if not values:
        return "no finite ratio"
    low, high = _shown(values[0]), _shown(values[-1])
    return low if low == high else f"{low} to {high}"


def closes_in(method: str, other: str, tolerance: float, *, panels: Sequence[str] | None = None) -> Judge:
    """At the largest x, a method is within a tolerance of another: accuracies, areas and the like."""

    def judge(summary: RunSummary) -> Finding:
        gaps = []
        for curve in summary.find(method):
            others = summary.find(other, curve.panel, curve.line) or summary.find(other, curve.panel, "")
            if others and (panels is None or curve.panel in panels) and curve.x[-1] in others[0].x:
                gaps.append(others[0].at(curve.x[-1]) - curve.at(curve.x[-1]))
        seen = f"{other} less {method} at the largest x: {_range(sorted(gaps))}; at most {tolerance:g}"
        return _judged(sum(gap <= tolerance for gap in gaps), len(gaps), seen)

    return judge


def ends_below(method: str, level: float, *, panels: Sequence[str] | None = None) -> Judge:
    """At the largest x the mean of a method is at most a number that the paper prints."""

    def judge(summary: RunSummary) -> Finding:
        values = sorted(curve.at(curve.x[-1]) for curve in _curves(summary, method, panels))
        good = [value <= level for value in values]
        return _judged(sum(good), len(good), f"{method} at the largest x: {_range(values)}; at most {level:g}")

    return judge


def changes(
    method: str, what: str = "mean", *, rises: bool = False, least: float = 1.0, panels: Sequence[str] | None = None
) -> Judge:
    """From the smallest to the largest x a statistic falls (or rises), by a factor of at least ``least``."""

    def judge(summary: RunSummary) -> Finding:
        ratios = []
        for curve in _curves(summary, method, panels):
            first, last = (_statistic(curve, what, place) for place in (0, -1))
            ratios.append(_ratio(last, first) if rises else _ratio(first, last))
        verb = "rises" if rises else "falls"
        good = [ratio > least for ratio in ratios]
        name = {"sd": "standard deviation"}.get(what, what)
        seen = f"{name} of {method} {verb} by a factor of {_range(sorted(ratios))}; above {least:g}"
        return _judged(sum(good), len(good), seen)

    return judge


def flat(method: str, factor: float, *, panels: Sequence[str] | None = None) -> Judge:
    """The largest mean of a curve is at most ``factor`` times the smallest."""

    def judge(summary: RunSummary) -> Finding:
        ratios = []
        for curve in _curves(summary, method, panels):
            values = [curve.at(x) for x in curve.x]
            ratios.append(_ratio(max(values), min(values)))
        seen = f"largest over smallest mean of {method}: {_range(sorted(ratios))}; at most {factor:g}"
        return _judged(sum(ratio <= factor for ratio in ratios), len(ratios), seen)

    return judge


def steadier(method: str, other: str, *, panels: Sequence[str] | None = None) -> Judge:
    """The standard deviation of a method is below that of another at every point."""

    def judge(summary: RunSummary) -> Finding:
        ratios = []
        for curve in _curves(summary, method, panels):
            for its in summary.find(other, curve.panel, curve.line):
                places = [(curve.x.index(x), its.x.index(x), x) for x in curve.x if x in its.x]
                shared = [(curve.sd[mine], its.sd[theirs], its.at(x)) for mine, theirs, x in places]
                ratios += [0.0 if math.isinf(at) else _ratio(mine, sd) for mine, sd, at in shared]
        seen = f"standard deviation of {method} over that of {other}: {_range(sorted(ratios))}; below 1"
        return _judged(sum(ratio < 1 for ratio in ratios), len(ratios), seen)

    return judge


def orders(method: str, lines: Sequence[str], *, what: str) -> Judge:
    """Along the lines the mean falls, at every panel and x: "a larger epsilon has a smaller error"."""

    def judge(summary: RunSummary) -> Finding:
        ratios = []
        for panel in summary.panels:
            curves = [curve for line in lines for curve in summary.find(method, panel, line)]
            for before, after in pairwise(curves):
                ratios += [_ratio(after.at(x), before.at(x)) for x in before.x if x in after.x]
        seen = f"error of {method} over the error one step before, {what}: {_range(sorted(ratios))}; below 1"
        return _judged(sum(ratio < 1 for ratio in ratios), len(ratios), seen)

    return judge


def diverges(method: str, other: str, factor: float, *, panels: Sequence[str]) -> Judge:
    """At the last x, the median of a method is more than ``factor`` times that of another."""

    def judge(summary: RunSummary) -> Finding:
        pairs = [
            (mine, its)
            for panel in panels
            for mine, its in zip(summary.find(method, panel), summary.find(other, panel), strict=False)
        ]
        ratios = sorted(_ratio(mine.median[-1], its.median[-1]) for mine, its in pairs)
        failed = max((mine.failed[-1] for mine, _ in pairs), default=0)
        seen = f"median error of {method} over that of {other} at the end: {_range(ratios)}; above {factor:g}"
        return _judged(sum(ratio > factor for ratio in ratios) if not failed else len(pairs), len(pairs), seen)

    return judge


def slope_near(method: str, slope: float, tolerance: float) -> Judge:
    """The slope of log mean on log x between the first and the last x."""

    def judge(summary: RunSummary) -> Finding:
        slopes = sorted(
            math.log(curve.at(curve.x[-1]) / curve.at(curve.x[0])) / math.log(curve.x[-1] / curve.x[0])
            for curve in _curves(summary, method, None)
        )
        good = [abs(each - slope) <= tolerance for each in slopes]
        return _judged(sum(good), len(good), f"slope of {method}: {_range(slopes)}; {slope:g} +- {tolerance:g}")

    return judge


def falls_apart_at_small(panel_method: str) -> Judge:
    """In a scatter plot ``panel/method``, the value falls as x rises (rank correlation below -.5)."""

    def judge(summary: RunSummary) -> Finding:
        points = summary.points.get(panel_method, ())
        if len(points) < 5:
            return Finding("not run", "too few points")
        rank = float(spearmanr(*zip(*points, strict=True)).statistic)
        seen = f"rank correlation of x and distance {rank:.2f} ({panel_method}); below -0.5"
        return Finding("yes" if rank < -0.5 else "no", seen)

    return judge


def lowest(method: str, others: Sequence[str], *, least: float = 0.8) -> Judge:
    """A method has the lowest mean of several, at a share of the points of at least ``least``."""

    def judge(summary: RunSummary) -> Finding:
        good = []
        for curve in summary.find(method):
            rivals = [its for name in others for its in summary.find(name, curve.panel, curve.line)]
            good += [all(curve.at(x) <= its.at(x) for its in rivals if x in its.x) for x in curve.x]
        if not good:
            return Finding("not run", "the data are not there")
        verdict: Verdict = "yes" if sum(good) >= least * len(good) else "partly" if sum(good) * 2 >= len(good) else "no"
        return Finding(verdict, f"{method} is the lowest in {sum(good)} of {len(good)} cells; {least:.0%}")

    return judge


def least_at(method: str, panels: Sequence[str], best: str) -> Judge:
    """Of the panels, the last mean of a method is least in one."""

    def judge(summary: RunSummary) -> Finding:
        last = {panel: curve.at(curve.x[-1]) for panel in panels for curve in summary.find(method, panel)}
        if best not in last:
            return Finding("not run", "the data are not there")
        shown = ", ".join(f"{_shown(value)} ({panel})" for panel, value in last.items())
        return Finding("yes" if last[best] == min(last.values()) else "no", f"error of {method} at the end: {shown}")

    return judge


def shares(method: str, line: str, low: float, high: float, *, panels: Sequence[str] | None = None) -> Judge:
    """All means of the curves lie between two numbers."""

    def judge(summary: RunSummary) -> Finding:
        values = [curve.at(x) for curve in _curves(summary, method, panels) if curve.line == line for x in curve.x]
        good = [low <= value <= high for value in values]
        return _judged(sum(good), len(good), f"{method}: {_range(sorted(values))}; between {low:g} and {high:g}")

    return judge


def _curves(summary: RunSummary, method: str, panels: Sequence[str] | None) -> list[Curve]:
    return [curve for curve in summary.find(method) if panels is None or curve.panel in panels]


def _statistic(curve: Curve, what: str, place: int) -> float:
    return curve.at(curve.x[place]) if what == "mean" else curve.sd[place]

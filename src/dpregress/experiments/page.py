"""The page that compares the claims of the papers with runs: every number on it comes from their summaries."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping

from dpregress.experiments import cao_ridge, ferrando_tables, wang_simulated, wu_tables
from dpregress.experiments.base import DEFAULT, PLAIN, PUBLIC_ONLY, TRIVIAL, Experiment, Finding
from dpregress.experiments.catalogue import EXPERIMENTS
from dpregress.experiments.summaries import RunSummary

#: The widest line.
_WIDTH = 125
_INTRO = (
    "The figures and tables of four papers, run again with the published algorithms that this library has for "
    "comparison: [Cao, Bi and Zhang 2026](methods/cao2026.md), [Wang et al. 2023](methods/wang2023.md), [Wu et "
    "al. 2022](methods/wu2022.md) and [Ferrando and Sheldon 2024](methods/ferrando2024.md). This page is written "
    "by `dpregress experiment page` from the summaries in `benchmarks/reproduction`: every number in its tables "
    "and findings comes from a run.",
    "**How to read it.** Lines are means over the repeats, bands are one standard deviation. Beside the paper's "
    "own methods each plot shows the library's default (`dpregress`) at the same budget, the fit without privacy, "
    "a fit to the public rows alone, and the trivial predictor, as far as the setting has them. A claim of a "
    'paper is judged at every point of its plots: "yes" if all points show it, "partly" if at least half do, "no" '
    "otherwise; the counts are in brackets. Where the paper states no number, the claim says in brackets what we "
    "ask for. Differences are not tested: with few repeats, single points can be due to chance.",
    "**Repeats.** Quick runs have fewer points and fewer repeats than the papers. A full run is the same command "
    "without `--quick`. What it takes on two processes is predicted from the seconds of the run shown, which shared "
    "its processors with other work: an idle machine takes a part of it. A run that was stopped goes on where it was.",
)


#: What the runs say of a paper as a whole; its numbers are below.
_SHORT = {
    cao_ridge.PAPER: (
        "In short: in the simulations the public moment does what the paper says. DP-PMTRR and DP-PMTLR are "
        "nearer to the "
        "truth and steadier than the private-only algorithms, although these know more than any curator. On real "
        "tables "
        "the advantage depends on how the columns are scaled, and on wine one far row hides it. DP-GD is not "
        "generally worse "
        "than DP-PMTRR, and on banknote the noisy Newton steps of both algorithms diverge."
    ),
    wang_simulated.PAPER: (
        "In short: not reproduced. At the paper's sizes the printed noise is larger than the moments that it "
        "protects, so the "
        "published algorithms mostly answer no better than 0, and how their errors change with n, p, epsilon or "
        "m is chance. "
        "The library's default, at the same epsilon and delta, shows what the setting allows."
    ),
    wu_tables.PAPER: (
        "In short: reproduced. RMGM-OLS is far better than DGM-OLS, whose Hessian has eigenvalues near 0. What "
        "the paper does "
        "not compare with: on its tables RMGM-OLS seldom reaches the loss of predicting the mean."
    ),
    ferrando_tables.PAPER: (
        "In short: reproduced, with the built-in estimator in place of Private-PGM, and with Private-PGM itself where "
        "it could be run. DD-SSP and AIM-Synth are nearly the same and better than AdaSSP; for classes DD-SSP and "
        "objective perturbation are close at large epsilon. How many components the built-in estimator has decides "
        "about its error on Adult at large epsilon: `ferrando-estimator` shows it."
    ),
}


def reproduction_page(summaries: Mapping[str, RunSummary]) -> str:
    """The page in Markdown.

    Parameters
    ----------
    summaries : mapping of str to RunSummary
        By the name of the experiment; one that was not run has a row that says so.
    """
    intro = [line for paragraph in _INTRO for line in (*_wrapped(paragraph), "")]
    return (
        "\n".join(["# Reproduction of the papers", "", *intro, *_overview(summaries), *_details(summaries)]).rstrip()
        + "\n"
    )


def _overview(summaries: Mapping[str, RunSummary]) -> Iterator[str]:
    yield "## Overview\n"
    yield "| experiment | paper | claims shown | run | repeats (paper) | full run |"
    yield "|---|---|---|---|---|---|"
    for experiment in EXPERIMENTS.values():
        paper = experiment.paper.split()[0].strip(",")
        place = f"| [{experiment.name}](#{experiment.name}) | {paper}, {experiment.figure} "
        summary = summaries.get(experiment.name)
        if summary is None:
            yield f"{place}| not run | | ({experiment.repeats:,}) | |"
            continue
        found = [claim.judge(summary).verdict for claim in experiment.claims]
        partly = f", {found.count('partly')} partly" if "partly" in found else ""
        shown = f"{found.count('yes')} of {len(found)}{partly}"
        run = "quick" if summary.quick else "full points"
        yield f"{place}| {shown} | {run} | {summary.repeats:,} ({experiment.repeats:,}) | {_hours(summary)} |"
    yield ""


def _hours(summary: RunSummary) -> str:
    wall = summary.full_seconds / 2
    return f"{wall / 60:.0f} min" if wall < 6000 else f"{wall / 3600:.0f} h"


def _details(summaries: Mapping[str, RunSummary]) -> Iterator[str]:
    paper = ""
    for experiment in EXPERIMENTS.values():
        if experiment.paper != paper:
            paper = experiment.paper
            yield f"## {paper}\n"
            yield from _wrapped(_SHORT[paper])
            yield ""
        yield f"### {experiment.name}\n"
        yield from _wrapped(f"**{experiment.figure}: {experiment.title}.**")
        yield ""
        summary = summaries.get(experiment.name)
        if summary is None:
            need = f" It needs the package {experiment.package}." if experiment.package else ""
            yield from _wrapped(f"Not run.{need} Command: `dpregress experiment run {experiment.name}`.")
        else:
            yield f"<!-- plot: {experiment.name} -->\n"
            yield from _run(experiment, summary)
        yield ""


def _run(experiment: Experiment, summary: RunSummary) -> Iterator[str]:
    flag = " --quick" if summary.quick else ""
    command = f"dpregress experiment run {experiment.name}{flag} --repeats {summary.repeats} --seed {summary.seed}"
    yield f"- Ran: `{command}`"
    for name in summary.left_out:
        yield from _item(f"Left out: {name}, which was not there (`dpregress datasets list`).")
    for claim in experiment.claims:
        found = claim.judge(summary)
        verdict = f"**{str(found.verdict).capitalize()}.**"
        yield from _item(f"Claim: {claim.text} {verdict} {_sentence(found.seen)}{_why(claim.why, found)}")
    yield from _item(_beside(experiment, summary))
    yield from _item("Open in the paper, and chosen here: " + "; ".join(experiment.choices) + ".")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _why(why: str, found: Finding) -> str:
    return f" Why: {why}." if why and found.verdict in ("no", "partly") else ""


def _beside(experiment: Experiment, summary: RunSummary) -> str:
    """The library's default against the best of the paper's methods at every point."""
    linear = {panel.name for panel in experiment.panels if panel.y_scale == "linear"}
    ratios, gains, points = [], [], 0
    for curve in summary.find(DEFAULT):
        if curve.panel.split(":")[-1].strip().startswith("beta"):
            continue
        rivals = [
            its for its in summary.curves
            if its.panel == curve.panel and its.line == curve.line and _published(its.method)
        ]  # fmt: skip
        for x in curve.x:
            values = [its.at(x) for its in rivals if x in its.x and math.isfinite(its.at(x))]
            if curve.panel in linear and values:
                gains.append(curve.at(x) - max(values))
            elif values:
                ratios.append(curve.at(x) / min(values))
            points += bool(values)
    if not points:
        return "Beside it: no other fit is drawn."
    parts = []
    if ratios:
        parts.append(f"its value over theirs is {min(ratios):.3g} to {max(ratios):.3g}")
    if gains:
        parts.append(f"its value less theirs is {min(gains):.3g} to {max(gains):.3g}")
    better = sum(ratio < 1 for ratio in ratios) + sum(gain > 0 for gain in gains)
    return (
        f"The library's default against the best of the paper's methods at each point: {', '.join(parts)}; it is "
        f"better at "
        f"{better} of {points}."
    )


def _published(method: str) -> bool:
    return not method.startswith(DEFAULT) and method not in (PLAIN, PUBLIC_ONLY, TRIVIAL) and "oracle" not in method


def _item(text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)

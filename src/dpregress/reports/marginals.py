"""A self-contained HTML page about released marginals: bars of every column, heat maps of the strongest pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpregress.accounting import PrivacyStatement
from dpregress.coordinates import Matrix, Vector
from dpregress.display import plain, short_label
from dpregress.releases import Marginals
from dpregress.reports.render import rendered

_MOST_BARS, _MOST_PAIRS, _LONGEST = 40, 12, 28


def marginals_page(title: str, marginals: Marginals, privacy: PrivacyStatement, *, software: str) -> str:
    """The whole page as text.

    Parameters
    ----------
    title : str
    marginals : Marginals
    privacy : PrivacyStatement
    software : str
    """
    domain = marginals.domain
    pairs = sorted(domain.pairs, key=lambda pair: -_dependence(marginals, pair))[:_MOST_PAIRS]
    return rendered(
        "marginals.html",
        title=plain(title),
        privacy=privacy,
        software=software,
        lead=f"About {marginals.count:,.0f} private records; {privacy.describe()}",
        columns=[_bars(marginals, j) for j in range(len(domain.attributes))],
        maps=[_heat_map(marginals, pair) for pair in pairs],
    )


def _dependence(marginals: Marginals, pair: tuple[int, int]) -> float:
    """Total variation between a pair's estimated table and independence."""
    joint = marginals.mixture.pair(*pair)
    return float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum()) / 2


def _bars(marginals: Marginals, attribute: int) -> dict[str, Any]:
    """Horizontal bars with whiskers, in per cent of the width; many levels are shown by the largest."""
    found = marginals.domain.attributes[attribute]
    counts = marginals.count * marginals.mixture.one_way(attribute)
    errors = 2 * marginals.level_error[marginals.domain.levels_of(attribute)]
    shown = np.arange(found.size)
    if found.size > _MOST_BARS:
        shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_BARS])
    scale = 100 / max(float((counts + errors)[shown].max()), 1e-9)
    bars = [
        {
            "level": short_label(found.levels[at], _LONGEST),
            "label": f"{counts[at]:,.0f} ± {errors[at]:,.0f}",
            "width": round(float(scale * counts[at]), 2),
            "low": round(float(scale * max(counts[at] - errors[at], 0.0)), 2),
            "high": round(float(scale * (counts[at] + errors[at])), 2),
        }
        for at in shown
    ]
    left = f" ({len(shown)} of {found.size} levels)" if len(shown) < found.size else ""
    return {"caption": f"{plain(found.name)}{left}", "bars": bars}


def _heat_map(marginals: Marginals, pair: tuple[int, int]) -> dict[str, Any]:
    first, second = (marginals.domain.attributes[j] for j in pair)
    joint = marginals.mixture.pair(*pair)
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    error = pair_error(marginals, pair)
    said = (
        "noise of a cell unknown" if error is None else f"two standard deviations of a cell's noise: {2 * error:,.0f}"
    )
    cell = max(4, min(26, 560 // second.size, 560 // first.size))
    names = [short_label(level, _LONGEST)[:20] for level in first.levels]
    labels = [{"y": round(cell * i + cell * 0.7), "text": name} for i, name in enumerate(names)]
    counts = marginals.count * joint
    return {
        "caption": f"{plain(first.name)} (down) and {plain(second.name)} (across); {said}",
        "cell": cell,
        "width": 140 + cell * second.size,
        "height": cell * first.size + 2,
        "labels": labels if cell >= 11 else [],
        "cells": _cells(counts, marginals.count * expected, first.levels, second.levels, cell, error),
    }


def _cells(
    counts: Matrix, expected: Matrix, rows: tuple[str, ...], columns: tuple[str, ...], cell: int, error: float | None
) -> list[dict[str, Any]]:
    strength = _strength(counts, expected)
    spread = "" if error is None else f" ± {2 * error:,.0f}"
    return [
        {
            "x": 140 + cell * j,
            "y": cell * i,
            "more": bool(strength[i, j] > 0),
            "strength": round(abs(float(strength[i, j])), 3),
            "text": plain(f"{row}, {column}: {counts[i, j]:,.0f}{spread}"),
        }
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]


def _strength(counts: Matrix, expected: Matrix) -> Matrix:
    """Pearson residuals, squeezed into [-1, 1]."""
    residual = (counts - expected) / np.sqrt(np.maximum(expected, 1.0))
    return np.asarray(np.tanh(residual / max(float(np.quantile(np.abs(residual), 0.95)), 1e-9)))


def pair_error(marginals: Marginals, pair: tuple[int, int]) -> float | None:
    """Standard deviation of a cell's noise, the same for all cells of two classes; None where a number is involved."""
    attributes = [marginals.domain.attributes[j] for j in pair]
    if any(attribute.numeric for attribute in attributes):
        return None
    places = [marginals.domain.columns_of(j).start for j in pair]
    unit: Vector = np.array([0.0, 1.0])
    return math.sqrt(float(marginals.noise.cut(places).product_covariance(unit)[0, 0]))

"""A self-contained HTML page about released marginals: bars of every column, heat maps of the strongest pairs."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from dpregress.accounting import PrivacyStatement
from dpregress.coordinates import Matrix, Vector
from dpregress.releases import Marginals
from dpregress.reports import words
from dpregress.reports.page import STYLE, group_table

_MOST_BARS, _MOST_PAIRS, _LONGEST = 40, 12, 28
_BAR, _INK, _MORE, _LESS = "#1f5fa8", "#222222", (31, 95, 168), (200, 100, 28)
_MORE_STYLE = "svg text { font: 11px system-ui, sans-serif; } figure { margin: 1rem 0; }"


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
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">About {marginals.count:,.0f} private records; {escape(privacy.describe())}</p>',
        "<h2>Columns</h2>",
        '<p class="note">Bars are estimated counts. Whiskers extend two standard deviations of the noise in the '
        "released count, before the fit, in either direction.</p>",
        *(_bars(marginals, j) for j in range(len(domain.attributes))),
        f"<h2>Pairs of columns</h2><p>The {len(pairs)} pairs furthest from independence. Blue cells hold more records "
        "than independence would put there, orange ones fewer; each cell names its count.</p>",
        *(_heat_map(marginals, pair) for pair in pairs),
        "<h2>What is promised</h2>",
        *(f"<p>{escape(sentence)}</p>" for sentence in words.guarantee(privacy)),
        group_table(privacy),
        f'<p class="note">Written by {escape(software)}.</p>',
    ]
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
    return f"{head}<style>{STYLE}{_MORE_STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"


def _dependence(marginals: Marginals, pair: tuple[int, int]) -> float:
    """Total variation between a pair's estimated table and independence."""
    joint = marginals.mixture.pair(*pair)
    return float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum()) / 2


def _bars(marginals: Marginals, attribute: int) -> str:
    """Horizontal bars with whiskers; many levels are shown by the largest."""
    found = marginals.domain.attributes[attribute]
    counts = marginals.count * marginals.mixture.one_way(attribute)
    errors = 2 * marginals.level_error[marginals.domain.levels_of(attribute)]
    shown = np.arange(found.size)
    if found.size > _MOST_BARS:
        shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_BARS])
    reach = max(float((counts + errors)[shown].max()), 1e-9)
    rows = [_bar(16 * i, found.levels[at], counts[at], errors[at], reach) for i, at in enumerate(shown)]
    left = f" ({len(shown)} of {found.size} levels)" if len(shown) < found.size else ""
    picture = f'<svg viewBox="0 0 700 {16 * len(shown) + 4}" role="img">{"".join(rows)}</svg>'
    return f"<figure><figcaption>{escape(found.name)}{left}</figcaption>{picture}</figure>"


def _bar(top: int, level: str, count: float, error: float, reach: float) -> str:
    scale = 400 / reach
    low, high = 190 + scale * max(count - error, 0.0), 190 + scale * (count + error)
    return (
        f'<text x="184" y="{top + 12}" text-anchor="end">{escape(_short(level))}</text>'
        f'<rect x="190" y="{top + 2}" width="{scale * count:.1f}" height="12" fill="{_BAR}" fill-opacity=".75"/>'
        f'<path d="M{low:.1f} {top + 8}H{high:.1f}M{high:.1f} {top + 4}v8M{low:.1f} {top + 4}v8" stroke="{_INK}" '
        f'fill="none"/><text x="{high + 6:.1f}" y="{top + 12}">{count:,.0f} ± {error:,.0f}</text>'
    )


def _heat_map(marginals: Marginals, pair: tuple[int, int]) -> str:
    first, second = (marginals.domain.attributes[j] for j in pair)
    joint = marginals.mixture.pair(*pair)
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    error = pair_error(marginals, pair)
    said = (
        "noise of a cell unknown" if error is None else f"two standard deviations of a cell's noise: {2 * error:,.0f}"
    )
    caption = f"{first.name} (down) and {second.name} (across); {said}"
    cell = max(4, min(26, 560 // second.size, 560 // first.size))
    body = _cells(marginals.count * joint, marginals.count * expected, first.levels, second.levels, cell, error)
    labels = (
        [
            f'<text x="134" y="{cell * i + cell * 0.7:.0f}" text-anchor="end">{escape(_short(level)[:20])}</text>'
            for i, level in enumerate(first.levels)
        ]
        if cell >= 11
        else []
    )
    size = f'viewBox="0 0 {140 + cell * second.size} {cell * first.size + 2}" width="{140 + cell * second.size}"'
    return f"<figure><figcaption>{escape(caption)}</figcaption><svg {size}>{''.join(labels)}{body}</svg></figure>"


def _cells(
    counts: Matrix, expected: Matrix, rows: tuple[str, ...], columns: tuple[str, ...], cell: int, error: float | None
) -> str:
    strength = _strength(counts, expected)
    spread = "" if error is None else f" ± {2 * error:,.0f}"
    parts = []
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            shade = _MORE if strength[i, j] > 0 else _LESS
            colour = ",".join(str(round(255 + (part - 255) * abs(strength[i, j]))) for part in shade)
            text = escape(f"{row}, {column}: {counts[i, j]:,.0f}{spread}")
            place = f'x="{140 + cell * j}" y="{cell * i}" width="{cell}" height="{cell}"'
            parts.append(f'<rect {place} fill="rgb({colour})"><title>{text}</title></rect>')
    return "".join(parts)


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


def _short(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return printable if len(printable) <= _LONGEST else printable[: _LONGEST - 2] + ".."

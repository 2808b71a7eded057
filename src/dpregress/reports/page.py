"""A self-contained HTML page about one fit: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from dpregress.accounting import PrivacyStatement, compose_statements
from dpregress.coordinates import Vector
from dpregress.display import html_table, plain
from dpregress.releases import ClassCoefficients, Coefficients
from dpregress.reports import words
from dpregress.reports.diagnosis import Pictures
from dpregress.reports.plots import coefficient_plot
from dpregress.reports.summary import Summary, SummaryTable

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #e3e3e3; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid #888; }
.lead { color: #555; margin-top: 0; } .note { color: #555; font-size: .9rem; }
.warn { background: #fff3e6; border-left: 4px solid #c8641c; padding: .5rem 1rem; }
svg { max-width: 100%; height: auto; }
"""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A non-private answer to set beside the private one, in demonstrations only.

    Parameters
    ----------
    name : str
    coef : ndarray of shape (d,)
    intercept : float
    loss : str
        What the errors are: "mean squared error", "mean deviance".
    errors : sequence of (str, float, float)
        Predictor, held-out loss, mean prediction.
    truth : float
        The held-out mean of the response.
    """

    name: str
    coef: Vector
    intercept: float
    loss: str
    errors: Sequence[tuple[str, float, float]]
    truth: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """One fit of a page: its title, coefficients and guarantee, and what to set beside them, if anything.

    With a summary, its tables take the place of the coefficients. ``pictures`` are those of a diagnosis.
    """

    title: str
    coefficients: Coefficients | ClassCoefficients
    privacy: PrivacyStatement
    comparison: Comparison | None = None
    summary: Summary | None = None
    pictures: Pictures | None = None


def fit_page(title: str, fits: Sequence[Fitted], *, software: str, notes: Sequence[str] = ()) -> str:
    """The whole page as text.

    Parameters
    ----------
    title : str
    fits : sequence of Fitted
        On the same people; the guarantee shown is that of all together.
    software : str
    notes : sequence of str
        Sentences about the data, shown under the title.
    """
    privacy = compose_statements([fit.privacy for fit in fits])
    compared = any(fit.comparison is not None for fit in fits)
    parts = [
        f'<p class="lead">{fits[0].coefficients.n:,} private records; {escape(privacy.describe())}</p>',
        *(f"<p>{escape(note)}</p>" for note in notes),
        *([_NOT_PRIVATE] if compared else []),
        *(part for fit in fits for part in _fit_parts(fit)),
        *(fit.pictures.to_html() for fit in fits if fit.pictures is not None),
        *([_ERRORS] if any(fit.summary is None for fit in fits) else []),
    ]
    return plain_page(title, parts, privacy, software=software)


def plain_page(title: str, parts: Sequence[str], privacy: PrivacyStatement, *, software: str) -> str:
    """A page of these parts with the guarantee below, as text.

    Parameters
    ----------
    title : str
    parts : sequence of str
        HTML.
    privacy : PrivacyStatement
    software : str
    """
    below = [
        "<h2>What is promised</h2>",
        *(f"<p>{escape(sentence)}</p>" for sentence in words.guarantee(privacy)),
        group_table(privacy),
        f'<p class="note">Written by {escape(software)}.</p>',
    ]
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts, *below])
    return f"{head}{viewport}<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"


def _fit_parts(fit: Fitted) -> list[str]:
    comparison = fit.comparison
    parts = [f"<h2>{escape(fit.title)}</h2>"]
    if fit.summary is not None:
        pairs = zip(fit.coefficients.by_class(), fit.summary.tables, strict=True)
        tables = [_summary_table(one, table) for (_, one), table in pairs]
        return [*parts, *tables, f'<p class="note">{escape(plain(" ".join(fit.summary.notes)))}</p>']
    for name, coefficients in fit.coefficients.by_class():
        plot = coefficient_plot(
            coefficients.features,
            coefficients.coef,
            coefficients.standard_error,
            other=None if comparison is None else comparison.coef,
            other_name="" if comparison is None else comparison.name,
        )
        title = f"<h3>{escape(f'{coefficients.target} = {name}')}</h3>"
        parts += [*([title] if name else []), plot, _coefficient_table(coefficients, comparison)]
    if comparison is not None:
        parts += ["<h3>Held-out rows</h3>", _error_table(comparison)]
    return parts


_ERRORS = (
    '<p class="note">Standard errors are first-order and cover privacy noise and sampling; the privacy s.e. is '
    "the part that privacy noise adds. The bias of row weights and clipping is not included.</p>"
)
_NOT_PRIVATE = (
    '<p class="warn">This page shows non-private numbers beside private ones, for demonstration. '
    "Never publish it about data that must be protected.</p>"
)


def _summary_table(coefficients: Coefficients, table: SummaryTable) -> str:
    """A plot of the slopes that are identified, and the table."""
    known = zip(table.names, table.rows, table.identified, strict=True)
    slopes = {name: row for name, row, identified in known if identified and name in coefficients.features}
    estimate, error = (np.array([row[place] for row in slopes.values()], dtype=np.float64) for place in (0, 1))
    plot = coefficient_plot(tuple(slopes), estimate, error, other=None, other_name="") if slopes else ""
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    return title + plot + replace(table, title="").to_html()


def _coefficient_table(coefficients: Coefficients, comparison: Comparison | None) -> str:
    header = ["", "private", "std. error", "privacy s.e."]
    rows = [["(intercept)", _number(coefficients.intercept), "", ""]]
    for name, *values in zip(
        coefficients.features,
        coefficients.coef,
        coefficients.standard_error,
        coefficients.privacy_error,
        strict=True,
    ):
        rows.append([name, *map(_number, values)])
    if comparison is not None:
        header.append(comparison.name)
        for row, value in zip(rows, [comparison.intercept, *comparison.coef], strict=True):
            row.append(_number(float(value)))
    return html_table(header, rows)


def _error_table(comparison: Comparison) -> str:
    header = ["predictor", comparison.loss, "mean prediction"]
    rows = [[name, _number(error), _number(mean)] for name, error, mean in comparison.errors]
    return html_table(header, rows) + f'<p class="note">True held-out mean: {_number(comparison.truth)}.</p>'


def group_table(privacy: PrivacyStatement) -> str:
    """What the guarantee is for people with several records; nothing where there is none in Gaussian terms."""
    if privacy.seeded or not math.isfinite(privacy.mu):
        return ""
    rows = [[str(k), f"{mu:.4g}", f"{epsilon:.4g}"] for k, mu, epsilon in words.group_rows(privacy)]
    several = "records of one person" if privacy.max_rows_per_unit is None else f"{privacy.unit}s together"
    return html_table([several, "mu", "epsilon"], rows)


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "not known"

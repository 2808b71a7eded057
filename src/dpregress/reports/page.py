"""A self-contained HTML page about fits: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpregress.accounting import PrivacyStatement, compose_statements
from dpregress.coordinates import Vector
from dpregress.display import plain
from dpregress.models.hazards import SURVIVAL
from dpregress.releases import ClassCoefficients, Coefficients
from dpregress.releases.model_files import ResponseModel
from dpregress.reports.diagnosis import Pictures
from dpregress.reports.forest import Forest, forest
from dpregress.reports.render import rendered
from dpregress.reports.summary import Summary, SummaryTable

#: What a ratio multiplies.
_MULTIPLIED = {"odds ratio": "the odds are", "hazard ratio": "the hazard is"}


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
    """One fit of a page.

    Parameters
    ----------
    title : str
    coefficients : Coefficients or ClassCoefficients
    privacy : PrivacyStatement
    summary : Summary
        Its tables, notes and LaTeX are those of the page.
    facts : sequence of (str, str)
        Names and texts shown above the tables; default: those of the summary.
    response : ResponseModel, optional
        With a link that makes coefficients logarithms of ratios, the page has a table of ratios.
    deviation : ndarray of shape (d,), optional
        Released standard deviations of the columns, on whose scale coefficients can be compared.
    comparison : Comparison, optional
    pictures : Pictures, optional
        Those of a diagnosis.
    """

    title: str
    coefficients: Coefficients | ClassCoefficients
    privacy: PrivacyStatement
    summary: Summary
    facts: Sequence[tuple[str, str]] = ()
    response: ResponseModel | None = None
    deviation: Vector | None = None
    comparison: Comparison | None = None
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
    return rendered(
        "fit.html",
        title=plain(title),
        privacy=privacy,
        software=software,
        lead=f"{fits[0].coefficients.n:,} private records; {privacy.describe()}",
        notes=notes,
        compared=any(fit.comparison is not None for fit in fits),
        fits=[_context(fit) for fit in fits],
    )


def pictures_page(title: str, pictures: Pictures, privacy: PrivacyStatement, *, software: str) -> str:
    """A page about a diagnosis that was paid for by itself.

    Parameters
    ----------
    title : str
    pictures : Pictures
    privacy : PrivacyStatement
    software : str
    """
    return rendered("pictures.html", title=plain(title), privacy=privacy, software=software, pictures=pictures)


def ratio_name(response: ResponseModel | None) -> str:
    """What ``exp(coefficient)`` is; nothing where it is no ratio that a reader knows."""
    if response is None or len(response.classes) > 2:
        return ""
    if response.link == "logit":
        return "odds ratio"
    if response.family == SURVIVAL:
        return "hazard ratio"
    if response.link == "log":
        return "rate ratio" if response.family == "poisson" or response.exposure is not None else "ratio of means"
    return ""


def _context(fit: Fitted) -> dict[str, Any]:
    """What the template shows of one fit."""
    comparison = fit.comparison
    errors = None
    if comparison is not None:
        rows = [(name, _number(error), _number(mean)) for name, error, mean in comparison.errors]
        header = ("predictor", comparison.loss, "mean prediction")
        errors = {"header": header, "rows": rows, "truth": _number(comparison.truth)}
    return {
        "title": plain(fit.title),
        "facts": [(name, plain(text)) for name, text in fit.facts or fit.summary.facts],
        "parts": [_part(fit, table) for table in fit.summary.estimates],
        "errors": errors,
        "notes": [plain(" ".join(fit.summary.notes))],
        "latex": fit.summary.to_latex(),
        "pictures": fit.pictures,
    }


def _part(fit: Fitted, table: SummaryTable) -> dict[str, Any]:
    """One table with its plot, and its ratios if there are any."""
    header = ["", *table.columns]
    rows = [[name, *("not known" if cell == "nan" else cell for cell in cells)] for name, *cells in table.texts()]
    if fit.comparison is not None:
        header.append(fit.comparison.name)
        known = dict(zip(fit.coefficients.features, fit.comparison.coef.tolist(), strict=True))
        rows = [
            [*row, _number(known.get(name, fit.comparison.intercept))]
            for name, row in zip(table.names, rows, strict=True)
        ]
    ratio = ratio_name(fit.response)
    ratios = _ratios(table, fit.coefficients.features) if ratio and _has_intervals(table) else []
    return {
        "title": plain(table.title),
        "plot": _plot(fit, table, ratio),
        "header": header,
        "rows": rows,
        "ratio_title": f"{ratio[:1].upper()}{ratio[1:]}s",
        "ratio_of": _MULTIPLIED.get(ratio, "the mean response is"),
        "ratio_header": ["", ratio, *table.columns[-2:]],
        "ratios": ratios,
    }


def _plot(fit: Fitted, table: SummaryTable, ratio: str) -> Forest | None:
    """The slopes that are identified."""
    slopes = _slopes(table, fit.coefficients.features)
    if not slopes:
        return None
    places = [fit.coefficients.features.index(name) for name in slopes]
    intervals = [_interval(table, row) for row in slopes.values()]
    return forest(
        tuple(slopes),
        intervals,
        bars=_bars(table),
        deviation=None if fit.deviation is None else fit.deviation[places],
        ratio=ratio,
        other=None if fit.comparison is None else fit.comparison.coef[places],
        other_name="" if fit.comparison is None else fit.comparison.name,
    )


def _slopes(table: SummaryTable, features: Sequence[str]) -> dict[str, tuple[float | None, ...]]:
    known = zip(table.names, table.rows, table.identified, strict=True)
    return {name: row for name, row, identified in known if identified and name in features}


def _has_intervals(table: SummaryTable) -> bool:
    return table.columns[-1].endswith("]")


def _bars(table: SummaryTable) -> str:
    """What the intervals of a table are; their level is in its header."""
    if not _has_intervals(table):
        return "estimate less and plus two standard errors"
    return f"{100 - 200 * float(table.columns[-2][1:]):.3g}% intervals"


def _interval(table: SummaryTable, row: Sequence[float | None]) -> tuple[float, float, float]:
    """The estimate with the ends of its interval, or with two standard errors where there is none."""
    numbers = [np.nan if value is None else value for value in row]
    if _has_intervals(table):
        return numbers[0], numbers[-2], numbers[-1]
    return numbers[0], numbers[0] - 2 * numbers[1], numbers[0] + 2 * numbers[1]


def _ratios(table: SummaryTable, features: Sequence[str]) -> list[list[str]]:
    """``exp`` of the slopes and of the ends of their intervals."""
    with np.errstate(over="ignore"):
        return [
            [plain(name), *(_number(float(np.exp(value))) for value in _interval(table, row))]
            for name, row in _slopes(table, features).items()
        ]


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "not known"

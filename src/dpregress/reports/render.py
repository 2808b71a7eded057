"""Pages from Jinja templates: whole HTML documents that need nothing beside themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from dpregress.accounting import PrivacyStatement
from dpregress.display import plain
from dpregress.reports import words
from dpregress.reports.chart import Chart


def rendered(template: str, *, title: str, privacy: PrivacyStatement, software: str, **context: Any) -> str:
    """A page with its guarantee at the end. Every text is escaped, and a name that a template lacks is an error.

    Parameters
    ----------
    template : str
        A file in ``dpregress/reports/templates``.
    title : str
    privacy : PrivacyStatement
    software : str
    **context
        What the template shows.
    """
    header, rows = _groups(privacy)
    return _filled(
        template,
        title=title,
        software=software,
        written=datetime.now(UTC).strftime("%Y-%m-%d"),
        promised=words.guarantee(privacy),
        group_header=header,
        group_rows=rows,
        **context,
    )


def drawing(title: str, plot: Chart, notes: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    """A page with a chart, sentences and a table, whose first row is the header, as HTML text."""
    cells = [[plain(cell) for cell in row] for row in table]
    return _filled("drawing.html", title=plain(title), plot=plot, notes=[plain(note) for note in notes], table=cells)


def _filled(template: str, **context: Any) -> str:
    page: str = _environment().get_template(template).render(**context)
    return page


@cache
def _environment() -> Any:
    """Jinja with the templates, each compiled once in a process."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dpregress.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _groups(privacy: PrivacyStatement) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """What the guarantee is for people with several records; no rows where it has no Gaussian terms."""
    several = "records of one person" if privacy.max_rows_per_unit is None else f"{privacy.unit}s together"
    known = not privacy.seeded and math.isfinite(privacy.mu)
    rows = words.group_rows(privacy) if known else []
    return (several, "mu", "epsilon"), [(str(k), f"{mu:.4g}", f"{epsilon:.4g}") for k, mu, epsilon in rows]

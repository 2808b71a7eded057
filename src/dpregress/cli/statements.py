"""``--print-sql``: the statement with which a database computes the sums of a fit, for those who run it themselves."""

from __future__ import annotations

from typing import Any, NoReturn

from dpregress.cli.output import print_lines

#: As in ``rows.push_down_sql``, which loads NumPy.
DIALECTS = ("duckdb", "postgres", "sqlite", "snowflake", "bigquery", "databricks")
_NOTE = """\
-- dpregress: the first sums of {model} over {n:,} rows. They were not computed, and nothing was charged.
-- The result has NO NOISE: it reveals the rows. Do not show, log or keep it; give it to the mechanism alone.
-- 1. Before this runs, charge the whole budget of the fit to a ledger: SQLiteLedger(FILE, DATASET).reserve({promise}).
-- 2. {meaning}
-- 3. Add Gaussian noise in exact arithmetic (docs/privacy/floating-point.md) before anything else reads the sums.
-- A fit of several questions writes the next statement from the noisy answer to this one.
"""
_PRODUCTS = """\
s0, s1, ... are sums of products of the {q} integers of a row, the upper triangle of a matrix row by row{words}.
--    In units: x {of_x!r}{of_y}. usable is the number of rows that count, n must be {n}."""
_PIECES = """\
s0, s1, ... are sums of the {q} integers of a row: events by piece, then times by piece{words}.
--    In units: events {of_event!r}, times {of_time!r} of the piece. usable is the number of rows that count, n must
--    be {n}."""
_COUNTS = """\
usable is the number of rows that count in each of {bins} bins by size; -1 stands for no bin. n adds up to {n}."""


class _Shown(Exception):
    """Ends a fit at its first question."""

    def __init__(self, sums: Any, query: Any) -> None:
        super().__init__()
        self.sums, self.query = sums, query


def _stop(sums: Any, value: Any) -> NoReturn:
    raise _Shown(sums, value.query)


def _meaning(sums: Any, query: Any, dialect: str) -> str:
    """What the columns of the result are: the first question is a second moment, a histogram, or totals by piece."""
    from dpregress.rows import OrderedRows

    if sums.program.bins:
        return _COUNTS.format(bins=sums.program.bins, n=sums.n)
    q, words = len(sums.program.left), ", each as its multiple of 2^32 and the rest" if sums.words(dialect) == 2 else ""
    if not sums.program.right:
        of_event, *_, of_time = query.unit.tolist()
        return _PIECES.format(q=q, words=words, of_event=of_event, of_time=of_time, n=sums.n)
    rows = OrderedRows(query.space)
    of_y = "" if rows.response is None else f", y {query.space.response.cross * rows.response.grid.step!r}"
    return _PRODUCTS.format(q=q, words=words, of_x=rows.grid.step, of_y=of_y, n=sums.n)


def print_statement(model: Any, rows: Any, columns: tuple[Any, Any], asked: tuple[str, str], **given: Any) -> None:
    """Print the first statement of a fit whose ledger is temporary; no private row is read.

    Parameters
    ----------
    model : estimator
    rows, columns, **given
        As ``fit_table`` takes them.
    asked : tuple of str
        The dialect, and the query that gives the rows.
    """
    from dpregress.rows import PushDownEngine
    from dpregress.rows.readers.base import subquery

    dialect, query = asked

    try:
        model.fit_table(rows, *columns, PushDownEngine(shown=_stop), False, **given)
    except _Shown as shown:
        sums = shown.sums
        meaning = _meaning(sums, shown.query, dialect)
        note = _NOTE.format(model=type(model).__name__, n=sums.n, promise=model.privacy, meaning=meaning)
        print_lines(note + sums.statement(subquery(query), dialect) + ";")

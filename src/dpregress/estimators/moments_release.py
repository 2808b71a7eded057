"""The spine of a release of moments: public facts, charge, ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpregress.accounting import Event, Ledger, Request, gaussian_promise
from dpregress.accounting.names import note_of
from dpregress.coordinates import Matrix
from dpregress.errors import InvalidInput, one_line, type_of
from dpregress.estimators.parameters import check_kind, checked_budget
from dpregress.estimators.progress import check_progress, reported
from dpregress.estimators.released_moments import ReleasedMoments, SharedSpace
from dpregress.estimators.training import ready_rows
from dpregress.inputs.described import described_table
from dpregress.inputs.engines import engine_of, stays_in_place
from dpregress.inputs.formula import names_files
from dpregress.inputs.names import check_unit, listed
from dpregress.inputs.public import is_public, moments_of, opened_apart, public_columns
from dpregress.inputs.response import check_declared
from dpregress.inputs.tables import (
    array_names,
    column_names,
    encoded,
    matrix,
    opened_table,
)
from dpregress.inputs.units import bounded_units
from dpregress.public import PublicMoments, Schema
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import Start, start
from dpregress.releases.sites import Shortened, SiteMoments, check_symmetric_space
from dpregress.rows import ArraySource, Source
from dpregress.rows.design.complete import CompleteEncoder
from dpregress.rows.engines import Progress
from dpregress.rows.memory import check_moments_fit
from dpregress.rows.readers.files import is_table
from dpregress.solvers.moments.whole_table import WholeTable
from dpregress.trust import Session

__all__ = ["release_moments", "shared_space"]


class _Table(NamedTuple):
    """Private rows of all columns, with what is public about their design columns."""

    source: Source
    columns: tuple[str, ...]
    facts: PublicFacts
    schema: Schema | None
    shortened: Shortened | None
    fixed: bool


def release_moments(
    table: Any,
    privacy: Event | None = None,
    *,
    columns: Sequence[str] | None = None,
    public: Any = None,
    schema: Schema | None = None,
    row_bound: float | None = None,
    like: Any = None,
    complete: Sequence[str] = (),
    site: str = "",
    ledger: Ledger | None = None,
    unit: Any = None,
    max_rows_per_unit: int | None = None,
    engine: Any = None,
    progress: bool | Progress = True,
    random_state: int | np.random.Generator | None = None,
) -> ReleasedMoments:
    """Release the second moment of all columns of a table once; every regression among them is free from then on.

    All columns are treated alike: they are whitened together, and a row that lies far out is shrunk as a whole
    (docs/release.md). The whole budget is charged before any row is read.

    Parameters
    ----------
    table : array-like, table, path, list of paths or query
        Private, as ``fit_table`` takes it; the columns of an array are those of ``public``, or x0, x1, ..
    privacy : ApproxDP, GDP or ZCDP
        The budget, for replacing one record.
    columns : sequence of str, optional
        Default: all but the unit.
    public : PublicMoments, table or file, optional
        Public rows with the same columns, or their moments.
    schema : Schema, optional
        Bounds and levels.
    row_bound : float, optional
        A public bound on the norm of a row, if there is neither a public table nor a schema.
    like : SharedSpace, ReleasedMoments or path, optional
        Coordinates that are public already: those of :func:`~dpregress.shared_space`, or of an earlier release.
        Releases of other people in the same coordinates can be combined. It takes the place of columns, public and
        schema.
    complete : sequence of str
        Columns without which a row does not count, such as later responses. In the others, a missing cell counts as the
        public mean (without public rows as the middle of its bounds), or as the schema says. The number of rows that
        count is released at no additional cost.
    site : str
        A name for this table, if it will be combined with others.
    ledger : Ledger, optional
    unit, max_rows_per_unit
        As in ``fit`` (for an array) and ``fit_table``.
    engine : Engine, str, Dask client or cluster, optional
        As in ``fit_table``.
    progress : bool or callable, default=True
    random_state : None, int or numpy Generator

    Raises
    ------
    InvalidInput
        If public facts are inconsistent; nothing is charged then.
    UnboundedData
        If neither public rows nor a schema nor ``row_bound`` bounds the rows.
    BudgetExceeded
        If the ledger does not hold enough; nothing is charged or read then.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import GDP, DPLinearRegression, PublicMoments, release_moments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 3)); X[:, 2] += X[:, 0]
    >>> released = release_moments(X[200:], privacy=GDP(1.0), public=PublicMoments.from_rows(X[:200]))
    >>> model = DPLinearRegression.from_moments(released, target="x2", features=["x0", "x1"])
    >>> bool(np.abs(model.coef_ - [1, 0]).max() < 0.05)
    True
    """
    budget = checked_budget(privacy)
    check_progress(progress)
    _check_kinds(schema, public, ledger, site)
    engine = engine_of(engine)
    taken = listed(complete, "complete")
    if like is not None:
        found = _like(table, like, columns, (public, schema, row_bound), taken, unit)
    else:
        found = _declared(table, columns, public, schema, row_bound, taken, unit)
    source, whose = bounded_units(found.source, unit, max_rows_per_unit, in_place=stays_in_place(engine))
    promise = gaussian_promise(budget)
    check_moments_fit(found.facts.start.space.order, 0)
    solver = WholeTable(found.facts, whose.per_record(promise), found.fixed, found.shortened)
    with reported(progress, solver.rounds) as report, ready_rows(source, engine, report, solver.asks) as rows:
        session = Session.reserve(
            rows,
            promise,
            rounds=solver.rounds,
            budget=budget,
            ledger=ledger,
            unit=whose,
            note=note_of(f"moments of {len(found.columns)} columns"),
            request=Request(
                formula=note_of(f"moments of {', '.join(found.columns)}"), source=note_of(described_table(table))
            ),
            random_state=random_state,
        )
        moments, shortened = solver.estimate(session)
    fixed = ("the coordinates of the release, which were fixed before",) if found.fixed else ()
    statement = session.statement((*found.facts.assumed_public(), *fixed))
    own = None if found.schema is None else found.schema.of_columns(found.columns)
    released = SiteMoments(site, moments, statement, shortened.lost, shortened.shortfall)
    return ReleasedMoments(moments.space, found.columns, own, (released,))


def shared_space(
    columns: Sequence[str] | None = None,
    *,
    n: int,
    privacy: Event | None = None,
    public: Any = None,
    schema: Schema | None = None,
    row_bound: float | None = None,
) -> SharedSpace:
    """Fix coordinates from public facts alone, in which several sites with the same columns then release their moments.

    Nothing private is read. With public rows the coordinates are nearly as good as those of a single table. By a schema
    alone they are those of its bounds, in which there is more noise: let the first site release by itself, and the
    others ``like`` it.

    Parameters
    ----------
    columns : sequence of str, optional
        Default: all of the public rows, otherwise all of the schema.
    n : int
        The number of rows of a typical site, and
    privacy : ApproxDP, GDP or ZCDP
        its budget: both determine the radius at which rows are shrunk.
    public, schema, row_bound
        As in :func:`release_moments`.

    Raises
    ------
    InvalidInput
    UnboundedData
    """
    budget = gaussian_promise(checked_budget(privacy))
    _check_kinds(schema, public, None, "")
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidInput(f"n takes the number of rows of a site, not {one_line(n)}")
    if columns is None and public is None and schema is None:
        raise InvalidInput("give the columns of the tables, public rows that have them, or a schema")
    if columns is None:
        columns = public_columns(public) if public is not None else tuple((schema or Schema({})).columns)
    found = _facts(tuple(listed(columns, "columns")), n, opened_apart(None, public), schema, row_bound)
    own = None if schema is None else schema.of_columns(columns)
    whole = WholeTable(found, budget, fixed=True)
    return SharedSpace(whole.planned, tuple(columns), own, whole.public_shortened)


def _declared(
    table: Any,
    columns: Sequence[str] | None,
    given: Any,
    schema: Schema | None,
    row_bound: float | None,
    complete: Sequence[str],
    unit: Any,
) -> _Table:
    """Rows with columns as the schema or the public rows declare them."""
    public = opened_apart(table, given)
    known = None if public is None else public_columns(public)
    source, chosen = _rows(table, columns, known, schema, complete, unit)
    if known is None and row_bound is None:
        check_declared(chosen, source, schema)
    return _Table(source, chosen, _facts(chosen, source.n, public, schema, row_bound), schema, None, False)


def _like(
    table: Any, like: Any, columns: Sequence[str] | None, others: Sequence[Any], complete: Sequence[str], unit: Any
) -> _Table:
    """Rows for coordinates that are public already."""
    if columns is not None or any(other is not None for other in others):
        raise InvalidInput("like= fixes the columns and what is public about them: leave the other parameters out")
    shared = SharedSpace.load(like) if isinstance(like, str | Path) else like
    if not isinstance(shared, SharedSpace | ReleasedMoments):
        raise InvalidInput(f"like= takes a SharedSpace, released moments or their file, not {type_of(like)}")
    check_symmetric_space(shared.space)
    if shared.space.features != CompleteEncoder.requiring(shared.columns, shared.schema, ()).features:
        raise InvalidInput("like= has coordinates of other columns than it names: use the file as it was written")
    source, _ = _rows(table, shared.columns, shared.columns, shared.schema, complete, unit)
    facts = PublicFacts(source.n, "", Start(shared.space, 0), None, shared.schema)
    return _Table(source, shared.columns, facts, shared.schema, shared.shortened, True)


def _rows(
    table: Any,
    columns: Sequence[str] | None,
    known: Sequence[str] | None,
    schema: Schema | None,
    complete: Sequence[str],
    unit: Any,
) -> tuple[Source, tuple[str, ...]]:
    """The rows of an array or a table, and the names of its columns."""
    wanted = None if columns is None else tuple(listed(columns, "columns"))
    if isinstance(table, list | tuple | np.ndarray) and not is_table(table) and not names_files(table):
        return _array(matrix(table), wanted, known, schema, complete)
    opened = opened_table(table)
    named = unit if isinstance(unit, str) else None
    chosen = tuple(name for name in column_names(opened) if name != named) if wanted is None else wanted
    check_unit(named, chosen, ())
    return encoded(opened, CompleteEncoder.requiring(chosen, schema, complete), named), chosen


def _array(
    x: Matrix,
    wanted: tuple[str, ...] | None,
    known: Sequence[str] | None,
    schema: Schema | None,
    complete: Sequence[str],
) -> tuple[Source, tuple[str, ...]]:
    names = array_names(x.shape[1], known)
    if wanted is not None and wanted != names:
        raise InvalidInput("an array has no names of columns: leave columns= out, or give a data frame")
    for name in names:
        declared = None if schema is None else schema.column(name)
        if declared is not None and declared.design(name) != (name,):
            raise InvalidInput(f"the schema makes indicators of column {name!r}: give a data frame, not an array")
    encoder = CompleteEncoder.requiring(names, schema, complete)
    places = [names.index(name) for name in encoder.required]
    usable = np.where(np.isfinite(x[:, places]).all(axis=1), 0.0, np.nan) if places else None
    return ArraySource(x, usable), names


def _facts(columns: tuple[str, ...], n: int, given: Any, schema: Schema | None, row_bound: float | None) -> PublicFacts:
    """What is public about the design columns of these columns."""
    public: PublicMoments | None = None
    if given is not None:
        public, _ = moments_of(given, columns, None, schema)
    features = CompleteEncoder.requiring(columns, schema, ()).features
    if n == 0 or len(features) < 2:
        raise InvalidInput(
            f"the table has {'no rows' if n == 0 else 'fewer than two columns'}: there is nothing to regress"
        )
    first = start(features, intercept=True, public=public, schema=schema, row_bound=row_bound)
    return PublicFacts(n, "", first, public, schema)


def _check_kinds(schema: Any, public: Any, ledger: Any, site: Any) -> None:
    """Refuse parameters of another type than documented."""
    check_kind("schema", schema)
    check_kind("ledger", ledger)
    if public is not None and not is_public(public):
        raise InvalidInput(f"public= takes a PublicMoments, or a table or file of public rows, not {type_of(public)}")
    if not isinstance(site, str) or not site.isprintable():
        raise InvalidInput(f"site= takes a name in one line, not {one_line(site)}")

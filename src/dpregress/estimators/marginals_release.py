"""The spine of every release of marginals: public facts, charge, ask, estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dpregress.accounting import (
    GDP,
    ZCDP,
    Event,
    Ledger,
    PrivacyStatement,
    Relation,
    Request,
    gaussian_promise,
    split,
    zcdp_promise,
)
from dpregress.accounting.names import note_of
from dpregress.coordinates import Domain
from dpregress.errors import check_choice
from dpregress.estimators.parameters import checked_budget
from dpregress.estimators.progress import check_progress, reported
from dpregress.estimators.training import ready_rows
from dpregress.inputs.coded import coded_source
from dpregress.inputs.described import described_table
from dpregress.inputs.engines import engine_of, stays_in_place
from dpregress.queries import Ask, Query
from dpregress.releases import Marginals
from dpregress.rows.engines import Progress
from dpregress.rows.memory import check_release_fits
from dpregress.solvers.marginals.aim import AIM
from dpregress.solvers.marginals.narrowing import Narrowing
from dpregress.solvers.marginals.noisy_blocks import NoisyBlocks
from dpregress.solvers.marginals.one_shot_tables import OneShotTables
from dpregress.solvers.marginals.residual_planner import ResidualPlanner
from dpregress.solvers.marginals.tables import TableSolver
from dpregress.solvers.shared.column_values import RANGE_ROUNDS, RANGE_SHARES
from dpregress.trust import Session

TABLE_RECIPES = ("one-shot", "aim", "residuals", "gaussian")
#: Recipes that hold a table of all levels for every pair of columns.
_WHOLE_TABLES = ("aim", "residuals")


@dataclass(frozen=True, eq=False)
class Released:
    """Marginals with the guarantee under which they were released."""

    marginals: Marginals
    privacy: PrivacyStatement


def release_marginals(
    table: Any,
    domain: Domain,
    *,
    privacy: Event,
    recipe: str = "one-shot",
    target: str | None = None,
    ledger: Ledger | None = None,
    random_state: Any = None,
    progress: bool | Progress = True,
    engine: Any = None,
) -> Released:
    """Release the pair tables of a private table; every regression and sampled row after it is free.

    Neighbours differ by one record that is there or not: the number of records is private too, and released.

    Parameters
    ----------
    table : path or table
        A CSV or Parquet file, or a pandas, Polars or Arrow table. Private.
    domain : Domain
        Public; see :func:`dpregress.public.coding.domain_of`.
    privacy : ApproxDP, GDP or ZCDP
        The budget, for adding or removing one record. A promise of zero-concentrated privacy ("aim") covers no GDP.
    recipe : {"one-shot", "aim", "residuals", "gaussian"}
    target : str, optional
        A column to measure with more care; regressions of others stay possible.
    ledger : Ledger, optional
        Of a budget for add-or-remove neighbours.
    random_state : None, int or numpy Generator
    progress : bool or callable, default=True
        A bar on a terminal, nothing, or what is called with (rows done, rows in all) in every pass.
    engine : Engine, str, Dask client or cluster, optional
        Computes the sums, as in ``fit_table``; default: one thread for each processor.

    Raises
    ------
    InvalidInput
        For public facts that do not fit together; nothing is charged then.
    BudgetExceeded
        When the ledger does not hold enough; nothing is charged or read then.
    """
    check_progress(progress)
    engine = engine_of(engine)
    budget = checked_budget(privacy)
    promise, method = _method(recipe, domain, budget, None if target is None else domain.index(target))
    _check_memory(recipe, domain)
    source = coded_source(table, domain, stays=stays_in_place(engine))
    with reported(progress, method.rounds) as report, ready_rows(source, engine, report, method.asks) as rows:
        session = Session.reserve(
            rows,
            promise,
            rounds=method.rounds,
            budget=budget,
            ledger=ledger,
            relation=Relation.ADD_REMOVE,
            note=f"marginals, {recipe}",
            request=Request(
                formula=note_of(f"pair tables of {', '.join(domain.names)}"), source=note_of(described_table(table))
            ),
            random_state=random_state,
        )

        def ask_coded(domain: Domain) -> Ask:
            return replace(session, rows=replace(rows, source=replace(source, domain=domain)))

        marginals = method.estimate(ask_coded)
    return Released(marginals, session.statement(("the columns with their levels and bounds",)))


class _Method(NamedTuple):
    """A method that works in the domain that a narrowing finds, if there is one."""

    solver: Callable[[Domain], TableSolver]
    domain: Domain
    narrowing: Narrowing | None = None

    @property
    def rounds(self) -> int:
        """How often it asks at most."""
        return self.solver(self.domain).rounds + (0 if self.narrowing is None else RANGE_ROUNDS)

    @property
    def asks(self) -> tuple[type[Query[Any]], ...]:
        """The kinds of its questions."""
        return self.solver(self.domain).asks

    def estimate(self, ask_coded: Callable[[Domain], Ask]) -> Marginals:
        """Ask of rows that are coded by a domain, and estimate."""
        if self.narrowing is None:
            return self.solver(self.domain).estimate(ask_coded(self.domain))
        domain, events = self.narrowing.asked(ask_coded)
        marginals = self.solver(domain).estimate(ask_coded(domain))
        return replace(marginals, events=(*events, *marginals.events))


def _method(recipe: str, domain: Domain, budget: Event, target: int | None) -> tuple[Event, _Method]:
    """What the recipe reserves of the budget, and the method."""
    check_choice("recipe", recipe, TABLE_RECIPES)
    if recipe == "aim":
        rho: ZCDP = zcdp_promise(budget)
        return rho, _Method(lambda found: AIM(found, rho), domain)
    whole: GDP = gaussian_promise(budget)
    mu, narrowing = whole, None
    if Narrowing.places_of(domain):
        look, mu = split(whole, RANGE_SHARES)
        narrowing = Narrowing(domain, look, target)
    if recipe == "one-shot":
        return whole, _Method(lambda found: OneShotTables(found, mu, target), domain, narrowing)
    if recipe == "residuals":
        return whole, _Method(lambda found: ResidualPlanner(found, mu, target), domain, narrowing)
    return whole, _Method(lambda found: NoisyBlocks(found, mu), domain, narrowing)


def _check_memory(recipe: str, domain: Domain) -> None:
    """By the levels alone: some recipes hold the cells of every pair, the others moments of encoded columns."""
    sizes, width = domain.sizes, domain.width
    cells = (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2 if recipe in _WHOLE_TABLES else width**2
    what = f"pair tables of {len(sizes)} columns with up to {max(sizes):,} levels by {recipe}"
    check_release_fits(cells, width, what, "release fewer --columns, --bins or levels")

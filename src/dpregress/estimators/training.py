"""What a fit knows of its rows before it charges: where they are, and what is public about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from dpregress.accounting import RECORD, Request, Unit
from dpregress.accounting.names import note_of
from dpregress.inputs.tables import Inputs
from dpregress.public import PublicMoments, Schema
from dpregress.rows import Engine, FormulaEncoder, PrivateRows, Source, ThreadedEngine
from dpregress.rows.engines import Progress


@contextmanager
def ready_rows(
    source: Source,
    engine: Engine | None,
    progress: Progress | None,
    asks: Sequence[type] | None = None,
    pieces: int = 0,
) -> Iterator[PrivateRows]:
    """Private rows with an engine that is ready to answer these kinds of queries, of so many pieces; all are unread."""
    engine = ThreadedEngine() if engine is None else engine
    with (engine if progress is None else engine.reporting(progress)).ready(source, asks, pieces) as ready:
        yield PrivateRows(source, ready)


def formula_text(target: str, names: Sequence[str], exposure: str | None) -> str:
    """A model without a formula of its own, for the ledger.

    Examples
    --------
    >>> formula_text("claims", ("age", "region"), "years")
    'claims ~ age + region, exposure years'
    """
    offset = "" if exposure is None else f", exposure {exposure}"
    return f"{target} ~ {' + '.join(names)}{offset}"


class Training(NamedTuple):
    """Private rows with their unit, what is public about their design columns, and the share of a diagnosis."""

    source: Source
    features: tuple[str, ...]
    target: str
    public: PublicMoments | None
    schema: Schema | None
    intercept: bool
    inputs: Inputs
    unit: Unit = RECORD
    design: FormulaEncoder | None = None
    exposure: str | None = None
    table: str = ""
    origin: str = ""
    diagnose: float = 0.0
    weights: str | None = None

    def rows(
        self, engine: Engine | None, progress: Progress | None, asks: Sequence[type] | None = None, pieces: int = 0
    ) -> AbstractContextManager[PrivateRows]:
        """The rows with an engine that is ready to answer these kinds of queries, of so many pieces; all are unread."""
        return ready_rows(self.source, engine, progress, asks, pieces)

    @property
    def request(self) -> Request:
        """The model and the table, for the ledger."""
        names = self.features if self.inputs.names is None else tuple(map(str, self.inputs.names))
        formula = formula_text(self.target, names if self.intercept else ("0", *names), self.exposure)
        if self.design is not None:
            formula = self.design.text
        surveyed = "" if self.weights is None else f", weights {self.weights}"
        return Request(formula=note_of(f"{formula}{surveyed}"), source=note_of(self.table))

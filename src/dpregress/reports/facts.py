"""What a report says of a fit besides its numbers: the design, where the rows came from, and the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dpregress.accounting import Ledger
from dpregress.display import plain
from dpregress.models.hazards import SURVIVAL
from dpregress.releases.model_files import ResponseModel
from dpregress.reports.summary import Summary


@dataclass(frozen=True)
class Provenance:
    """Where the rows of a fit came from, and when it was made (UTC)."""

    source: str
    fitted: str


def fit_facts(
    summary: Summary,
    *,
    response: ResponseModel | None = None,
    formula: str | None = None,
    levels: Mapping[str, str] | None = None,
    provenance: Provenance | None = None,
    ledgers: Iterable[Ledger] | None = (),
) -> tuple[tuple[str, str], ...]:
    """Names and texts, those of the summary first.

    Parameters
    ----------
    summary : Summary
    response : ResponseModel, optional
    formula : str, optional
    levels : mapping of str to str, optional
        The reference level of every categorical column.
    provenance : Provenance, optional
    ledgers : iterable of Ledger or None
        What they hold now, not when the fit was made; None where the releases were charged elsewhere.
    """
    found = [*summary.facts]
    if formula is not None:
        found.append(("Formula", formula))
    if response is not None and response.classes:
        found.append(("Classes", ", ".join(response.classes)))
    if response is not None and response.exposure is not None and response.family != SURVIVAL:
        found.append(("Exposure", response.exposure))
    if levels:
        found.append(("Reference levels", "; ".join(f"{name}: {level}" for name, level in levels.items())))
    if provenance is not None:
        found += [("Source", provenance.source), ("Fitted", provenance.fitted)]
    if ledgers is not None:
        balances = [("Ledger", ledger.describe()) for ledger in ledgers]
        found += balances or [("Ledger", "none: the spending is not recorded")]
    return tuple((name, plain(text)) for name, text in found)

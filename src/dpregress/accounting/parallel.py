"""The guarantee of releases on different people: parallel composition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpregress.accounting.statement import PrivacyStatement
from dpregress.errors import InvalidInput


def parallel_statement(statements: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """The guarantee of several releases, no two of which are about the same person.

    Replacing a record of one site leaves the rows of the others as they are, so that the joint release loses no more
    than that of this site: every person has the guarantee of their own site, and all of them the weakest one. Source:
    parallel composition (McSherry 2009, Theorem 4); it holds for any notion of neighbours that change one site.

    Parameters
    ----------
    statements : sequence of PrivacyStatement
        One for each site.

    Raises
    ------
    InvalidInput
        For other units or neighbours.
    """
    first = statements[0]
    if len(statements) == 1:
        return first
    if len({(each.unit, each.max_rows_per_unit, each.relation) for each in statements}) > 1:
        raise InvalidInput("sites with different units or neighbours cannot be combined: release again with the same")
    weakest = max(statements, key=lambda each: each.promise.mu)
    facts = dict.fromkeys(fact for each in statements for fact in each.assumed_public)
    return replace(
        weakest,
        assumed_public=(*facts, "that no person is in two of the sites"),
        seeded=any(each.seeded for each in statements),
        recorded=first.recorded if all(each.recorded for each in statements) else None,
    )

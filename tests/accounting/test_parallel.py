"""The guarantee of releases on different people."""

from __future__ import annotations

import math

import pytest

from dpregress.accounting import GDP, ApproxDP, Composed, Event, PrivacyStatement, Relation, parallel_statement
from dpregress.errors import InvalidInput, SeededNoise


def statement(
    budget: Event, *, unit: str = "record", rows: int | None = None, seeded: bool = False
) -> PrivacyStatement:
    mu = GDP(budget.gaussian_mu)
    return PrivacyStatement(
        budget, mu, Composed((mu,)), Relation.REPLACE_ONE, unit, ("the columns",), seeded, "a.db", rows
    )


def test_everybody_has_at_least_the_weakest_sites_guarantee() -> None:
    sites = [statement(GDP(0.5)), statement(ApproxDP(3.0, 1e-6)), statement(GDP(0.1))]
    found = parallel_statement(sites)
    assert found.promise == sites[1].promise
    assert found.budget == ApproxDP(3.0, 1e-6)
    assert math.isclose(found.epsilon(1e-6), sites[1].epsilon(1e-6))
    assert found.assumed_public == ("the columns", "that no person is in two of the sites")
    assert found.recorded == "a.db"


def test_of_one_site_it_is_its_own() -> None:
    only = statement(GDP(0.5))
    assert parallel_statement([only]) is only


def test_one_seeded_site_leaves_nothing_to_report() -> None:
    found = parallel_statement([statement(GDP(0.5)), statement(GDP(0.1), seeded=True)])
    with pytest.raises(SeededNoise):
        found.epsilon(1e-6)


@pytest.mark.parametrize("other", [{"unit": "person", "rows": 2}, {"unit": "house", "rows": 1}])
def test_other_units_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="different units"):
        parallel_statement([statement(GDP(0.5)), statement(GDP(0.5), **other)])  # type: ignore[arg-type]

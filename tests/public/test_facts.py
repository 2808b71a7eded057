"""What a fit says it took as public."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import Numeric, PublicMoments, Schema
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import start

ROWS = np.random.default_rng(0).normal(size=(40, 2))
LABELLED = PublicMoments.from_rows(ROWS, ROWS.sum(axis=1))
SCHEMA = Schema({"x0": Numeric(-9, 9), "x1": Numeric(-9, 9)})


def facts(public: PublicMoments | None, schema: Schema | None, row_bound: float | None = None) -> PublicFacts:
    names = ("x0", "x1")
    found = start(names, intercept=False, public=public, schema=schema, row_bound=row_bound)
    return PublicFacts(100, "y", found, public, schema)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (facts(LABELLED, None), "the moments of 40 public rows with their responses"),
        (facts(LABELLED.unlabelled(), None), "the moments of 40 public rows"),
        (facts(None, SCHEMA), "the bounds, levels and missing rules of the schema"),
        (facts(None, None, 3.0), "the bound on the norm of a row"),
    ],
)
def test_every_fact_in_use_is_named(given: PublicFacts, words: str) -> None:
    assumed = given.assumed_public()
    assert assumed[0] == "the number of private records"
    assert assumed[-1] == words
    assert len(assumed) == 4


def test_labels_are_those_of_the_public_rows() -> None:
    assert facts(LABELLED, None).labels is LABELLED.labels
    assert facts(LABELLED.unlabelled(), None).labels is None
    assert facts(None, SCHEMA).labels is None


def test_public_rows_tell_of_private_ones_in_their_own_coordinates_or_where_there_are_enough() -> None:
    """Coordinates from bounds owe nothing to them; those that private moments refine from their own do."""
    wide = tuple(f"x{i}" for i in range(20))
    bounds = Schema({name: Numeric(-9, 9) for name in wide})
    rng = np.random.default_rng(1)

    def known(rows: int, schema: Schema | None) -> bool:
        public = PublicMoments.from_rows(rng.normal(size=(rows, 20)))
        found = start(wide, intercept=True, public=public, schema=schema, row_bound=None)
        return PublicFacts(100, "y", found, public, schema).known_rows is not None

    assert known(400, bounds)
    assert known(60, bounds)
    assert not known(39, bounds)
    assert not known(60, None)
    assert facts(LABELLED, None).known_rows is LABELLED.rows
    assert facts(None, SCHEMA).known_rows is None

"""Functions in a fixed order of operations are those of a library of mathematics, to within a stated error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import erfcx, ndtr

from dpregress.errors import NotAnswered
from dpregress.models import FAMILIES, Family
from dpregress.models.families import PoissonDistribution
from dpregress.models.links import LogitLink
from dpregress.queries import has_order
from dpregress.queries.ordered_residual import OrderedResidual
from dpregress.rows import OrderedRows
from dpregress.rows.ordered_functions import exponentials, logarithm, normal_tail
from dpregress.rows.row_kernel import Program, Stage, name, run_stages, term
from tests.registry import SPACES


def computed(stages: tuple[Stage, ...], column: str, values: Any) -> Any:
    """A column of stages that start from the column ``z``."""
    found = run_stages(Program.of(({"k": term(1)}, *stages), (column,)).stages, {"z": values}, len(values))
    return found[column]


#: Numbers below that a square may reach, and both zeros.
_TINY = [0.0, -0.0, 2.0**-352, -(2.0**-352), 2.0**-60]


def test_the_exponential() -> None:
    z = np.append(np.linspace(-30, 30, 200_001), _TINY)
    np.testing.assert_allclose(computed(exponentials({"e": name("z")}), "e", z), np.exp(z), rtol=1e-13)


@pytest.mark.parametrize(("least", "most"), [(2.0**-100, 2.0**100), (0.5, 0.7), (1e-4, 1e5), (3.0, 1e20)])
def test_the_logarithm(least: float, most: float) -> None:
    """Also next to powers of two and their roots, where octaves change, and next to 1."""
    ends = 2.0 ** (np.arange(-200, 201) / 2)
    near = [np.nextafter(ends, 0.0), ends, np.nextafter(ends, np.inf)]
    given = np.concatenate([np.geomspace(least, most, 100_001), *near, [least, most]])
    given = given[(given >= least) & (given <= most)]
    found = computed(logarithm("o", name("z"), least, most), "o", given)
    np.testing.assert_allclose(found, np.log(given), rtol=1e-15, atol=2e-16)


def test_the_tail_of_the_normal_distribution() -> None:
    z = np.append(np.linspace(-5, 5, 200_001), _TINY)
    stages, size = normal_tail("z"), np.abs(z)
    np.testing.assert_allclose(computed(stages, "tail", z), ndtr(-size), rtol=1e-13)
    mills = np.sqrt(np.pi / 2) * erfcx(size / np.sqrt(2))
    np.testing.assert_allclose(computed(stages, "mills", z), mills, rtol=1e-14)


def test_every_family_has_an_order() -> None:
    assert all(has_order(family) for offered in FAMILIES.values() for family in offered)


def test_a_family_without_an_order_is_refused() -> None:
    space = SPACES["plain"](np.random.default_rng(0))
    with pytest.raises(NotAnswered, match="a database cannot compute means of poisson with the link logit"):
        OrderedResidual(OrderedRows(space), Family(PoissonDistribution(), LogitLink()), np.zeros(space.order))

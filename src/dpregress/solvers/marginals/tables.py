"""Methods that release pair tables and estimate a table's marginals from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.queries import Ask, Blocks, CentredTables, ModelErrors, PairDistances, Query
from dpregress.releases import Clique, Marginals, Tables

#: A released count below it is taken as it: proportions stay finite.
SMALLEST_COUNT = 1.0


class TableSolver(ABC):
    """A method that asks for tables at most ``rounds`` times, and estimates marginals from the answers."""

    @property
    def asks(self) -> tuple[type[Query[Any]], ...]:
        """The kinds of its questions: functions of counts."""
        return (Blocks, CentredTables, ModelErrors, PairDistances)

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How often it asks at most: known before the data."""

    @abstractmethod
    def estimate(self, ask: Ask) -> Marginals:
        """Ask within the budget given at construction, and estimate."""


class OneWays:
    """Released one-way tables, made distributions that agree on the number of rows.

    Attributes
    ----------
    count : float
    chances : list of ndarray
        Each attribute's noisy counts projected on the simplex, over the count.
    tables : Tables
    """

    def __init__(self, tables: Tables, domain: Domain) -> None:
        self.tables = tables
        totals = np.array([tables.blocks[(j,)].sum() for j in range(len(domain.attributes))])
        precision = np.array([1 / (k * tables.sigmas[(j,)] ** 2) for j, k in enumerate(domain.sizes)])
        self.count = max(float(totals @ precision / precision.sum()), SMALLEST_COUNT)
        self.sigma = float(precision.sum() ** -0.5)
        self.chances = [project(tables.blocks[(j,)] / self.count) for j in range(len(domain.attributes))]

    @classmethod
    def asked(cls, ask: Ask, domain: Domain, spend: GDP) -> OneWays:
        """All one-way tables at one price."""
        cliques: list[Clique] = [(j,) for j in range(len(domain.attributes))]
        return cls(ask(Blocks(domain, cliques), spend), domain)

    def level_error(self, domain: Domain) -> Vector:
        """Standard deviation of each level's noisy count."""
        return np.repeat([self.tables.sigmas[(j,)] for j in range(len(domain.sizes))], domain.sizes)


def moments_of_tables(domain: Domain, count: float, blocks: Mapping[Clique, Matrix]) -> Matrix:
    """Second moments of the design columns, in counts, from one-way tables and the blocks of all pairs."""
    gram = np.zeros((domain.width, domain.width))
    gram[0, 0] = count
    for j, attribute in enumerate(domain.attributes):
        own, encoding, counts = domain.columns_of(j), attribute.encoding, blocks[(j,)]
        gram[own, own] = encoding.T @ (counts[:, None] * encoding)
        gram[0, own] = gram[own, 0] = encoding.T @ counts
    for pair in domain.pairs:
        first, second = (domain.columns_of(attribute) for attribute in pair)
        gram[first, second], gram[second, first] = blocks[pair], blocks[pair].T
    return gram


def project(values: Vector) -> Vector:
    """The nearest point of the probability simplex.

    Examples
    --------
    >>> project(np.array([0.9, 0.3, -0.4])).round(3).tolist()
    [0.8, 0.2, 0.0]
    """
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - excess[np.nonzero(ordered > excess)[0][-1]], 0))

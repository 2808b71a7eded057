"""AIM's published estimator, Private-PGM, from the optional package mbi."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpregress.coordinates import Domain, Matrix
from dpregress.errors import InvalidInput
from dpregress.releases import Clique, Mixture
from dpregress.solvers.marginals.aim import TableEstimator

_ROUND_STEPS, _LAST_STEPS = 1000, 1000
#: Rows drawn from the graphical model that stand for it where a mixture is asked for.
_ROWS = 20_000


class PrivatePGM(TableEstimator):
    """A graphical model fitted by mirror descent in double precision (``pip install 'dpregress[aim]'``, mbi 2).

    Parameters
    ----------
    domain : Domain

    Raises
    ------
    InvalidInput
        Without the package mbi.

    References
    ----------
    McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference.
    """

    def __init__(self, domain: Domain) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of single precision, which is not used here
                import jax
                import mbi
        except ImportError as error:
            raise InvalidInput("Private-PGM comes with the package mbi: pip install 'dpregress[aim]'") from error
        self.domain = domain.nominal
        self._mbi: Any = mbi
        self._double: Any = lambda: jax.enable_x64(True)
        self._names = [f"a{j}" for j in range(len(domain.attributes))]
        self._space: Any = mbi.Domain(self._names, list(domain.sizes))
        self._model: Any = None

    def fit(self, tables: Mapping[Clique, Matrix], sigmas: Mapping[Clique, float], *, last: bool) -> None:
        measured = [
            self._mbi.LinearMeasurement(np.ravel(table), self._clique(clique), stddev=sigmas[clique])
            for clique, table in sorted(tables.items())  # one order of cliques, one compiled program
        ]
        steps = _LAST_STEPS if last else _ROUND_STEPS
        with self._double():
            descent = self._mbi.estimation.MirrorDescent()
            self._model = descent.estimate(self._space, measured, iters=steps, warm_start=self._model)

    def table(self, clique: Clique) -> Matrix:
        shape = tuple(self.domain.sizes[j] for j in clique)
        with self._double():
            if self._model.marginals.supports(self._clique(clique)):
                found = self._model.project(self._clique(clique)).datavector()
                return np.asarray(found, dtype=np.float64).reshape(shape)
            potentials = self._model.potentials.tables.values()
            factors = [(self._places(each), np.asarray(each.values)) for each in potentials]
        return float(self._model.total) * summed_out(factors, clique)

    def _places(self, factor: Any) -> Clique:
        return tuple(map(self._names.index, factor.domain.attributes))

    def size(self, cliques: list[Clique]) -> float:
        named = [self._clique(clique) for clique in cliques]
        return float(self._mbi.junction_tree.hypothetical_model_size(self._space, named))

    def mixture(self) -> Mixture:
        """One component for every synthetic row: their empirical distribution."""
        with self._double():
            drawn = self._model.synthetic_data(_ROWS).to_dict()
        return mixture_of_rows(self.domain, np.column_stack([drawn[name] for name in self._names]))

    def _clique(self, clique: Clique) -> tuple[str, ...]:
        return tuple(self._names[j] for j in clique)


def mixture_of_rows(domain: Domain, rows: NDArray[np.integer[Any]]) -> Mixture:
    """The empirical distribution of coded rows: a component for each.

    Parameters
    ----------
    domain : Domain
    rows : ndarray of shape (rows, attributes)
        Of any type of integers: mbi gives the smallest that holds the levels of an attribute.
    """
    chances = np.zeros((len(rows), domain.levels))
    for j in range(rows.shape[1]):
        chances[np.arange(len(rows)), domain.levels_of(j).start + rows[:, j].astype(np.int64)] = 1.0
    return Mixture(domain, chances)


def summed_out(factors: Sequence[tuple[Clique, Matrix]], kept: Clique) -> Matrix:
    """The table of some attributes of a graphical model, as proportions.

    The other attributes are summed out one after another, the one with the smallest product first. mbi does the same,
    but compiles a program for every table and model, which takes most of a second each.

    Parameters
    ----------
    factors : sequence of clique and ndarray
        Logarithms of the model's factors. Attributes of each clique are in ascending order.
    kept : clique
        In ascending order.
    """
    sizes = {j: k for clique, values in factors for j, k in zip(clique, values.shape, strict=True)}
    left, held = set(sizes) - set(kept), list(factors)
    while left:
        products = {j: set().union(*(clique for clique, _ in held if j in clique)) for j in sorted(left)}
        cells = {j: math.prod(sizes[i] for i in product) for j, product in products.items()}
        least = min(cells, key=cells.__getitem__)
        clique, values = _product([factor for factor in held if least in factor[0]], sizes)
        place = clique.index(least)
        held = [factor for factor in held if least not in factor[0]]
        held.append((clique[:place] + clique[place + 1 :], logsumexp(values, axis=place)))
        left.remove(least)
    values = _product(held, sizes)[1]
    table = np.exp(values - values.max())
    return np.asarray(table / table.sum())


def _product(factors: Sequence[tuple[Clique, Matrix]], sizes: Mapping[int, int]) -> tuple[Clique, Matrix]:
    """Of factors in logarithms: their sum over all attributes that any of them has."""
    clique = tuple(sorted(set().union(*(each for each, _ in factors))))
    shapes = [[sizes[j] if j in each else 1 for j in clique] for each, _ in factors]
    terms = (values.reshape(shape) for (_, values), shape in zip(factors, shapes, strict=True))
    return clique, sum(terms, np.zeros([1] * len(clique)))

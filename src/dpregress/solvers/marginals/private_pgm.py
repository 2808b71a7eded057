"""AIM's published estimator, Private-PGM, from the optional package mbi."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

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
            for clique, table in tables.items()
        ]
        steps = _LAST_STEPS if last else _ROUND_STEPS
        with self._double():
            descent = self._mbi.estimation.MirrorDescent()
            self._model = descent.estimate(self._space, measured, iters=steps, warm_start=self._model)

    def table(self, clique: Clique) -> Matrix:
        shape = tuple(self.domain.sizes[j] for j in clique)
        with self._double():
            return np.asarray(self._model.project(self._clique(clique)).datavector(), dtype=np.float64).reshape(shape)

    def size(self, cliques: list[Clique]) -> float:
        named = [self._clique(clique) for clique in cliques]
        return float(self._mbi.junction_tree.hypothetical_model_size(self._space, named))

    def mixture(self) -> Mixture:
        """One component for every synthetic row: their empirical distribution."""
        with self._double():
            drawn = self._model.synthetic_data(_ROWS).to_dict()
        rows = np.column_stack([drawn[name] for name in self._names])
        chances = np.zeros((len(rows), self.domain.levels))
        for j in range(rows.shape[1]):
            chances[np.arange(len(rows)), self.domain.levels_of(j).start + rows[:, j]] = 1.0
        return Mixture(self.domain, chances)

    def _clique(self, clique: Clique) -> tuple[str, ...]:
        return tuple(self._names[j] for j in clique)

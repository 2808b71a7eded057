"""AIM's published estimator, Private-PGM, from the optional package mbi."""

from __future__ import annotations

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
    """A graphical model fitted by mirror descent (``pip install 'dpregress[aim]'``).

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
            import mbi
        except ImportError as error:
            raise InvalidInput("Private-PGM comes with the package mbi: pip install 'dpregress[aim]'") from error
        self.domain = domain.nominal
        self._mbi: Any = mbi
        self._names = [f"a{j}" for j in range(len(domain.attributes))]
        self._space: Any = mbi.Domain(self._names, list(domain.sizes))
        self._model: Any = None

    def fit(self, tables: Mapping[Clique, Matrix], sigmas: Mapping[Clique, float], *, last: bool) -> None:
        measured = [
            self._mbi.LinearMeasurement(np.ravel(table), self._clique(clique), stddev=sigmas[clique])
            for clique, table in tables.items()
        ]
        potentials = None if self._model is None else self._model.potentials.expand([m.clique for m in measured])
        self._model = self._mbi.estimation.mirror_descent(
            self._space, measured, potentials=potentials, iters=_LAST_STEPS if last else _ROUND_STEPS
        )

    def table(self, clique: Clique) -> Matrix:
        shape = tuple(self.domain.sizes[j] for j in clique)
        return np.asarray(self._model.project(self._clique(clique)).datavector(), dtype=np.float64).reshape(shape)

    def size(self, cliques: list[Clique]) -> float:
        named = [self._clique(clique) for clique in cliques]
        return float(self._mbi.junction_tree.hypothetical_model_size(self._space, named))

    def mixture(self) -> Mixture:
        """One component for every synthetic row: their empirical distribution."""
        rows = np.asarray(self._model.synthetic_data(_ROWS).df[self._names])
        chances = np.zeros((len(rows), self.domain.levels))
        for j in range(rows.shape[1]):
            chances[np.arange(len(rows)), self.domain.levels_of(j).start + rows[:, j]] = 1.0
        return Mixture(self.domain, chances)

    def _clique(self, clique: Clique) -> tuple[str, ...]:
        return tuple(self._names[j] for j in clique)

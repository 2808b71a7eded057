r"""A mixture of products fitted to noisy tables: non-negative, consistent, and a generator of rows.

K components of equal weight; component c draws attribute j from ``softmax(theta_cj)``, independently. Its pair
tables are ``Q_j' Q_k / K``. The fit minimises the squared errors of all measured tables in units of their noise
by Adam, from the one-way tables and a fixed quasi-random perturbation: no randomness is drawn. Stopping early is
what shrinks the fit, from near independence: the less noise, the more steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri

from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.releases import Clique, Mixture

#: Of a mixture, if nothing else is asked for.
COMPONENTS = 100
#: Fewest and most, and how many for a noise that fits once into the number of rows.
_STEPS = (50, 1000)
_STEPS_PER_PRECISION = 1.5
#: Entries of the squared width of a domain, times steps: half a minute of CPU.
_WORK = 6e8
_RATE = 0.1
_SMALLEST_CHANCE = 1e-5
_SPREAD = 0.5


class MixtureFit:
    """The mixture's parameters, improved in place as measurements come in.

    Parameters
    ----------
    domain : Domain
        Pairs are measured in the encoding of its attributes.
    one_ways : sequence of ndarray
        Estimated probabilities of each attribute's levels, to start from.
    components : int
    """

    def __init__(self, domain: Domain, one_ways: list[Vector], components: int = COMPONENTS) -> None:
        self.domain = domain
        start = np.log(np.maximum(np.concatenate(one_ways), _SMALLEST_CHANCE))
        self._theta = start + _SPREAD * _quasi_normal(components, len(start))
        self._starts = np.array([domain.levels_of(j).start for j in range(len(domain.attributes))])
        self._sizes = np.array(domain.sizes)
        self._encoder = np.zeros((domain.levels, domain.width - 1))
        for j, attribute in enumerate(domain.attributes):
            columns = domain.columns_of(j)
            self._encoder[domain.levels_of(j), columns.start - 1 : columns.stop - 1] = attribute.encoding
        self._plain = not any(attribute.numeric for attribute in domain.attributes)

    @property
    def mixture(self) -> Mixture:
        """The mixture as it stands."""
        return Mixture(self.domain, self._chances())

    def fit(
        self,
        tables: Mapping[Clique, Matrix],
        sigmas: Mapping[Clique, float],
        *,
        steps: int | None = None,
        rate: float = _RATE,
    ) -> Mixture:
        """Improve the fit to these tables, all as proportions, with noise of these scales.

        Parameters
        ----------
        tables : mapping of clique to ndarray
        sigmas : mapping of clique to float
        steps : int, optional
            Default: 1.5 times the root mean square over the pairs of 1 / noise, from 50 to 1,000,
            and fewer of very wide domains.
        rate : float
            Adam's first step length; it falls to a tenth.
        """
        width = self.domain.width - 1
        wanted, precision = np.zeros((width, width)), np.zeros((width, width))
        level, level_precision = np.zeros(self.domain.levels), np.zeros(self.domain.levels)
        for clique, table in tables.items():
            weight = sigmas[clique] ** -2.0
            if len(clique) == 1:
                own = self.domain.levels_of(clique[0])
                level[own], level_precision[own] = table, weight
                continue
            j, k = (self._encoded(a) for a in clique)
            wanted[j, k], wanted[k, j] = table, table.T
            precision[j, k] = precision[k, j] = weight
        steps = _steps(sigmas, width) if steps is None else steps
        self._descend(wanted, precision, level, level_precision, steps, rate)
        return self.mixture

    def _encoded(self, attribute: int) -> slice:
        columns = self.domain.columns_of(attribute)
        return slice(columns.start - 1, columns.stop - 1)

    def _descend(
        self, wanted: Matrix, precision: Matrix, level: Vector, level_precision: Vector, steps: int, rate: float
    ) -> None:
        first, second = np.zeros_like(self._theta), np.zeros_like(self._theta)
        components = len(self._theta)
        for step in range(1, steps + 1):
            chances = self._chances()
            design = chances if self._plain else chances @ self._encoder
            errors = design.T @ design
            errors /= components
            errors -= wanted
            errors *= precision
            slope = design @ errors * (2 / components)
            if not self._plain:
                slope = slope @ self._encoder.T
            slope += level_precision * (chances.mean(axis=0) - level) / components
            slope *= chances
            slope -= chances * np.repeat(np.add.reduceat(slope, self._starts, axis=1), self._sizes, axis=1)
            first += 0.1 * (slope - first)
            second += 0.01 * (slope * slope - second)
            length = rate * (1.0 if step <= 0.6 * steps else 0.3 if step <= 0.85 * steps else 0.1)
            scale = length / (1 - 0.9**step) * np.sqrt(1 - 0.99**step)
            self._theta -= scale * first / (np.sqrt(second) + 1e-300)

    def _chances(self) -> Matrix:
        largest = np.repeat(np.maximum.reduceat(self._theta, self._starts, axis=1), self._sizes, axis=1)
        chances = np.exp(self._theta - largest)
        chances /= np.repeat(np.add.reduceat(chances, self._starts, axis=1), self._sizes, axis=1)
        return np.asarray(chances)


def _steps(sigmas: Mapping[Clique, float], width: int) -> int:
    """In proportion to the number of noises of a pair table that go into 1, in the root mean square."""
    precisions = [sigma**-2.0 for clique, sigma in sigmas.items() if len(clique) > 1]
    fewest = _STEPS[0]
    most = int(np.clip(_WORK / width**2, *_STEPS))
    if not precisions:
        return most
    return int(np.clip(_STEPS_PER_PRECISION * np.sqrt(np.mean(precisions)), fewest, most))


def _quasi_normal(rows: int, columns: int) -> Matrix:
    """Numbers that spread like independent normal ones, the same at every call."""
    place = np.arange(1.0, rows * columns + 1)
    uniform = (place * 0.6180339887498949 + 0.5 * np.sin(12.9898 * place)) % 1.0
    return np.asarray(ndtri(0.001 + 0.998 * uniform)).reshape(rows, columns)

"""What the releases of each kind of mechanism look like, as tests of many releases of the same rows.

Each is on the mechanism's line in ``tests/registry.py``. It fails with at most the stated probability, whatever the
seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2

from dpregress.accounting import Relation
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import UnitVector
from dpregress.mechanisms.base import exact_answer
from dpregress.queries import Query
from dpregress.releases import DiscreteLaplaceNoise, Isotropic, PairScores, Release
from dpregress.rows import PrivateRows


@dataclass(frozen=True)
class Case:
    """Releases of one query on the same rows.

    Attributes
    ----------
    layout : callable
        The entries of a release in which the noise is equal.
    draws : int
        How many draws of noise add up in one release.
    """

    query: Query[Any]
    rows: PrivateRows
    spend: Any
    releases: list[Release]
    relation: Relation = Relation.REPLACE_ONE
    layout: Callable[[Any], Vector] = lambda total: total
    draws: int = 1

    @property
    def count(self) -> int:
        """n where it is public, else 0."""
        return self.rows.n if self.relation is Relation.REPLACE_ONE else 0

    def read(self, answer: Vector) -> Vector:
        """An answer without noise, as it is released."""
        noise = Isotropic(1.0)
        return self.layout(self.query.read(answer, n=self.count, noise=noise, events=(self.spend,)).total)


Law = Callable[[Case, float], None]


def check_stated(case: Case) -> None:
    """A release states its price and a public n, and n = 0 where the number of rows is private."""
    for release in case.releases:
        assert release.events == (case.spend,)
        assert case.query.apart or release.n == case.count  # a counted n: tests/queries/test_counted.py


def normal(case: Case, failure: float) -> None:
    """``(release - exact) mu / sensitivity`` is standard normal in every independent entry."""
    check_stated(case)
    sigma = math.sqrt(case.draws) * case.query.sensitivity(case.relation) / case.spend.mu
    exact, found = case.read(exact_answer(case.query, case.rows)), []
    for release in case.releases:
        assert isinstance(release.noise, Isotropic)
        assert math.isclose(release.noise.sigma, sigma, rel_tol=1e-6), "the stated noise law is another"
        # scores are read in other units than the noise was added in
        scale = release.sigmas if isinstance(release, PairScores) else sigma
        found.append((case.layout(release.total) - exact) / scale)
    noise, diagonal = np.array(found), _diagonal(case.releases[0].total)
    check_squares(noise, failure / 3)
    check_squares(noise[:, diagonal], failure / 3)
    check_squares(noise[:, ~diagonal], failure / 3)


def check_squares(noise: Matrix, failure: float) -> None:
    """The sum of squares of standard normals lies between the tails of its law."""
    if noise.size:
        low, high = chi2.ppf(failure / 2, noise.size), chi2.isf(failure / 2, noise.size)
        total = float(np.sum(noise**2))
        assert low < total < high, f"{noise.size} squares add to {total:.0f}, not between {low:.0f} and {high:.0f}"


def _diagonal(total: Vector | Matrix) -> np.ndarray:
    """Which independent entries of a release lie on the diagonal; of a vector, none."""
    if total.ndim == 1:
        return np.zeros(len(total), dtype=bool)
    row, column = np.triu_indices(len(total))
    return row == column


def whole_numbers(case: Case, failure: float) -> None:
    """``release - exact`` is a whole number k with probability proportional to ``exp(-|k| epsilon / sensitivity)``.

    ``|k| = 0`` and sums of ``|k|`` are tested by Bernstein's inequality; the variance is that of the stated law.
    """
    check_stated(case)
    scale = case.query.sensitivity(case.relation) / case.spend.epsilon0
    exact, found = case.read(exact_answer(case.query, case.rows)), []
    for release in case.releases:
        assert isinstance(release.noise, DiscreteLaplaceNoise)
        (stated,) = release.noise.scales
        assert math.isclose(stated, scale, rel_tol=1e-12), "the stated noise law is another"
        found.append(case.layout(release.total) - exact)
    noise = np.concatenate(found)
    assert (noise == np.rint(noise)).all(), "the noise is no whole number"
    q = math.exp(-1 / scale)
    assert math.isclose(case.releases[0].noise.sigma, math.sqrt(2 * q) / (1 - q), rel_tol=1e-9)
    cells = max(2, math.ceil(3 * scale))
    chances = (1 - q) / (1 + q) * q ** np.abs(np.arange(-cells, cells + 1))
    chances = np.append(chances, 1 - chances.sum())  # all that lies beyond
    places = np.where(np.abs(noise) <= cells, noise + cells, 2 * cells + 1).astype(int)
    seen = np.bincount(places, minlength=len(chances)) / len(noise)
    slack = math.log(2 * len(chances) / failure) / len(noise)
    allowed = np.sqrt(2 * slack * chances * (1 - chances)) + 2 / 3 * slack
    assert (np.abs(seen - chances) <= allowed).all(), f"frequencies {seen}, expected {chances}"


def choices(case: Case, failure: float) -> None:
    """Candidate r is chosen as often as ``exp(eps q_r / (2 Delta))`` says, each frequency within Bernstein's bound."""
    check_stated(case)
    quality, delta = exact_answer(case.query, case.rows), case.query.sensitivity(case.relation)
    chances = softmax(math.sqrt(8 * case.spend.rho) * quality / (2 * delta))
    chosen = np.array([int(release.total[0]) for release in case.releases])
    seen = np.bincount(chosen, minlength=len(chances)) / len(chosen)
    slack = math.log(2 * len(chances) / failure) / len(chosen)
    allowed = np.sqrt(2 * slack * chances * (1 - chances)) + 2 / 3 * slack
    assert (np.abs(seen - chances) <= allowed).all(), f"frequencies {seen}, expected {chances}"


def unit_messages(case: Case, failure: float) -> None:
    """The sum of randomised unit vectors is unbiased in every entry, by Hoeffding's inequality, and no longer than n.

    A message has the norm ``B / g`` whatever the row is.
    """
    check_stated(case)
    unit, law = UnitVector(case.spend).law(case.query, case.rows.n)
    exact = case.read(exact_answer(case.query, case.rows))
    totals = np.array([case.layout(release.total) for release in case.releases])
    assert all(release.noise == law for release in case.releases)
    assert (np.linalg.norm(totals, axis=1) <= case.rows.n * unit * (1 + 1e-9)).all()
    messages = len(totals) * case.rows.n
    allowed = case.rows.n * unit * math.sqrt(2 * math.log(2 * len(exact) / failure) / messages)
    assert (np.abs(totals.mean(axis=0) - exact) <= allowed).all(), "the answer is biased"

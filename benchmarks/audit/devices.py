"""The audit of what one user's device sends: its own row decides, and nobody else's."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import pdist, squareform

from benchmarks.audit.attack import Attack, Audit, Outcome, Pair, claimed
from benchmarks.audit.cells import Rng
from dpregress import GDP, ApproxDP, LocalGLM, PublicMoments
from dpregress.accounting import Event, PureDP
from dpregress.accounting.caps import Cap
from dpregress.collector import Study
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import SeededSampler, UnitVector
from dpregress.mechanisms.integers import IntegerGaussian
from dpregress.rows import RawRows

#: Users that messages are planned for, public rows, and rows that a search tries.
_USERS, _PUBLIC, _ROWS = 10_000, 200, 1_000
_FEATURES = ("x0", "x1")


@dataclass(frozen=True)
class DeviceAudit(Audit):
    """A report on one row or on another.

    Parameters
    ----------
    recipe : str
        That of :class:`~dpregress.LocalGLM`.
    budget : ApproxDP
        Of a message.
    """

    recipe: str
    budget: ApproxDP
    reason: str = ""

    @property
    def name(self) -> str:
        return f"a device's report, {self.recipe}"

    @property
    def claim(self) -> Event:
        return self.study.spend

    @cached_property
    def study(self) -> Study:
        """What is asked of the users."""
        model = LocalGLM(self.budget, recipe=self.recipe)
        if self.recipe == "joint":
            model.set_params(row_bound=2.0)
        else:
            model.set_params(public=PublicMoments.from_rows(np.random.default_rng(0).normal(size=(_PUBLIC, 2))))
        return Study.of(model.plan(_FEATURES, n=_USERS), "An audit")

    def values(self, rows: Matrix) -> Matrix:
        """What is asked of each row, bounded as on the device."""
        query = self.study.query
        return query.each(query.row_map(RawRows(rows[:, :-1], rows[:, -1])))

    def search(self, seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(_ROWS, len(_FEATURES))) * 10.0 ** rng.uniform(-1, 6, size=(_ROWS, 1))
        rows = np.vstack([np.column_stack([sign * x, np.full(_ROWS, y)]) for sign in (-1, 1) for y in (0.0, 1.0)])
        apart = squareform(pdist(self.values(rows)))
        one, other = np.unravel_index(int(np.argmax(apart)), apart.shape)
        return Pair(rows[one], rows[other])

    def attack(self, pair: Pair) -> Attack:
        assert pair.other is not None
        kind = _UnitVectorAttack if isinstance(self.claim, PureDP) else _GaussianAttack
        return kind(self, [pair.row, pair.other])


class _Attack(Attack):
    """Reports on either row, and the values from which they are made."""

    def __init__(self, audit: DeviceAudit, rows: list[Vector]) -> None:
        self.study, self.claim = audit.study, audit.claim
        self.rows = rows
        self.values = audit.values(np.array(rows))

    def run(self, rng: Rng) -> Outcome:
        which = int(rng.random() < 0.5)
        row = self.rows[which]
        answer = self.study.answer(row[:-1], float(row[-1]), SeededSampler(rng)).astype(np.float64)
        guess = self.guess(answer)
        return Outcome(None if guess is None else guess == which, self.reach, claimed(self.claim))

    @property
    @abstractmethod
    def reach(self) -> float:
        """The exact part of the claim that reports on these rows reveal."""

    @abstractmethod
    def guess(self, answer: Vector) -> int | None:
        """Which row it was; None where that cannot be told."""


class _GaussianAttack(_Attack):
    """Integer noise: the nearer value is likelier."""

    @cached_property
    def _steps(self) -> Matrix:
        return np.trunc(np.ldexp(self.values, self.study.bits))

    @cached_property
    def reach(self) -> float:
        assert isinstance(self.study.randomiser, IntegerGaussian)
        apart = float(np.linalg.norm(self._steps[1] - self._steps[0]))
        return apart / self.study.randomiser.scale / self.claim.mu

    def guess(self, answer: Vector) -> int | None:
        return int(np.argmin(np.sum((self._steps - answer) ** 2, axis=1)))


class _UnitVectorAttack(_Attack):
    """Unit vectors: a report in the cap of one value and not of the other is ``e^epsilon`` times likelier from it."""

    @cached_property
    def _cap(self) -> Cap:
        assert isinstance(self.study.randomiser, UnitVector)
        return self.study.randomiser.cap(self.values.shape[1])

    @cached_property
    def reach(self) -> float:
        """The largest log likelihood ratio, over epsilon, of values at the bound; those of others are mixtures."""
        lengths = np.linalg.norm(self.values, axis=1) / self.study.query.contribution()
        assert isinstance(self.claim, PureDP)
        high, low = 1.0, np.exp(-self._cap.epsilon)
        (one, other) = (((1 + length) / 2, (1 - length) / 2) for length in lengths)
        return float(np.log((one[0] * high + one[1] * low) / (other[0] * low + other[1] * high)) / self.claim.epsilon0)

    def guess(self, answer: Vector) -> int | None:
        lengths = np.linalg.norm(self.values, axis=1) * np.linalg.norm(answer)
        inside = self.values @ answer / lengths >= self._cap.gamma
        return None if inside[0] == inside[1] else int(np.argmax(inside))


#: With these budgets the claims are epsilon = 1 of unit vectors, and mu = 1 of Gaussian messages.
DEVICES = (
    DeviceAudit("unit-vector", ApproxDP(1.0, 1e-6)),
    DeviceAudit("gaussian", ApproxDP(GDP(1.0).epsilon(1e-6), 1e-6)),
    DeviceAudit("joint", ApproxDP(GDP(1.0).epsilon(1e-6), 1e-6)),
)

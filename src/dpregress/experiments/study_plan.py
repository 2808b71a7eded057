"""The expected standard errors of a study, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm

from dpregress.accounting import ApproxDP, Event
from dpregress.coordinates import Vector
from dpregress.display import ShownInShort, plain
from dpregress.errors import InvalidInput, NotAvailable, check_choice, one_line
from dpregress.reports.chart import dot_plot
from dpregress.reports.render import drawing

#: Rounds and relative accuracy of the search for n or epsilon.
_ROUNDS, _CLOSE = 6, 0.02


def check_effect(effect: float) -> None:
    """Refuse a size of a coefficient that has no power."""
    if not math.isfinite(effect):
        raise InvalidInput(f"effect takes a finite size of a coefficient, not {one_line(effect)}")


def check_width(width: float, level: float = 0.95) -> None:
    """Refuse an interval that no study has."""
    if not 0 < width < math.inf or not 0 < level < 1:
        raise InvalidInput("give a finite width above 0 and a level between 0 and 1")


@dataclass(frozen=True, eq=False, repr=False)
class Plan(ShownInShort):
    """Expected standard errors of a study.

    Parameters
    ----------
    names : tuple of str
        The intercept, then the design columns.
    n : int
    privacy : Event
    family : str
    basis : str
        On what it rests, in words.
    sampling, privacy_error : mapping of str to ndarray of shape (k,)
        For each trust model, the parts of the standard errors that are due to sampling and to privacy noise; infinite
        for a coefficient that the fit would not identify.
    pilot : callable
        A fit to artificial rows, for a trust model, a number of rows and a budget.
    """

    names: tuple[str, ...]
    n: int
    privacy: Event
    family: str
    basis: str
    sampling: Mapping[str, Vector]
    privacy_error: Mapping[str, Vector]
    pilot: Callable[[str, int, Event], tuple[Vector, Vector]]

    def bse(self, trust: str = "central") -> Vector:
        """Expected standard errors, of shape (k,)."""
        check_choice("trust", trust, tuple(self.sampling))
        return np.hypot(self.sampling[trust], self.privacy_error[trust])

    def rows_of(self, trust: str) -> list[tuple[str, float, float, float]]:
        """Each name with its standard error and the parts due to sampling and to privacy noise."""
        parts = (self.bse(trust).tolist(), self.sampling[trust].tolist(), self.privacy_error[trust].tolist())
        return list(zip(self.names, *parts, strict=True))

    def power(self, effect: float, *, trust: str = "central", alpha: float = 0.05) -> Vector:
        """The probability that a two-sided test finds a coefficient of this size, of shape (k,)."""
        check_effect(effect)
        ratio, reach = abs(effect) / self.bse(trust), float(ndtri(1 - alpha / 2))
        return np.asarray(norm.sf(reach - ratio) + norm.cdf(-reach - ratio))

    def rows_for(self, width: float, name: str, *, trust: str = "central", level: float = 0.95) -> int:
        """The smallest number of rows at which the interval of a coefficient has this whole width.

        Parameters
        ----------
        width : float
        name : str
        trust : str
        level : float
        """
        target, place = self._target(width, name, level), self.names.index(name)
        n, done, tried = self.n, 0, dict[int, float]()
        for _ in range(_ROUNDS):
            sampling, noise = (each[place] for each in self.pilot(trust, n, self.privacy))
            power = 1 if trust == "local" else 2
            a, b = sampling**2 * n, noise**2 * float(n) ** power
            if not math.isfinite(sampling):
                n, done = 4 * n, 0
                continue
            tried[n] = math.hypot(sampling, noise) / target
            if tried[n] <= 1 + _CLOSE / 4 and done and abs(n / done - 1) < _CLOSE:
                return n
            # a / n + b / n^power = target^2
            root = (a + math.sqrt(a * a + 4 * b * target**2)) / (2 * target**2) if power == 2 else (a + b) / target**2
            n, done = max(math.ceil(root), 2 * len(self.names)), n
        # pilots differ by chance, and rounds need not settle: the number that came nearest is one that was tried
        return min(tried, key=lambda rows: abs(math.log(tried[rows])), default=n)

    def epsilon_for(self, width: float, name: str, *, trust: str = "central", level: float = 0.95) -> float:
        """The smallest epsilon, at the delta of the budget, for an interval of this width; infinite if n is too small.

        Parameters
        ----------
        width : float
        name : str
        trust : str
        level : float
        """
        if not isinstance(self.privacy, ApproxDP):
            raise InvalidInput("epsilon_for needs a budget with a delta: plan with ApproxDP(epsilon, delta)")
        target, place, delta = self._target(width, name, level), self.names.index(name), self.privacy.delta0
        if self.pilot(trust, self.n, ApproxDP(100.0, delta))[0][place] >= target:
            return math.inf
        low, high = math.log(1e-3), math.log(100.0)
        while high - low > _CLOSE:
            middle = (low + high) / 2
            try:
                found = math.hypot(
                    *(each[place] for each in self.pilot(trust, self.n, ApproxDP(math.exp(middle), delta)))
                )
            except NotAvailable:
                found = math.inf
            low, high = (middle, high) if found > target else (low, middle)
        return math.exp(high)

    def _target(self, width: float, name: str, level: float) -> float:
        if name not in self.names:
            raise InvalidInput(f"{one_line(name)} is no coefficient of the plan: choose from {', '.join(self.names)}")
        check_width(width, level)
        return width / 2 / float(ndtri((1 + level) / 2))

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each coefficient and trust model."""
        import pandas as pd

        rows = [(trust, *row) for trust in self.sampling for row in self.rows_of(trust)]
        return pd.DataFrame(rows, columns=["trust", "name", "std err", "sampling", "privacy"])

    def _described(self) -> str:
        return f"Expected standard errors, {self.family}, n = {self.n:,}, {self.privacy}; {self.basis}"

    def __str__(self) -> str:
        lines = [self._described()]
        width = max(map(len, map(plain, self.names)))
        for trust in self.sampling:
            lines.append(f"{trust:{width}}  {'std err':>10}  {'sampling':>10}  {'privacy':>10}")
            for name, *values in self.rows_of(trust):
                lines.append(f"{plain(name):{width}}  " + "  ".join(f"{value:10.4g}" for value in values))
        return "\n".join(lines)

    def picture(self, title: str = "Plan", notes: Sequence[str] = (), table: Sequence[Sequence[str]] = ()) -> str:
        """A page with the standard errors of all coefficients by trust model, as HTML text with an SVG chart.

        Parameters
        ----------
        title : str
        notes : sequence of str
            More sentences.
        table : sequence of sequence of str
            A header and rows to show below the chart.
        """
        errors = {trust: self.bse(trust) for trust in self.sampling}
        plot = dot_plot("Expected standard errors", "standard error, logarithmic axis", self.names, errors)
        return drawing(title, plot, [f"{self._described()}.", *notes], table)

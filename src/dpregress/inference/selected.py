"""The model that a selection of columns ends in, with intervals and p-values that count the choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpregress.coordinates import Matrix, Vector
from dpregress.display import OF_ENDS, ShownInShort, how_many, p_value, plain, some_of, text_table, to_its_error
from dpregress.inference.intervals import checked_level, interval_ends, ratio_of, standard_errors
from dpregress.inference.simultaneous import Simultaneous
from dpregress.releases import Estimates


@dataclass(frozen=True, eq=False, repr=False)
class SelectedModel(ShownInShort):
    """A submodel that was chosen by looking at the estimates, with intervals that count the choice.

    Parameters
    ----------
    names : tuple of str
        The columns that were kept.
    estimates : Estimates
        Of the submodel; its standard errors do not know of the choice.
    law : Simultaneous
    unidentified : tuple of str
        The columns about which too little is known to select among them.
    """

    names: tuple[str, ...]
    estimates: Estimates
    law: Simultaneous
    unidentified: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """How the choice is counted in 95% intervals."""
        return self.said_of(0.95)

    def said_of(self, level: float) -> str:
        """How the choice is counted in intervals of this level, and in p-values."""
        bound = "" if self.law.exact else " (Scheffe's bound)"
        return (
            f"After selection, {100 * level:.4g}% intervals hold simultaneously for all submodels of "
            f"{how_many(self.law.columns, 'column')}{bound}; p-values are adjusted likewise."
        )

    @property
    def left_out(self) -> str:
        """That some columns were not part of the selection; empty where all were."""
        if not self.unidentified:
            return ""
        names = ", ".join(map(plain, self.unidentified))
        return f"Left out of the selection, because they are not identified (they stay in the model): {names}."

    def conf_int(
        self, significance: float | None = None, /, *, level: float | None = None, alpha: float | None = None
    ) -> Matrix:
        """Intervals of the kept slopes, of shape (k, 2), that hold however the columns were chosen.

        Parameters
        ----------
        significance : float, optional
            alpha by position, as in statsmodels; from .5 on it is refused.
        level : float, default=0.95
        alpha : float, optional
            ``1 - level``.
        """
        if not self.names:
            return np.empty((0, 2))
        reach = self.law.critical(checked_level(level, alpha, significance)) * self.bse
        return np.column_stack([self.coef - reach, self.coef + reach])

    @property
    def pvalues(self) -> Vector:
        """p-values of the kept slopes, corrected for the choice among all submodels."""
        return np.array([1 - self.law.chance(abs(float(ratio))) for ratio in self.coef / self.bse])

    def to_frame(self) -> Any:
        """A pandas DataFrame of the kept slopes with errors, corrected p-values and 95% intervals."""
        import pandas as pd

        lower, upper = self.conf_int().T
        columns = {"coef": self.coef, "std err": self.bse, "P (adjusted)": self.pvalues}
        return pd.DataFrame({**columns, "lower": lower, "upper": upper}, index=list(self.names))

    def _in_short(self) -> str:
        return f"of {len(self.names)} columns: {some_of(self.names)}" if self.names else "without columns"

    def header(self, level: float) -> tuple[str, ...]:
        """What the columns of :meth:`rows` are."""
        ratio = ratio_of(self.estimates.df)
        return ("", "coef", "std err", f"P>|{ratio}| (adjusted)", *interval_ends(level))

    def rows(self, level: float) -> list[list[str]]:
        """The kept columns with errors, adjusted p-values and intervals of this level as text."""
        rows = zip(self.names, self.coef, self.bse, self.pvalues, *self.conf_int(level=level).T, strict=True)
        return [
            [
                name,
                to_its_error(coef, se),
                to_its_error(se, se),
                p_value(chance),
                *(to_its_error(end, se, OF_ENDS) for end in ends),
            ]
            for name, coef, se, chance, *ends in rows
        ]

    def __str__(self) -> str:
        said = [text_table(self.header(0.95), self.rows(0.95)), self.note, *filter(None, [self.left_out])]
        return "\n".join(said)

    @property
    def coef(self) -> Vector:
        """The kept slopes, of shape (k,)."""
        return self.estimates.estimate[self.estimates.places(self.names)]

    @property
    def bse(self) -> Vector:
        """Their standard errors, which do not know of the choice."""
        return standard_errors(self.estimates)[self.estimates.places(self.names)]

"""Regressions on coded tables as in Ferrando and Sheldon (2024): the task, a random split and the paper's design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import rankdata

from dpregress.baselines import least_squares, scored_fit
from dpregress.coordinates import Domain, Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.experiments.own_tables import enough_rows, is_level, numbers_of, table_with
from dpregress.models import BinomialFamily
from dpregress.public import Schema
from dpregress.public.coding import domain_of
from dpregress.releases.marginals import encoded_design

_TRAIN, _TEST = 50_000, 1_000
_ADULT = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_ACS = ("AGEP", "WKHP", "JWMNP", "PINCP")
_TAXI = ("fare", "tips", "trip_total", "trip_seconds", "trip_miles")


@dataclass(frozen=True)
class CodedTask:
    """A regression on a data set.

    Parameters
    ----------
    table, target : str
    numeric : sequence of str
        Columns whose codes are numbers; others are classes.
    family : {"gaussian", "binomial"}
    cut : int, optional
        The target is 1 from this code on.
    """

    table: str
    target: str
    numeric: Sequence[str]
    family: str = "gaussian"
    cut: int | None = None

    def __str__(self) -> str:
        return f"{self.table}, {self.target}" + ("" if self.cut is None else f" from {self.cut}")


TASKS = (
    CodedTask("adult_discretized", "education-num", _ADULT),
    CodedTask("acs_income", "PINCP", _ACS),
    CodedTask("fire", "Priority", ("Priority",)),
    CodedTask("nist_taxi", "trip_total", _TAXI),
    CodedTask("adult_discretized", "income>50K", _ADULT, "binomial"),
    CodedTask("acs_income", "PINCP", _ACS[:3], "binomial", 10),
    CodedTask("acs_employment", "ESR", _ACS, "binomial"),
    CodedTask("acs_mobility", "MIG", _ACS, "binomial"),
    CodedTask("acs_public_coverage", "PUBCOV", _ACS, "binomial"),
)


@dataclass(frozen=True, eq=False)
class CodedSplit:
    """Codes of training and test rows of a task, with the paper's design."""

    task: CodedTask
    schema: Schema
    domain: Domain
    train: Matrix
    test: Matrix

    @classmethod
    def of(cls, task: CodedTask, rng: np.random.Generator) -> CodedSplit:
        """A random split: 1,000 test rows, at most 50,000 training rows."""
        table = table_with(task.table, [task.target])
        cells = numbers_of(task.table, table, table.column_names)
        enough_rows(task.table, len(cells), 2 * _TEST)
        codes: Any = cells.astype(np.int64)
        if (codes != cells).any() or codes.min() < 0:
            raise InvalidInput(
                f"{task.table}.parquet needs codes 0, 1, 2, .. in all columns: code it as its source does"
            )
        target = codes[:, table.column_names.index(task.target)]
        if task.cut is not None:
            target[:] = target >= task.cut
        if task.family == "binomial":
            is_level(task.table, pa.table({task.target: target}), task.target, 1, (0, 1))
        levels = {name: range(int(top) + 1) for name, top in zip(table.column_names, codes.max(axis=0), strict=True)}
        schema = Schema.from_levels(levels, numeric=[name for name in task.numeric if name in levels])
        order = rng.permutation(len(codes))
        train, test = codes[order[_TEST : _TEST + _TRAIN]], codes[order[:_TEST]]
        return cls(task, schema, domain_of(schema), train, test)

    def table(self, codes: Matrix) -> pa.Table:
        """Codes as a table."""
        return pa.table({name: codes[:, j] for j, name in enumerate(self.domain.names)})

    @property
    def place(self) -> int:
        """The target's."""
        return self.domain.index(self.task.target)

    def design(self, codes: Matrix) -> Matrix:
        """The paper's: no intercept."""
        features = [name for name in self.domain.names if name != self.task.target]
        return encoded_design(self.domain, codes, features)[:, 1:]

    def response(self, codes: Matrix) -> Vector:
        """In [-1, 1]."""
        return 2 * codes[:, self.place] / (self.domain.sizes[self.place] - 1) - 1

    def score(self, predicted: Vector) -> float:
        """Mean squared error of a number in [-1, 1], area under the curve of a class."""
        truth = self.response(self.test)
        if self.task.family == "gaussian":
            return float(np.mean((truth - predicted) ** 2))
        positive = truth > 0
        ranks = rankdata(predicted)
        count = int(positive.sum())
        return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(truth) - count)))

    def without_privacy(self) -> tuple[float, float, float]:
        """Non-private fits in the paper's design and with an intercept, and predicting the same for everybody."""
        x, y = self.design(self.train), self.response(self.train)
        test = self.design(self.test)
        if self.task.family == "gaussian":
            coef = np.linalg.lstsq(x, y, rcond=None)[0]
            fitted = self.score(least_squares(x, y).predict(test))
            return self.score(test @ coef), fitted, self.score(np.full(len(self.test), y.mean()))
        fitted = self.score(scored_fit(x, (y > 0).astype(float), BinomialFamily).predict(test))
        return fitted, fitted, 0.5

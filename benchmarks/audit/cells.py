"""The fits that are audited: every estimator's default in every trust model, each on a small table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress import (
    GDP,
    ZCDP,
    DPGammaRegressor,
    DPGLMRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSurvival,
    MarginalsRegression,
    Numeric,
    PublicMoments,
    Schema,
    VerticalRegression,
)
from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector
from dpregress.rows import RawRows

Rng = np.random.Generator
#: mu of every claim; for AIM rho-zCDP with rho = mu^2 / 2.
MU = 1.0
_CLAIM = GDP(MU)
#: Rows of the table, public rows, and rows of the pair tables.
N, PUBLIC, CODED = 1_000, 40, 400
_SEED = 20261122
#: Slopes of the known rows, whose columns are the features and then the response.
_SLOPES = np.array([0.4, -0.2])
#: Where it is not N rows.
_ROWS = {"many classes": 3_000, "many rows": 3_000}
#: Where it is not PUBLIC public rows.
_PUBLIC_ROWS = {"told classes": 400, "fewer told classes": 400}
#: The share of rows whose class their second feature tells.
_TOLD = {"told classes": 0.4, "fewer told classes": 0.25}

Draw = Callable[[Rng, Vector], Vector]


@dataclass(frozen=True)
class Cell:
    """A fit of one kind, with the rows that everybody knows.

    Attributes
    ----------
    name : str
    kind : type
        The estimator.
    fit : callable
        Fits a table, a matrix of rows, with the noise of a generator.
    others : callable
        All rows but the attacked one, from a generator.
    draw : callable
        Random rows that may be attacked: from a generator and a number of rows.
    move : callable or None
        Rows like a row, from a generator, the row, a step and a number of rows; None where rows are drawn from few.
    add : bool
        Whether the neighbour lacks the row, instead of having another one.
    layout : callable
        What a session sees of such rows, from the rows and the number of the session.
    most : int
        k, how many rows of the attacked unit count; it has twice as many if that is more than 1.
    parties : int
    reason : str
        Why an attack finds less than nine tenths of the claim; may be empty.
    promise : Event
    """

    name: str
    kind: type[Any]
    fit: Callable[[Matrix, Rng], object]
    others: Callable[[Rng], Matrix]
    draw: Callable[[Rng, int], Matrix]
    move: Callable[[Rng, Vector, float, int], Matrix] | None
    layout: Callable[[Matrix, int], RawRows]
    add: bool = False
    most: int = 1
    parties: int = 1
    reason: str = ""
    promise: Event = _CLAIM

    @cached_property
    def known(self) -> Matrix:
        """All rows but the attacked one."""
        return self.others(np.random.default_rng(_SEED))

    def table(self, row: Vector | None) -> Matrix:
        """The table with this row of the attacked unit first; without it if there is none."""
        own = [] if row is None else [row] * rows_of_unit(self.most)
        return np.vstack([*own, self.known])

    def __str__(self) -> str:
        return self.name


def rows_of_unit(most: int) -> int:
    """How many rows the attacked unit has."""
    return 1 if most == 1 else 2 * most


# ---------------------------------------------------------------- rows of numbers

_DRAWS: dict[str, Draw] = {
    "linear": lambda rng, eta: eta + 0.5 * rng.normal(size=len(eta)),
    "poisson": lambda rng, eta: rng.poisson(np.exp(0.5 + 2 * eta)).astype(np.float64),
    "gamma": lambda rng, eta: rng.gamma(2.0, np.exp(2 * eta) / 2),
}
#: How many classes a response has; 0 for a number.
_CLASSES = {"told classes": 2, "fewer told classes": 2, "many rows": 2, "many classes": 3}


def _table(kind: str, rows: int, rng: Rng) -> Matrix:
    classes = _CLASSES.get(kind, 0)
    if classes:  # every row with every class: no slopes, so that no class is predicted well
        x = np.repeat(rng.uniform(-1, 1, size=(math.ceil(rows / classes), len(_SLOPES))), classes, axis=0)[:rows]
        y = np.arange(rows) % classes
        if kind in _TOLD:  # so that predictions differ between rows that score and Gram matrix take for alike
            x[:, 1] = np.where(np.arange(rows) < _TOLD[kind] * rows, 2 * y - 1, 0)
        return np.column_stack([x, y]).astype(np.float64)
    x = rng.uniform(-1, 1, size=(rows, len(_SLOPES)))
    return np.column_stack([x, _DRAWS[kind](rng, x @ _SLOPES)])


def _far_rows(kind: str, rng: Rng, rows: int) -> Matrix:
    """Rows in all directions, of all sizes, with responses of all sizes."""
    x = rng.normal(size=(rows, len(_SLOPES)))
    x *= (10.0 ** rng.uniform(-1, 6, size=rows) / np.linalg.norm(x, axis=1))[:, None]
    return np.column_stack([x, _far_responses(kind, rng, rows)])


def _far_responses(kind: str, rng: Rng, rows: int) -> Vector:
    classes = _CLASSES.get(kind, 0)
    if classes:
        return rng.integers(classes, size=rows).astype(np.float64)
    size = rng.choice([0.0, 1.0], size=rows, p=[0.2, 0.8]) * 10.0 ** rng.uniform(-2, 12, size=rows)
    return np.asarray(size * rng.choice([-1.0, 1.0], size=rows))


def _moved(kind: str, rng: Rng, row: Vector, step: float, rows: int) -> Matrix:
    """Rows like this one: turned, longer or shorter, with a larger, smaller or another response."""
    x, y = row[:-1], row[-1]
    length = float(np.linalg.norm(x))
    new = x / length + step * rng.normal(size=(rows, len(x)))
    new *= (length * np.exp(3 * step * rng.normal(size=rows)) / np.linalg.norm(new, axis=1))[:, None]
    response = np.full(rows, y)
    if kind not in _CLASSES:
        response *= np.exp(5 * step * rng.normal(size=rows)) * np.where(rng.random(rows) < 0.1, -1, 1)
    other = rng.random(rows) < 0.1
    response[other] = _far_responses(kind, rng, int(other.sum()))
    return np.column_stack([new, response])


def _public(kind: str) -> PublicMoments:
    table = _table(kind, _PUBLIC_ROWS.get(kind, PUBLIC), np.random.default_rng(_SEED + 1))
    return PublicMoments.from_rows(table[:, :-1], table[:, -1])


def _facts(kind: str, public: str) -> dict[str, Any]:
    if public == "schema":
        columns = {f"x{i}": Numeric(-1, 1) for i in range(len(_SLOPES))}
        return {"schema": Schema({**columns, "y": Numeric(-4, 4)} if kind == "linear" else columns)}
    return {"public": _public(kind) if public == "labelled" else _public(kind).unlabelled()}


def _fit_central(kind: type[Any], parameters: dict[str, Any], most: int, table: Matrix, rng: Rng) -> None:
    """Fit the table, in units of ``most`` rows; the first unit has twice as many, of which half count."""
    more: dict[str, Any] = {}
    if most > 1:
        more = {"unit": [max(0, i // most - 1) for i in range(len(table))], "max_rows_per_unit": most}
    model = kind(privacy=GDP(MU), random_state=rng, **parameters)
    model.fit(table[:, :-1], table[:, -1], progress=False, **more)


def _central(name: str, kind: type[Any], data: str, public: str, *, most: int = 1, **more: Any) -> Cell:
    reason = more.pop("reason", "")
    if _CLASSES.get(data, 0) > 2:
        more["classes"] = tuple(range(_CLASSES[data]))
    return Cell(
        name=f"{name}, {public}" + (f", units of {most} rows" if most > 1 else ""),
        kind=kind,
        fit=partial(_fit_central, kind, {**_facts(data, public), **more}, most),
        others=partial(_table, data, _ROWS.get(data, N) - rows_of_unit(most)),
        draw=partial(_far_rows, data),
        move=partial(_moved, data),
        layout=lambda rows, _: RawRows(rows[:, :-1], rows[:, -1]),
        most=most,
        reason=reason,
    )


# ---------------------------------------------------------------- persons with an event time

_CUTS = (0.5, 1.0, 2.0)


def _persons(rng: Rng, rows: int) -> Matrix:
    """Features, event and time."""
    x = rng.uniform(-1, 1, size=(rows, len(_SLOPES)))
    life, end = rng.exponential(np.exp(-x @ _SLOPES)), rng.uniform(0, 2, size=rows)
    return np.column_stack([x, life <= end, np.minimum(life, end)])


def _fit_survival(table: Matrix, rng: Rng) -> None:
    public = PublicMoments.from_rows(_persons(np.random.default_rng(_SEED + 1), PUBLIC)[:, :-2])
    model = DPSurvival(_CLAIM, cuts=_CUTS, public=public, random_state=rng)
    model.fit(table[:, :-2], table[:, -2], time=table[:, -1], progress=False)


def _far_persons(rng: Rng, rows: int) -> Matrix:
    """Persons in all directions, with an event or not, at times from the beginning to beyond the end."""
    x = rng.normal(size=(rows, len(_SLOPES)))
    x *= (10.0 ** rng.uniform(-1, 6, size=rows) / np.linalg.norm(x, axis=1))[:, None]
    return np.column_stack([x, rng.integers(2, size=rows), 10.0 ** rng.uniform(-3, 1, size=rows)])


def _moved_persons(rng: Rng, row: Vector, step: float, rows: int) -> Matrix:
    length = float(np.linalg.norm(row[:-2]))
    x = row[:-2] + step * length * rng.normal(size=(rows, len(row) - 2))
    event = np.where(rng.random(rows) < 0.1, 1 - row[-2], row[-2])
    return np.column_stack([x, event, row[-1] * np.exp(3 * step * rng.normal(size=rows))])


# ---------------------------------------------------------------- several parties

_PARTIES = {"one": [0, 1], "other": [2, 3]}


def _fit_vertical(table: Matrix, rng: Rng) -> None:
    parties = {name: table[:, columns] for name, columns in _PARTIES.items()}
    VerticalRegression(GDP(MU / math.sqrt(len(_PARTIES))), random_state=rng).fit_table(parties)


def _cube(rng: Rng, rows: int) -> Matrix:
    return rng.uniform(-1, 1, size=(rows, 4))


def _in_cube(rng: Rng, rows: int) -> Matrix:
    """Rows inside their bounds, at their corners, and far outside."""
    x = rng.normal(size=(rows, 4)) * 10.0 ** rng.uniform(-1, 3, size=(rows, 1))
    return np.asarray(np.where(rng.random((rows, 1)) < 0.5, np.clip(x, -1, 1), x))


def _moved_in_cube(rng: Rng, row: Vector, step: float, rows: int) -> Matrix:
    size = np.exp(2 * step * rng.normal(size=(rows, 1)))
    return np.asarray(size * row + step * np.linalg.norm(row) * rng.normal(size=(rows, 4)))


# ---------------------------------------------------------------- pair tables

_LEVELS = (3, 3, 2)
_NAMES = ("a", "b", "y")


def _coded(rng: Rng, rows: int) -> Matrix:
    return np.column_stack([rng.integers(size, size=rows) for size in _LEVELS]).astype(np.float64)


def _fit_marginals(recipe: str, table: Matrix, rng: Rng) -> None:
    columns = {name: table[:, i].astype(np.int64) for i, name in enumerate(_NAMES)}
    levels = {name: range(size) for name, size in zip(_NAMES, _LEVELS, strict=True)}
    privacy: Event = ZCDP(MU**2 / 2) if recipe == "aim" else GDP(MU)
    model = MarginalsRegression(
        privacy, schema=Schema.from_levels(levels), family="binomial", recipe=recipe, random_state=rng
    )
    model.fit_table(pa.table(columns), "y", progress=False)


def _marginals(recipe: str, **more: Any) -> Cell:
    return Cell(
        name=f"marginals, {recipe}",
        kind=MarginalsRegression,
        fit=partial(_fit_marginals, recipe),
        others=partial(_coded, rows=CODED),
        draw=_coded,
        move=None,
        layout=lambda rows, _: RawRows(rows, None),
        add=True,
        promise=ZCDP(MU**2 / 2) if recipe == "aim" else _CLAIM,
        **more,
    )


_MANY_MOMENTS = "second moments (42%) and scores (36%) have other worst pairs"
_OPPOSITE = "all but scores and their squares (25%) cannot separate this pair"
_GUESSES = "a guess shows at most 0.79 of a claim in rho"

CELLS = (
    _central("linear", DPLinearRegression, "linear", "labelled"),
    _central("linear", DPLinearRegression, "linear", "unlabelled"),
    _central("linear", DPLinearRegression, "linear", "schema"),
    _central("ridge", DPRidge, "linear", "labelled"),
    _central("linear one-shot", DPLinearRegression, "linear", "labelled", recipe="one-shot"),
    _central("linear one-shot", DPLinearRegression, "linear", "unlabelled", recipe="one-shot"),
    _central("logistic", DPLogisticRegression, "told classes", "labelled"),
    _central("logistic", DPLogisticRegression, "fewer told classes", "unlabelled"),
    _central("logistic", DPLogisticRegression, "many rows", "schema", reason=_MANY_MOMENTS),
    _central("Poisson", DPPoissonRegressor, "poisson", "labelled"),
    _central("Poisson", DPPoissonRegressor, "poisson", "unlabelled"),
    _central("Poisson", DPPoissonRegressor, "poisson", "schema"),
    _central("Gamma", DPGammaRegressor, "gamma", "labelled"),
    _central("Gamma", DPGammaRegressor, "gamma", "unlabelled"),
    _central("Gamma", DPGammaRegressor, "gamma", "schema"),
    _central("multinomial", DPLogisticRegression, "many classes", "labelled", reason=_OPPOSITE),
    _central("multinomial", DPLogisticRegression, "many classes", "unlabelled", reason=_OPPOSITE),
    _central("inverse Gaussian", DPGLMRegressor, "gamma", "labelled", family="inverse-gaussian"),
    _central("linear", DPLinearRegression, "linear", "labelled", most=3),
    _central("Poisson", DPPoissonRegressor, "poisson", "unlabelled", most=3),
    Cell(
        "survival, unlabelled", DPSurvival, _fit_survival, partial(_persons, rows=N - 1), _far_persons, _moved_persons,
        lambda rows, _: RawRows(rows[:, :-2], rows[:, -2], exposure=rows[:, -1]),
        reason="answers have other worst pairs; each at its own, they would reach .91",
    ),
    _marginals("one-shot"),
    _marginals("aim", reason=_GUESSES),
    _marginals("residuals"),
    _marginals("gaussian"),
    Cell(
        "vertical, two parties", VerticalRegression, _fit_vertical,
        partial(_cube, rows=N - 1), _in_cube, _moved_in_cube,
        lambda rows, party: RawRows(rows[:, list(_PARTIES.values())[party]], None), parties=len(_PARTIES),
    ),
)  # fmt: skip

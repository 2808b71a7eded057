"""Wang et al. (2023), Figures 15 and 16: Algorithm 2 for logistic regression on Covertype, SUSY and Skin Segmentation.

Accuracy on held-out rows. Covertype and SUSY are files that a user supplies or fetches (`dpregress datasets list`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import qr

from dpregress.accounting import ApproxDP
from dpregress.baselines import mean_only, scored_fit
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.estimators import LocalGLM
from dpregress.experiments.base import (
    DEFAULT,
    PLAIN,
    PUBLIC_ONLY,
    TRIVIAL,
    Claim,
    Experiment,
    Panel,
    Reading,
    settings_of,
)
from dpregress.experiments.findings import changes, closes_in, flat
from dpregress.experiments.own_tables import is_level, numbers_of, table_with
from dpregress.experiments.wang_simulated import PAPER
from dpregress.models import BinomialFamily
from dpregress.papers import wang2023
from dpregress.public import PublicMoments

OWN = "Algorithm 2"


@dataclass(frozen=True)
class AccuracySetting:
    """Rows of a table; ``axis`` is n or the number of public rows m."""

    table: str
    axis: str
    n: int
    m: int


@dataclass(frozen=True)
class _Classes:
    """The title of a table, its class with the level to predict and all levels, the held-out rows, the epsilons."""

    title: str
    target: str
    first: int
    levels: range
    held_out: int
    epsilons: tuple[float, ...]


_TABLES = {
    "covertype": _Classes("Covertype", "Cover_Type", 2, range(1, 8), 200_000, (4.0, 7.0, 10.0, 15.0)),
    "susy": _Classes("SUSY", "signal", 1, range(2), 30_000, (2.0, 4.0, 7.0, 10.0)),
    "skin_segmentation": _Classes("Skin Segmentation", "class", 1, range(1, 3), 5_000, (0.2, 0.5, 1.0)),
}


def accuracy_panel(setting: AccuracySetting) -> str:
    """Which plot a setting belongs to."""
    title = _TABLES[setting.table].title
    return title if setting.axis == "n" else f"{title}, n = {setting.n:,}"


@lru_cache(maxsize=1)
def _rows(name: str) -> tuple[Matrix, Vector]:
    """Numbers, without columns that others determine."""
    of = _TABLES[name]
    table = table_with(name, [of.target])
    y = is_level(name, table, of.target, of.first, of.levels)
    x = numbers_of(name, table, [each for each in table.column_names if each != of.target])
    return x[:, _independent(name, x[:: max(1, len(x) // 20_000)])], y


def _independent(name: str, x: Matrix) -> list[int]:
    """Places of columns of which none is determined by the others and a constant."""
    centred = x - x.mean(axis=0)
    scale = centred.std(axis=0)
    triangle, order = qr(centred / np.where(scale > 0, scale, 1.0), mode="r", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    kept: list[int] = sorted(order[: len(sizes)][sizes > 1e-8 * sizes[0]].tolist())
    if not kept:
        raise InvalidInput(f"{name}.parquet has no column that varies among {len(x):,} rows: supply the whole table")
    return kept


def _accuracy(predicted: Vector, truth: Vector) -> float:
    return float(np.mean((predicted > 0) == (truth > 0.5)))


def _simulate(setting: AccuracySetting, rng: np.random.Generator) -> Iterator[Reading]:
    of, panel = _TABLES[setting.table], accuracy_panel(setting)
    x, y = _rows(setting.table)
    needed = setting.m + setting.n + of.held_out
    if len(x) < needed:
        raise InvalidInput(f"{setting.table}.parquet has {len(x):,} rows: at n = {setting.n:,} {needed:,} are needed")
    order = rng.permutation(len(x))
    public, rows, rest = np.split(order, [setting.m, setting.m + setting.n])
    test = rest[: of.held_out]
    x = x[:, _independent(setting.table, x[public])]
    z = (x - x[public].mean(axis=0)) / x[public].std(axis=0)
    radius = float(np.abs(z[public]).sum(axis=1).max())
    at, delta = (setting.n if setting.axis == "n" else setting.m), setting.n**-1.1
    moments = PublicMoments.from_rows(x[public])
    for epsilon in of.epsilons:
        line = f"epsilon {epsilon:g}"
        coef = wang2023.bounded_glm(
            z[rows], y[rows], z[public], loss="logistic", radius=radius, epsilon=epsilon, delta=delta, rng=rng
        )
        yield Reading(panel, line, OWN, at, _accuracy(z[test] @ coef, y[test]))
        model = LocalGLM(ApproxDP(epsilon, delta), public=moments, random_state=rng).fit(x[rows], y[rows])
        yield Reading(panel, line, DEFAULT, at, _accuracy(model.predict(x[test]) - 0.5, y[test]))
    for method, part in ((PLAIN, rows), (PUBLIC_ONLY, public)):
        fit = scored_fit(z[part], y[part], BinomialFamily)
        yield Reading(panel, "", method, at, _accuracy(fit.predict(z[test]), y[test]))
    share = mean_only(z[rows], y[rows]).intercept
    yield Reading(panel, "", TRIVIAL, at, _accuracy(np.full(len(test), share - 0.5), y[test]))


def _weight(setting: AccuracySetting) -> float:
    return setting.n / 1e5 * {"covertype": 12.0, "susy": 5.0}.get(setting.table, 1.0)


def _settings(axis: str, quick: bool) -> tuple[AccuracySetting, ...]:
    sizes = {
        "covertype": (100_000, 350_000) if quick else tuple(range(100_000, 400_000, 50_000)),
        "susy": (100_000, 450_000) if quick else tuple(range(100_000, 500_000, 50_000)),
        "skin_segmentation": (20_000, 60_000, 180_000) if quick else tuple(range(20_000, 200_000, 20_000)),
    }
    most = {"covertype": 10_000, "susy": 10_000, "skin_segmentation": 5_000}
    if axis == "n":
        return tuple(
            each for name in _TABLES
            for each in settings_of(AccuracySetting, table=[name], axis=["n"], n=sizes[name], m=[most[name]])
        )  # fmt: skip
    publics = (500, 5_000) if quick else (100, 250, 500, 1_000, 2_000, 5_000)
    return settings_of(AccuracySetting, table=list(_TABLES), axis=["m"], n=[100_000], m=publics)


_CHOICES = (
    "columns are centred and scaled by the public rows; columns that others determine, or that do so "
    "among the public rows, are left out; the radius is the largest l1 norm of a public row; delta = n^-1.1",
    "Figure 16 is read as accuracy against the number of public rows at n = 100,000",
    "public rows have no labels; the line of public rows alone shows what they would give with labels",
    "accuracies are told apart at a probability of 1/2; the trivial predictor names the commoner class; Algorithm 2 "
    "has no "
    "intercept",
)
_WHY = (
    "with the printed constants the noise is larger than the moments, and without an intercept the commoner class is "
    "out "
    "of reach"
)

_FIGURES = {
    15: ("n", (
        Claim("The accuracy grows with n.", changes(OWN, rises=True), _WHY),
        Claim("At the largest n and epsilon the accuracy is close to the non-private one (we ask: within .05 at the "
              "largest n).", closes_in(OWN, PLAIN, 0.05), _WHY),
    )),
    16: ("m", (
        Claim("The number of public rows hardly matters (we ask: accuracies within 10%).", flat(OWN, 1.1), _WHY),
    )),
}  # fmt: skip


def _experiment(figure: int) -> Experiment:
    axis, claims = _FIGURES[figure]
    settings = _settings(axis, False)
    label = {"n": "private rows n", "m": "public rows m"}[axis]
    panels = tuple(
        Panel(name, label, "accuracy", y_scale="linear") for name in dict.fromkeys(map(accuracy_panel, settings))
    )
    return Experiment(
        f"wang-{figure}", PAPER, f"Figure {figure}", "Algorithm 2 for logistic regression on real tables", panels,
        settings, _settings(axis, True), _simulate, 20, 3, _weight, claims, _CHOICES,
        table=lambda setting: str(setting.table),
    )  # fmt: skip


EXPERIMENTS = tuple(map(_experiment, _FIGURES))

"""Cao, Bi and Zhang (2026), Figures 1-6: ridge regression guided by public moments, simulated and on real tables.

The simulation is :mod:`dpregress.experiments.simulation`. On real tables the error is the distance to least squares on
the same private rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.estimators import DPLinearRegression, DPRidge
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
from dpregress.experiments.findings import below, changes, flat, steadier
from dpregress.experiments.own_tables import enough_rows, numbers_of, table_with
from dpregress.experiments.simulation import ETA, Sample, sample
from dpregress.papers import cao2026
from dpregress.public import PublicMoments

OWN, ORACLE, DESCENT = "DP-PMTRR", "DP-RR (an oracle)", "DP-GD"
LABELLED = f"{DEFAULT}, labelled public rows"
PAPER = "Cao, Bi and Zhang 2026"
_NAMES = {"": "simulation", "wine_quality_white": "white wine", "power_plant": "power plant"}


@dataclass(frozen=True)
class RidgeSetting:
    """One point of a curve: the data, their sizes, the budget and the penalty, and what is on the x axis."""

    x: str
    table: str
    n: int
    m: int
    mu: float
    penalty: float
    eta: float
    descent: bool = False


@dataclass(frozen=True)
class _Descent:
    """The printed constants of DP-GD."""

    clip: float
    rate: float
    steps: int = 1000


_DESCENTS = {"": _Descent(1.0, 0.09), "wine_quality_white": _Descent(3.0, 0.5), "power_plant": _Descent(2.0, 0.04)}
_TARGETS = {"wine_quality_white": "quality", "power_plant": "PE"}


def panel_of(setting: RidgeSetting) -> str:
    """Which plot a setting belongs to."""
    data = _NAMES[setting.table]
    return data if setting.x == "penalty" else f"{data}, mu {setting.mu:g}"


def _table(setting: RidgeSetting, rng: np.random.Generator) -> Sample:
    """Random private and public rows; all columns are centred and scaled by the public ones."""
    table = table_with(setting.table)
    target = _TARGETS[setting.table]
    columns = [name for name in table.column_names if name != target]
    rows = numbers_of(setting.table, table, [*columns, target])
    enough_rows(setting.table, len(rows), setting.n + setting.m)
    rows = rows[rng.permutation(len(rows))[: setting.n + setting.m]]
    public = rows[setting.n :]
    if not public.std(axis=0).all():
        raise InvalidInput(f"{setting.table}.parquet has a column that does not vary: supply the table of the source")
    rows = (rows - public.mean(axis=0)) / public.std(axis=0)
    x, y = rows[:, :-1], rows[:, -1]
    x_private, y_private = x[: setting.n], y[: setting.n]
    truth = np.linalg.lstsq(x_private, y_private, rcond=None)[0]
    return Sample(x_private, y_private, x[setting.n :], y[setting.n :], truth)


def _oracle(data: Sample, setting: RidgeSetting, rng: np.random.Generator) -> Vector:
    """DP-RR knows the second moment and the size of y: of the law in the simulation, of the sample on tables."""
    second = data.x.T @ data.x / len(data.x)
    size = float(np.linalg.norm(data.beta))
    if setting.table:
        radius = math.sqrt(np.trace(second) + second.shape[0] * math.log(setting.n / setting.eta))
        size = math.sqrt(float(np.mean(data.y**2)) + math.log(setting.n / setting.eta)) / radius
    return cao2026.private_only_ridge(
        data.x, data.y, second_moment=second, coef_norm=size, mu=setting.mu, alpha=setting.penalty, eta=setting.eta,
        rng=rng,
    )  # fmt: skip


def _library(data: Sample, setting: RidgeSetting, labels: Vector | None, rng: np.random.Generator) -> Vector:
    public = PublicMoments.from_rows(data.x_public, labels)
    facts: dict[str, Any] = {"public": public, "fit_intercept": False, "random_state": rng}
    budget = GDP(math.sqrt(2) * setting.mu)
    if setting.penalty:
        return np.asarray(DPRidge(budget, alpha=setting.penalty * setting.n, **facts).fit(data.x, data.y).coef_)
    return np.asarray(DPLinearRegression(budget, **facts).fit(data.x, data.y).coef_)


def _plain(x: Matrix, y: Vector, penalty: float) -> Vector:
    return np.asarray(np.linalg.lstsq(x.T @ x / len(x) + penalty * np.eye(x.shape[1]), x.T @ y / len(x), rcond=None)[0])


def _simulate(setting: RidgeSetting, rng: np.random.Generator) -> Iterator[Reading]:
    data = _table(setting, rng) if setting.table else sample(rng, n=setting.n, m=setting.m)
    shared: dict[str, Any] = {"mu": setting.mu, "alpha": setting.penalty, "eta": setting.eta, "rng": rng}
    fits = {
        OWN: cao2026.pmt_ridge(data.x, data.y, data.x_public, data.y_public, **shared),
        ORACLE: _oracle(data, setting, rng),
    }
    if setting.descent:
        way = _DESCENTS[setting.table]
        fits[DESCENT] = cao2026.gradient_descent(
            data.x, data.y, mu=math.sqrt(2) * setting.mu, steps=way.steps, clip=way.clip, rate=way.rate, rng=rng
        )
    fits |= {
        DEFAULT: _library(data, setting, None, rng),
        LABELLED: _library(data, setting, data.y_public, rng),
        PLAIN: _plain(data.x, data.y, setting.penalty),
        PUBLIC_ONLY: _plain(data.x_public, data.y_public, setting.penalty),
        TRIVIAL: np.zeros_like(data.beta),
    }
    x = setting.n if setting.x == "n" else setting.penalty
    for method, coef in fits.items():
        yield Reading(panel_of(setting), "", method, x, float(np.linalg.norm(coef - data.beta)))


def _weight(setting: RidgeSetting) -> float:
    return (1.0 + setting.n / 1e4) * (30.0 if setting.descent else 1.0)


def _panels(settings: tuple[RidgeSetting, ...]) -> tuple[Panel, ...]:
    by_size = settings[0].x == "n"
    x_label, x_scale = ("private rows n", "log") if by_size else ("lambda", "symlog")
    y_label = "distance to the non-private fit" if settings[0].table else "l2 error"
    names = dict.fromkeys(map(panel_of, settings))
    return tuple(Panel(name, x_label, y_label, x_scale) for name in names)


_SIZES = (5_000, 10_000, 20_000, 50_000, 100_000)
_WINE, _POWER = (1_000, 2_000, 3_000, 4_649), (1_000, 2_000, 5_000, 9_376)
_PENALTIES = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3)
_wine: dict[str, Any] = {"table": ["wine_quality_white"], "m": [245], "eta": [1e-3]}
_power: dict[str, Any] = {"table": ["power_plant"], "m": [192]}


def _runs(figure: int, quick: bool) -> tuple[RidgeSetting, ...]:
    """The settings of a figure as data; a quick run has fewer points of them."""
    sizes: Sequence[int] = _SIZES[:3] if quick else _SIZES
    wine, power = (_WINE[1::2], _POWER[1::2]) if quick else (_WINE, _POWER)
    penalties = _PENALTIES[::2] if quick else _PENALTIES
    lone: dict[str, Any] = {"table": [""], "eta": [ETA]}
    if figure == 1:
        sizes = sizes[::2] if quick else sizes
        return settings_of(
            RidgeSetting, x=["n"], n=sizes, m=[200], mu=[1.0, 3.0], penalty=[0.0], descent=[True], **lone
        )
    if figure == 2:
        return settings_of(RidgeSetting, x=["n"], n=sizes, m=[20], mu=[0.5, 1.0, 3.0], penalty=[0.01], **lone)
    if figure == 3:
        return settings_of(RidgeSetting, x=["penalty"], n=[10_000], m=[100], mu=[3.0], penalty=penalties, **lone)
    if figure == 6:
        return (
            *settings_of(RidgeSetting, x=["penalty"], n=[4_649], mu=[20.0], penalty=penalties, **_wine),
            *settings_of(RidgeSetting, x=["penalty"], n=[9_376], mu=[3.0], penalty=penalties, eta=[ETA], **_power),
        )
    one = figure == 4
    return (
        *settings_of(
            RidgeSetting, x=["n"], n=wine, mu=[20.0] if one else [5.0, 10.0, 20.0], penalty=[0.0], descent=[one],
            **_wine,
        ),
        *settings_of(
            RidgeSetting, x=["n"], n=power, mu=[3.0] if one else [1.0, 3.0, 10.0], penalty=[0.0], descent=[one],
            eta=[1e-3], **_power,
        ),
    )  # fmt: skip


_BUDGET = "every method has the total budget of DP-PMTRR, sqrt(2) mu; so has DP-GD"
_LAW = (
    "X has covariance Q diag(logspace(0, -3)) Q' with Q random orthogonal, and a random unit vector as mean; y has no "
    "intercept and no model here has one"
)
_SCALE = (
    "columns and response are centred and scaled by the public rows (the paper does not say; its rate of .5 for DP-GD "
    "needs such columns); there is no intercept; the reference is least squares on the same private rows, so the "
    "non-private fit has error 0 at lambda 0"
)
_KNOWN = "DP-RR knows the second moment of the sample and the true norm of beta: it is not private"
_SIMULATED = (_KNOWN, _LAW, _BUDGET)
_REAL = ("DP-RR knows moments of the private sample: it is not private", _SCALE, _BUDGET)
_FAR = (
    "one row of wine has a third of the leverage of all rows together and moves least squares by a third of its "
    "length; every "
    "method with bounded rows truncates it, so that distances tend to about .25 and not to 0"
)
_TAIL = (
    "the mean of DP-RR is that of its worst repeats, and hundreds of repeats do not settle it; its median falls in "
    "Figures 2 and 5"
)
_AGAINST = (
    Claim("DP-PMTRR has smaller errors than DP-RR at every n.", below(OWN, ORACLE), _FAR),
    Claim("DP-PMTRR has a smaller standard deviation than DP-RR.", steadier(OWN, ORACLE)),
)
_FALLING = (
    Claim("The error of DP-PMTRR falls as n grows.", changes(OWN), _FAR),
    Claim("The error of DP-RR falls as n grows.", changes(ORACLE), _TAIL),
)
_ANEW = (
    "rows and, in the simulation, beta are drawn anew in every repeat, and what DP-GD has not reached varies with them"
)
_ITERATED = (
    Claim(
        "DP-GD hardly depends on n.",
        flat(DESCENT, 1.5),
        "a thousand steps share the budget, so that the noise falls with n as that of any other method, down to the "
        "error of "
        "descent that has not converged",
    ),
    Claim("The standard deviation of DP-GD is the smallest.", steadier(DESCENT, OWN), _ANEW),
    Claim("DP-PMTRR has smaller errors than DP-GD.", below(OWN, DESCENT), "DP-PMTRR needs larger n mu for that"),
)
_SHRUNK = (
    Claim("A larger lambda lowers the standard deviation of DP-RR.", changes(ORACLE, "sd"),
          "on wine the far row, truncated or public in some repeats, decides the standard deviation"),
    Claim("A larger lambda raises the error of DP-PMTRR.", changes(OWN, rises=True)),
    Claim("DP-PMTRR has smaller errors than DP-RR at every lambda.", below(OWN, ORACLE),
          "a penalty repairs DP-RR; at a large one the bias of both is the same"),
)  # fmt: skip

_TITLES = {
    1: ("DP-PMTRR, DP-RR and DP-GD against n", 300, 5, (*_AGAINST, *_FALLING, *_ITERATED), (
        "mu is not stated: 1 and 3; eta is not stated: .05, as in Figure 2", *_SIMULATED)),
    2: ("private rows and budgets, 20 public rows", 300, 20, (*_AGAINST, *_FALLING), (
        "the values of mu and n are not in the text: ours", *_SIMULATED)),
    3: ("the penalty", 300, 20, _SHRUNK, ("the values of lambda are not in the text: ours", *_SIMULATED)),
    4: ("DP-PMTRR, DP-RR and DP-GD on real tables", 300, 5, (*_AGAINST, *_ITERATED), (
        "mu and eta are not stated: those of Figures 5 and 6", *_REAL)),
    5: ("private rows and budgets on real tables", 300, 20, (*_AGAINST, *_FALLING), (
        "the values of mu and n are not in the text: ours", *_REAL)),
    6: ("the penalty on real tables", 300, 20, _SHRUNK, ("the values of lambda are not in the text: ours", *_REAL)),
}  # fmt: skip


def _experiment(figure: int) -> Experiment:
    title, repeats, quick_repeats, claims, choices = _TITLES[figure]
    settings = _runs(figure, False)
    return Experiment(
        f"cao-{figure}", PAPER, f"Figure {figure}", title, _panels(settings), settings, _runs(figure, True), _simulate,
        repeats, quick_repeats, _weight, claims, choices, table=lambda setting: str(setting.table),
    )  # fmt: skip


EXPERIMENTS = tuple(map(_experiment, _TITLES))

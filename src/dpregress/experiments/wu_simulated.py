"""Wu et al. (2022), Figures 2 and 3: columns of the same people at six parties, simulated (and Insurance in Figure 3).

Distances of coefficients from the truth, how often they are large, and the smallest eigenvalue of the Hessian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpregress.accounting import ApproxDP
from dpregress.coordinates import Matrix, Vector
from dpregress.estimators import VerticalRegression
from dpregress.experiments.base import DEFAULT, PLAIN, TRIVIAL, Claim, Experiment, Panel, Reading, settings_of
from dpregress.experiments.findings import below, changes, falls_apart_at_small, shares
from dpregress.experiments.wu_tables import BGM, DELTA, DGM, EPSILONS, PAPER, RMGM, scaled_table, split_columns
from dpregress.papers.wu2022 import dgm_system, published_sigma, rmgm_system

#: Distances that are called large.
BETAS = (0.1, 0.15, 0.2)
_D = 10


@dataclass(frozen=True)
class PartiesSetting:
    """The number of people; a data set serves all epsilons."""

    n: int


@dataclass(frozen=True)
class HessianSetting:
    """Where the rows come from: simulated if ``table`` is empty."""

    table: str
    n: int


def simulated_parties(n: int, rng: np.random.Generator) -> tuple[list[Matrix], Vector]:
    """Five parties with two columns and one with the response, and the true coefficients."""
    true = rng.uniform(-1 / _D, 1 / _D, size=_D)
    x = rng.uniform(-1, 1, size=(n, _D))
    joint = np.column_stack([x, x @ true])
    return [joint[:, 2 * place : 2 * place + 2] for place in range(6)], true


def sketch_rows(n: int, epsilon: float) -> int:
    """``k = sqrt(n) / sigma``, at least one more than there are columns."""
    return max(_D + 1, round(math.sqrt(n) / published_sigma(epsilon, DELTA)))


def distances(n: int, epsilons: Sequence[float], rng: np.random.Generator) -> Iterator[tuple[float, dict[str, float]]]:
    """Distances from the true coefficients of every method, at each epsilon."""
    parties, true = simulated_parties(n, rng)
    joint = np.hstack(parties)
    fixed = {PLAIN: np.linalg.lstsq(joint[:, :-1], joint[:, -1], rcond=None)[0], TRIVIAL: np.zeros(_D)}
    for epsilon in epsilons:
        shared: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "rng": rng}
        model = VerticalRegression(
            ApproxDP(epsilon, DELTA, confirm_delta=True), bounds=(-1.0, 1.0), random_state=rng
        ).fit_table(parties)
        fits = {
            DGM: np.linalg.solve(*dgm_system(parties, **shared)),
            BGM: np.linalg.solve(*dgm_system(parties, debias=False, **shared)),
            RMGM: np.linalg.solve(*rmgm_system(parties, k=sketch_rows(n, epsilon), **shared)),
            DEFAULT: model.coef_,
            **fixed,
        }
        yield epsilon, {method: float(np.linalg.norm(coef - true)) for method, coef in fits.items()}


def _simulate(setting: PartiesSetting, rng: np.random.Generator) -> Iterator[Reading]:
    for epsilon, found in distances(setting.n, EPSILONS, rng):
        for method, distance in found.items():
            yield Reading(f"epsilon {epsilon:g}: mean", "", method, setting.n, distance)
            for beta in BETAS:
                yield Reading(f"epsilon {epsilon:g}: beta {beta:g}", "", method, setting.n, float(distance > beta))


def _hessians(setting: HessianSetting, rng: np.random.Generator) -> Iterator[Reading]:
    if setting.table:
        rows = scaled_table(setting.table)
        rows = rows[rng.permutation(len(rows))[: setting.n]]
        parties = split_columns(rows, 5)
        true = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]
        k = 300
    else:
        parties, true = simulated_parties(setting.n, rng)
        k = sketch_rows(setting.n, 1.0)
    shared: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "rng": rng}
    hessian, cross = rmgm_system(parties, k=k, **shared)
    for method, (matrix, right) in (
        (DGM, dgm_system(parties, **shared)), (RMGM, (hessian / setting.n, cross / setting.n)),
    ):  # fmt: skip
        least = float(np.abs(np.linalg.eigvalsh(matrix)).min())
        yield Reading(_where(setting), "", method, least, float(np.linalg.norm(np.linalg.solve(matrix, right) - true)))


def _where(setting: HessianSetting) -> str:
    return "Insurance" if setting.table else "simulated"


_QUICK = (10_000, 100_000, 300_000)
_SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
_LARGEST = 100_000
_PANELS = tuple(
    panel for epsilon in EPSILONS for panel in (
        Panel(f"epsilon {epsilon:g}: mean", "people n", "mean distance", "log"),
        *(Panel(f"epsilon {epsilon:g}: beta {beta:g}", "people n", f"P(distance > {beta:g})", "log", "linear", "share")
          for beta in BETAS),
    )
)  # fmt: skip
_MEANS = [panel.name for panel in _PANELS if panel.kind == "band"]
_NONE_PUBLIC = "there are no public rows in this setting, so no line for them; the trivial answer is 0"
_EACH = (
    "epsilon is that of each party's release, for its own columns; the library's recipe spends the same per party; "
    "DGM's means are those of its worst repeats"
)

EXPERIMENTS = (
    Experiment(
        "wu-2", PAPER, "Figure 2", "distances at six parties", _PANELS, settings_of(PartiesSetting, n=_SIZES),
        settings_of(PartiesSetting, n=_QUICK), _simulate, 1000, 8, lambda setting: setting.n / 1e5,
        (
            Claim("RMGM-OLS has smaller mean distances than DGM-OLS.", below(RMGM, DGM, panels=_MEANS)),
            Claim("BGM-OLS is above .1 in all repeats, whatever n is.",
                  shares(BGM, "", 1.0, 1.0, panels=[f"epsilon {each:g}: beta 0.1" for each in EPSILONS]),
                  "it answers nearly 0, so its distance is the length of w*, which is below .1 in about 4% of draws"),
            Claim("At epsilon 1, RMGM-OLS tends to the truth as n grows.",
                  changes(RMGM, least=2.0, panels=["epsilon 1: mean"])),
            Claim("DGM-OLS does not do so up to n = 3,000,000 (we ask: its mean at the largest n is above the length "
                  "of "
                  "w*, at epsilon 1).", below(TRIVIAL, DGM, panels=["epsilon 1: mean"], last=True)),
        ),
        ("of the values of beta .1 alone is legible: .1, .15, .2 (the length of w* is about .18)", _EACH, _NONE_PUBLIC),
    ),
    Experiment(
        "wu-3", PAPER, "Figure 3", "small eigenvalues and large distances",
        tuple(Panel(name, "smallest absolute eigenvalue of the Hessian", "distance", "log", "log", "scatter")
              for name in ("simulated", "Insurance")),
        (HessianSetting("", 1_000_000), HessianSetting("insurance", 1_070)),
        (HessianSetting("", _LARGEST), HessianSetting("insurance", 1_070)),
        _hessians, 1000, 40, lambda setting: setting.n / 1e5,
        (
            Claim("Simulated: DGM-OLS is far off where its Hessian has a small eigenvalue.",
                  falls_apart_at_small(f"simulated/{DGM}")),
            Claim("Insurance: the same.", falls_apart_at_small(f"Insurance/{DGM}")),
        ),
        (f"a quick run has n = {_LARGEST:,} in place of 1,000,000",
         "RMGM's Hessian is divided by n, and k = 300 on Insurance",
         "the reference on Insurance is least squares; a scatter plot of two algorithms has no place for other fits, "
         "which "
         "Figure 2 and Table 1 show on the same data"),
        table=lambda setting: str(setting.table),
    ),
)  # fmt: skip

"""Diagnoses against the same numbers computed without privacy, on tables of :mod:`benchmarks.tables`.

``python -m benchmarks.diagnosis`` prints, for each table and budget, the difference of AUC, Brier score, calibration,
explained deviance and residual spread from the exact ones in units of their own standard errors, and those errors. A
fit pays for its diagnosis by ``diagnose=0.02`` of its budget; the repeats draw fresh noise.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import ENTRIES, GridTable
from dpregress import ApproxDP
from dpregress.coordinates import Vector
from dpregress.estimators.families import estimator_of
from dpregress.inference import Diagnosis
from dpregress.models import Family, family_of

#: Two of classes, a number, a count.
TABLES = ("adult", "bank", "bike", "visitspois")
DELTA = 1e-6


def fitted(entry: GridTable, epsilon: float, share: float, labels: bool, seed: int) -> tuple[Any, pd.DataFrame]:
    """A model with its diagnosis, and the private rows."""
    frame = entry.load().sample(frac=1, random_state=seed).reset_index(drop=True)
    m = max(300, len(frame) // 50)
    public, rows = frame[:m], frame[m:].reset_index(drop=True)
    more = {"family": entry.family} if estimator_of(entry.family).__name__ == "DPGLMRegressor" else {}
    if entry.family == "gaussian":
        more = {"alpha": 0.0}
    model = estimator_of(entry.family)(
        ApproxDP(epsilon, DELTA), public=public if labels else public.drop(columns=entry.target),
        schema=entry.schema(frame), random_state=seed, **more,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_table(rows, entry.target, progress=False, diagnose=share)
    return model, rows


def differences(found: Diagnosis, family: Family, mean: Vector, y: Vector) -> Iterator[tuple[str, float, float]]:
    """Name, difference from the exact number, and the standard error that the diagnosis states."""
    eta = np.array([family.link.predictor(float(value)) for value in mean])
    place = np.searchsorted(found.edges, eta, side="right")
    counts = np.bincount(place, minlength=len(found.edges) + 1)
    usual = counts >= 5
    if family.distribution.name == "binomial":
        order = pd.Series(mean).rank().to_numpy()
        ones = float(y.sum())
        auc = (order[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones))
        yield "AUC", found.auc.value - auc, found.auc.error
        yield "Brier", found.brier.value - float(np.mean((y - mean) ** 2)), found.brier.error
        observed = np.bincount(place, weights=y, minlength=len(counts)) / np.maximum(counts, 1)
        _, shown, error = found.calibration().T
        for at in np.flatnonzero(usual):
            yield "calibration", shown[at] - observed[at], error[at]
    else:
        residual = (y - mean) / np.sqrt(family.distribution.variance(mean))
        _, shown, error, root, root_error = found.residuals().T
        for at in np.flatnonzero(usual):
            own = residual[place == at]
            yield "mean residual", shown[at] - own.mean(), error[at]
            yield "residual spread", root[at] - np.sqrt(np.mean(own**2)), root_error[at]
    deviance = float(family.distribution.unit_deviance(y, mean).sum())
    null = float(family.distribution.unit_deviance(y, np.full(len(y), y.mean())).sum())
    yield "explained deviance", found.explained.value - (1 - deviance / null), found.explained.error


def measured(entry: GridTable, epsilon: float, share: float, labels: bool, seed: int) -> pd.DataFrame:
    """Differences of one diagnosis, in their standard errors."""
    model, rows = fitted(entry, epsilon, share, labels, seed)
    x = rows.drop(columns=entry.target)
    mean = model.predict_proba(x)[:, 1] if entry.family == "binomial" else model.predict(x)
    y = rows[entry.target].to_numpy(float)
    found = list(differences(model.diagnosis_, family_of(entry.family), mean, y))
    return pd.DataFrame(found, columns=["what", "difference", "error"])


def main() -> None:
    """Print a table of figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    for name in given.tables:
        for epsilon in given.epsilon:
            for labels in (True, False):
                runs = [measured(ENTRIES[name], epsilon, given.share, labels, seed) for seed in range(given.repeats)]
                whole = pd.concat(runs)
                for what, part in whole.groupby("what", sort=False):
                    ratio = part["difference"] / part["error"]
                    print(
                        f"{name:11} epsilon {epsilon:g} {'labelled' if labels else 'unlabelled':10} {what:19} "
                        f"error {part['error'].median():.4f}  |difference| {part['difference'].abs().median():.4f}  "
                        f"rms of ratios {np.sqrt(np.mean(ratio**2)):.2f}  beyond 2 {np.mean(np.abs(ratio) > 2):.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()

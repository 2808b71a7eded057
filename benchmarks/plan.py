"""Plans of :func:`dpregress.plan` against the standard errors of fits, on tables of :mod:`benchmarks.tables`.

``python -m benchmarks.plan`` prints the ratio of planned to fitted standard errors of the slopes. What a plan without
public labels assumes of the response, and one by schema alone of the columns, are the table's means and standard
deviations to one significant digit, as somebody knows them who has read about such tables.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import ENTRIES, GridTable
from dpregress import ApproxDP, DPLinearRegression, Schema, plan
from dpregress.coordinates import Vector
from dpregress.errors import NotAvailable
from dpregress.estimators.families import estimator_of
from dpregress.rows import Encoder

TABLES = ("power", "adultedu", "wine", "incbin", "bank", "bikepois")
DELTA = 1e-6


def rough(value: float) -> float:
    """To one significant digit."""
    return float(f"{value:.0e}")


def ratios(entry: GridTable, epsilon: float, basis: str, seed: int) -> Vector:
    """Planned over fitted standard errors of the slopes that the fit identifies."""
    frame = entry.load().sample(frac=1, random_state=seed).reset_index(drop=True)
    m = max(300, len(frame) // 50)
    public, rows = frame[:m], frame[m:].reset_index(drop=True)
    schema, target, budget = entry.schema(frame), entry.target, ApproxDP(epsilon, DELTA)
    y = frame[target].to_numpy(float)
    response = (rough(float(y.mean())), rough(float(y.std())))
    explained = 1 - rough(1 - _explained(entry, frame, schema))
    given: dict[str, Any] = {"explained": explained, "target": target, "family": entry.family, "schema": schema}
    facts: dict[str, Any] = {"schema": schema}
    if basis == "schema":
        columns = [name for name in frame.columns if name != target]
        encoder = Encoder.of(columns, None, schema)
        x = encoder.x(_arrow(frame[columns]))
        given["assume"] = {
            name: (rough(float(x[:, i].mean())), rough(float(x[:, i].std()) or 1e-6))
            for i, name in enumerate(encoder.features)
        }
        given |= {"response": response, "features": columns}
    else:
        known = public if basis == "labelled" else public.drop(columns=target)
        given |= {"public": known} | ({} if basis == "labelled" else {"response": response})
        facts["public"] = known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = DPLinearRegression if entry.family == "gaussian" else estimator_of(entry.family)
        fit = kind(budget, random_state=seed, **facts).fit_table(rows, target, progress=False)
        found = plan(len(rows), budget, seed=seed, **given)
    order = [found.names.index(name) for name in fit.param_names[1:]]
    usual = fit.estimates_.identified[1:]
    return np.asarray((found.bse()[order] / fit.bse[1:])[usual & np.isfinite(found.bse()[order])])


def _explained(entry: GridTable, frame: pd.DataFrame, schema: Schema) -> float:
    """The share of the response's variance that least squares on all columns explain."""
    columns = [name for name in frame.columns if name != entry.target]
    x, y = Encoder.of(columns, None, schema).x(_arrow(frame[columns])), frame[entry.target].to_numpy(float)
    design = np.column_stack([np.ones(len(x)), x])
    return 1 - float(np.var(y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) / np.var(y))


def _arrow(frame: pd.DataFrame) -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(frame, preserve_index=False)


def main() -> None:
    """Print a table of figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    for name in given.tables:
        for epsilon in given.epsilon:
            for basis in ("labelled", "unlabelled", "schema"):
                try:
                    found = np.concatenate([ratios(ENTRIES[name], epsilon, basis, s) for s in range(given.repeats)])
                except NotAvailable as error:
                    print(f"{name:9} epsilon {epsilon:g} {basis:10} {error}", flush=True)
                    continue
                if not len(found):
                    print(f"{name:9} epsilon {epsilon:g} {basis:10} no slope is identified by plan and fit", flush=True)
                    continue
                print(
                    f"{name:9} epsilon {epsilon:g} {basis:10} median ratio {np.median(found):.2f}  "
                    f"quartiles {np.quantile(found, 0.25):.2f} {np.quantile(found, 0.75):.2f}  "
                    f"within 15% {np.mean(np.abs(np.log(found)) < np.log(1.15)):.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

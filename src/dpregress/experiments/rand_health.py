"""The main demonstration: doctor visits in the RAND Health Insurance Experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dpregress.accounting import ApproxDP, MemoryLedger
from dpregress.baselines import mean_only, scored_fit
from dpregress.coordinates import Matrix, Vector
from dpregress.datasets import randhie
from dpregress.estimators import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from dpregress.estimators.saving import fitted_part
from dpregress.models import BinomialFamily, Family, GaussianFamily, PoissonFamily
from dpregress.public import PublicMoments
from dpregress.reports import Comparison, Fitted

TARGET = "mdvis"
BUDGET = ApproxDP(epsilon=1.0, delta=1e-6)
PUBLIC_SHARE, HELD_OUT_SHARE = 0.02, 0.2
#: Seeds the split into public, held-out and private rows; the noise always comes from the system.
SPLIT_SEED = 2026

NOTES = (
    "RAND Health Insurance Experiment, 20,190 person-years: number of doctor visits on the terms of the "
    "insurance and the state of health.",
    "A random 2% of the rows, with their responses, stand in for a public table; another 20% are held out to "
    "measure prediction; the rest are private.",
    "The table has no person id, and a person can appear once for every year (up to five): the guarantee is "
    "per record, and the table below says what it is for a person with k records.",
    "Three models are fitted, each with a budget of its own: together they spend what the last line says.",
)


@dataclass(frozen=True)
class Model:
    """One of the models: its title and file, what becomes of the number of visits, how it is fitted and scored."""

    title: str
    file: str
    response: Callable[[Vector], Vector]
    estimator: Callable[..., Any]
    family: Family
    loss: str


MODELS = (
    Model(
        "Doctor visits a year, linear",
        "linear-model.json",
        lambda y: y,
        DPLinearRegression,
        GaussianFamily,
        "mean squared error",
    ),
    Model(
        "Any visit, logistic",
        "logistic-model.json",
        lambda y: (y > 0).astype(float),
        DPLogisticRegression,
        BinomialFamily,
        "mean deviance",
    ),
    Model(
        "Doctor visits a year, Poisson",
        "poisson-model.json",
        lambda y: y,
        DPPoissonRegressor,
        PoissonFamily,
        "mean deviance",
    ),
)


@dataclass(frozen=True, eq=False)
class Demonstrated:
    """A fitted model, the name of its file, and what a report shows of it."""

    file: str
    estimator: Any
    fitted: Fitted


@dataclass(frozen=True, eq=False)
class Split:
    """Public, private and held-out rows: (x, y) of each."""

    features: tuple[str, ...]
    public: tuple[Matrix, Vector]
    private: tuple[Matrix, Vector]
    held_out: tuple[Matrix, Vector]


def split_rows(table: pa.Table, target: str, *, public: float, held_out: float, seed: int) -> Split:
    """Divide a numeric table at random."""
    features = tuple(name for name in table.column_names if name != target)
    x = np.column_stack([table[name].to_numpy() for name in features])
    y = table[target].to_numpy()
    order = np.random.default_rng(seed).permutation(len(y))
    first, second = round(public * len(y)), round((public + held_out) * len(y))
    parts = np.split(order, [first, second])
    rows = [(x[part], y[part]) for part in parts]
    return Split(features, rows[0], rows[2], rows[1])


def run() -> tuple[Demonstrated, ...]:
    """Fit every model at epsilon 1, delta 1e-6, and compare."""
    rows = split_rows(randhie(), TARGET, public=PUBLIC_SHARE, held_out=HELD_OUT_SHARE, seed=SPLIT_SEED)
    return tuple(_fits(rows))


def _fits(rows: Split) -> Iterator[Demonstrated]:
    ledger = MemoryLedger(ApproxDP(len(MODELS) * BUDGET.epsilon0, BUDGET.delta0), "RAND Health")
    for model in MODELS:
        (u, v), (x, y), (z, w) = (
            (part[0], model.response(part[1])) for part in (rows.public, rows.private, rows.held_out)
        )
        fitted = model.estimator(BUDGET, public=PublicMoments.from_rows(u, v, names=rows.features), ledger=ledger)
        fitted.fit(x, y)
        found = fitted.coefficients_
        non_private = scored_fit(x, y, model.family)
        predictions = {
            "private": model.family.mean(found.predict(z)),
            "non-private": model.family.mean(non_private.predict(z)),
            "public rows only": model.family.mean(scored_fit(u, v, model.family).predict(z)),
            "mean of the private rows (non-private)": mean_only(x, y).predict(z),
        }
        losses = {
            name: float(np.mean(model.family.distribution.unit_deviance(w, p))) for name, p in predictions.items()
        }
        comparison = Comparison(
            name="non-private",
            coef=non_private.coef,
            intercept=non_private.intercept,
            loss=model.loss,
            errors=[(name, loss, float(np.mean(predictions[name]))) for name, loss in losses.items()],
            truth=float(np.mean(w)),
        )
        fitted.provenance_ = replace(fitted.provenance_, source="RAND Health Insurance Experiment, from statsmodels")
        part = replace(fitted_part(fitted, model.title), comparison=comparison)
        yield Demonstrated(model.file, fitted, part)

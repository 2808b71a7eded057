"""Codes for missing responses, such as 9999, lie far beyond declared bounds: they are no measurements."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from dpregress import (
    DPGammaRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    Numeric,
    PublicMoments,
    Schema,
)
from dpregress.accounting import ApproxDP
from dpregress.errors import SeededNoiseWarning, UnrecordedSpendingWarning
from dpregress.models import Family, GammaFamily, GaussianFamily, PoissonFamily
from dpregress.public.facts import PublicFacts
from dpregress.public.response import without_codes
from dpregress.public.whitening import start
from dpregress.solvers.glm import rare_counts, sizes
from dpregress.solvers.linear import residual_sizes

pytestmark = pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")

NAMES = ("x0", "x1", "x2")
MODELS = {
    "linear": (DPLinearRegression, GaussianFamily, 60.0),
    "counts": (DPPoissonRegressor, PoissonFamily, 60.0),
    "amounts": (DPGammaRegressor, GammaFamily, 120.0),
}
CODE = 9_999.0


def rows(rng: np.random.Generator, kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, 3))
    eta = x @ [0.5, -0.4, 0.0]
    y = {
        "linear": lambda: 20 + 5 * eta + 3 * rng.normal(size=n),
        "counts": lambda: rng.poisson(np.exp(0.3 + eta)),
        "amounts": lambda: rng.gamma(2, np.exp(1 + eta) / 2),
    }[kind]()
    return x, np.clip(y, 1e-3 if kind == "amounts" else 0.0, MODELS[kind][2])


def schema_of(kind: str) -> Schema:
    return Schema({**{name: Numeric(-5, 5) for name in NAMES}, "y": Numeric(0, MODELS[kind][2])})


def check_better_than_the_mean(family: Family, y: np.ndarray, predicted: np.ndarray) -> None:
    loss = family.distribution.unit_deviance
    assert np.mean(loss(y, predicted)) < 0.85 * np.mean(loss(y, np.full(len(y), y.mean())))


@pytest.mark.parametrize("code", [CODE, -999.0])
@pytest.mark.parametrize("public", ["schema", "unlabelled", "labelled"])
@pytest.mark.parametrize("kind", MODELS)
def test_predictions_are_better_than_the_mean(kind: str, public: str, code: float) -> None:
    """Before, most of them were 2 to 500 times worse. Always the same rows and the same noise."""
    seed = 7
    rng = np.random.default_rng(seed)
    x, y = rows(rng, kind, 8_300)
    coded = np.where(rng.random(len(y)) < 0.01, code, y)
    model, family, _ = MODELS[kind]
    given: dict[str, Any] = {}
    if public != "schema":
        known = PublicMoments.from_rows(x[:300], y[:300] if public == "labelled" else None)
        given["public"] = known
    fit = model(ApproxDP(3.0, 1e-6), schema=schema_of(kind), random_state=seed, **given)
    fit.fit(x[300:], coded[300:], progress=False)
    check_better_than_the_mean(family, y, fit.predict(x))


@pytest.mark.parametrize("kind", MODELS)
def test_public_codes_are_left_out(kind: str) -> None:
    """And named. The public fit would be of the codes. Always the same rows and the same noise."""
    seed = 8
    rng = np.random.default_rng(seed)
    x, y = rows(rng, kind, 8_300)
    coded = np.where(np.arange(len(y)) % 50 == 7, CODE, y)
    model, family, _ = MODELS[kind]
    public = PublicMoments.from_rows(x[:300], coded[:300])
    fit = model(ApproxDP(1.0, 1e-6), schema=schema_of(kind), public=public, random_state=seed)
    with pytest.warns(UserWarning, match="6 public rows with responses far beyond their bounds were left out"):
        fit.fit(x[300:], coded[300:], progress=False)
    check_better_than_the_mean(family, y, fit.predict(x))


@pytest.mark.parametrize("public", ["schema", "unlabelled", "labelled"])
@pytest.mark.parametrize("kind", MODELS)
def test_without_codes_nothing_is_disregarded(kind: str, public: str) -> None:
    """Also where responses are the upper bound itself. Always the same rows and the same noise."""
    rng = np.random.default_rng(9)
    x, y = rows(rng, kind, 8_300)
    y = np.where(rng.random(len(y)) < 0.05, 64.0, np.minimum(y, 64.0))
    schema = Schema({**{name: Numeric(-5, 5) for name in NAMES}, "y": Numeric(0, 64)})
    known = PublicMoments.from_rows(x[:300], y[:300])
    given: dict[str, Any] = {} if public == "schema" else {"public": known}
    if public == "unlabelled":
        given["public"] = known.unlabelled()

    def coefficients() -> list[float]:
        fit = MODELS[kind][0](ApproxDP(2.0, 1e-6), schema=schema, random_state=9, **given)
        return list(fit.fit(x[300:], y[300:], progress=False).coef_)

    found = coefficients()
    with ExitStack() as patches:
        for module in (sizes, rare_counts, residual_sizes):
            patches.enter_context(patch.object(module, "credible", lambda histogram, _: histogram))
        assert coefficients() == found


def test_classes_are_no_codes(seed: int) -> None:
    """Their labels are positions of classes, whatever numbers these are. Deterministic: no seed can break it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2_200, 3))
    y = 1 + (rng.random(2_200) < 0.1 + 0.8 * (x[:, 0] > 1))
    table = pa.table({**dict(zip(NAMES, x.T, strict=True)), "y": y})
    schema = Schema({**{name: Numeric(-5, 5) for name in NAMES}, "y": Numeric(1, 2)})
    fit = DPLogisticRegression(
        ApproxDP(1.0, 1e-6), schema=schema, public=table[:200], classes=(1, 2), random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("ignore", UnrecordedSpendingWarning)
        fit.fit_table(table[200:], "y", list(NAMES), progress=False)


def test_where_responses_are_possible() -> None:
    """Public ones somewhat beyond bounds contradict them as little as a few codes; many do."""
    space = start(("x0",), intercept=True, public=None, schema=schema_of("linear"), row_bound=None)
    for labels, expected in (
        (np.array([61.0, *[30.0] * 9]), (-30.0, 90.0)),
        (np.array([CODE, *[30.0] * 9]), (-30.0, 90.0)),
        (np.array([CODE] * 3 + [30.0] * 7), None),
    ):
        known = PublicMoments.from_rows(np.zeros((10, 1)), labels, names=("x0",))
        assert PublicFacts(100, "y", space, known, schema_of("linear")).possible == expected
    assert PublicFacts(100, "y", space, None, schema_of("linear")).possible == (-30.0, 90.0)
    assert PublicFacts(100, "y", space, None, None).possible is None


def test_which_public_rows_are_left_out() -> None:
    """Those half a width beyond the bounds or further, unless they are more than a fifth."""
    x = np.arange(20.0).reshape(10, 2)
    labels = np.array([0, 1, 2, 3, 4, 5, 10, 14.9, 15.1, -5.1])
    known = PublicMoments.from_rows(x, labels, names=("a", "b"), exposure=np.arange(1.0, 11.0))
    found = without_codes(known, (0.0, 10.0))
    assert found.labels is not None
    assert found.rows is not None
    assert found.exposure is not None
    assert found.labels.tolist() == labels[:8].tolist()
    assert found.rows.tolist() == x[:8].tolist()
    assert found.exposure.tolist() == list(range(1, 9))
    assert found.names == ("a", "b")
    assert without_codes(known, (0.0, 3.0)) is known
    assert without_codes(known, (-10.0, 20.0)) is known
    assert without_codes(known.unlabelled(), (0.0, 10.0)).labels is None

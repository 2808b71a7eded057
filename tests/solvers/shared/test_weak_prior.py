"""The weakly informative prior, and fits in whose features a direction is known to nobody."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dpregress import Categorical, DPLogisticRegression, Numeric, Schema
from dpregress.accounting import GDP
from dpregress.coordinates import WhitenedSpace
from dpregress.models import family_of
from dpregress.solvers.shared.explained import FixedPrior
from dpregress.solvers.shared.weak_prior import WeakPrior, has_scale


def _space(rng: np.random.Generator) -> tuple[WhitenedSpace, np.ndarray]:
    """Of a wide number, a narrow one and an indicator, with the whitened Gram matrix of rows."""
    x = np.column_stack([rng.normal(50, 10, 4_000), rng.normal(0, 1, 4_000), rng.random(4_000) < 0.1])
    rows = np.column_stack([np.ones(len(x)), x])
    whitening = rng.normal(size=(4, 4))
    space = WhitenedSpace(("wide", "narrow", "kind=b"), whitening, 5.0, np.zeros(3), intercept=True)
    white = rows @ whitening.T
    return space, white.T @ white / len(white)


@pytest.mark.parametrize("declared", [True, False])
def test_each_slope_has_a_standard_deviation_of_its_own(seed: int, declared: bool) -> None:
    space, gram = _space(np.random.default_rng(seed))
    schema = Schema({"wide": Numeric(-1e6, 1e6), "narrow": Numeric(-1, 1), "kind": Categorical(("a", "b"))})
    prior = WeakPrior.of(space, gram, schema if declared else None)
    back = np.linalg.inv(space.whitening)  # of raw coefficients (constant, slopes): b = W'^{-1} b_raw
    raw = back @ prior.precision @ back.T
    reach = np.array([50.0, 2.0, 1.0]) if declared else np.array([50.0, 5.0, 1.5])
    np.testing.assert_allclose(raw[0], 0, atol=1e-8)
    np.testing.assert_allclose(raw[1:, 1:], np.diag((reach / 5) ** 2), rtol=0.2, atol=1e-8)


def test_it_is_as_wide_as_slopes_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = WeakPrior.of(*_space(rng), None)
    coef = rng.normal(size=4)
    precise = 1e9 * np.eye(4)
    assert prior.width(0 * coef, precise) == 1
    assert prior.width(1e3 * coef, precise) == pytest.approx(4e6 * coef @ prior.precision @ coef / 3, rel=1e-6)
    beside = prior.beside(FixedPrior(coef, np.eye(4)), 2.0)
    np.testing.assert_array_equal(beside.coef, coef)
    known = beside.known(coef, np.eye(4))
    np.testing.assert_allclose(known.precision, np.eye(4) + prior.precision / 2)
    np.testing.assert_allclose(known.mean, coef)
    several = prior.repeated(2)
    both = np.kron(precise, np.eye(2))
    np.testing.assert_allclose(several.width(np.repeat(1e3 * coef, 2), both), prior.width(1e3 * coef, precise))


@pytest.mark.parametrize(
    ("bounds", "largest"), [((0, 1), 5.0), ((1, 2), 5.0), ((0, 2), 100.0), ((-0.5, 0.5), 100.0), ((0, 0.02), 250.0)]
)
def test_a_rare_indicator_has_no_boundless_effect(bounds: tuple[float, float], largest: float) -> None:
    """With a standard deviation of .01, five of which are the range of a number with wider bounds."""
    space = WhitenedSpace(("a",), np.eye(1), 1.0, np.zeros(1))
    prior = WeakPrior.of(space, 1e-4 * np.eye(1), Schema({"a": Numeric(*bounds)}))
    np.testing.assert_allclose(prior.precision, 1 / largest**2)


def test_noise_that_nobody_knows_does_not_widen_it() -> None:
    """Of two slopes in units of the prior, the first is known to a hundredth and the second to a thousand."""
    prior = WeakPrior(np.eye(2))
    known = np.diag([1e4, 1e-6])
    assert prior.width(np.array([0.0, 400.0]), known) == 1
    np.testing.assert_allclose(prior.width(np.array([10.0, 400.0]), known), 200, rtol=1e-2)


def test_a_slope_that_noise_does_not_explain_widens_it() -> None:
    """Of one slope with variance 25: at two deviations a 26th of its square counts, at six what exceeds three."""
    prior, known = WeakPrior(np.eye(1)), np.array([[1 / 25]])
    np.testing.assert_allclose(prior.width(np.array([10.0]), known), 4 * 100 / 26, rtol=1e-6)
    np.testing.assert_allclose(prior.width(np.array([30.0]), known), 4 * (900 - 225), rtol=1e-6)


def test_predictors_in_units_of_the_response_have_no_scale() -> None:
    assert has_scale(family_of("binomial"))
    assert has_scale(family_of("poisson"))
    assert not has_scale(family_of("gaussian"))


def _days_and_success(rng: np.random.Generator, n: int, alone: float) -> tuple[pa.Table, np.ndarray]:
    """Days since a call, 999 where there was none; nearly all calls were successes, and few rows tell them apart."""
    called = rng.random(n) < 0.04
    success = called & (rng.random(n) > alone)
    days = np.where(called, rng.integers(1, 20, n), 999).astype(float)
    other = rng.normal(size=n)
    eta = -2 + 2 * success + 0.7 * other
    y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    return pa.table({"days": days, "success": success.astype(float), "other": other, "y": y}), eta


def _losses(seed: int, labelled: bool) -> list[float]:
    """Held-out losses over the truth's; public rows in which two columns determine each other leave them to noise."""
    found = []
    for turn in range(4):
        rng = np.random.default_rng([seed, turn])
        public, _ = _days_and_success(rng, 400, alone=0.0)
        private, _ = _days_and_success(rng, 20_000, alone=0.1)
        held_out, eta = _days_and_success(rng, 20_000, alone=0.1)
        schema = Schema({"days": Numeric(0, 999), "success": Numeric(0, 1), "other": Numeric(-6, 6)})
        model = DPLogisticRegression(
            GDP(0.3), public=public if labelled else public.drop(["y"]), schema=schema, classes=(0, 1), random_state=rng
        )
        with pytest.warns(match="random_state"):
            model.fit_table(private, "y")
        y, share = held_out["y"].to_numpy(), np.clip(model.predict_proba(held_out.drop(["y"]))[:, 1], 1e-12, 1 - 1e-12)
        truth = 1 / (1 + np.exp(-eta))
        loss = [-np.mean(np.log(np.where(y == 1, p, 1 - p))) for p in (share, truth)]
        found.append(loss[0] / loss[1])
    return found


@pytest.mark.parametrize("labelled", [True, False])
def test_what_nobody_knows_is_not_predicted_with_certainty(seed: int, labelled: bool) -> None:
    """Rows that the two columns tell apart, one in 250, were: without the prior a third of 24 fits exceed 1.05.

    With it 208 fits have 1.000 to 1.031, 1.003 on average and with a tail that is exponential with mean below .01: four
    of them exceed 1.06 on average with probability 1e-7.
    """
    assert np.mean(_losses(seed, labelled)) < 1.06


@pytest.mark.parametrize("labelled", [True, False])
def test_noise_that_is_two_deviations_off_is_no_certainty(labelled: bool) -> None:
    """At this seed it was predicted as certain, since it had widened its own prior: 1.26 times the truth's loss."""
    assert max(_losses(12, labelled)) < 1.06

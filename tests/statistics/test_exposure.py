"""What an exposure is worth: rate ratios at epsilon 1, with it and without."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import ApproxDP, DPPoissonRegressor, PublicMoments

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::dpregress.errors.SeededNoiseWarning")]

COEF = np.array([0.5, -0.4, 0.3])
N, M = 20_000, 100
REPEATS = 12


@pytest.mark.parametrize("labelled", [False, True], ids=["unlabelled", "labelled"])
def test_rate_ratios(labelled: bool, seed: int) -> None:
    """Log rate ratios with the exposure lie within 8 stated standard errors and .08 of the truth; 3.6 and 0 are usual.

    Exposures go with the first column, `log e = 2 x_0 + N(0, .5^2)`. In 60 other repeats z-scores had standard
    deviations of .8 to 1.3 beside a bias of .04 or less: a normal error passes the bound with probability below 1e-9,
    36 of them below 1e-7. The model that ignores exposures puts its slope near 2.5, not .5.
    """
    for repeat in range(REPEATS):
        rng = np.random.default_rng([seed, repeat])
        x = rng.uniform(-1, 1, size=(N + M, 3))
        exposure = np.exp(2 * x[:, 0] + 0.5 * rng.normal(size=N + M))
        y = rng.poisson(exposure * np.exp(x @ COEF - 0.5)).astype(float)
        public = PublicMoments.from_rows(x[:M], y[:M], exposure=exposure[:M])
        public = public if labelled else PublicMoments.from_rows(x[:M])
        model = DPPoissonRegressor(ApproxDP(1.0, 1e-6), public=public, random_state=rng)
        model.fit(x[M:], y[M:], exposure=exposure[M:])
        assert (np.abs(model.coef_ - COEF) <= 8 * model.coefficients_.standard_error + 0.08).all()
    wrong = DPPoissonRegressor(ApproxDP(1.0, 1e-6), public=PublicMoments.from_rows(x[:M]), random_state=rng)
    assert wrong.fit(x[M:], y[M:]).coef_[0] > 1.5

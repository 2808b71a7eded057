"""Local studies that noise allows the mean alone, and slopes that would explain more than a response can vary."""

from __future__ import annotations

import numpy as np
import pytest

from dpregress import ApproxDP, LocalGLM, PublicMoments
from dpregress.solvers.local.shrinkage import LinearMoments, shrunk_fit


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_plan_for_the_mean_alone_tells_no_slopes(seed: int) -> None:
    """No chance of failure: slopes of such a plan are 0 whatever the noise, and their errors are those of a guess."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2_000, 4)) @ np.linalg.cholesky(0.5 * np.eye(4) + 0.5)
    y = np.clip(x @ [0.8, -0.6, 0.4, 0.2] + rng.normal(size=2_000), -5, 5)
    public = PublicMoments.from_rows(rng.normal(size=(500, 4)) @ np.linalg.cholesky(0.5 * np.eye(4) + 0.5))
    for repeat in range(100):  # of 40 repeats, one had slopes of 1e4 with standard errors of 15
        model = LocalGLM(
            ApproxDP(1.0, 1e-6), family="gaussian", public=public, response_bounds=(-5, 5), random_state=repeat
        ).fit(x, y)
        assert model.message_plan_.told == 0
        np.testing.assert_array_equal(model.coef_, 0)
        assert np.all(model.coefficients_.standard_error > 0.5)
        assert model.estimates_ is None


def test_slopes_that_explain_more_than_a_response_varies_are_not_told() -> None:
    """The same for plans of any kind: a cross moment beyond the Cauchy-Schwarz bound is noise."""
    gram, tiny = np.diag([1.0, 1e-12, 1e-12]), 1e-12 * np.eye(3)
    moments = LinearMoments(gram, np.array([0.0, 0.1, 0.0]), tiny, 0.0, 0.0, 25.0, intercept=True)
    fit = shrunk_fit(moments)
    assert not fit.told
    np.testing.assert_array_equal(fit.coef, 0)

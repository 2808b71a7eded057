"""Standard errors against simulation and against the textbook."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dpregress.coordinates import Matrix, ResponseScale, Vector, WhitenedSpace, svec
from dpregress.inference import in_original_units, privacy_covariance, sampling_covariance
from dpregress.releases import Isotropic, Moments

ORDER, N = 4, 1_000
FRAME = WhitenedSpace(
    ("a", "b", "c"),
    np.array([[1.0, 0.0, 0.0, 0.0], [0.3, 2.0, 0.5, 0.0], [-0.2, 0.1, 1.0, 0.2], [0.0, 0.0, 0.4, 0.5]]),
    3.0,
    np.zeros(3),
    intercept=True,
    response=ResponseScale("y", centre=5.0, scale=10.0, bound=3.0, cross=0.7),
)


def joint_moment(seed: int) -> Matrix:
    """Totals of whitened joint rows ``(x, 0.7 y)``."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, ORDER))
    y = x @ [0.5, -1.0, 0.2, 0.8] + 0.3 * rng.normal(size=N)
    rows = np.column_stack([x, 0.7 * y])
    return rows.T @ rows


def moments(total: Matrix, sigma: float) -> Moments:
    return Moments(total, N, Isotropic(sigma), (), FRAME)


def solved(released: Moments, penalty: Matrix) -> tuple[Vector, Matrix]:
    system = released.gram + penalty
    return np.linalg.solve(system, released.cross), system


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_privacy_covariance_is_that_of_simulated_noise(alpha: float, seed: int) -> None:
    """Sums of squares over 20,000 draws in 16 directions, each within its chi-square law.

    The noise is 1e-4 of the moments, so what the first order leaves out changes a variance by about
    1e-7, far below the 5% that 20,000 draws can see. Of 16 two-sided tests at 3e-8 one fails with a probability of
    at most 5e-7.
    """
    draws = 20_000
    sigma = 1e-4 * N
    rng = np.random.default_rng(seed)
    total = joint_moment(seed)
    # a penalised fit leaves c - H b different from zero; the law is the same
    penalty = alpha * np.eye(ORDER)
    coef, system = solved(moments(total, sigma), penalty)
    predicted = privacy_covariance(moments(total, sigma), coef, system)
    errors = np.empty((draws, ORDER))
    for draw in range(draws):
        noise = svec.unsvec(rng.normal(0.0, sigma, svec.length(ORDER + 1)), ORDER + 1)
        errors[draw] = solved(moments(total + noise, sigma), penalty)[0] - coef
    standard = np.linalg.solve(np.linalg.cholesky(predicted), errors.T)
    unit = np.eye(ORDER)
    directions = [*unit] + [
        (unit[i] + sign * unit[j]) / math.sqrt(2) for i in range(ORDER) for j in range(i) for sign in (1, -1)
    ]
    assert len(directions) == 16
    lower, upper = chi2.ppf(1.5e-8, draws), chi2.isf(1.5e-8, draws)
    for direction in directions:
        square = float(np.sum((direction @ standard) ** 2))
        assert lower * (1 - 1e-3) <= square <= upper * (1 + 1e-3)


def test_sampling_covariance_is_the_textbooks(seed: int) -> None:
    """``RSS / n (X'X)^-1`` on moments without noise, in original units."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(N), rng.normal(size=(N, 3)) * [1.0, 5.0, 0.2]])
    y = x @ [1.0, 2.0, -0.5, 9.0] + rng.normal(size=N)
    whitened = x @ FRAME.whitening.T
    response = FRAME.response
    assert response is not None
    joint = np.column_stack([whitened, response.cross * (y - response.centre) / response.scale])
    released = moments(joint.T @ joint, 0.0)
    coef, system = solved(released, np.zeros((ORDER, ORDER)))
    errors = in_original_units(sampling_covariance(released, coef, system), FRAME)
    exact, squares = np.linalg.lstsq(x, y, rcond=None)[:2]
    np.testing.assert_allclose(FRAME.pull_back(coef)[0], exact[1:], rtol=1e-8)
    covariance = squares[0] / N * np.linalg.inv(x.T @ x)
    np.testing.assert_allclose(errors, np.sqrt(np.diag(covariance))[1:], rtol=1e-6)


def test_original_units_are_those_of_the_pull_back(seed: int) -> None:
    half = np.random.default_rng(seed).normal(size=(ORDER, ORDER))
    covariance = half @ half.T
    jacobian = np.array([FRAME.pull_back(unit)[0] - FRAME.pull_back(np.zeros(ORDER))[0] for unit in np.eye(ORDER)]).T
    expected = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T))
    np.testing.assert_allclose(in_original_units(covariance, FRAME), expected)


def test_noise_that_makes_the_residual_negative_gives_no_negative_variance() -> None:
    total = np.eye(ORDER + 1) * N
    total[:-1, -1] = total[-1, :-1] = 2.0 * N
    released = moments(total, 1.0)
    coef, system = solved(released, np.zeros((ORDER, ORDER)))
    assert not in_original_units(sampling_covariance(released, coef, system), FRAME).any()

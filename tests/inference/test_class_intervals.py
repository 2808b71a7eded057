"""Intervals of the probabilities of several classes: the delta method on the logit scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit, softmax
from scipy.stats import binom, norm

from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput
from dpregress.inference import PredictedIntervals, class_intervals
from dpregress.models import contrasts
from dpregress.releases import Estimates

CLASSES = ("a", "b", "c", "d")
K, D = len(CLASSES), 2
RNG = np.random.default_rng(4)
#: Coefficients of all classes sum to 0, so that their covariance is singular.
TURN = np.concatenate([np.kron(np.eye(D + 1), row) for row in contrasts(K)])
TRUTH = TURN @ RNG.normal(size=TURN.shape[1])
_half = TURN @ RNG.normal(size=(TURN.shape[1],) * 2) / 40
COVARIANCE = _half @ _half.T
ROWS = RNG.normal(size=(5, D))


def estimates(estimate: Vector = TRUTH, df: float = np.inf) -> Estimates:
    names = tuple(f"{one}: {name}" for one in CLASSES for name in ("(intercept)", "x", "z"))
    k = len(names)
    return Estimates(
        names, estimate, 0.6 * COVARIANCE, 0.4 * COVARIANCE, np.ones(k, dtype=bool), np.zeros(k), df, "robust"
    )


def found(known: Estimates, x: Matrix = ROWS, level: float = 0.9) -> PredictedIntervals:
    return class_intervals(known, x, CLASSES, interval="mean", level=level)


def logits(b: Vector, x: Matrix = ROWS) -> Matrix:
    """Written apart from the package."""
    eta = np.array([b[3 * k] + x @ b[3 * k + 1 : 3 * k + 3] for k in range(K)]).T
    return np.asarray(logit(np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)))


def test_errors_are_those_of_a_numerical_derivative() -> None:
    step = 1e-5
    moved = [(logits(TRUTH + step * e) - logits(TRUTH - step * e)) / (2 * step) for e in np.eye(len(TRUTH))]
    gradient = np.stack(moved, axis=-1)  # of shape (m, K, k)
    sd = np.sqrt(np.einsum("mki,ij,mkj->mk", gradient, COVARIANCE, gradient))
    ends = found(estimates())
    np.testing.assert_allclose(logit(ends.mean), logits(TRUTH), rtol=1e-10)
    np.testing.assert_allclose(logit(ends.upper) - logits(TRUTH), norm.ppf(0.95) * sd, rtol=1e-6)
    np.testing.assert_allclose(logits(TRUTH) - logit(ends.lower), norm.ppf(0.95) * sd, rtol=1e-6)
    assert (found(estimates(df=5.0)).upper > ends.upper).all()


def test_probabilities_add_up_and_have_the_names_of_their_classes() -> None:
    np.testing.assert_allclose(found(estimates()).mean.sum(axis=1), 1, rtol=1e-12)
    frame = found(estimates()).to_frame()
    assert frame.columns.tolist() == [(k, name) for k in CLASSES for name in ("mean", "mean_ci_lower", "mean_ci_upper")]
    np.testing.assert_array_equal(frame[("c", "mean")], found(estimates()).mean[:, 2])


def test_intervals_hold(seed: int) -> None:
    """Of normal estimates: 90% intervals of 20 probabilities in 4,000 draws.

    Each holds with a probability within .005 of .9, as errors are small and logits nearly linear. All 40 bounds have a
    failure probability of 1e-6 together.
    """
    draws, rng = 4000, np.random.default_rng(seed)
    truth = softmax(TRUTH.reshape(K, 3) @ np.column_stack([np.ones(len(ROWS)), ROWS]).T, axis=0).T
    held = np.zeros((len(ROWS), K))
    for _ in range(draws):
        ends = found(estimates(TRUTH + _half @ rng.normal(size=_half.shape[1])))
        held += (ends.lower <= truth) & (truth <= ends.upper)
    failure = 1e-6 / (2 * held.size)
    assert (held >= binom.ppf(failure, draws, 0.895)).all()
    assert (held <= binom.isf(failure, draws, 0.905)).all()


def test_they_lie_between_0_and_1_whatever_the_estimates() -> None:
    known = estimates(1e3 * TRUTH)
    wide = replace(known, sampling=1e12 * known.sampling)
    for each in (known, wide):
        ends = found(each)
        assert ((ends.lower >= 0) & (ends.lower <= ends.mean) & (ends.mean <= ends.upper) & (ends.upper <= 1)).all()


def test_a_row_that_an_unidentified_coefficient_enters_has_none() -> None:
    identified = np.ones(len(TRUTH), dtype=bool)
    identified[4] = False  # of class b, the column x
    x = np.array([[0.0, 1.0], [1.0, 0.0]])
    ends = found(replace(estimates(), identified=identified), x)
    assert np.isfinite(ends.lower[0]).all()
    assert np.isnan([ends.lower[1], ends.upper[1]]).all()
    assert np.isfinite(ends.mean).all()


def test_new_responses_have_none() -> None:
    with pytest.raises(InvalidInput, match="a multinomial fit models their mean only"):
        class_intervals(estimates(), ROWS, CLASSES, interval="prediction", level=0.9)

"""Uncertainty of released estimates, with the privacy noise counted."""

from dpregress.inference.coefficients import original_coefficients
from dpregress.inference.constraints import LinearHypothesis, linear_hypothesis
from dpregress.inference.diagnosis import Diagnosis, LikelihoodRatio, Measured, excess_deviance, likelihood_ratio
from dpregress.inference.estimates import original_estimates
from dpregress.inference.goodness import Submodel, explained_share, explained_variance, submodel
from dpregress.inference.hypotheses import TermTests, TTest, WaldTest, t_tests, term_tests, wald
from dpregress.inference.intervals import (
    checked_level,
    intervals,
    masked_covariance,
    p_values,
    standard_errors,
    t_ratios,
)
from dpregress.inference.linear import in_original_units, privacy_covariance, sampling_covariance
from dpregress.inference.moments import moment_estimates
from dpregress.inference.predictions import IntervalKind, PredictedIntervals, predicted_intervals
from dpregress.inference.suitability import Suitability, suitability

__all__ = [
    "Diagnosis",
    "IntervalKind",
    "LikelihoodRatio",
    "LinearHypothesis",
    "Measured",
    "PredictedIntervals",
    "Submodel",
    "Suitability",
    "TTest",
    "TermTests",
    "WaldTest",
    "checked_level",
    "excess_deviance",
    "explained_share",
    "explained_variance",
    "in_original_units",
    "intervals",
    "likelihood_ratio",
    "linear_hypothesis",
    "masked_covariance",
    "moment_estimates",
    "original_coefficients",
    "original_estimates",
    "p_values",
    "predicted_intervals",
    "privacy_covariance",
    "sampling_covariance",
    "standard_errors",
    "submodel",
    "suitability",
    "t_ratios",
    "t_tests",
    "term_tests",
    "wald",
]

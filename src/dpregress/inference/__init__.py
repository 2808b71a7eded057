"""Uncertainty of released estimates, with the privacy noise counted."""

from dpregress.inference.coefficients import original_coefficients
from dpregress.inference.components import PrincipalComponents, principal_components
from dpregress.inference.constraints import LinearHypothesis, linear_hypothesis
from dpregress.inference.covariances import CorrelationTable, ReleasedCovariance
from dpregress.inference.diagnosis import Diagnosis, LikelihoodRatio, Measured, excess_deviance, likelihood_ratio
from dpregress.inference.empirical_bayes import likely_priors
from dpregress.inference.estimates import original_estimates
from dpregress.inference.goodness import Submodel, explained_share, explained_variance, submodel
from dpregress.inference.heterogeneity import HeterogeneityTest, coefficient_heterogeneity, moment_heterogeneity
from dpregress.inference.hypotheses import TermTests, TTest, WaldTest, t_tests, term_tests, wald
from dpregress.inference.intervals import (
    checked_level,
    interval_ends,
    intervals,
    masked_covariance,
    p_values,
    ratio_of,
    standard_errors,
    t_ratios,
)
from dpregress.inference.linear import in_original_units, privacy_covariance, sampling_covariance
from dpregress.inference.moments import moment_estimates
from dpregress.inference.predictions import IntervalKind, PredictedIntervals, class_intervals, predicted_intervals
from dpregress.inference.selected import SelectedModel
from dpregress.inference.selection import (
    Approximation,
    PenaltyPath,
    SubsetPath,
    best_subsets,
    forward_selection,
    penalty_path,
)
from dpregress.inference.suitability import Suitability, suitability
from dpregress.inference.tables import table_estimates

__all__ = [
    "Approximation",
    "CorrelationTable",
    "Diagnosis",
    "HeterogeneityTest",
    "IntervalKind",
    "LikelihoodRatio",
    "LinearHypothesis",
    "Measured",
    "PenaltyPath",
    "PredictedIntervals",
    "PrincipalComponents",
    "ReleasedCovariance",
    "SelectedModel",
    "Submodel",
    "SubsetPath",
    "Suitability",
    "TTest",
    "TermTests",
    "WaldTest",
    "best_subsets",
    "checked_level",
    "class_intervals",
    "coefficient_heterogeneity",
    "excess_deviance",
    "explained_share",
    "explained_variance",
    "forward_selection",
    "in_original_units",
    "interval_ends",
    "intervals",
    "likelihood_ratio",
    "likely_priors",
    "linear_hypothesis",
    "masked_covariance",
    "moment_estimates",
    "moment_heterogeneity",
    "original_coefficients",
    "original_estimates",
    "p_values",
    "penalty_path",
    "predicted_intervals",
    "principal_components",
    "privacy_covariance",
    "ratio_of",
    "sampling_covariance",
    "standard_errors",
    "submodel",
    "suitability",
    "t_ratios",
    "t_tests",
    "table_estimates",
    "term_tests",
    "wald",
]

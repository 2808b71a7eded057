"""Uncertainty of released estimates, with the privacy noise counted."""

from dpregress.inference.coefficients import original_coefficients
from dpregress.inference.estimates import original_estimates
from dpregress.inference.linear import in_original_units, privacy_covariance, sampling_covariance

__all__ = [
    "in_original_units",
    "original_coefficients",
    "original_estimates",
    "privacy_covariance",
    "sampling_covariance",
]

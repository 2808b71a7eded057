"""Estimators with scikit-learn's contract and a budget."""

from dpregress.estimators.linear import DPLinearRegression, DPRidge

__all__ = ["DPLinearRegression", "DPRidge"]

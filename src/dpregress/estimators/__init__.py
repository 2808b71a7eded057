"""Estimators with scikit-learn's contract and a budget."""

from dpregress.estimators.glm import DPGammaRegressor, DPGLMRegressor, DPLogisticRegression, DPPoissonRegressor
from dpregress.estimators.linear import DPLinearRegression, DPRidge
from dpregress.estimators.local import LocalGLM
from dpregress.estimators.marginals import MarginalsRegression
from dpregress.estimators.survival import DPSurvival
from dpregress.estimators.vertical import VerticalRegression

__all__ = [
    "DPGLMRegressor",
    "DPGammaRegressor",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DPSurvival",
    "LocalGLM",
    "MarginalsRegression",
    "VerticalRegression",
]

"""What can be asked of private rows, each with its sensitivity."""

from dpregress.queries.base import Ask, Query
from dpregress.queries.families import Binomial, Family, Gamma, Gaussian, Poisson, family_of
from dpregress.queries.histogram import ExposureHistogram, ResidualHistogram, ResponseHistogram
from dpregress.queries.newton_moment import PublishedHessian
from dpregress.queries.score import ClippedGradient, ClippedScore, ExposureScore, MeanResidual
from dpregress.queries.second_moment import SecondMoment

__all__ = [
    "Ask",
    "Binomial",
    "ClippedGradient",
    "ClippedScore",
    "ExposureHistogram",
    "ExposureScore",
    "Family",
    "Gamma",
    "Gaussian",
    "MeanResidual",
    "Poisson",
    "PublishedHessian",
    "Query",
    "ResidualHistogram",
    "ResponseHistogram",
    "SecondMoment",
    "family_of",
]

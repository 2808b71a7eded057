"""What can be asked of private rows, each with its sensitivity."""

from dpregress.queries.base import Ask, Query
from dpregress.queries.families import Binomial, Family, Gamma, Gaussian, Poisson, family_of
from dpregress.queries.histogram import ResidualHistogram, ResponseHistogram
from dpregress.queries.multinomial import MeanClassResidual, MultinomialScore, contrasts, probabilities
from dpregress.queries.newton_moment import PublishedHessian
from dpregress.queries.score import ClippedGradient, ClippedScore, MeanResidual
from dpregress.queries.second_moment import SecondMoment

__all__ = [
    "Ask",
    "Binomial",
    "ClippedGradient",
    "ClippedScore",
    "Family",
    "Gamma",
    "Gaussian",
    "MeanClassResidual",
    "MeanResidual",
    "MultinomialScore",
    "Poisson",
    "PublishedHessian",
    "Query",
    "ResidualHistogram",
    "ResponseHistogram",
    "SecondMoment",
    "contrasts",
    "family_of",
    "probabilities",
]

"""What can be asked of private rows, each with its sensitivity."""

from dpregress.queries.base import Ask, Query
from dpregress.queries.counted import Counted, among
from dpregress.queries.families import Binomial, Family, Gamma, Gaussian, Poisson, family_of
from dpregress.queries.histogram import ExposureHistogram, ResidualHistogram, ResponseHistogram
from dpregress.queries.mixture import MixedRows, Mixing
from dpregress.queries.multinomial import MeanClassResidual, MultinomialScore, contrasts, probabilities
from dpregress.queries.newton_moment import PublishedHessian
from dpregress.queries.pair_tables import Blocks, CentredTables, ModelErrors, PairDistances
from dpregress.queries.score import ClippedGradient, ClippedScore, ExposureScore, MeanResidual
from dpregress.queries.second_moment import SecondMoment
from dpregress.queries.user_answers import Predictions, PublishedMoments

__all__ = [
    "Ask",
    "Binomial",
    "Blocks",
    "CentredTables",
    "ClippedGradient",
    "ClippedScore",
    "Counted",
    "ExposureHistogram",
    "ExposureScore",
    "Family",
    "Gamma",
    "Gaussian",
    "MeanClassResidual",
    "MeanResidual",
    "MixedRows",
    "Mixing",
    "ModelErrors",
    "MultinomialScore",
    "PairDistances",
    "Poisson",
    "Predictions",
    "PublishedHessian",
    "PublishedMoments",
    "Query",
    "ResidualHistogram",
    "ResponseHistogram",
    "SecondMoment",
    "among",
    "contrasts",
    "family_of",
    "probabilities",
]

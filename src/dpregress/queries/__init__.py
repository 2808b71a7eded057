"""What can be asked of private rows, each with its sensitivity."""

from dpregress.queries.base import Ask, Norm, Query, RowQuery, TableQuery, noise_in_mean
from dpregress.queries.binomial_information import BinomialInformation
from dpregress.queries.class_remainder import ClassRemainder, remainder_of
from dpregress.queries.clipped_gradient import ClippedGradient
from dpregress.queries.column_histograms import ABSENT, ColumnHistograms
from dpregress.queries.count import UsableRowCount
from dpregress.queries.counted import Counted, among
from dpregress.queries.cross_moment import CrossMoment
from dpregress.queries.deviance import DevianceSums
from dpregress.queries.diagnosis import BinnedClasses, BinnedResiduals, PredictorHistogram
from dpregress.queries.histogram import ExposureHistogram, FarVotes, ResidualHistogram, ResponseHistogram
from dpregress.queries.multinomial import MeanClassResidual, MultinomialScore
from dpregress.queries.newton_moment import PublishedHessian
from dpregress.queries.ordered_residual import has_order
from dpregress.queries.pair_tables import Blocks, CentredTables, ModelErrors, PairDistances
from dpregress.queries.pieces import PieceInformation, PieceScore, PieceTotals
from dpregress.queries.score import ClippedScore, ExposureScore, MeanResidual
from dpregress.queries.score_remainder import ScoreRemainder
from dpregress.queries.score_squares import ScoreSquares
from dpregress.queries.second_moment import SecondMoment
from dpregress.queries.shortened import ShortenedRows
from dpregress.queries.sketch import RowSketch, SketchMatrix
from dpregress.queries.user_answers import Predictions, PublishedMoments

__all__ = [
    "ABSENT",
    "Ask",
    "BinnedClasses",
    "BinnedResiduals",
    "BinomialInformation",
    "Blocks",
    "CentredTables",
    "ClassRemainder",
    "ClippedGradient",
    "ClippedScore",
    "ColumnHistograms",
    "Counted",
    "CrossMoment",
    "DevianceSums",
    "ExposureHistogram",
    "ExposureScore",
    "FarVotes",
    "MeanClassResidual",
    "MeanResidual",
    "ModelErrors",
    "MultinomialScore",
    "Norm",
    "PairDistances",
    "PieceInformation",
    "PieceScore",
    "PieceTotals",
    "Predictions",
    "PredictorHistogram",
    "PublishedHessian",
    "PublishedMoments",
    "Query",
    "ResidualHistogram",
    "ResponseHistogram",
    "RowQuery",
    "RowSketch",
    "ScoreRemainder",
    "ScoreSquares",
    "SecondMoment",
    "ShortenedRows",
    "SketchMatrix",
    "TableQuery",
    "UsableRowCount",
    "among",
    "has_order",
    "noise_in_mean",
    "remainder_of",
]

"""Values right of the privacy barrier, their spaces and their noise laws."""

from dpregress.releases.cross_moments import CrossMoments, MessageParts
from dpregress.releases.estimates import CovarianceType, Estimates
from dpregress.releases.marginals import Marginals, Mixture
from dpregress.releases.noise import DiscreteLaplaceNoise, Entrywise, Isotropic, NoiseLaw, UnitMessages
from dpregress.releases.release import (
    ANYWHERE,
    ClassCoefficients,
    Coefficients,
    ColumnCounts,
    Count,
    Histogram,
    Moments,
    Release,
    Score,
    ScoreMoment,
    Sketch,
)
from dpregress.releases.tables import Clique, PairScores, Selection, Tables

__all__ = [
    "ANYWHERE",
    "ClassCoefficients",
    "Clique",
    "Coefficients",
    "ColumnCounts",
    "Count",
    "CovarianceType",
    "CrossMoments",
    "DiscreteLaplaceNoise",
    "Entrywise",
    "Estimates",
    "Histogram",
    "Isotropic",
    "Marginals",
    "MessageParts",
    "Mixture",
    "Moments",
    "NoiseLaw",
    "PairScores",
    "Release",
    "Score",
    "ScoreMoment",
    "Selection",
    "Sketch",
    "Tables",
    "UnitMessages",
]

"""Values right of the privacy barrier, their frames and their noise laws."""

from dpregress.releases.domain import Attribute, Domain
from dpregress.releases.frame import Coordinates, Exposure, Frame, ResponseScale, Weighting
from dpregress.releases.marginals import Marginals, Mixture
from dpregress.releases.noise import Entrywise, Isotropic, NoiseLaw, UnitMessages
from dpregress.releases.release import (
    ClassCoefficients,
    Coefficients,
    Histogram,
    Moments,
    Release,
    Score,
    Sketch,
)
from dpregress.releases.svec import Matrix, Vector
from dpregress.releases.tables import Clique, Scores, Selection, Tables

__all__ = [
    "Attribute",
    "ClassCoefficients",
    "Clique",
    "Coefficients",
    "Coordinates",
    "Domain",
    "Entrywise",
    "Exposure",
    "Frame",
    "Histogram",
    "Isotropic",
    "Marginals",
    "Matrix",
    "Mixture",
    "Moments",
    "NoiseLaw",
    "Release",
    "ResponseScale",
    "Score",
    "Scores",
    "Selection",
    "Sketch",
    "Tables",
    "UnitMessages",
    "Vector",
    "Weighting",
]

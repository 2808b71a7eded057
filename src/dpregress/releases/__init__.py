"""Values right of the privacy barrier, their frames and their noise laws."""

from dpregress.releases.frame import Frame, ResponseScale, Weighting
from dpregress.releases.noise import Entrywise, Isotropic, NoiseLaw, UnitMessages
from dpregress.releases.release import Coefficients, Histogram, Mixture, Moments, Release, Score
from dpregress.releases.svec import Matrix, Vector

__all__ = [
    "Coefficients",
    "Entrywise",
    "Frame",
    "Histogram",
    "Isotropic",
    "Matrix",
    "Mixture",
    "Moments",
    "NoiseLaw",
    "Release",
    "ResponseScale",
    "Score",
    "UnitMessages",
    "Vector",
    "Weighting",
]

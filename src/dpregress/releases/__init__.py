"""Values right of the privacy barrier, their frames and their noise laws."""

from dpregress.releases.frame import Exposure, Frame, ResponseScale, Weighting
from dpregress.releases.noise import Isotropic, NoiseLaw
from dpregress.releases.release import Coefficients, Histogram, Moments, Release, Score
from dpregress.releases.svec import Matrix, Vector

__all__ = [
    "Coefficients",
    "Exposure",
    "Frame",
    "Histogram",
    "Isotropic",
    "Matrix",
    "Moments",
    "NoiseLaw",
    "Release",
    "ResponseScale",
    "Score",
    "Vector",
    "Weighting",
]

"""How answers are made private, and where randomness comes from."""

from dpregress.mechanisms.base import Mechanism
from dpregress.mechanisms.gaussian import Gaussian
from dpregress.mechanisms.integers import IntegerGaussian
from dpregress.mechanisms.randomness import NoiseSource, SecureSource, SeededSource, noise_source, sampling_generator
from dpregress.mechanisms.selection import Exponential
from dpregress.mechanisms.unit_vector import UnitVector

__all__ = [
    "Exponential",
    "Gaussian",
    "IntegerGaussian",
    "Mechanism",
    "NoiseSource",
    "SecureSource",
    "SeededSource",
    "UnitVector",
    "noise_source",
    "sampling_generator",
]

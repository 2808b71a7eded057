"""How answers are made private, and where randomness comes from."""

from dpregress.mechanisms.base import Mechanism
from dpregress.mechanisms.gaussian import Gaussian
from dpregress.mechanisms.randomness import NoiseSource, SecureSource, SeededSource, noise_source, sampling_generator
from dpregress.mechanisms.selection import Exponential

__all__ = [
    "Exponential",
    "Gaussian",
    "Mechanism",
    "NoiseSource",
    "SecureSource",
    "SeededSource",
    "noise_source",
    "sampling_generator",
]

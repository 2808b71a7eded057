"""How answers are made private, and where randomness comes from."""

from dpregress.mechanisms.base import Mechanism
from dpregress.mechanisms.exponential import Exponential
from dpregress.mechanisms.gaussian import Gaussian
from dpregress.mechanisms.integers import IntegerGaussian
from dpregress.mechanisms.randomness import Sampler, SecureSampler, SeededSampler, noise_sampler, sampling_generator
from dpregress.mechanisms.unit_vector import UnitVector

__all__ = [
    "Exponential",
    "Gaussian",
    "IntegerGaussian",
    "Mechanism",
    "Sampler",
    "SecureSampler",
    "SeededSampler",
    "UnitVector",
    "noise_sampler",
    "sampling_generator",
]

"""How answers are made private, and where randomness comes from."""

from dpregress.mechanisms.base import Mechanism
from dpregress.mechanisms.discrete_laplace import DiscreteLaplace
from dpregress.mechanisms.exponential import Exponential
from dpregress.mechanisms.gaussian import Gaussian
from dpregress.mechanisms.integers import IntegerGaussian
from dpregress.mechanisms.randomness import Sampler, SecureSampler, SeededSampler, noise_sampler, sampling_generator
from dpregress.mechanisms.table import (
    CURATOR_MECHANISMS,
    DEVICE_MECHANISMS,
    PARTY_MECHANISMS,
    MechanismTable,
)
from dpregress.mechanisms.unit_vector import UnitVector

__all__ = [
    "CURATOR_MECHANISMS",
    "DEVICE_MECHANISMS",
    "PARTY_MECHANISMS",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "IntegerGaussian",
    "Mechanism",
    "MechanismTable",
    "Sampler",
    "SecureSampler",
    "SeededSampler",
    "UnitVector",
    "noise_sampler",
    "sampling_generator",
]

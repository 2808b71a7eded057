"""How answers are made private, and where randomness comes from."""

from dpregress.mechanisms.base import Mechanism
from dpregress.mechanisms.gaussian import Gaussian
from dpregress.mechanisms.randomness import NoiseSource, SecureSource, SeededSource, noise_source

__all__ = ["Gaussian", "Mechanism", "NoiseSource", "SecureSource", "SeededSource", "noise_source"]

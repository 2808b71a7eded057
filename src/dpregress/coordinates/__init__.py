"""Coordinates used on both sides of the privacy barrier: whitened space, discrete domains, symmetric vectors."""

from dpregress.coordinates.domain import Attribute, Domain
from dpregress.coordinates.ranges import Ranges, decode_ends, encode_ends, endless
from dpregress.coordinates.svec import Matrix, Vector
from dpregress.coordinates.whitened import Coordinates, Exposure, ResponseScale, Weighting, WhitenedSpace

__all__ = [
    "Attribute",
    "Coordinates",
    "Domain",
    "Exposure",
    "Matrix",
    "Ranges",
    "ResponseScale",
    "Vector",
    "Weighting",
    "WhitenedSpace",
    "decode_ends",
    "encode_ends",
    "endless",
]

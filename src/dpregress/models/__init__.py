"""The statistics, without privacy: families, links, mean responses, contrasts of classes."""

from dpregress.models.contrasts import contrasts, probabilities
from dpregress.models.families import BinomialFamily, Family, GammaFamily, GaussianFamily, PoissonFamily, family_of

__all__ = [
    "BinomialFamily",
    "Family",
    "GammaFamily",
    "GaussianFamily",
    "PoissonFamily",
    "contrasts",
    "family_of",
    "probabilities",
]

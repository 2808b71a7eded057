"""The statistics, without privacy: families, links, mean responses, contrasts of classes."""

from dpregress.models.contrasts import contrasts, probabilities
from dpregress.models.families import (
    FAMILIES,
    MULTINOMIAL,
    BinomialFamily,
    Family,
    GammaFamily,
    GaussianFamily,
    PoissonFamily,
    family_names,
    family_of,
)

__all__ = [
    "FAMILIES",
    "MULTINOMIAL",
    "BinomialFamily",
    "Family",
    "GammaFamily",
    "GaussianFamily",
    "PoissonFamily",
    "contrasts",
    "family_names",
    "family_of",
    "probabilities",
]

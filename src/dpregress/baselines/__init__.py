"""Methods for comparison: fits without privacy, and other methods at the same privacy."""

from dpregress.baselines.adassp import adassp
from dpregress.baselines.dp_gd import dp_gd
from dpregress.baselines.objective import perturbation_scales, tilted_logistic
from dpregress.baselines.plain import LinearFit, least_squares, mean_only, scored_fit
from dpregress.baselines.tukey_em import tukey_em

__all__ = [
    "LinearFit",
    "adassp",
    "dp_gd",
    "least_squares",
    "mean_only",
    "perturbation_scales",
    "scored_fit",
    "tilted_logistic",
    "tukey_em",
]

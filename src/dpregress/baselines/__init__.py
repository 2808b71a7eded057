"""What a private fit is compared with."""

from dpregress.baselines.plain import LinearFit, least_squares, mean_only, scored_fit

__all__ = ["LinearFit", "least_squares", "mean_only", "scored_fit"]

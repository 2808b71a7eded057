"""The distribution of private exposures, and how it depends on the features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Exposure, Matrix, Vector, WhitenedSpace
from dpregress.coordinates.whitened import LARGEST_EXPOSURE
from dpregress.queries import Ask, ExposureHistogram, ExposureScore
from dpregress.solvers.shared.likely_values import LikelyValues
from dpregress.solvers.shared.magnitudes import EDGES, HALF_BIN, Magnitudes, visible_count

#: Logarithms are clipped at so many standard deviations, of which there is at least a bin's.
_CLIP, _SPREAD = 2.0, 0.1
#: Exposures are what the histogram shows if its bins show this share of the rows, else what is likely.
_SHOWN = 0.5


def released_exposures(ask: Ask, space: WhitenedSpace, exposure: Exposure, spend: GDP) -> Magnitudes:
    """The distribution within declared bounds; public exposures may have another scale.

    Where noise hides the bins, the likely distribution between the bounds. Without an upper bound there is none, and
    the largest bin may be noise anywhere.

    Parameters
    ----------
    ask : Ask
    space : WhitenedSpace
    exposure : Exposure
    spend : GDP
        Of the histogram.
    """
    seen = ask(ExposureHistogram(space, EDGES), spend)
    plain = Magnitudes.of_histogram(seen)
    size, share = plain.size, plain.share
    shown = float(seen.total[seen.total > visible_count(seen)].sum())
    if exposure.upper < LARGEST_EXPOSURE and shown < _SHOWN * seen.n:
        within = (exposure.least < HALF_BIN * size) & (exposure.upper * HALF_BIN > size)
        size, share = size[within], LikelyValues.of(replace(seen, total=seen.total[within]), size[within]).share
    return Magnitudes(np.clip(size, exposure.lower, exposure.upper), share)


def exposure_slopes(ask: Ask, space: WhitenedSpace, gram: Matrix, exposures: Magnitudes, spend: GDP) -> Vector:
    """Slopes of the logarithm of exposures on the whitened features, of shape (q,)."""
    centre, spread = exposures.logarithm
    found = ask(ExposureScore(space, centre, _CLIP * max(spread, _SPREAD)), spend)
    return np.asarray(np.linalg.solve(gram, found.mean))

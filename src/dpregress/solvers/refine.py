"""A better frame from a private second moment, where public rows are few or none."""

from __future__ import annotations

import numpy as np

from dpregress.accounting import GDP
from dpregress.public.whitening import chi_radius
from dpregress.queries import Ask, SecondMoment
from dpregress.releases import Frame
from dpregress.solvers.repair import floored, gram_floor


def refined(ask: Ask, frame: Frame, spend: GDP) -> Frame:
    """``W <- A^{-1/2} W`` with A a private second moment in the first frame; the radius is a chi-square median."""
    second = ask(SecondMoment(frame.with_response(None)), spend)
    values, vectors = np.linalg.eigh(floored(second.gram, gram_floor(second)))
    root = np.asarray((vectors / np.sqrt(values)) @ vectors.T)
    better = frame.rewhitened(root, 1.0)
    return better.rewhitened(np.eye(better.order), chi_radius(better))

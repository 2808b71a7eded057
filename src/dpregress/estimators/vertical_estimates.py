"""Estimates for inference from the joined releases of several parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpregress.inference import moment_estimates
from dpregress.releases import Entrywise, Estimates
from dpregress.solvers.vertical.joint import regression
from dpregress.solvers.vertical.release import Joint


def joint_estimates(joint: Joint, target: str, features: Sequence[str]) -> Estimates:
    """Least squares of one column on others, not shrunk, in the order of the features.

    Noise between two parties is that of privacy and of sketching, whose variance grows by the factor ``1 + r^2`` with
    the correlation r. Truncation shortens covariances of normal rows by a
    known factor and those of bounded columns hardly: its whole effect on normal rows counts as a standard deviation.

    Parameters
    ----------
    joint : Joint
    target : str
    features : sequence of str
    """
    moments, cross = regression(joint, target, features)
    assert isinstance(moments.noise, Entrywise)
    assert joint.kept is not None
    at = {name: place for place, name in enumerate(joint.moments.space.features)}
    kept = np.array([1.0, *(joint.kept[at[name]] for name in (*moments.space.features, target))])
    bias = np.where(cross, (1 - np.outer(kept, kept)) * moments.total, 0.0)
    variance = moments.noise.variance * (1 + np.where(cross, np.clip(moments.mean, -1, 1), 0.0) ** 2)
    widened = replace(moments, noise=Entrywise((variance + variance.T) / 2 + (bias + bias.T) ** 2 / 4))
    return moment_estimates(widened).in_order(features)

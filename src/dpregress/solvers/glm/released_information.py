r"""The released Fisher information at the last coefficients, beside the model's.

Surrogate rows have the Gram matrix of the private ones, and nothing else in common with them: where few rows decide,
they may overstate the information of a class along a direction by ten times. Estimates then move too little, with
errors that are too small. So where noise is small and no public rows are known, the information itself is released,

.. math:: E = \sum_i m_i (1 - m_i)\, x_i x_i' + \text{noise},

and its difference to the model's is the slope that the model lacks. Of the difference, eigenvalues that noise alone has
are dropped, and others shrunk as noise enlarges them (Gavish, Donoho 2017, for the Frobenius norm).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpregress.accounting import GDP
from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import eigen, symmetric_power
from dpregress.queries import Ask, BinomialInformation
from dpregress.solvers.glm.score_loop import ModelledScore, Steps
from dpregress.solvers.glm.surrogate_model import FamilyModel
from dpregress.solvers.shared.repair import solvable

#: The least share of the model's information that is believed.
_LEAST = 0.05
#: The standard deviation of what the difference lacks of a change from coefficients far away, in times itself.
_BETWEEN = 0.5


def released_difference(ask: Ask, model: FamilyModel, coef: Vector, spend: GDP) -> Matrix:
    """The released information less the model's at these coefficients, of shape (p, p)."""
    query = BinomialInformation(model.space, coef)
    found, noise = ask(query, spend).mean, query.noise(spend, model.n)
    expected = solvable(model.information(coef))
    values, axes = eigen(found - expected)
    edge = 2 * len(values) * noise**2  # the square of noise's largest eigenvalue
    values = np.sign(values) * np.sqrt(np.maximum(values**2 - edge, 0))
    root, inverse = (symmetric_power(expected, power) for power in (0.5, -0.5))
    relative = np.eye(len(values)) + inverse @ (axes * values) @ axes.T @ inverse
    return np.asarray(root @ symmetric_power(relative, 1.0, smallest=_LEAST) @ root - expected)


def with_difference(steps: Steps, model: FamilyModel, difference: Matrix) -> Steps:
    """The same scores with slopes that differ so from the model's, in place of what scores say of each other.

    The difference is taken to grow evenly from none at the first coefficients, which have no slopes, to all of it at
    the last ones; half of what a score on the way therefore lacks of it counts as a standard deviation.
    """
    root = np.linalg.cholesky(solvable(model.information(steps.coef)))
    first = steps.told[0].asked
    whole = root.T @ (steps.coef - first)
    square = max(float(whole @ whole), np.finfo(float).tiny)

    def informed(score: ModelledScore) -> ModelledScore:
        place = np.clip(float(whole @ root.T @ (score.asked - first)) / square, 0.0, 1.0)
        without = difference @ (steps.coef - score.asked) * (1 - place) / 2
        system = solvable(model.information(score.asked)) + difference
        linear = system - model.curvature(score.asked, score.asked)
        doubt = _BETWEEN**2 * float(without @ without) / len(without)
        value, variance = score.value + without, score.variance + doubt
        return replace(score, value=value, variance=variance, linear=linear, system=system, missed=0.0)

    return replace(steps, told=tuple(map(informed, steps.told)))

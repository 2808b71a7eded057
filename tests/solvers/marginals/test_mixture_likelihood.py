"""Logistic and softmax regression by the likelihood of a mixture."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from dpregress.coordinates import Domain
from dpregress.coordinates.domain import Attribute
from dpregress.releases import Mixture
from dpregress.solvers.marginals.mixture import MixtureFit
from dpregress.solvers.marginals.mixture_likelihood import solve_classes


def _grid() -> np.ndarray:
    side = np.linspace(-1, 1, 21)
    first, second = np.meshgrid(side, side)
    return np.column_stack([np.ones(first.size), first.ravel(), second.ravel()])


def test_two_classes_give_the_logistic_coefficients() -> None:
    points, coef = _grid(), np.array([-0.5, 1.0, -2.0])
    chance = expit(points @ coef)
    found = solve_classes(points, np.column_stack([1 - chance, chance]), 1e9)
    assert (found[0] == 0).all()
    np.testing.assert_allclose(found[1], coef, atol=2e-3)


def test_two_classes_satisfy_the_equations_of_the_posterior_mode() -> None:
    points, count = _grid(), 50.0
    chance = expit(points @ np.array([0.3, 2.0, 1.0]))
    coef = solve_classes(points, np.column_stack([1 - chance, chance]), count)[1]
    score = count * points.T @ (chance - expit(points @ coef)) / len(points)
    np.testing.assert_allclose(score, coef / np.array([25.0, 1.0, 1.0]), atol=1e-3)


def test_three_classes_give_the_probabilities() -> None:
    points = _grid()
    chances = softmax(points @ np.array([[0.0, 1.0, 0.0], [0.5, -1.0, 1.0], [-0.5, 0.0, -1.0]]).T, axis=1)
    found = solve_classes(points, chances, 1e9)
    np.testing.assert_allclose(softmax(points @ found.T, axis=1), chances, atol=2e-3)


def _domain() -> Domain:
    return Domain((Attribute("a", ("0", "1", "2")), Attribute("y", ("0", "1"))))


def test_shares_are_those_of_the_components_of_the_points() -> None:
    chances = np.array([[1.0, 0.0, 0.0, 0.9, 0.1], [0.0, 0.0, 1.0, 0.2, 0.8]])
    mixture = Mixture(_domain(), chances)
    points, shares = mixture.points(10), mixture.shares(1, 10)
    assert shares.shape == (10, 2)
    np.testing.assert_array_equal(shares[:, 1], np.where(points[:, 0] == 0, 0.1, 0.8))


def test_a_mixture_stays_nearer_independence_the_noisier_its_tables_are() -> None:
    table = np.array([[0.3, 0.0], [0.1, 0.1], [0.0, 0.5]])
    margins = [table.sum(axis=1), table.sum(axis=0)]
    apart = []
    for sigma in (1.0, 1e-2, 1e-3):
        fit = MixtureFit(_domain(), list(margins)).fit({(0, 1): table}, {(0, 1): sigma})
        apart.append(float(np.abs(fit.pair(0, 1) - table).sum()))
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 0.01

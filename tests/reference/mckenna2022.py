"""Naive reference for one round of AIM (McKenna, Mullins, Sheldon, Miklau 2022), as small pure functions.

Ferrando, Sheldon 2024 take their marginals from it, with a workload of all pairs.  The budget is
rho-zCDP, neighbours add or remove one record.  Tables and draws may have any (equal) shape.
"""

import itertools
import math

import numpy as np

ALPHA = 0.9  # share of the budget that measures; the rest selects


def first_scales(rho, attributes, rounds=None):
    """sigma_0 = sqrt(T / (2 alpha rho)) and epsilon_0 = sqrt(8 (1 - alpha) rho / T), T = 16 m rounds."""
    rounds = 16 * attributes if rounds is None else rounds
    return math.sqrt(rounds / (2.0 * ALPHA * rho)), math.sqrt(8.0 * (1.0 - ALPHA) * rho / rounds)


def measurement_cost(sigma):
    """zCDP of one marginal with N(0, sigma^2) on every cell (L2 sensitivity 1)."""
    return 1.0 / (2.0 * sigma**2)


def round_cost(sigma, epsilon):
    """zCDP of one round: a measurement and an exponential mechanism."""
    return measurement_cost(sigma) + epsilon**2 / 8.0


def candidates(workload):
    """The downward closure of the workload, without the empty set, sorted by size and then by name."""
    closure = set()
    for clique in workload:
        for size in range(1, len(clique) + 1):
            closure.update(itertools.combinations(sorted(clique), size))
    return sorted(closure, key=lambda clique: (len(clique), clique))


def candidate_weight(candidate, workload):
    """w_r = sum over the workload {s: c_s} of c_s |r & s|."""
    return sum(c * len(set(candidate) & set(s)) for s, c in workload.items())


def expected_noise(sigma, cells):
    """sqrt(2/pi) sigma n_r, the expected L1 norm of the noise of a table of n_r cells."""
    return math.sqrt(2.0 / math.pi) * sigma * cells


def quality_score(true, model, weight, sigma):
    """w_r (||M_r(D) - M_r(p)||_1 - sqrt(2/pi) sigma n_r)."""
    true, model = np.ravel(true), np.ravel(model)
    return weight * (sum(abs(a - b) for a, b in zip(true, model, strict=True)) - expected_noise(sigma, len(true)))


def selection_probabilities(scores, weights, epsilon):
    """Exponential mechanism: proportional to exp(epsilon q_r / (2 max w)), max over the same candidates."""
    logits = [epsilon * q / (2.0 * max(weights)) for q in scores]
    sizes = [math.exp(value - max(logits)) for value in logits]
    return np.array([s / sum(sizes) for s in sizes])


def measurement(true, sigma, noise):
    """The noisy marginal."""
    true = np.array(true, dtype=float)
    return true if noise is None else true + sigma * np.asarray(noise)


def annealed(before, after, sigma, epsilon):
    """sigma halved and epsilon doubled if the round moved its own marginal by no more than the noise."""
    before, after = np.ravel(before), np.ravel(after)
    change = sum(abs(a - b) for a, b in zip(before, after, strict=True))
    if change <= expected_noise(sigma, len(before)):
        return sigma / 2.0, 2.0 * epsilon
    return sigma, epsilon


def next_round(rho_left, sigma, epsilon):
    """(sigma, epsilon, last): what is left goes into one last round if it does not cover two."""
    if rho_left <= 2.0 * round_cost(sigma, epsilon):
        return math.sqrt(1.0 / (2.0 * ALPHA * rho_left)), math.sqrt(8.0 * (1.0 - ALPHA) * rho_left), True
    return sigma, epsilon, False


def size_limit(rho_used, rho, max_megabytes=200.0):
    """Candidates may not take the model beyond this size; rho_used includes the round at hand."""
    return max_megabytes * rho_used / rho

"""Naive AIM over the whole domain: the rounds of McKenna et al. 2022 around a table of every cell.

The model is what Private-PGM (McKenna, Sheldon, Miklau 2019) computes on a junction tree: the distribution with the
largest entropy among those that fit the measured tables best, by mirror descent from the uniform one.  For domains of a
few dozen cells.  Records are rows of level indices; neighbours add or remove one record.
"""

import itertools

import numpy as np

from tests.reference import mckenna2022

STEPS = 300


def table(cells, clique):
    """The marginal table of some attributes of the table of all."""
    others = tuple(axis for axis in range(cells.ndim) if axis not in clique)
    return cells.sum(axis=others)


def whole(records, sizes):
    """Counts of every cell."""
    cells = np.zeros(sizes)
    for record in records:
        cells[tuple(record)] += 1.0
    return cells


def total_of(measured):
    """The number of records: sums of the measured tables, averaged by precision; at least 1."""
    precision = [1.0 / (noisy.size * sigma**2) for _, noisy, sigma in measured]
    return max(1.0, float(np.average([noisy.sum() for _, noisy, _ in measured], weights=precision)))


def loss_and_slope(cells, measured):
    """sum |table - noisy|^2 / (2 sigma^2), and its derivative in every cell."""
    loss, slope = 0.0, np.zeros(cells.shape)
    for clique, noisy, sigma in measured:
        error = (table(cells, clique) - noisy) / sigma
        loss += 0.5 * float(np.sum(error**2))
        others = tuple(axis for axis in range(cells.ndim) if axis not in clique)
        slope += np.expand_dims(error / sigma, others)
    return loss, slope


def estimate(measured, sizes, steps=STEPS):
    """The model's counts of every cell."""
    total = total_of(measured)
    logs, length = np.zeros(sizes), 1.0 / total**2
    cells = np.full(sizes, total / np.prod(sizes))
    loss, slope = loss_and_slope(cells, measured)
    for _ in range(steps):
        trial = logs - length * slope
        trial -= trial.max()
        moved = total * np.exp(trial) / np.exp(trial).sum()
        found, next_slope = loss_and_slope(moved, measured)
        if loss - found >= 0.5 * length * float(np.sum(slope * (cells - moved))):
            logs, cells, loss, slope, length = trial, moved, found, next_slope, 2.0 * length
        else:
            length /= 2.0
    return cells


def aim(records, sizes, rho, rng):
    """Algorithm 2 with a workload of all pairs; the last model's counts of every cell."""
    true, attributes = whole(records, sizes), len(sizes)
    workload = dict.fromkeys(itertools.combinations(range(attributes), 2), 1.0)
    closure = mckenna2022.candidates(workload)
    weights = [mckenna2022.candidate_weight(clique, workload) for clique in closure]
    sigma, epsilon = mckenna2022.first_scales(rho, attributes)
    measured = []

    def measure(clique):
        answer = table(true, clique)
        measured.append((clique, mckenna2022.measurement(answer, sigma, rng.standard_normal(answer.shape)), sigma))

    for attribute in range(attributes):
        measure((attribute,))
    used = attributes * mckenna2022.measurement_cost(sigma)
    model, last = estimate(measured, sizes), False
    while not last:
        sigma, epsilon, last = mckenna2022.next_round(rho - used, sigma, epsilon)
        used += mckenna2022.round_cost(sigma, epsilon)
        scores = [
            mckenna2022.quality_score(table(true, clique), table(model, clique), weight, sigma)
            for clique, weight in zip(closure, weights, strict=True)
        ]
        chances = mckenna2022.selection_probabilities(scores, weights, epsilon)
        chosen = closure[rng.choice(len(closure), p=chances)]
        measure(chosen)
        before, model = table(model, chosen), estimate(measured, sizes)
        sigma, epsilon = mckenna2022.annealed(before, table(model, chosen), sigma, epsilon)
    return model


def pairwise_of(cells):
    """The tables of all pairs j <= k that Proposition 3.2 of Ferrando, Sheldon 2024 takes; diagonal for j = k."""
    attributes = range(cells.ndim)
    pairs = {(j, k): table(cells, (j, k)) for j, k in itertools.combinations(attributes, 2)}
    return pairs | {(j, j): np.diag(table(cells, (j,))) for j in attributes}


def draw(cells, rows, rng):
    """Independent records from the model."""
    places = rng.choice(cells.size, size=rows, p=np.ravel(cells) / cells.sum())
    return np.column_stack(np.unravel_index(places, cells.shape))

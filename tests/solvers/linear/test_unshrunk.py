"""The estimate for inference of a linear fit against a second implementation that knows only its transcript."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpregress import GDP, MemoryLedger
from dpregress.accounting import Event
from dpregress.mechanisms import SeededSampler
from dpregress.public import Numeric, Schema
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import start
from dpregress.queries import ClippedScore, Counted, Query, ResidualHistogram, ScoreSquares, SecondMoment
from dpregress.releases import Histogram, Isotropic, Release
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers import Residual, Solution
from dpregress.trust import Central, Session
from tests.reference import unshrunk as reference

ROWS, ORDER = 20_000, 4
Transcript = list[tuple[Query[Any], Event, Release]]


def transcript(seed: int) -> tuple[Solution, Transcript]:
    """A seeded fit without an intercept, of skewed errors of unequal variance, with everything that it released."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(ROWS, ORDER)) @ (np.eye(ORDER) + 0.3)
    y = x @ [1.0, -0.5, 0.2, 0.0] + (rng.exponential(size=ROWS) - 1) * (0.3 + np.abs(x[:, 0]))
    names = tuple(f"x{i}" for i in range(ORDER))
    schema = Schema({**dict.fromkeys(names, Numeric(-2.2, 2.2)), "y": Numeric(-6, 12)})
    found = start(names, intercept=False, public=None, schema=schema, row_bound=None)
    solver = Residual(PublicFacts(ROWS, "y", found, None, schema), GDP(1.0), 0.0)
    reservation = MemoryLedger(GDP(1.0)).reserve(GDP(1.0))
    door = Session(Central(), PrivateRows(ArraySource(x, y)), SeededSampler(rng), reservation)
    told: Transcript = []

    def ask(query: Query[Any], spend: Event) -> Any:
        told.append((query, spend, door(query, spend)))
        return told[-1][2]

    return solver.solve(ask), told


def is_gram(query: Query[Any]) -> bool:
    return isinstance(query, Counted) and isinstance(query.query, SecondMoment)


def is_squares(query: Query[Any]) -> bool:
    return isinstance(query, ScoreSquares)


def share_above(clip: float, sizes: Histogram) -> float:
    """The share of a released histogram beyond the clip, of the bins that are clearly not empty."""
    assert isinstance(sizes.noise, Isotropic)
    counts = np.where(sizes.total > 5 * sizes.noise.sigma, sizes.total, 0.0)
    return float(counts[np.sqrt(sizes.edges[:-1] * sizes.edges[1:]) > clip].sum() / counts.sum())


def test_it_is_the_merge_of_all_scores_with_the_sandwich(seed: int) -> None:
    """The estimate within a fifth of its standard errors, and covariances to 5% of them.

    The implementation weighs scores by H and not by its trace, counts a tail of residuals that noise may hide, and
    divides the second moment by the share that its bound keeps. H is near the identity, so that each of these changes
    weights and variances by a few per cent. Three other seeds differed by .04 standard errors and 1.5% at most.
    """
    solution, told = transcript(seed)
    found = solution.unshrunk
    assert found is not None
    scores, sizes = [], None
    for query, spend, answer in told:
        if isinstance(answer, Histogram) and isinstance(query, ResidualHistogram):
            sizes = answer
        if isinstance(query, ClippedScore):
            assert sizes is not None
            noise = 2 * query.space.radius * query.clip / (spend.gaussian_mu * ROWS)
            scores.append((query.coef, answer.mean, noise, share_above(query.clip, sizes)))
    gram, squares = (
        next(answer for query, _, answer in reversed(told) if kind(query)) for kind in (is_gram, is_squares)
    )
    matrix = gram.total[:ORDER, :ORDER] / gram.n
    assert isinstance(gram.noise, Isotropic)
    estimate, noise = reference.merged(
        *zip(*scores, strict=True), matrix, (gram.noise.sigma / gram.n) ** 2 / 2, solution.whitened
    )
    sampling = reference.sampling(matrix, scores[-1][3], squares.total / squares.n, ROWS)
    errors = np.sqrt(np.diag(noise + sampling))
    assert (np.abs(estimate - found.coef) <= 0.2 * errors).all()
    for ours, right in ((found.privacy, noise), (found.sampling, sampling)):
        scale = np.sqrt(np.diag(right))
        assert (np.abs(ours - right) <= 0.05 * np.outer(scale, scale)).all()

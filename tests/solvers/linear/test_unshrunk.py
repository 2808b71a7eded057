"""The estimate for inference of a linear fit against a second implementation that knows only its transcript."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpregress import GDP, MemoryLedger
from dpregress.accounting import Event
from dpregress.coordinates import Matrix, Vector
from dpregress.mechanisms import SeededSampler
from dpregress.public import Numeric, PublicMoments, Schema
from dpregress.public.facts import PublicFacts
from dpregress.public.whitening import start
from dpregress.queries import (
    ClippedScore,
    Counted,
    Query,
    ResidualHistogram,
    ScoreRemainder,
    ScoreSquares,
    SecondMoment,
)
from dpregress.releases import Histogram, Isotropic, Release
from dpregress.rows import ArraySource, PrivateRows
from dpregress.solvers import Residual, Solution
from dpregress.solvers.base import Unshrunk
from dpregress.trust import Central, Session
from tests.reference import unshrunk as reference

ORDER = 4
NAMES = tuple(f"x{i}" for i in range(ORDER))
SLOPES = np.array([1.0, -0.5, 0.2, 0.0])
Rng = np.random.Generator


@dataclass(frozen=True)
class Design:
    """Rows x, responses y, and what is public."""

    x: Matrix
    y: Vector
    mu: float
    public: PublicMoments | None
    schema: Schema


def skewed(rng: Rng) -> Design:
    """Skewed errors of unequal variance: the clip takes a few tails, and what it takes hardly moves the root."""
    x = rng.uniform(-1, 1, size=(20_000, ORDER)) @ (np.eye(ORDER) + 0.3)
    y = x @ SLOPES + (rng.exponential(size=len(x)) - 1) * (0.3 + np.abs(x[:, 0]))
    schema = Schema({**dict.fromkeys(NAMES, Numeric(-2.2, 2.2)), "y": Numeric(-6, 12)})
    return Design(x, y, 1.0, None, schema)


def bent(rng: Rng) -> Design:
    """A mean that saturates, and rows far out: weights take the rows that would make the slope less steep."""

    def drawn(rows: int) -> Matrix:
        longer = np.exp(np.minimum(0.6 * rng.normal(size=(rows, 1)), 1.2))
        return longer * (rng.normal(size=(rows, ORDER)) @ (np.eye(ORDER) + 0.3))

    x, public = drawn(8_000), PublicMoments.from_rows(drawn(500))
    y = x @ SLOPES + 2 * np.tanh(x[:, 0]) + 0.5 * rng.normal(size=len(x))
    return Design(x, y, 0.3, public, Schema({"y": Numeric(-40, 40)}))


DESIGNS: dict[str, Callable[[Rng], Design]] = {"skewed errors": skewed, "a mean that saturates": bent}


@dataclass(frozen=True)
class Fit:
    """A seeded fit without an intercept, with everything that it released."""

    design: Design
    solution: Solution
    told: list[tuple[Query[Any], Event, Release]]

    @property
    def unshrunk(self) -> Unshrunk:
        assert self.solution.unshrunk is not None
        return self.solution.unshrunk

    def last(self, kind: type[Query[Any]]) -> tuple[Any, Any, float]:
        """The last query of a kind, its answer, and the noise in an entry of its mean."""
        query, spend, answer = next(each for each in reversed(self.told) if isinstance(_inner(each[0]), kind))
        return _inner(query), answer, query.noise(spend, len(self.design.x))


def _inner(query: Query[Any]) -> Query[Any]:
    return query.query if isinstance(query, Counted) else query


def fitted(design: str, seed: int) -> Fit:
    rng = np.random.default_rng(seed)
    made = DESIGNS[design](rng)
    names = NAMES if made.public is None else made.public.names
    found = start(names, intercept=False, public=made.public, schema=made.schema, row_bound=None)
    solver = Residual(PublicFacts(len(made.x), "y", found, made.public, made.schema), GDP(made.mu), 0.0)
    reservation = MemoryLedger(GDP(made.mu)).reserve(GDP(made.mu))
    door = Session(Central(), PrivateRows(ArraySource(made.x, made.y)), SeededSampler(rng), reservation)
    told: list[tuple[Query[Any], Event, Release]] = []

    def ask(query: Query[Any], spend: Event) -> Any:
        told.append((query, spend, door(query, spend)))
        return told[-1][2]

    return Fit(made, solver.solve(ask), told)


def sizes_of(released: Histogram) -> tuple[Vector, Vector]:
    """Sizes and their shares: bins that are not empty, and two noises' worth of rows unseen above the largest.

    Up to twice the bounds of y, where 20 octaves of bins end, some empty bin counts with a probability of 1%, above
    them with one of 1e-8. Unseen sizes rise in four half octaves, and not above these bounds or what is seen.
    """
    assert isinstance(released.noise, Isotropic)
    middles, upper = np.sqrt(released.edges[:-1] * released.edges[1:]), released.edges[1:]
    chance = np.where(upper <= released.edges[40], 1e-2 / 40, 1e-8 / len(middles))
    seen = released.total > released.noise.sigma * norm.isf(chance)
    steps = np.arange(1, 5)
    sizes = np.concatenate([middles[seen], middles[seen].max() * 2 ** (steps / 2)])
    counts = np.concatenate([released.total[seen], 2 * released.noise.sigma / 2**steps])
    return np.minimum(sizes, max(released.edges[40], upper[seen].max())), counts / counts.sum()


def likeness(fit: Fit, query: ScoreRemainder, gram: Matrix) -> tuple[Matrix, Vector]:
    """Rows that stand for the private ones, and their weights: the public rows, or normal rows."""
    if fit.design.public is None or fit.design.public.rows is None:
        rows = np.random.default_rng(0).normal(size=(1_000, ORDER))
        weights = np.ones(len(rows))
    else:
        rows = fit.design.public.rows @ query.space.whitening.T
        weights = np.minimum(1, query.space.radius / np.linalg.norm(rows, axis=1))
    return reference.recoloured(rows, weights, gram), weights


@dataclass(frozen=True)
class Expected:
    """What the reference makes of a transcript."""

    merged: Vector
    coef: Vector
    privacy: Matrix
    sampling: Matrix
    shift: Matrix
    predicting: Vector


def expected(fit: Fit) -> Expected:
    rows = len(fit.design.x)
    remainder, answer, noise = fit.last(ScoreRemainder)
    _, moments, _ = fit.last(SecondMoment)
    gram = moments.total[:ORDER, :ORDER] / moments.n
    if fit.design.public is not None:
        gram = fit.unshrunk.gram  # mixed with that of the public rows
    scores, sizes = [], None
    for query, spend, release in fit.told:
        if isinstance(query, ResidualHistogram) and isinstance(release, Histogram):
            sizes = sizes_of(release)
        if isinstance(query, ClippedScore) and query.space.order == ORDER:
            assert sizes is not None
            above = float(sizes[1][sizes[0] > query.clip].sum())
            scores.append((query.coef, release.mean, query.noise(spend, rows), above))
    assert sizes is not None
    alpha, last = scores[-1][3], remainder.coef
    variance = (moments.noise.sigma / moments.n) ** 2 / 2
    merged, privacy = reference.merged(*zip(*scores, strict=True), gram, variance, last)
    alike, weights = likeness(fit, remainder, gram)
    slope = reference.slope(gram, alike, weights)
    whole, beyond = reference.unfitted(alike, weights, *sizes, remainder.clip, remainder.bound)
    surprise = answer.mean - reference.expected(slope, gram, alpha, merged, last)
    move, doubt = reference.move(slope, reference.scaled(whole, surprise, noise, generous=True), surprise, noise)
    shift = reference.shift(slope, beyond)
    likely = reference.scaled(whole, answer.mean, noise, generous=False)
    asked, squares, _ = fit.last(ScoreSquares)
    meat = squares.total / squares.n / reference.kept(alike, weights, *sizes, asked.bound)
    return Expected(
        merged=merged,
        coef=merged + move,
        privacy=privacy + doubt + shift / 3,
        sampling=reference.sampling(slope, meat, rows),
        shift=shift,
        predicting=last + reference.move(slope, likely, answer.mean, noise)[0],
    )

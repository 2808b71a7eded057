"""Solvers, which compute coefficients from releases and public facts. They never see rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask, Query
from dpregress.releases import ANYWHERE, CovarianceType, Moments


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """First-order covariances of whitened coefficients: due to privacy noise, and in total."""

    privacy: Matrix
    total: Matrix


@dataclass(frozen=True, eq=False)
class Unshrunk:
    """Estimates for inference in whitened coordinates, where a solver finds them.

    Attributes
    ----------
    coef : ndarray of shape (q,)
        The estimate, not shrunk.
    sampling, privacy : ndarray of shape (q, q)
        Its covariances due to the sampling of rows, and due to privacy noise.
    unidentified : ndarray of shape (q, q)
        The projection on directions about which too little is known.
    shift : ndarray of shape (q, q)
        The second moment of what weights and clips may add to the coefficients of a model that is not exact.
    df : float
        Degrees of freedom of the sampling covariance.
    cov_type : {"robust", "model"}
    dispersion : float or None
    gram : ndarray of shape (p, p)
        The mean ``x~ x~'`` of the private rows.
    """

    coef: Vector
    sampling: Matrix
    privacy: Matrix
    unidentified: Matrix
    shift: Matrix
    df: float
    cov_type: CovarianceType
    dispersion: float | None
    gram: Matrix


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a solver.

    Attributes
    ----------
    whitened : ndarray of shape (p,)
        Coefficients in the space's coordinates.
    system : ndarray of shape (p, p)
        The matrix that was inverted to compute them.
    space : WhitenedSpace
    moments : Moments or None
        The joint release on which they are based, if there is one; inference uses it.
    uncertainty : Uncertainty or None
        Covariances that the solver computed, if there is no joint release.
    unshrunk : Unshrunk or None
        Estimates for inference; those of joint moments follow from the moments.
    lost : ndarray of shape (p, p) or None
        The part of the rows' second moment that weights take, where the moments are weighted.
    reach : (float, float)
        What predictors are kept between.
    limits : (float, float) or None
        What those of intervals are kept between, if it is more.
    left_out : bool
        Whether public rows were left out, since many private ones lie far beyond them.
    """

    whitened: Vector
    system: Matrix
    space: WhitenedSpace
    moments: Moments | None
    uncertainty: Uncertainty | None = None
    unshrunk: Unshrunk | None = None
    lost: Matrix | None = None
    reach: tuple[float, float] = ANYWHERE
    limits: tuple[float, float] | None = None
    left_out: bool = False


class Solver(ABC):
    """A method that asks at most ``rounds`` questions and post-processes the answers.

    Attributes
    ----------
    squares : int
        The order of the second moment of scores that it releases; 0 if it releases none.
    pieces : int
        Pieces of a follow-up, of which each but one adds a coefficient to those of the design columns; 0 without one.
    """

    squares: int = 0
    pieces: int = 0

    @property
    def asks(self) -> tuple[type[Query[Any]], ...] | None:
        """The kinds of its questions, if all are known before the first; counted ones by what is counted."""
        return None

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The largest number of questions, known before the data, so that a trust model can refuse in time."""

    @abstractmethod
    def solve(self, ask: Ask) -> Solution:
        """Ask within the budget that the constructor was given, and solve."""


class FactSolver(Solver):
    """A solver that plans with public facts, and whose first answer includes the number of usable rows.

    Attributes
    ----------
    facts : PublicFacts
    """

    facts: PublicFacts

    def among(self, n: int) -> Self:
        """The same solver for means over n rows, the released number of usable ones."""
        other = copy(self)
        other.facts = replace(self.facts, n=n)
        return other

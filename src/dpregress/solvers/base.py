"""Solvers: from releases to coefficients. They see releases and public facts, never rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.public.facts import PublicFacts
from dpregress.queries import Ask
from dpregress.releases import Moments


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """First-order covariances of whitened coefficients: what privacy noise adds, and in all."""

    privacy: Matrix
    total: Matrix


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver hands on.

    Attributes
    ----------
    whitened : ndarray of shape (p,)
        Coefficients in the space's coordinates.
    system : ndarray of shape (p, p)
        The matrix that was inverted to get them.
    space : WhitenedSpace
    moments : Moments or None
        The joint release they rest on, where there is one: what inference reads.
    uncertainty : Uncertainty or None
        Covariances that the solver kept on its way, where it rests on no joint release.
    """

    whitened: Vector
    system: Matrix
    space: WhitenedSpace
    moments: Moments | None
    uncertainty: Uncertainty | None = None


class Solver(ABC):
    """A method that asks at most ``rounds`` times and post-processes what it gets."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How often it asks: known before the data, so that a trust model can refuse in time."""

    @abstractmethod
    def solve(self, ask: Ask) -> Solution:
        """Ask within the budget given at construction, and solve."""


class FactSolver(Solver):
    """A solver that plans with public facts; its first answers tell how many rows are usable.

    Attributes
    ----------
    facts : PublicFacts
    """

    facts: PublicFacts

    def among(self, n: int) -> Self:
        """The same solver, for means over this many rows: those that were found to be usable."""
        other = copy(self)
        other.facts = replace(self.facts, n=n)
        return other

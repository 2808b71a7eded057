"""From releases to coefficients: nothing here can see a row."""

from dpregress.solvers.base import Solution, Solver
from dpregress.solvers.least_squares import solve_moments
from dpregress.solvers.one_shot import OneShot

__all__ = ["OneShot", "Solution", "Solver", "solve_moments"]

"""From releases to coefficients: nothing here can see a row."""

from dpregress.solvers.base import Solution, Solver, Uncertainty
from dpregress.solvers.least_squares import solve_moments
from dpregress.solvers.multinomial import MultinomialSteps
from dpregress.solvers.one_shot import OneShot
from dpregress.solvers.residual import Residual
from dpregress.solvers.score_steps import ScoreSteps

__all__ = [
    "MultinomialSteps",
    "OneShot",
    "Residual",
    "ScoreSteps",
    "Solution",
    "Solver",
    "Uncertainty",
    "solve_moments",
]

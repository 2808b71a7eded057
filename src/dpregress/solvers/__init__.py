"""Solvers, which compute coefficients from releases; none of them can see a row."""

from dpregress.solvers.base import Solution, Solver, Uncertainty
from dpregress.solvers.glm.multinomial import MultinomialSteps
from dpregress.solvers.glm.piece_steps import PieceSteps
from dpregress.solvers.glm.score_steps import ScoreSteps
from dpregress.solvers.linear.least_squares import solve_moments
from dpregress.solvers.linear.one_shot import OneShot
from dpregress.solvers.linear.residual import Residual

__all__ = [
    "MultinomialSteps",
    "OneShot",
    "PieceSteps",
    "Residual",
    "ScoreSteps",
    "Solution",
    "Solver",
    "Uncertainty",
    "solve_moments",
]

"""Experiments: one file a figure or table, run by ``dpregress experiment NAME``; and plans of studies."""

from dpregress.experiments.planning import Plan, plan

__all__ = ["Plan", "plan"]

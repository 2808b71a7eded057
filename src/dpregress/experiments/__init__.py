"""Experiments: one file a figure or table, run by ``dpregress experiment NAME``; and plans of studies."""

from dpregress.experiments.planning import plan
from dpregress.experiments.study_plan import Plan

__all__ = ["Plan", "plan"]

"""Real tables for demonstrations, tests and benchmarks."""

from dpregress.datasets.loaders import folder_table, randhie

__all__ = ["folder_table", "randhie"]

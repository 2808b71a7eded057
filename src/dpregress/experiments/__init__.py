"""Experiments: one file a figure or table, run by ``dpregress experiment NAME``."""

"""Moments of all columns alike, from which any column can be regressed on any others."""

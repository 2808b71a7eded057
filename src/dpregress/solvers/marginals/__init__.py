"""Marginals of coded tables, and what is fitted to them."""

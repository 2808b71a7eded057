"""Fits for people: words, pictures and self-contained pages."""

from dpregress.reports.page import Comparison, fit_page

__all__ = ["Comparison", "fit_page"]

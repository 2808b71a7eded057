"""Fits for people: words, pictures and self-contained pages."""

from dpregress.reports.page import Comparison, Fitted, fit_page

__all__ = ["Comparison", "Fitted", "fit_page"]

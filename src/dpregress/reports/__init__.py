"""Fits for people: words, pictures and self-contained pages."""

from dpregress.reports.diagnosis import Pictures
from dpregress.reports.page import Comparison, Fitted, fit_page
from dpregress.reports.summary import Summary, SummaryTable

__all__ = ["Comparison", "Fitted", "Pictures", "Summary", "SummaryTable", "fit_page"]

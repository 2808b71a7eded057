"""Fits for people: words, pictures and self-contained pages."""

from dpregress.reports.diagnosis import Pictures
from dpregress.reports.facts import Provenance, fit_facts
from dpregress.reports.page import Comparison, Fitted, fit_page
from dpregress.reports.summary import Summary, SummaryTable

__all__ = ["Comparison", "Fitted", "Pictures", "Provenance", "Summary", "SummaryTable", "fit_facts", "fit_page"]

"""Conversion of user inputs to sources and public facts."""

"""Readers of tables: files, databases, locations."""

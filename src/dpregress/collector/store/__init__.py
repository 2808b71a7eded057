"""Where a collector keeps reports: one store over SQLite and PostgreSQL."""

from dpregress.collector.store.audit import AuditEntry
from dpregress.collector.store.database import Database
from dpregress.collector.store.locations import open_store
from dpregress.collector.store.reports import Outcome, Store
from dpregress.collector.store.totals import Arrival, Totals

__all__ = ["Arrival", "AuditEntry", "Database", "Outcome", "Store", "Totals", "open_store"]

"""Budgets, events and ledgers. Knows no data."""

from dpregress.accounting.calibrate import gaussian_promise, integer_gaussian_promise, split, zcdp_promise
from dpregress.accounting.events import GDP, ZCDP, ApproxDP, Composed, Event, PureDP, Relation, decode, group
from dpregress.accounting.ledger import Account, Charge, Ledger, MemoryLedger
from dpregress.accounting.parallel import parallel_statement
from dpregress.accounting.reservation import Reservation
from dpregress.accounting.sqlite_ledger import SQLiteLedger
from dpregress.accounting.statement import PrivacyStatement, compose_statements
from dpregress.accounting.unit import RECORD, UNNAMED, Unit, user_of

__all__ = [
    "GDP",
    "RECORD",
    "UNNAMED",
    "ZCDP",
    "Account",
    "ApproxDP",
    "Charge",
    "Composed",
    "Event",
    "Ledger",
    "MemoryLedger",
    "PrivacyStatement",
    "PureDP",
    "Relation",
    "Reservation",
    "SQLiteLedger",
    "Unit",
    "compose_statements",
    "decode",
    "gaussian_promise",
    "group",
    "integer_gaussian_promise",
    "parallel_statement",
    "split",
    "user_of",
    "zcdp_promise",
]

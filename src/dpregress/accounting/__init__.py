"""Budgets, events and ledgers. Knows no data."""

from dpregress.accounting.calibrate import gaussian_promise, integer_gaussian_promise, split, zcdp_promise
from dpregress.accounting.confirmation import check_delta_confirmed
from dpregress.accounting.entries import Account, Charge, Policy, Request
from dpregress.accounting.events import GDP, ZCDP, ApproxDP, Composed, Event, PureDP, Relation, decode, group
from dpregress.accounting.ledger import Ledger, MemoryLedger, Rehearsed
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
    "Policy",
    "PrivacyStatement",
    "PureDP",
    "Rehearsed",
    "Relation",
    "Request",
    "Reservation",
    "SQLiteLedger",
    "Unit",
    "check_delta_confirmed",
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

"""What a solver asked, for tests of its shares."""

from __future__ import annotations

import math
from typing import Any

from dpregress.accounting import GDP, Event
from dpregress.queries import ClassRemainder, Query, ScoreRemainder

Asked = list[tuple[Query[Any], Event]]


def without_wider(questions: Asked) -> Asked:
    """The questions, with the cost of a wider remainder counted to the score that paid for it."""
    found: Asked = []
    paid = 0.0
    for query, spend in questions:
        if isinstance(query, ScoreRemainder | ClassRemainder) and found and type(found[-1][0]) is type(query):
            paid = spend.mu
        else:
            found.append((query, GDP(math.hypot(spend.mu, paid))))
            paid = 0.0
    return found

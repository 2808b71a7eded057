"""The largest delta of a fit that needs no confirmation."""

from __future__ import annotations

from dpregress.accounting.events import ApproxDP, Event, Relation
from dpregress.errors import InvalidInput

#: Where the number of records is private, a larger delta must be confirmed: one in a hundred thousand.
LARGEST_DELTA = 1e-5


def check_delta_confirmed(budget: Event, n: int, relation: Relation) -> None:
    """Refuse a delta above 1/n that the budget does not confirm.

    With such a delta, a mechanism that publishes one of the n records at random would be allowed. Under
    add-or-remove neighbours n is private, and the rule is ``delta <= LARGEST_DELTA`` whatever n is.

    Parameters
    ----------
    budget : Event
        What the user gave. Only ``ApproxDP`` has a delta.
    n : int
        The number of records, which is used only where it is public.
    relation : Relation

    Raises
    ------
    InvalidInput
    """
    if not isinstance(budget, ApproxDP) or budget.confirmed:
        return
    mend = "choose a smaller delta, or confirm this one with ApproxDP(.., confirm_delta=True)"
    if relation is not Relation.REPLACE_ONE:
        if budget.delta0 > LARGEST_DELTA:
            raise InvalidInput(
                f"delta = {budget.delta0:g} is above {LARGEST_DELTA:g}, the largest without confirmation where the "
                f"number of records is private: {mend}"
            )
    elif budget.delta0 * n > 1:
        raise InvalidInput(
            f"delta = {budget.delta0:g} is above 1/n = {1 / n:.2g}, at which publishing whole records would be "
            f"allowed: {mend}"
        )

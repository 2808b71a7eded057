"""The guarantee in words that a data-protection officer understands."""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

from dpregress.accounting import PrivacyStatement, Relation, Unit
from dpregress.accounting.events import ApproxDP, Event, PureDP, group
from dpregress.accounting.unit import RECORD
from dpregress.display import how_many

_FALSE_ALARMS = 0.05
#: What neighbours differ by.
_CHANGE = {Relation.REPLACE_ONE: "replaced by any other", Relation.ADD_REMOVE: "left out, or another added"}


def guarantee(privacy: PrivacyStatement) -> list[str]:
    """Sentences that say what is promised, to whom, and on what it rests."""
    unit = privacy.unit.partition(",")[0]  # without what qualifies it
    if privacy.seeded:
        return [
            "THE NOISE CAME FROM A SEED: anyone who knows it can subtract the noise. This simulation protects nobody.",
            f"With the operating system's noise it would have cost {total(privacy)}.",
        ]
    sentences = [
        f"What is published here would look almost the same if any one {unit} had been {_CHANGE[privacy.relation]}.",
        *([attacker(privacy.promise, unit)] if math.isfinite(privacy.mu) else []),  # zCDP knows no strongest test
        f"In the usual terms: {total(privacy)}.",
        f"The budget bought {how_many(len(privacy.events.parts), 'noisy release')} and was charged before anything was "
        "computed from private rows. Everything after the releases is post-processing and costs nothing.",
    ]
    if privacy.max_rows_per_unit is None:
        size = "epsilon" if isinstance(privacy.promise, PureDP) else "mu"
        several = f"with k {unit}s" if unit == RECORD.name else "who answers k times"
        sentences.append(
            f"The guarantee is for one {privacy.unit}. For a person {several}, {size} is k times as large."
        )
    else:
        whole = Unit(unit, privacy.max_rows_per_unit).describe()
        sentences.append(
            f"The guarantee is for one {whole}: mu = {privacy.mu:.4g} in total, and {privacy.record_mu:.4g} for any "
            "one row, even if the row moves to another unit. For k units together, mu is k times as large."
        )
    sentences.append("These facts are taken as public, not protected: " + "; ".join(privacy.assumed_public) + ".")
    if privacy.recorded is None:
        sentences.append("The spending is not recorded in a ledger: further fits on the same people add to it.")
    return sentences


def attacker(promise: Event, unit: str = "record") -> str:
    """What the strongest test can do: its power at 5% false alarms, ``Phi(Phi^{-1}(.05) + mu)``.

    Under epsilon-DP it is ``min(.05 e^epsilon, 1 - .95 e^-epsilon)`` (Wasserman, Zhou 2010).
    """
    if isinstance(promise, PureDP):
        power = min(
            _FALSE_ALARMS * math.exp(min(promise.epsilon0, 700)), 1 - (1 - _FALSE_ALARMS) * math.exp(-promise.epsilon0)
        )
    else:
        power = float(ndtr(promise.mu + ndtri(_FALSE_ALARMS)))
    percent = math.ceil(1000 * power) / 10  # "at most": rounded up
    return (
        f"Suppose that somebody knows every other {unit} and tests whether one particular {unit} was used. At a "
        f"false-alarm rate of 5%, the test succeeds at most {percent:.1f}% of the time; a blind guess, 5%."
    )


def total(privacy: PrivacyStatement) -> str:
    """The total in (epsilon, delta) and in mu; what it would be, of seeded noise."""
    delta = privacy.budget.delta0 if isinstance(privacy.budget, ApproxDP) else 1e-6
    promise = privacy.promise
    gaussian = math.isfinite(promise.mu)
    curve = f"mu = {promise.mu:.4g} of Gaussian" if gaussian else f"rho = {promise.rho:.4g} of zero-concentrated"
    return (
        f"{'nominally ' if privacy.seeded else ''}epsilon = {promise.epsilon(delta):.4g} at delta = {delta:g}, "
        f"or {curve} differential privacy, for {privacy.relation.value} neighbours"
        + (
            ""
            if privacy.max_rows_per_unit is None
            else f", one {Unit(privacy.unit, privacy.max_rows_per_unit).describe()}"
        )
    )


def group_rows(privacy: PrivacyStatement) -> list[tuple[int, float, float]]:
    """(k, mu, epsilon at the budget's delta) for people with k records."""
    delta = privacy.budget.delta0 if isinstance(privacy.budget, ApproxDP) else 1e-6
    rows = []
    for k in (1, 2, 3, 5):
        event = group(privacy.promise, k)
        rows.append((k, event.mu, event.epsilon(delta)))
    assert all(math.isfinite(epsilon) for _, _, epsilon in rows)
    return rows

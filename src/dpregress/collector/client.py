"""The user's device: it turns one row into one noisy report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Ledger, Request, user_of
from dpregress.accounting.names import note_of
from dpregress.collector.shares.splitting import SHARE_SEED_BYTES, WORD, additive_share
from dpregress.collector.study import Study
from dpregress.collector.wire import TOKEN_BYTES, Report, ShareReport, token_for
from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SecureSampler
from dpregress.mechanisms.randomness import random_bytes


def device_report(
    row: Mapping[str, object] | Sequence[object] | NDArray[np.float64],
    study: Study,
    *,
    token: bytes = bytes(TOKEN_BYTES),
    ledger: Ledger | None = None,
) -> Report:
    """One user's report: the row bounded, put on the study's grid and randomised, all on the device.

    The noise is the operating system's and exact. A report costs its user what the study says, every time: two
    reports on one row cost twice. Store it and send the same bytes again where sending fails. A ``ledger`` on the
    device holds to that: it is charged before the row is looked at, once for a study, and refuses a second report.

    Parameters
    ----------
    row : mapping or sequence
        Values by the names of the study's questions, or of its features and response if it has no terms; or in their
        order, the response last. What cannot be read counts as missing: the public fill value, or no answer without a
        response.
    study : Study
    token : bytes
        32 bytes that say that the user may answer.
    ledger : Ledger, optional
        The user's own, of unit "record" or "user", over all studies that the device answers. Without one the caller
        sees to it that a user answers once, and within what they may spend.

    Raises
    ------
    InvalidInput
        For another number of values, other names, or a token of another length.
    ChargedBefore
        When the ledger was charged for this study before.
    BudgetExceeded, LedgerError
        When the ledger does not hold enough, or counts something else.

    Examples
    --------
    >>> from dpregress import ApproxDP, LocalGLM, PublicMoments
    >>> from dpregress.collector import Report, Study
    >>> public = PublicMoments.from_rows(np.random.default_rng(0).normal(size=(200, 2)))
    >>> study = Study.of(LocalGLM(ApproxDP(1.0, 1e-6), public=public).plan(("x0", "x1"), n=10_000), "An example")
    >>> data = device_report({"x0": 0.3, "x1": -1.2, "y": 1}, study).encode()
    >>> len(data), Report.decode(data, study).answer.dtype
    (108, dtype('int32'))
    """
    if study.holders:
        raise InvalidInput("this study has two collectors: take device_shares")
    numbers = _paid_numbers(row, study, token, ledger)
    answer = study.answer(numbers[:-1], float(numbers[-1]), SecureSampler())
    return Report(study.digest, random_bytes(16), token, answer)


def device_shares(
    row: Mapping[str, object] | Sequence[object] | NDArray[np.float64],
    study: Study,
    *,
    token: bytes = bytes(TOKEN_BYTES),
    ledger: Ledger | None = None,
) -> tuple[ShareReport, ShareReport]:
    """One user's two shares, for the two collectors of a study, in its order.

    Each share by itself tells nothing. Together they are the exact answer: send each to its own collector, and never
    both to one. No noise is added here: each collector adds it, and the price of the study holds against whoever
    has one of the shares, or none. Store both, and send the same bytes again where sending fails.

    Parameters
    ----------
    row : mapping or sequence
        As in :func:`device_report`.
    study : Study
        With two collectors.
    token : bytes
        That of the invitation; each collector gets one of its own that follows from it.
    ledger : Ledger, optional
        As in :func:`device_report`.

    Raises
    ------
    InvalidInput, ChargedBefore, BudgetExceeded, LedgerError
        As in :func:`device_report`.
    """
    if not study.holders:
        raise InvalidInput("devices add noise to the answers of this study: take device_report")
    numbers = _paid_numbers(row, study, token, ledger)
    integers = study.exact_steps(numbers[:-1], float(numbers[-1]))
    seed, name = random_bytes(SHARE_SEED_BYTES), random_bytes(16)
    payloads = (seed, additive_share(integers, seed).astype(WORD).tobytes())
    one, other = (
        ShareReport(study.digest, name, token_for(token, holder), payload) for holder, payload in enumerate(payloads)
    )
    return one, other


def _paid_numbers(
    row: Mapping[str, object] | Sequence[object] | NDArray[np.float64],
    study: Study,
    token: bytes,
    ledger: Ledger | None,
) -> Vector:
    """The row as numbers, after the ledger was charged."""
    names = study.names
    if isinstance(row, Mapping):
        if set(row) != set(names):
            raise InvalidInput(f"this study asks for {', '.join(names)}")
        values: list[object] = [row[name] for name in names]
    else:
        values = list(row)
    if len(values) != len(names):
        raise InvalidInput(f"this study asks for {len(names)} values: {', '.join(names)}")
    if len(token) != TOKEN_BYTES:
        raise InvalidInput(f"a token has {TOKEN_BYTES} bytes, not {len(token)}")
    if ledger is not None:
        _charge(ledger, study)
    return study.row(values)


def _charge(ledger: Ledger, study: Study) -> None:
    """Charge a study's price, once."""
    user_of(ledger.account.unit)
    request = Request(formula=note_of(f"a report of {', '.join(study.names)}"))
    note = f"a report for study {study.digest.hex()}"
    ledger.reserve(study.spend, note=note, once=True, request=request).draw(study.spend)

"""From the noisy sums of two collectors to the fit of the study: all of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpregress.collector.readout import Readout, fit_sum
from dpregress.collector.shares.noisy_sums import ShareSum
from dpregress.collector.shares.splitting import sum_of_shares
from dpregress.collector.study import Study
from dpregress.errors import InvalidInput, NotAvailable

#: No sum of exact answers is known to fit into 64 bits for more reports.
_MOST_REPORTS = 1 << 31


def join_sums(study: Study, sums: Sequence[ShareSum]) -> tuple[NDArray[np.int64], int]:
    """The noisy sum over the reports that both collectors hold, of shape (p',), and their number.

    Parameters
    ----------
    study : Study
        With two collectors.
    sums : sequence of ShareSum
        One of each collector, in any order.

    Raises
    ------
    InvalidInput
        If both are of one collector, or they are about different reports; if no honest users and collectors can have
        made this sum, as when a share is missing in one of them.
    """
    if sorted(each.holder for each in sums) != [0, 1]:
        raise InvalidInput("the fit takes one sum of each collector: give that of the other one")
    one, other = sums
    if (one.agreed, one.n) != (other.agreed, other.n):
        raise InvalidInput("these sums are about different reports: each collector must use both signed lists")
    if one.n >= _MOST_REPORTS:
        raise InvalidInput(f"shares of 64 bits hold the sum of less than {_MOST_REPORTS:,} reports")
    total = sum_of_shares([one.total, other.total])
    most = study.integer_noise.largest_sum(study.query, one.n, len(study.holders))
    if int(total.max()) > most or int(total.min()) < -most:
        raise InvalidInput(
            "these sums do not fit each other: a share is missing in one of them, or a collector or a user sent "
            "something else. Nothing can be computed from them"
        )
    return total, one.n


def read_joined(study: Study, sums: Sequence[ShareSum], *, public: Any = None, level: float = 0.95) -> Readout:
    """Fit the model of a study to the noisy sums of its two collectors.

    Parameters
    ----------
    study : Study
    sums : sequence of ShareSum
    public : table, file or PublicMoments, optional
        The public rows of the study.
    level : float

    Raises
    ------
    NotAvailable
        Before the minimum count of the study.
    InvalidInput
        As :func:`join_sums`.
    """
    total, n = join_sums(study, sums)
    assert study.terms is not None
    if n < study.terms.minimum:
        raise NotAvailable(
            f"{n:,} of {study.terms.minimum:,} reports are there: nothing is read out before the minimum"
        )
    model, errors, lower, upper = fit_sum(study, study.release(total, n), public, level)
    d = len(model.coef_)
    unknown = np.full(d, math.nan)
    return Readout(study, model, n, level, 0.0, errors, lower, upper, unknown, np.full(d, math.inf))

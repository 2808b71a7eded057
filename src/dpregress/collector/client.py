"""What a user's device does: one row in, one noisy report out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpregress.collector.study import Study
from dpregress.collector.wire import Report
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SecureSource
from dpregress.mechanisms.randomness import random_bytes
from dpregress.rows.encoding import text_of, to_numbers


def device_report(
    row: Mapping[str, object] | Sequence[object] | NDArray[np.float64], study: Study, *, token: bytes = bytes(32)
) -> Report:
    """One user's report: the row bounded, put on the study's grid and randomised, all on the device.

    The noise is the operating system's and exact; a report costs its user what the study says, once. Store it and
    send the same bytes again where sending fails: a second report would be a second answer.

    Parameters
    ----------
    row : mapping or sequence
        Values by the names of the study's features and response, or in their order, the response last. What cannot
        be read as a number counts as missing: the public fill value, or no answer without a response.
    study : Study
    token : bytes
        32 bytes that say that the user may answer.

    Raises
    ------
    InvalidInput
        For another number of values, or other names.

    Examples
    --------
    >>> from dpregress import LocalGLM, PublicMoments
    >>> from dpregress.collector import Report, Study
    >>> public = PublicMoments.from_rows(np.random.default_rng(0).normal(size=(200, 2)))
    >>> study = Study.of(LocalGLM(epsilon=1.0, public=public).plan(("x0", "x1"), n=10_000), "An example")
    >>> data = device_report({"x0": 0.3, "x1": -1.2, "y": 1}, study).encode()
    >>> len(data), Report.decode(data, study).answer.dtype
    (96, dtype('int32'))
    """
    assert study.frame.response is not None
    names = (*study.frame.features, study.frame.response.name)
    if isinstance(row, Mapping):
        if set(row) != set(names):
            raise InvalidInput(f"this study asks for {', '.join(names)}")
        values: list[object] = [row[name] for name in names]
    else:
        values = list(row)
    if len(values) != len(names):
        raise InvalidInput(f"this study asks for {len(names)} values: {', '.join(names)}")
    numbers = _numbers(values)
    answer = study.answer(numbers[:-1], float(numbers[-1]), SecureSource())
    return Report(study.digest, random_bytes(16), token, answer)


def _numbers(values: list[object]) -> NDArray[np.float64]:
    """Numbers as they are, and what is none by the rule of tables."""
    if all(type(value) in (int, float, np.float64) for value in values):
        try:
            return np.array(values, dtype=np.float64)
        except OverflowError:
            pass
    import pyarrow as pa

    return to_numbers(pa.array([text_of(value) for value in values], pa.large_string()))

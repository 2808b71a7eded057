"""Values of example answers, for devices in other languages: whitened, bounded and put on the grid, without noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.collector import Study
from dpregress.mechanisms import SeededSampler
from dpregress.rows import RawRows

VECTORS = Path(__file__).parent / "vectors" / "values.json"
EXAMPLES: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example["name"]))
def test_values(example: dict[str, Any]) -> None:
    """The file is what the library computes, to rounding; a step of the grid may differ by one there."""
    study = Study.read(example["study"])
    assert study.digest.hex() == example["hash"]
    for case in example["cases"]:
        row = study.row(case["answers"])
        np.testing.assert_array_equal(row, [np.nan if each is None else each for each in case["row"]])
        value = study.query.value(study.query.row_map(RawRows(row[None, :-1], row[-1:])))
        np.testing.assert_allclose(value, case["value"], rtol=1e-12, atol=1e-12)
        steps = np.trunc(np.ldexp(value, study.bits))
        assert np.abs(steps - case["steps"]).max() <= 1
        answer = study.answer(row[:-1], float(row[-1]), SeededSampler(np.random.default_rng(0)))
        assert len(answer) == len(value)

"""Tables that the command-line tests share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import write_csv

COLUMNS = ("age", "bmi", "cost")


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with private.csv (5,000 rows), public.csv (200) and schema.toml, made the current one."""
    rng = np.random.default_rng(0)
    age, bmi = rng.uniform(20, 80, 5200), rng.normal(27, 4, 5200)
    cost = 100 * age + 300 * bmi + rng.normal(0, 500, 5200)
    write_csv(tmp_path / "public.csv", COLUMNS, age[:200], bmi[:200], cost[:200])
    write_csv(tmp_path / "private.csv", COLUMNS, age[200:], bmi[200:], cost[200:])
    (tmp_path / "schema.toml").write_text(
        "[age]\nlower = 0\nupper = 110\n[bmi]\nlower = 10\nupper = 60\n[cost]\nlower = 0\nupper = 30000\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path

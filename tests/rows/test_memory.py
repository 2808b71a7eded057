"""What does not fit into memory is refused before the charge, by public sizes, with both figures in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpregress import (
    GDP,
    DPLogisticRegression,
    DPRidge,
    MarginalsRegression,
    MemoryLedger,
    Numeric,
    Schema,
    SQLiteLedger,
    VerticalRegression,
)
from dpregress.accounting import ApproxDP, Relation
from dpregress.errors import InvalidInput
from dpregress.rows import memory
from tests.parties.study import PARTIES, write_study
from tests.parties.test_protocol import agree, ok, open_ledgers, refused, release, step
from tests.support import run

FIGURES = re.compile(r"would take about [\d.,e+]+ GB of memory, [\d.,e+-]+ GB are available: \w+")


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two megabytes left."""
    monkeypatch.setattr(memory, "available", lambda: 2_000_000)


def test_a_robust_covariance_of_many_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second moment of scores is larger than the Gram matrix; the covariance by the model needs only the latter."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, size=(100, 30)), np.arange(100) % 4
    schema = Schema({f"x{j}": Numeric(-1, 1) for j in range(30)})
    order = 31 * 3
    monkeypatch.setattr(memory, "available", lambda: order**2 * 256 + order * (order + 1) // 2 * 128)
    ledger = MemoryLedger(GDP(1e4))
    made = {"privacy": GDP(1e3), "schema": schema, "classes": range(4), "ledger": ledger, "random_state": 0}
    with pytest.raises(
        InvalidInput, match=r'robust covariance of 93 coefficients would take .*: ask for cov_type "model"'
    ):
        DPLogisticRegression(**made).fit(x, y)
    assert not ledger.charges
    with pytest.warns(UserWarning, match="seed"):
        DPLogisticRegression(**made, cov_type="model").fit(x, y)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("recipe", ["one-shot", "aim", "residuals", "gaussian"])
@pytest.mark.parametrize("numeric", [True, False])
def test_marginals(recipe: str, numeric: bool) -> None:
    """Many bins for those that hold whole tables; many levels of classes for all."""
    if numeric and recipe in ("one-shot", "gaussian"):
        return  # a number is one column, however many its bins
    levels = range(120)
    names = ["a", "b", "c"]
    schema = Schema.from_levels(dict.fromkeys(names, levels), numeric=names if numeric else [])
    ledger = MemoryLedger(ApproxDP(1.0, 1e-5), relation=Relation.ADD_REMOVE)
    table = pd.DataFrame({name: ["1", "2", "3"] for name in names})
    family = "gaussian" if numeric else "multinomial"
    model = MarginalsRegression(ApproxDP(1.0, 1e-5), schema=schema, recipe=recipe, ledger=ledger, family=family)
    with pytest.raises(InvalidInput, match=FIGURES) as caught:
        model.fit_table(table, "a")
    assert "\n" not in str(caught.value)
    assert not ledger.charges


def test_a_thousand_bins_of_eight_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """28 tables of a million cells: what a process limited to 5 GB died of after the charge."""
    assert 28 * 1024**2 * 256 > 5e9
    schema = "\n".join(f"[x{i}]\nlower = 0\nupper = 1\n" for i in range(8))
    (tmp_path / "s.toml").write_text(schema)
    (tmp_path / "d.csv").write_text(",".join(f"x{i}" for i in range(8)) + "\n" + ",".join(["0.5"] * 8) + "\n")
    ledger = SQLiteLedger.create(tmp_path / "b.db", "d", ApproxDP(2.0, 1e-6), relation=Relation.ADD_REMOVE)
    arguments = (
        "marginals", "release", tmp_path / "d.csv", "--schema", tmp_path / "s.toml", "--epsilon", 1, "--delta", 1e-6,
        "--bins", 1024, "--recipe", "residuals", "--ledger", tmp_path / "b.db", "--dataset", "d",
        "--out", tmp_path / "o.json",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "available", lambda: 5 * 10**9)
        outcome = run(capsys, *arguments)
    assert outcome.code == 2
    assert FIGURES.search(outcome.err)
    assert outcome.err.count("\n") == 1
    assert not ledger.charges


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("kind", [DPRidge, DPLogisticRegression])
def test_wide_fits(kind: Callable[..., DPRidge]) -> None:
    names = [f"x{i}" for i in range(120)]
    schema = Schema({**{name: Numeric(0, 1) for name in names}, "y": Numeric(0, 1)})
    ledger = MemoryLedger(GDP(1.0))
    table = pd.DataFrame(np.zeros((5, 121)), columns=[*names, "y"])
    with pytest.raises(InvalidInput, match=FIGURES):
        kind(GDP(0.5), schema=schema, ledger=ledger).fit_table(table, "y")
    assert not ledger.charges
    kind(GDP(0.5), schema=schema, ledger=ledger).fit_table(table, "y", names[:20])
    assert len(ledger.charges) == 1


def test_a_mixture_in_one_process() -> None:
    ledgers = {name: MemoryLedger(GDP(1.0)) for name in ("one", "other")}
    parties = {name: np.zeros((9, 1)) for name in ledgers}
    with pytest.raises(InvalidInput, match=FIGURES):
        VerticalRegression(ApproxDP(1.0, 1e-5), rows=2**31, ledger=ledgers).fit_table(parties)
    assert not any(ledger.charges for ledger in ledgers.values())


def test_a_plan_that_nobody_can_release(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """Refused where it is made, where it is signed, and before the charge; with more memory it is released then."""
    write_study(tmp_path, np.random.default_rng(seed), more="k = 2147483648")
    plan = ("plan", tmp_path / "study.toml", "--key", tmp_path / "key", "--out", tmp_path / "out")
    assert FIGURES.search(refused(capsys, *plan))
    assert not (tmp_path / "out").exists()
    write_study(tmp_path, np.random.default_rng(seed), more="k = 4096")
    open_ledgers(tmp_path)
    agree(capsys, tmp_path)
    for party in PARTIES:
        ok(capsys, *step(tmp_path, "align", party))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "available", lambda: 1_000_000)
        sign = ("sign", tmp_path / "shared/plan.json", "--party", "lab", "--keys", tmp_path / "lab-keys")
        assert FIGURES.search(refused(capsys, *sign))
        assert FIGURES.search(refused(capsys, *release(tmp_path, "clinic")))
    assert not SQLiteLedger(tmp_path / "clinic.db", "clinic").charges
    ok(capsys, *release(tmp_path, "clinic"))
    assert len(SQLiteLedger(tmp_path / "clinic.db", "clinic").charges) == 1


@pytest.mark.parametrize("rows", [99_999_999_999, 10**400])
def test_synthetic_rows(rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.csv").write_text("a,b\n" + "x,0.5\n" * 50)
    (tmp_path / "s.toml").write_text('[a]\nlevels = ["x", "y"]\n[b]\nlower = 0\nupper = 1\n')
    made = run(
        capsys, "marginals", "release", tmp_path / "d.csv", "--schema", tmp_path / "s.toml", "--epsilon", 1,
        "--delta", 1e-6, "--out", tmp_path / "m.json",
    )  # fmt: skip
    assert made.code == 0, made.err
    outcome = run(capsys, "marginals", "synth", tmp_path / "m.json", "--rows", rows, "--out", tmp_path / "r.csv")
    assert outcome.code == 2
    assert FIGURES.search(outcome.err)
    assert outcome.err.count("\n") == 1
    assert run(capsys, "marginals", "synth", tmp_path / "m.json", "--rows", 9, "--out", tmp_path / "r.csv").code == 0


def test_what_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of machine and container; a container without a limit, and what cannot be read, limit nothing."""
    machine, limit, used = (tmp_path / name for name in ("meminfo", "max", "current"))
    machine.write_text("MemTotal:  9000000 kB\nMemAvailable:  8000000 kB\n")
    limit.write_text("max\n")
    used.write_text("1000000000\n")
    monkeypatch.setattr(memory, "_MEMINFO", machine)
    monkeypatch.setattr(memory, "_GROUPS", ((limit, used), (tmp_path / "none", tmp_path / "neither")))
    monkeypatch.setattr(memory, "resource", _Unlimited)
    spare = 64 << 20
    assert memory.available() == 8_000_000 * 1024 - spare
    limit.write_text("5000000000\n")
    assert memory.available() == 4_000_000_000 - spare
    limit.write_text("1000000000\n")
    assert memory.available() == 0
    machine.unlink()
    limit.unlink()
    assert memory.available() > 0


class _Unlimited:
    """The system's limits of a process that has none."""

    RLIMIT_AS, RLIM_INFINITY = 9, -1

    @staticmethod
    def getrlimit(kind: int) -> tuple[int, int]:
        assert kind == _Unlimited.RLIMIT_AS
        return (-1, -1)

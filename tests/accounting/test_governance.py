"""Who charged a ledger and what for, what its policy allows, what is left, and rehearsals."""

from __future__ import annotations

import json
import math
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpregress.accounting import (
    GDP,
    ZCDP,
    Account,
    ApproxDP,
    Event,
    Ledger,
    MemoryLedger,
    Policy,
    PureDP,
    Rehearsed,
    Relation,
    Request,
    SQLiteLedger,
    Unit,
)
from dpregress.accounting.adaptive import covers_adaptive
from dpregress.accounting.calibrate import gaussian_promise, zcdp_promise
from dpregress.accounting.remaining import describe_left, largest_charge
from dpregress.accounting.wording import rounded_down
from dpregress.errors import BudgetExceeded, InvalidInput, LedgerError, PolicyViolation

Open = Callable[..., Ledger]
BUDGET = ApproxDP(3.0, 1e-6)


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "memory":
        return lambda budget, **more: MemoryLedger(budget, "people", **more)
    return lambda budget, **more: SQLiteLedger.create(tmp_path / "ledger.db", "people", budget, **more)


# ---------------------------------------------------------------- who and what for


def test_a_charge_names_who_asked_and_what_for(opened: Open) -> None:
    ledger = opened(BUDGET)
    handle = ledger.on_behalf(analyst="ann", purpose="pilot", output="model")
    handle.reserve(GDP(0.1), request=Request(formula="y ~ x", source="rows.csv", output="ignored"))
    ledger.reserve(GDP(0.1))
    first, second = ledger.charges
    assert first.request == Request("ann", "pilot", "y ~ x", "rows.csv", "model")
    assert second.request == Request()
    assert str(first.software).startswith("dpregress ")
    assert handle.charges == ledger.charges


def test_handles_share_one_budget(opened: Open) -> None:
    ledger = opened(GDP(1.0))
    handles = [ledger.on_behalf(analyst=name) for name in ("ann", "ben")]
    for handle in handles:
        handle.reserve(GDP(0.7))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(GDP(0.7))
    assert [charge.request.analyst for charge in ledger.charges] == ["ann", "ben"]
    assert handles[0].on_behalf(purpose="more").request == Request("ann", "more")


def test_a_handle_travels_with_its_request(tmp_path: Path) -> None:
    ledger = SQLiteLedger.create(tmp_path / "l.db", "people", BUDGET).on_behalf(analyst="ann")
    pickle.loads(pickle.dumps(ledger)).reserve(GDP(0.1))
    assert ledger.charges[0].request.analyst == "ann"
    with pytest.raises(Rehearsed):
        pickle.loads(pickle.dumps(ledger.rehearsal())).reserve(GDP(0.1))


@pytest.mark.parametrize("field", ["analyst", "purpose", "source", "output"])
@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "x" * 1001, 3, None])
def test_fields_are_single_lines(field: str, text: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        MemoryLedger(BUDGET).on_behalf(**{field: text})
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- policies

#: Policies, with charges that each refuses and one that it allows.
RULES: dict[str, tuple[Policy, list[dict[str, Any]], dict[str, Any]]] = {
    "largest epsilon": (
        Policy(max_epsilon_per_fit=1.0),
        [{"event": GDP(0.3)}, {"event": ApproxDP(0.5, 1e-3)}, {"event": PureDP(1.1)}, {"event": GDP(0.2) * 2}],
        {"event": GDP(ApproxDP(1.0, 1e-6).gaussian_mu)},
    ),
    "analysts": (
        Policy(analysts=("ann", "ben")),
        [
            {"event": GDP(0.1)},
            {"event": GDP(0.1), "request": Request("eve")},
            {"event": GDP(0.1), "request": Request("an")},
        ],
        {"event": GDP(0.1), "request": Request("ben")},
    ),
    "unit": (
        Policy(require_unit=True),
        [{"event": GDP(0.1)}, {"event": GDP(0.1), "unit": None}],
        {"event": GDP(0.1), "unit": Unit("person", 2)},
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_policy_is_kept_whoever_charges(rule: str, opened: Open) -> None:
    """A refusal leaves no trace; ``check`` and a rehearsal refuse the same."""
    policy, refused, allowed = RULES[rule]
    ledger = opened(BUDGET, policy=policy, unit="person")
    for charge in refused:
        for handle in (ledger, ledger.rehearsal()):
            with pytest.raises(PolicyViolation) as caught:
                handle.reserve(**charge)
            assert "\n" not in str(caught.value)
            assert "the policy of the ledger for 'people'" in str(caught.value)
        with pytest.raises(PolicyViolation):
            ledger.check(charge["event"], unit=charge.get("unit"))
    assert ledger.charges == ()
    ledger.reserve(**allowed)
    assert len(ledger.charges) == 1


def test_a_policy_speaks_in_the_units_that_were_asked_for(opened: Open) -> None:
    ledger = opened(BUDGET, policy=Policy(max_epsilon_per_fit=1.0))
    asked = ApproxDP(2.0, 1e-6)
    with pytest.raises(PolicyViolation, match="allows epsilon = 1, delta = 1e-06 for each fit, not epsilon = 2, delta"):
        ledger.reserve(GDP(asked.gaussian_mu), asked=asked)


def test_a_policy_is_part_of_the_file(tmp_path: Path) -> None:
    """Read by every handle, and never changed; a handle that was opened under another policy is refused."""
    path = tmp_path / "l.db"
    policy = Policy(max_epsilon_per_fit=0.5, analysts=["ann"], require_unit=True)  # type: ignore[arg-type]
    SQLiteLedger.create(path, "people", BUDGET, unit="person", policy=policy)
    assert SQLiteLedger(path, "people").account.policy == policy == Policy.decode(policy.encode())
    with closing(sqlite3.connect(path)) as raw, pytest.raises(sqlite3.DatabaseError, match="append-only"):
        raw.execute("UPDATE dataset SET policy = NULL")
    forged = SQLiteLedger(path, "people")
    forged._account = Account("people", BUDGET, Relation.REPLACE_ONE, "person")
    with pytest.raises(LedgerError, match="another budget"):
        forged.reserve(GDP(0.1))


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "3", '{"analysts": []}', '{"max_epsilon_per_fit": 1, "analysts": [], "require_unit": false, "new": 1}',
     '{"max_epsilon_per_fit": "1", "analysts": [], "require_unit": false}',
     '{"max_epsilon_per_fit": null, "analysts": "ann", "require_unit": false}',
     '{"max_epsilon_per_fit": null, "analysts": [], "require_unit": 0}'],
)  # fmt: skip
def test_a_policy_that_is_not_understood_is_not_ignored(text: str, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    SQLiteLedger.create(path, "people", BUDGET)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DROP TRIGGER budget_is_final")
        raw.execute("UPDATE dataset SET policy = ?", (text,))
    with pytest.raises(LedgerError, match="is damaged") as caught:
        SQLiteLedger(path, "people")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "budget", "unit"),
    [
        ({"max_epsilon_per_fit": 0.0}, BUDGET, "person"),
        ({"max_epsilon_per_fit": "1"}, BUDGET, "person"),
        ({"max_epsilon_per_fit": 1.0}, GDP(1.0), "person"),
        ({"max_epsilon_per_fit": 1.0}, ZCDP(1.0), "person"),
        ({"analysts": "ann"}, BUDGET, "person"),
        ({"analysts": ("",)}, BUDGET, "person"),
        ({"analysts": (3,)}, BUDGET, "person"),
        ({"require_unit": 1}, BUDGET, "person"),
        ({"require_unit": True}, BUDGET, "record"),
    ],
)
def test_policies_that_cannot_be_kept_are_refused(
    parameters: dict[str, Any], budget: Event, unit: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        SQLiteLedger.create(tmp_path / "l.db", "people", budget, unit=unit, policy=Policy(**parameters))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "l.db").exists()


LAST = """
import sys
from dpregress.accounting import GDP, SQLiteLedger
from dpregress.errors import BudgetExceeded

ledger = SQLiteLedger(sys.argv[1], "people").on_behalf(analyst=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
try:
    ledger.reserve(GDP(1.0))
except BudgetExceeded:
    sys.exit(3)
"""


def test_two_processes_race_for_the_last_of_a_budget(tmp_path: Path) -> None:
    """One is charged, the other is refused, and the ledger says which."""
    path = tmp_path / "l.db"
    ledger = SQLiteLedger.create(path, "people", GDP(math.sqrt(2.0)), policy=Policy(analysts=("ann", "ben")))
    ledger.on_behalf(analyst="ann").reserve(GDP(1.0))
    racers = {
        name: subprocess.Popen(
            [sys.executable, "-c", LAST, path, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("ann", "ben")
    }
    for racer in racers.values():
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers.values():
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    codes = {name: (racer.communicate(timeout=100), racer.returncode)[1] for name, racer in racers.items()}
    assert sorted(codes.values()) == [0, 3]
    assert [charge.request.analyst for charge in ledger.charges[1:]] == [
        who for who, code in codes.items() if code == 0
    ]


# ---------------------------------------------------------------- what is left

STARTS: dict[str, tuple[Event, tuple[Event, ...]]] = {
    "nothing spent": (BUDGET, ()),
    "mu": (BUDGET, (GDP(0.2), GDP(0.3))),
    "rho": (BUDGET, (ZCDP(0.02),)),
    "epsilons": (BUDGET, (PureDP(0.5),)),
    "epsilons and deltas": (BUDGET, (ApproxDP(1.0, 1e-7),)),
    "a budget of mu": (GDP(1.0), (GDP(0.6),)),
    "a budget of rho": (ZCDP(1.0), (ZCDP(0.25), GDP(0.5))),
    "a pure budget": (PureDP(2.0), (PureDP(0.5),)),
}


@pytest.mark.parametrize("start", STARTS)
def test_what_is_left_is_what_the_ledger_still_takes(start: str) -> None:
    """The largest charge is taken, one that is a thousandth larger is refused, and then nothing is left."""
    budget, spent = STARTS[start]
    left = largest_charge(budget, spent)
    assert left is not None
    assert covers_adaptive(budget, (*spent, left))
    (name, value), *more = left.parameters().items()
    larger = type(left)(value * 1.001, *(number for _, number in more))
    assert not covers_adaptive(budget, (*spent, larger)), name
    assert largest_charge(budget, (*spent, left)) is None
    assert describe_left(budget, (*spent, left)) == "nothing"


def test_what_is_left_is_said_at_a_delta(opened: Open) -> None:
    ledger = opened(BUDGET)
    assert "nothing spent, epsilon = 3 at delta = 1e-06 left" in ledger.describe()
    assert "do not add up" not in ledger.describe()
    one = ApproxDP(1.0, 1e-6)
    ledger.reserve(GDP(one.gaussian_mu))
    words = describe_left(BUDGET, [charge.event for charge in ledger.charges])
    epsilon = float(words.split()[2])
    assert ledger.describe().endswith("left (epsilons do not add up: costs are added as mu)")
    assert repr(ledger) == f"<{type(ledger).__name__} {ledger.describe()}>"
    assert words == f"epsilon = {epsilon:g} at delta = 1e-06"
    assert words in ledger.describe()
    with pytest.raises(BudgetExceeded, match=f"ask for at most {words}"):
        ledger.reserve(GDP(ApproxDP(epsilon + 2e-3, 1e-6).gaussian_mu))
    ledger.rehearsal().check(GDP(ApproxDP(epsilon, 1e-6).gaussian_mu))
    left = largest_charge(BUDGET, [charge.event for charge in ledger.charges])
    assert left is not None
    ledger.reserve(left)
    with pytest.raises(BudgetExceeded, match="open a new budget"):
        ledger.reserve(GDP(0.1))


def test_less_is_left_at_a_smaller_delta() -> None:
    """A fit at a smaller delta adds less noise for the same epsilon, so its epsilon may be larger."""
    at = {delta: float(describe_left(BUDGET, (GDP(0.2),), delta).split()[2]) for delta in (1e-6, 1e-8)}
    assert at[1e-8] > at[1e-6]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (ApproxDP(9.0, 1e-7), "does not cover epsilon = 9, delta = 1e-07: ask for at most epsilon = 3 at"),
        (None, r"does not cover mu = 1.5 \(epsilon = [78][.\d]* at delta = 1e-06\): ask for at most epsilon = 3 at"),
    ],
)
def test_a_refusal_speaks_the_units_of_the_user(asked: Event | None, words: str, opened: Open) -> None:
    with pytest.raises(BudgetExceeded, match=words):
        opened(BUDGET).reserve(GDP(1.5), asked=asked)


def test_rounding_never_promises_more(seed: int) -> None:
    for value in np.exp(np.random.default_rng(seed).uniform(-20, 20, size=500)):
        shown = float(rounded_down(value))
        assert value * (1 - 1.001e-3) <= shown <= value * (1 + 1e-8)
    assert rounded_down(3 * (1 - 1e-13)) == "3"


# ---------------------------------------------------------------- rehearsals


def test_a_rehearsal_charges_nothing(opened: Open) -> None:
    ledger = opened(GDP(1.0))
    rehearsal = ledger.on_behalf(analyst="ann").rehearsal()
    with pytest.raises(Rehearsed) as stopped:
        rehearsal.reserve(GDP(0.5), note="a fit")
    assert stopped.value.charge.event == GDP(0.5)
    assert stopped.value.charge.request.analyst == "ann"
    with pytest.raises(BudgetExceeded):
        rehearsal.reserve(GDP(1.5))
    assert ledger.charges == rehearsal.charges == ()
    ledger.reserve(GDP(1.0))
    with pytest.raises(BudgetExceeded):
        rehearsal.reserve(GDP(0.5))


def test_a_file_is_as_a_program_writes_it(tmp_path: Path) -> None:
    """The columns of version 3, for other programs that read ledgers."""
    path = tmp_path / "l.db"
    SQLiteLedger.create(path, "people", BUDGET).on_behalf(analyst="ann").reserve(GDP(0.1))
    with closing(sqlite3.connect(path)) as raw:
        raw.row_factory = sqlite3.Row
        (row,) = raw.execute("SELECT * FROM charge")
        (terms,) = raw.execute("SELECT * FROM dataset")
    assert set(row.keys()) == {
        "id", "dataset", "event", "note", "charged", "seeded", "analyst", "purpose", "formula", "source", "output",
        "software",
    }  # fmt: skip
    assert json.loads(terms["policy"]) == Policy().encode()


@pytest.mark.parametrize(
    ("charges", "refused", "left"),
    [
        ([PureDP(0.2)], PureDP(0.9), PureDP(0.8)),
        ([zcdp_promise(ApproxDP(0.5, 1e-6))], zcdp_promise(ApproxDP(0.95, 1e-6)), None),
        ([gaussian_promise(ApproxDP(0.5, 1e-6))], gaussian_promise(ApproxDP(0.95, 1e-6)), None),
    ],
)
def test_what_is_left_is_of_the_kind_of_the_last_charge(
    charges: list[Event], refused: Event, left: Event | None
) -> None:
    """What the ledger advises to ask for at most is accepted, and two per cent more are not."""
    budget = ApproxDP(1.0, 1e-6)
    ledger = MemoryLedger(budget)
    for charge in charges:
        ledger.reserve(charge)
    most = largest_charge(budget, charges)
    assert most is not None
    assert type(most) is type(charges[-1])
    if left is not None:
        assert most.epsilon(1e-6) == pytest.approx(left.epsilon(1e-6), rel=1e-3)
    advised = f"epsilon = {rounded_down(most.epsilon(1e-6))}"
    assert f"{advised} at delta = 1e-06 left" in ledger.describe()
    with pytest.raises(BudgetExceeded, match=advised):
        ledger.reserve(refused)
    assert not covers_adaptive(budget, [*charges, type(most)(1.02 * next(iter(most.parameters().values())))])
    ledger.reserve(most)


def test_a_policy_that_gives_no_protection_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidInput, match="no protection"):
        Policy(max_epsilon_per_fit=1e300)
    assert Policy(analysts=["ann", "ann"]).analysts == ("ann",)


def test_names_have_one_spelling() -> None:
    """Letters and accents apart look like those in one, and would be another budget or analyst."""
    with pytest.raises(InvalidInput, match="as one character"):
        MemoryLedger(GDP(1.0), dataset="cafe\u0301")
    assert MemoryLedger(GDP(1.0), dataset="caf\u00e9").account.dataset == "caf\u00e9"

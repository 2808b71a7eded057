"""A small study of three institutions: terms, tables, and the steps that each takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

PARTIES = ("clinic", "lab", "insurer")
TERMS = """
study = "heart"
n = {n}
identifiers = ["person"]
people = "{people}"
{more}

[parties.clinic]
epsilon = {epsilon}
delta = 1e-6
[parties.clinic.columns.age]
lower = 0
upper = 100
unit = "years"
[parties.clinic.columns.smoker]
levels = ["no", "yes"]

[parties.lab]
epsilon = {epsilon}
delta = 1e-6
[parties.lab.columns.dose]
lower = -1
upper = 1
[parties.lab.columns.age_again]
lower = 0
upper = 100

[parties.insurer]
epsilon = {epsilon}
delta = 1e-6
[parties.insurer.columns.cost]
lower = -3
upper = 3
"""


def write_study(
    folder: Path,
    rng: np.random.Generator,
    *,
    n: int = 400,
    people: str = "all",
    epsilon: float = 1.0,
    more: str = "",
    missing: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Terms and three tables in a folder, rows of each in an order of its own; the columns and the response.

    Each table holds everybody in the study and some strangers; ``missing`` people more are in the clinic's alone.
    """
    age, smoker, dose = rng.uniform(0, 100, n), rng.random(n) < 0.4, rng.uniform(-1, 1, n)
    cost = (age - 50) / 50 + smoker + 0.5 * dose + 0.2 * rng.normal(size=n)
    count = n if people == "all" else n + missing
    terms = TERMS.format(n=count, people=people, epsilon=epsilon, more=more)
    (folder / "study.toml").write_text(terms, encoding="utf-8")
    tables = {
        "clinic": ("age,smoker", [f"{a!r},{'yes' if s else 'no'}" for a, s in zip(age.tolist(), smoker, strict=True)]),
        "lab": ("dose,age_again", [f"{d!r},{a!r}" for d, a in zip(dose.tolist(), age.tolist(), strict=True)]),
        "insurer": ("cost", [repr(c) for c in cost.tolist()]),
    }
    for party, (header, rows) in tables.items():
        lines = [f" P{i:05d}{' ' * (party == 'lab')},{row}" for i, row in enumerate(rows)]
        if party == "clinic":
            lines += [f"p9{i:04d},50,no" for i in range(missing)]
        if people == "all":
            lines.append(f"only-{party}," + rows[0])
        order = rng.permutation(len(lines))
        text = "\n".join([f"person,{header}", *(lines[i] for i in order)])
        (folder / f"{party}.csv").write_text(text + "\n", encoding="utf-8")
    return np.column_stack([age, smoker, dose]), cost

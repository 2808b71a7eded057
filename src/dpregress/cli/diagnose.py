"""``dpregress diagnose``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dpregress.cli.charging import budget_options, open_ledger, record_options, say_spent, seed_option
from dpregress.cli.fit import in_own_words
from dpregress.cli.output import print_diagnosis, say
from dpregress.cli.places import taken

_PATH = click.Path(path_type=Path)
_FILES = ("diagnosis.json", "diagnosis.html")


@click.command()
@click.argument("model", type=_PATH)
@click.argument("data", nargs=-1, required=True)
@budget_options("diagnosis")
@record_options
@click.option(
    "--out", type=_PATH, default=Path("dpregress-diagnosis"), show_default=True, help="Folder for the results."
)
@click.option("--overwrite", is_flag=True, help="Replace existing results.")
@seed_option
def diagnose(
    model: Path,
    data: tuple[str, ...],
    epsilon: float,
    delta: float,
    confirm_delta: bool,
    ledger_file: Path | None,
    dataset: str | None,
    analyst: str | None,
    purpose: str | None,
    dry_run: bool,
    unit: str | None,
    max_rows_per_unit: int | None,
    out: Path,
    overwrite: bool,
    seed: int | None,
) -> None:
    """Diagnose a MODEL on the private rows of DATA.

    MODEL is model.json or the folder of a fit. The command releases ROC curve, AUC, calibration, Brier score,
    explained deviance and the spread of residuals, each with its standard error. It spends its own budget;
    `dpregress fit --diagnose 0.02` does the same within that of a fit. It writes diagnosis.json and diagnosis.html.

    \b
    Example:
      dpregress diagnose cost-model claims.parquet --epsilon 0.2 --delta 1e-6
    """
    from dpregress import ApproxDP, MemoryLedger
    from dpregress.estimators.saved import SavedModel
    from dpregress.estimators.saving import diagnosis_page
    from dpregress.inputs.described import described_table
    from dpregress.rows.readers.locations import paths_of

    budget = ApproxDP(epsilon, delta, confirm_delta=confirm_delta)
    loaded = SavedModel.load(model)
    paths_of(data)  # refuses what is not there
    rows = data[0] if len(data) == 1 else list(data)
    ledger = open_ledger(
        ledger_file, dataset, analyst, purpose, source=described_table(rows), out=out,
        rehearsed=MemoryLedger(budget, unit=unit or "record") if dry_run else None,
    )  # fmt: skip
    with taken(out, _FILES, overwrite=overwrite) as place:
        with in_own_words(None):
            found = loaded.diagnose(
                rows,
                privacy=budget,
                exposure=loaded.response_model.exposure,
                unit=unit,
                max_rows_per_unit=max_rows_per_unit,
                ledger=ledger,
                random_state=seed,
            )
        title = f"Diagnosis of {loaded.coefficients_.target}"
        place.write(json.dumps(found.encode(), indent=1) + "\n", diagnosis_page(found, title))
    print_diagnosis(found)
    if found.privacy is not None:
        say_spent(found.privacy, what="fits and diagnoses")
    say(f"Wrote {', '.join(_FILES)} in {out}.")

"""All experiments by name: a new family of figures is one file, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpregress.errors import InvalidInput, one_line
from dpregress.experiments import (
    cao_logistic,
    cao_ridge,
    ferrando_tables,
    wang_simulated,
    wang_tables,
    wu_simulated,
    wu_tables,
)
from dpregress.experiments.base import Experiment

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        experiment.name: experiment
        for family in (
            cao_ridge, cao_logistic, wang_simulated, wang_tables, wu_simulated, wu_tables, ferrando_tables,
        )
        for experiment in family.EXPERIMENTS
    }
)  # fmt: skip


def experiment_named(name: str) -> Experiment:
    """An experiment.

    Raises
    ------
    InvalidInput
        For a name that no experiment has.
    """
    if name not in EXPERIMENTS:
        raise InvalidInput(f"no experiment {one_line(name)}: `dpregress experiment list` shows their names")
    return EXPERIMENTS[name]

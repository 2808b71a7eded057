"""All experiments by name: a new family of figures is one file, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpregress.errors import InvalidInput, one_line
from dpregress.experiments import (
    aim_estimator,
    cao_logistic,
    cao_ridge,
    ferrando_tables,
    wang_simulated,
    wang_tables,
    wu_simulated,
    wu_tables,
)
from dpregress.experiments.base import Experiment

_FAMILIES = (
    cao_ridge, cao_logistic, wang_simulated, wang_tables, wu_simulated, wu_tables, ferrando_tables, aim_estimator,
)  # fmt: skip


def _in_order() -> list[Experiment]:
    """Papers as the families are listed, and the figures of each by their numbers."""
    every = [experiment for family in _FAMILIES for experiment in family.EXPERIMENTS]
    papers = list(dict.fromkeys(experiment.paper for experiment in every))

    def place(experiment: Experiment) -> tuple[int, int]:
        number = experiment.figure.removeprefix("Figure ")
        return papers.index(experiment.paper), int(number) if number.isdigit() else 100

    return sorted(every, key=place)


EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({experiment.name: experiment for experiment in _in_order()})


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

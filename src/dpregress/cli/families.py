"""Options that are words, such as ``--family``: the package's own tables have them, loaded when a command runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click


class FamilyChoice(click.ParamType[str]):
    """One of a list of names, which is looked up when a command needs it.

    Parameters
    ----------
    names : callable
        Gives the names.
    """

    name = "family"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        return f"[{'|'.join(self.names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = tuple(self.names())
        if value not in names:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, names))}.", param, ctx)
        return str(value)


def response_families() -> Iterable[str]:
    """Families of ``check``."""
    from dpregress.models import family_names

    return family_names()


def fitted_families() -> Iterable[str]:
    """Families of ``fit``."""
    from dpregress.models import family_names
    from dpregress.models.hazards import SURVIVAL

    return (*family_names(), SURVIVAL)


def linear_recipes() -> Iterable[str]:
    """Recipes of ``fit``."""
    from dpregress.estimators.linear import LINEAR_RECIPES

    return LINEAR_RECIPES


def covariance_types() -> Iterable[str]:
    """Sampling covariances of ``fit``."""
    from dpregress.estimators.parameters import COV_TYPES

    return COV_TYPES


def table_families() -> Iterable[str]:
    """Families of ``marginals fit``."""
    from dpregress.estimators.marginals_fit import TABLE_FAMILIES

    return TABLE_FAMILIES


def party_families() -> Iterable[str]:
    """Families of ``vertical fit``."""
    from dpregress.estimators.vertical import PARTY_FAMILIES

    return PARTY_FAMILIES

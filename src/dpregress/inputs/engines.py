"""What users give as ``engine=``, as an engine."""

from __future__ import annotations

import sys
from typing import Any

from dpregress.errors import InvalidInput, type_of
from dpregress.rows import DaskEngine, Engine, PushDownEngine
from dpregress.rows.dask_cluster import LOCAL

#: Beginnings of the address of a Dask scheduler, and what Dask writes for them.
_SCHEMES = {"dask://": "tcp://", "tcp://": "tcp://", "tls://": "tls://"}


def stays_in_place(engine: Any) -> bool:
    """Whether rows stay in the database that holds them."""
    return isinstance(engine_of(engine), PushDownEngine)


def engine_of(engine: Any) -> Engine | None:
    """The engine of this name, address or client; None for None. Nothing is connected yet.

    Parameters
    ----------
    engine : None, Engine, str, distributed.Client or cluster of Dask
        ``"dask"`` starts worker processes on this machine for one fit, ``"push-down"`` (or ``"spark"``)
        lets the database compute that holds the rows.

    Raises
    ------
    InvalidInput
        For anything else.

    Examples
    --------
    >>> engine_of("dask://10.0.0.5:8786").cluster
    'tcp://10.0.0.5:8786'
    """
    if engine is None or isinstance(engine, Engine):
        return engine
    if engine == "dask":
        return DaskEngine(LOCAL)
    if engine in ("push-down", "spark"):
        return PushDownEngine()
    if isinstance(engine, str):
        scheme, separator, host = engine.partition("://")
        if scheme + separator in _SCHEMES and host:
            return DaskEngine(_SCHEMES[scheme + separator] + host)
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(engine, distributed.Client | distributed.deploy.Cluster):
        return DaskEngine(engine)
    given = repr(engine) if isinstance(engine, str) else type_of(engine)
    raise InvalidInput(
        f'engine= takes an Engine, not {given}: or "dask", "push-down", an address such as dask://host:8786, or a Dask '
        "client"
    )

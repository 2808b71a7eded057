"""The choice of a mechanism, by the norm of the query and the kind of event that is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpregress.accounting import GDP, ZCDP, Event, PureDP
from dpregress.mechanisms.base import Mechanism
from dpregress.mechanisms.discrete_laplace import DiscreteLaplace
from dpregress.mechanisms.exponential import Exponential
from dpregress.mechanisms.gaussian import Gaussian
from dpregress.mechanisms.unit_vector import UnitVector
from dpregress.queries.base import Norm

#: Makes a mechanism from an event and the number of rows.
Maker = Callable[[Any, int], Mechanism]
#: Makers by the norm of a query and the kind of an event.
MechanismTable = Mapping[tuple[Norm, type[Event]], Maker]

#: A curator, who adds the noise to the sum.
CURATOR_MECHANISMS: MechanismTable = {
    (Norm.L2, GDP): lambda spend, _: Gaussian(spend),
    (Norm.L1, PureDP): lambda spend, _: DiscreteLaplace(spend),
    (Norm.LINF, ZCDP): lambda spend, _: Exponential(spend),
}
#: Users' devices, each of which adds noise to its own row.
DEVICE_MECHANISMS: MechanismTable = {
    (Norm.L2, GDP): lambda spend, n: Gaussian(spend, contributors=n),
    (Norm.L2, PureDP): lambda spend, _: UnitVector(spend),
}
#: One of several parties, whose releases are combined under normal noise.
PARTY_MECHANISMS: MechanismTable = {(Norm.L2, GDP): CURATOR_MECHANISMS[Norm.L2, GDP]}

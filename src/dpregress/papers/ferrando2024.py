r"""Ferrando, Sheldon (2024): regression from data-dependent sufficient statistics, with the paper's constants.

Neighbours add or remove one record. Designs are the paper's: no intercept, the first level of a class dropped,
the levels of a number scaled to [-1, 1], and so is a numeric response. The library's own release of pair tables is
far more accurate, in seconds (:class:`~dpregress.solvers.marginals.one_shot_tables.OneShotTables`).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dpregress.accounting import ApproxDP, Relation, gaussian_promise, split, zcdp_promise
from dpregress.baselines.adassp import AdaSSPNoise, ridge_of_noisy_moments
from dpregress.baselines.objective import tilted_logistic
from dpregress.coordinates import Domain, Matrix, ResponseScale, Vector, Weighting, WhitenedSpace
from dpregress.errors import InvalidInput
from dpregress.mechanisms import SeededSampler
from dpregress.public import Schema
from dpregress.public.coding import domain_of
from dpregress.releases import Marginals
from dpregress.rows import CodedSource, PrivateRows, RawRows, WhitenedRows
from dpregress.rows.codes import Coder, decoded
from dpregress.rows.readers.files import to_table
from dpregress.solvers.marginals.aim import AIM, MixtureEstimator, TableEstimator
from dpregress.solvers.marginals.chebyshev import chebyshev_coefficients
from dpregress.solvers.marginals.private_pgm import PrivatePGM
from dpregress.trust import Session

__all__ = [
    "aim_marginals",
    "aim_synth",
    "chebyshev_coefficients",
    "ddssp_coefficients",
    "ddssp_linear",
    "ddssp_logistic",
    "objective_perturbation",
    "published_adassp",
]

EstimatorName = Literal["mixture", "private-pgm"]
#: The paper's radius of the approximation.
_RADIUS = 6.0


def aim_marginals(
    table: Any, *, schema: Schema, epsilon: float, delta: float, rng: np.random.Generator,
    estimator: EstimatorName | TableEstimator = "mixture", size_limit: float = 200.0,
) -> Marginals:  # fmt: skip
    """One release of AIM, from which DD-SSP and AIM-Synth follow (``marginals.mixture.sample(rows, rng)``).

    Parameters
    ----------
    table : pandas, Polars or Arrow table
        Private.
    schema : Schema
        Levels of all columns.
    epsilon, delta : float
    rng : numpy.random.Generator
        Of the noise: for simulations.
    estimator : {"mixture", "private-pgm"} or TableEstimator
        The built-in one, or the published one from the optional package mbi; or one for the schema's domain.
    size_limit : float
        Of the model, in MB.
    """
    domain = domain_of(schema)
    makers: dict[str, type[MixtureEstimator] | type[PrivatePGM]] = {
        "mixture": MixtureEstimator,
        "private-pgm": PrivatePGM,
    }
    if isinstance(estimator, str) and estimator not in makers:
        raise InvalidInput(f"estimator must be one of {', '.join(makers)}, not {estimator!r}")
    made = makers[estimator](domain) if isinstance(estimator, str) else estimator
    promise = zcdp_promise(ApproxDP(epsilon, delta))
    held = to_table(table, domain.names)
    Coder(domain).check_types(held.schema)
    solver = AIM(domain, promise, made, size_limit)
    session = Session.reserve(
        PrivateRows(CodedSource(held, domain)),
        promise,
        rounds=solver.rounds,
        relation=Relation.ADD_REMOVE,
        sampler=SeededSampler(rng),
    )
    return solver.estimate(session)


def ddssp_linear(
    table: Any, target: str, *, schema: Schema, epsilon: float, delta: float, rng: np.random.Generator,
    estimator: EstimatorName = "mixture", size_limit: float = 200.0,
) -> Vector:  # fmt: skip
    """Algorithm 1: linear regression on the moments of AIM's pair tables, ``(X'X)^{-1} X'y``.

    Parameters
    ----------
    table : pandas, Polars or Arrow table
        Private.
    target : str
        A numeric column; its levels become -1 .. 1.
    schema : Schema
        Levels of all columns of the regression.
    epsilon, delta : float
    rng : numpy.random.Generator
        Of the noise: for simulations.
    estimator : {"mixture", "private-pgm"}
        AIM's: the built-in one, or the published one from the optional package mbi.
    size_limit : float
        Of the model, in MB.

    Returns
    -------
    coef : ndarray of shape (d,)
        Of the columns in the schema's order; minimum norm where it is not unique.
    """
    _check_target(domain_of(schema), target, most=None)
    marginals = aim_marginals(
        table, schema=schema, epsilon=epsilon, delta=delta, rng=rng, estimator=estimator, size_limit=size_limit
    )
    return ddssp_coefficients(marginals, target)


def ddssp_logistic(
    table: Any, target: str, *, schema: Schema, epsilon: float, delta: float, rng: np.random.Generator,
    estimator: EstimatorName = "mixture", size_limit: float = 200.0,
) -> Vector:  # fmt: skip
    """Section 4: the degree-2 Chebyshev likelihood ``b1 t'X'y + b2 t'X'X t`` maximised, y in {-1, 1}.

    Parameters
    ----------
    table, schema, epsilon, delta, rng, estimator, size_limit
        As in :func:`ddssp_linear`.
    target : str
        A column of two levels.

    Returns
    -------
    coef : ndarray of shape (d,)
        ``-b1 / (2 b2) (X'X)^{-1} X'y``.
    """
    _check_target(domain_of(schema), target, most=2)
    marginals = aim_marginals(
        table, schema=schema, epsilon=epsilon, delta=delta, rng=rng, estimator=estimator, size_limit=size_limit
    )
    return ddssp_coefficients(marginals, target, logistic=True)


def ddssp_coefficients(marginals: Marginals, target: str, *, logistic: bool = False) -> Vector:
    """DD-SSP from a release of :func:`aim_marginals`, at no further cost.

    Parameters
    ----------
    marginals : Marginals
    target : str
    logistic : bool
        As :func:`ddssp_logistic`; else as :func:`ddssp_linear`.
    """
    _check_target(marginals.domain, target, most=2 if logistic else None)
    _, linear, quadratic = chebyshev_coefficients(2, _RADIUS)
    gram, cross = _statistics(marginals, target)
    return np.asarray((-linear / (2 * quadratic) if logistic else 1.0) * np.linalg.lstsq(gram, cross, rcond=None)[0])


def aim_synth(
    table: Any, *, schema: Schema, epsilon: float, delta: float, rows: int, rng: np.random.Generator,
    estimator: EstimatorName = "mixture", size_limit: float = 200.0,
) -> pa.Table:  # fmt: skip
    """AIM-Synth: synthetic rows from AIM's model, over the schema's columns.

    Parameters
    ----------
    table, schema, epsilon, delta, rng, estimator, size_limit
        As in :func:`ddssp_linear`.
    rows : int
    """
    if rows < 1:
        raise InvalidInput(f"rows must be at least 1, not {rows}")
    marginals = aim_marginals(
        table, schema=schema, epsilon=epsilon, delta=delta, rng=rng, estimator=estimator, size_limit=size_limit
    )
    return decoded(marginals.domain, marginals.mixture.sample(rows, rng))


def published_adassp(
    X: Matrix, y: Vector, *, x_bound: float, y_bound: float, epsilon: float, delta: float,
    rng: np.random.Generator, calibration: Literal["published", "exact"] = "published",
) -> Vector:  # fmt: skip
    r"""AdaSSP (Wang 2018) with the paper's constants: the algorithm is :mod:`dpregress.baselines.adassp`.

    With ``s = sqrt(log(6/delta)) / (epsilon/3)`` the least eigenvalue, ``X'X`` (on and above the diagonal) and
    ``X'y`` get noise of scale ``s bx^2``, ``s bx^2`` and ``s bx by``.

    Parameters
    ----------
    X, y : ndarray of shape (n, d) and (n,)
        Private; rows are cut to the norm ``x_bound``, responses to ``y_bound``.
    x_bound, y_bound : float
    epsilon, delta : float
    rng : numpy.random.Generator
    calibration : {"published", "exact"}
        The published constants spend epsilon 0.56 at a nominal 1; "exact" is a third of the exact mu^2 each.

    Returns
    -------
    coef : ndarray of shape (d,)
    """
    budget, margin = ApproxDP(epsilon, delta), math.sqrt(math.log(6 / delta))
    scale, exact = margin / (epsilon / 3), calibration == "exact"
    if exact:
        scale = 1 / split(gaussian_promise(budget), [1, 1, 1])[0].mu
    gram = scale * x_bound**2
    noise = AdaSSPNoise(gram, gram, scale * x_bound * y_bound, margin, entry=gram, isometric=exact)
    return ridge_of_noisy_moments(*_bounded(X, y, x_bound, y_bound), noise, SeededSampler(rng))


def objective_perturbation(
    X: Matrix, y: Vector, *, x_bound: float, epsilon: float, delta: float, rng: np.random.Generator
) -> Vector:
    r"""Algorithm 3 (Kifer, Smith, Thakurta 2012): the exact minimiser of a randomly tilted logistic loss.

    ``mean log(1 + exp(-y x't)) + D/(2n) ||t||^2 + b't/n``, ``D = bx^2 / (2 epsilon)``,
    ``b ~ N(0, bx^2 (8 log(2/delta) + 4 epsilon) / epsilon^2 I)``: the published constants, for add-or-remove
    neighbours. Replacing a record moves the gradient twice as far: four times the variance would be needed.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        -1 or 1.
    x_bound, epsilon, delta, rng
        As in :func:`published_adassp`.

    Returns
    -------
    coef : ndarray of shape (d,)
    """
    ApproxDP(epsilon, delta)
    x, response = _bounded(X, y, x_bound, 1.0)
    signs = np.where(response > 0, 1.0, -1.0)
    scale = x_bound * math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
    tilt = SeededSampler(rng).add_gaussian(np.zeros(x.shape[1]), scale)
    return tilted_logistic(x, signs, tilt=tilt, penalty=x_bound**2 / (2 * epsilon), radius=x_bound)


def _check_target(domain: Domain, target: str, most: int | None) -> None:
    """Refuse, before anything is asked, a class of several levels, and any column of more than ``most``."""
    attribute = domain.attributes[domain.index(target)]
    if attribute.size != 2 and not attribute.numeric:
        raise InvalidInput(f"{target!r} has more than two levels: list it in numeric=")
    if most is not None and attribute.size > most:
        raise InvalidInput(f"{target!r} has {attribute.size} levels, a logistic target has two")


def _statistics(marginals: Marginals, target: str) -> tuple[Matrix, Vector]:
    """``X'X`` and ``X'y`` in the paper's design."""
    domain = marginals.domain
    place = domain.index(target)
    features = [name for name in domain.names if name != target]
    kept = marginals.places(features)[1:]
    cross = _response(marginals, domain, place)[kept]
    return marginals.gram[np.ix_(kept, kept)], cross


def _response(marginals: Marginals, domain: Domain, place: int) -> Vector:
    own = domain.columns_of(place)
    if domain.attributes[place].numeric:
        return np.asarray(marginals.gram[:, own.start])
    return np.asarray(marginals.gram[:, own.start + 1] - marginals.gram[:, own.start])


def _bounded(X: Matrix, y: Vector, x_bound: float, y_bound: float) -> tuple[Matrix, Vector]:
    """Rows inside the ball and responses inside the interval, as the row map makes them."""
    width = X.shape[1]
    space = WhitenedSpace(
        tuple(f"x{i}" for i in range(width)), np.eye(width), x_bound, np.zeros(width),
        response=ResponseScale("y", bound=y_bound), weighting=Weighting.FEATURES,
    )  # fmt: skip
    rows = WhitenedRows(space)(RawRows(np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)))
    return rows.x, rows.y

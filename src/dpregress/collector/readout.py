"""What is read out of a store: the fit, its errors, and what dishonest users could do to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpregress.collector.drafting import rows_standing, stated_errors, study_model
from dpregress.collector.poisoning import moved_at_most
from dpregress.collector.store import Store, Totals
from dpregress.collector.study import Study
from dpregress.coordinates import Vector
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.estimators import LocalGLM
from dpregress.json_files import finite_or_null
from dpregress.models.mean_responses import mean_of
from dpregress.public import PublicMoments
from dpregress.releases import Moments, Release
from dpregress.solvers.local.message_plan import equation_weights
from dpregress.solvers.local.moment_matching import (
    CoefficientPrior,
    MomentEquations,
    cross_variances,
    off_singular,
    solve_equations,
    weighted_gram,
)

#: The share of dishonest reports for which a bound is printed.
POISONED_SHARE = 0.01
#: The precision of a prior beside that of the equations, and the remainder at which they count as solved.
_FAINT, _SOLVED = 1e-12, 1e-8


@dataclass(frozen=True, eq=False)
class Readout:
    """The fit to the reports of a study so far. Everything in it is post-processing and costs nobody anything.

    Parameters
    ----------
    study : Study
    model : LocalGLM
    n : int
        Reports.
    level : float
        Of the intervals.
    share : float
        The share of reports that is assumed to be dishonest.
    standard_error, lower, upper : ndarray of shape (d,)
        Of the unshrunk estimates where there are some; NaN elsewhere.
    jackknife_error : ndarray of shape (d,)
        The standard error by the 64 groups of reports; it rests on no law of the noise.
    poisoned : ndarray of shape (d,)
        How far this share of the reports can have moved the unshrunk fit; infinite where no bound is known.
    """

    study: Study
    model: LocalGLM
    n: int
    level: float
    share: float
    standard_error: Vector
    lower: Vector
    upper: Vector
    jackknife_error: Vector
    poisoned: Vector

    def encode(self) -> dict[str, Any]:
        """Plain values, for the dashboard."""
        columns = {
            "coef": self.model.coef_,
            "estimate": _estimates(self.model),
            "standard_error": self.standard_error,
            "lower": self.lower,
            "upper": self.upper,
            "jackknife_error": self.jackknife_error,
            "poisoned": self.poisoned,
        }
        told = {name: finite_or_null(values) for name, values in columns.items()}
        names = self.study.space.features
        return {
            "study": self.study.digest.hex(),
            "family": self.model.family,
            "n": self.n,
            "privacy": str(self.study.spend),
            "level": self.level,
            "coefficients": [
                {"name": name, **{key: values[place] for key, values in told.items()}}
                for place, name in enumerate(names)
            ],
            "poisoned_share": self.share,
        }


def read_out(
    store: Store, *, public: Any = None, level: float = 0.95, share: float = POISONED_SHARE, at_least: int | None = None
) -> Readout:
    """Fit the model of a study to the sums in a store.

    Parameters
    ----------
    store : Store
    public : table, file or PublicMoments, optional
        The public rows of the study; with them there are confidence intervals.
    level : float
    share : float
        Of dishonest reports, for the bound.
    at_least : int, optional
        A larger minimum than that of the study.

    Raises
    ------
    NotAvailable
        Before the minimum count of the study.
    """
    if not 0 <= share < 0.5:
        raise InvalidInput(f"the share of dishonest reports lies between 0 and 0.5, not {share:g}")
    study, totals = store.study, store.totals()
    assert study.terms is not None
    if study.holders:
        raise NotAvailable("this collector holds shares, from which nothing follows: join the sums of both collectors")
    minimum = max(study.terms.minimum, at_least or 1)
    if totals.n < minimum:
        raise NotAvailable(f"{totals.n:,} of {minimum:,} reports are there: nothing is read out before the minimum")
    release = study.release(totals.total, totals.n)
    model, errors, lower, upper = fit_sum(study, release, public, level)
    jackknife, poisoned = _checks(study, model.public, release, totals, share)
    return Readout(study, model, totals.n, level, share, errors, lower, upper, jackknife, poisoned)


def fit_sum(study: Study, release: Release, public: Any, level: float) -> tuple[LocalGLM, Vector, Vector, Vector]:
    """The model of a study fitted to its release, with the standard errors and both ends of the intervals."""
    assert study.terms is not None
    model = study_model(study.terms, public)
    model.fit_release(release, study.message_plan)
    d = len(model.coef_)
    lower, upper = np.full(d, math.nan), np.full(d, math.nan)
    if model.estimates_ is not None:
        lower, upper = model.conf_int(level=level)[-d:].T
    return model, stated_errors(model), lower, upper


def _estimates(model: LocalGLM) -> Vector:
    d = len(model.coef_)
    return np.full(d, math.nan) if model.estimates_ is None else np.asarray(model.estimates_.estimate[-d:])


def _checks(
    study: Study, public: PublicMoments | None, release: Release, totals: Totals, share: float
) -> tuple[Vector, Vector]:
    """Jackknife errors and the bound on poisoning; not known where users tell the Gram matrix as well."""
    d = len(study.space.features)
    found = None if public is None or isinstance(release, Moments) else score_root(study, public, release)
    if found is None:
        return np.full(d, math.nan), np.full(d, math.inf)
    equations, coef = found
    assert study.space.response is not None
    worth = study.step * study.space.response.scale
    rows = study.space.whitening.T[-d:]
    away = totals.sums - totals.counts[:, None] * (totals.total / totals.n)
    moved = worth / totals.n * away @ np.linalg.solve(equations.slope(coef), rows.T)
    groups = int(np.count_nonzero(totals.counts))
    jackknife = np.sqrt(groups / max(groups - 1, 1) * np.sum(moved**2, axis=0))
    change = 2 * share * study.limits[1] * worth
    return np.asarray(jackknife), moved_at_most(equations, coef, change, rows)


def score_root(study: Study, public: PublicMoments, release: Release) -> tuple[MomentEquations, Vector] | None:
    """The score equations of a study and their unshrunk root in whitened coordinates; None if there is none.

    Parameters
    ----------
    study : Study
    public : PublicMoments
        Without rows, normal rows with their moments stand for them.
    release : Score
    """
    space = study.space
    assert study.terms is not None
    assert space.response is not None
    rows = rows_standing(study, public)
    weights, half = equation_weights(space, rows), space.response.scale
    equations = MomentEquations(rows, weights, space.response.centre, half * release.mean, mean_of(study.terms.family))
    privacy, sampling = cross_variances(release, weighted_gram(rows, weights**2))
    covariance = off_singular(half**2 * (privacy + sampling))
    start = np.zeros(space.order)
    slope = equations.slope(start)
    precision = float(np.trace(slope.T @ np.linalg.solve(covariance, slope))) / space.order
    coef = solve_equations(
        equations, covariance, CoefficientPrior(start, _FAINT * precision * np.eye(space.order)), start
    )
    left = equations.curvature_slack(coef)
    solved = float(left @ np.linalg.solve(covariance, left)) <= _SOLVED * space.order
    return (equations, coef) if solved else None

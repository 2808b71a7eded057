"""What is read out of a store: the fit, its errors, and what dishonest users could do to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpregress.collector.drafting import rows_standing, stated_errors, study_model
from dpregress.collector.poisoning import moved_at_most, staying_target
from dpregress.collector.store import Store, Totals
from dpregress.collector.study import Study
from dpregress.coordinates import Matrix, Vector
from dpregress.errors import InvalidInput, NotAvailable
from dpregress.estimators import LocalGLM
from dpregress.json_files import finite_or_null
from dpregress.models.mean_responses import mean_of
from dpregress.public import PublicMoments
from dpregress.releases import Release
from dpregress.solvers.local.equation_estimates import told_equations
from dpregress.solvers.local.message_plan import equation_weights
from dpregress.solvers.local.moment_matching import (
    CoefficientPrior,
    MomentEquations,
    off_singular,
    solve_equations,
)
from dpregress.solvers.local.reading import entry_variance

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
    """Jackknife errors and the bound on poisoning, where they are known."""
    unknown = np.full(len(study.space.features), math.nan), np.full(len(study.space.features), math.inf)
    if public is None:
        return unknown
    standing = rows_standing(study, public)
    coef = _score_root(study, standing, release)[1]
    if coef is None:
        return unknown
    rows = study.space.whitening.T[-len(study.space.features) :]
    groups, without = np.flatnonzero(totals.counts), []
    if len(groups) < 2:
        return unknown[0], _poisoned(study, standing, release, share)
    for group in groups:
        left = study.release(totals.total - totals.sums[group], int(totals.n - totals.counts[group]))
        moved = _score_root(study, standing, left, coef)[1]
        if moved is None:
            return unknown
        without.append(rows @ moved)
    jackknife = np.sqrt((len(groups) - 1) / len(groups) * np.sum((without - np.mean(without, axis=0)) ** 2, axis=0))
    return np.asarray(jackknife), _poisoned(study, standing, release, share)


def poisoned_at_most(study: Study, public: PublicMoments, release: Release, share: float) -> Vector:
    """By how much this share of dishonest reports can have moved each coefficient; infinite where no bound is known.

    Where users tell products of rows or hats of responses, the fit depends on the sum in more ways than are bounded.
    """
    return _poisoned(study, rows_standing(study, public), release, share)


def _poisoned(study: Study, rows: Matrix, release: Release, share: float) -> Vector:
    """The same over rows that stand for those of the users."""
    assert study.terms is not None
    assert study.space.response is not None
    weights, d = equation_weights(study.space, rows), len(study.space.features)
    stays = staying_target(release, rows, weights, 2 * share * study.limits[1] * study.step)
    if stays is None:
        return np.full(d, math.inf)
    half, response = study.space.response.scale, mean_of(study.terms.family)
    equations = MomentEquations(rows, weights, study.space.response.centre, half * stays.target, response)
    found = _root(equations, half**2 * entry_variance(release) * np.eye(len(stays.target)))
    if found is None:
        return np.full(d, math.inf)
    return moved_at_most(equations, found, half * stays.change, study.space.whitening.T[-d:])


def score_root(study: Study, public: PublicMoments, release: Release) -> tuple[MomentEquations, Vector] | None:
    """The score equations of a study and their unshrunk root in whitened coordinates; None if there is none.

    Parameters
    ----------
    study : Study
    public : PublicMoments
        Without rows, normal rows with their moments stand for them.
    release : Score, CrossMoments or Moments
    """
    equations, coef = _score_root(study, rows_standing(study, public), release)
    return None if coef is None else (equations, coef)


def _score_root(
    study: Study, rows: Matrix, release: Release, start: Vector | None = None
) -> tuple[MomentEquations, Vector | None]:
    """The equations over rows that stand for those of the users, and their root, searched from the start."""
    assert study.terms is not None
    equations, noise = told_equations(study.space, release, rows, mean_of(study.terms.family))
    return equations, _root(equations, noise.first, start)


def _root(equations: MomentEquations, covariance: Matrix, start: Vector | None = None) -> Vector | None:
    order = len(equations.target)
    covariance, slope = off_singular(covariance), equations.slope(np.zeros(order))
    precision = float(np.trace(slope.T @ np.linalg.solve(covariance, slope))) / order
    prior = CoefficientPrior(np.zeros(order), _FAINT * precision * np.eye(order))
    coef = solve_equations(equations, covariance, prior, np.zeros(order) if start is None else start)
    left = equations.curvature_slack(coef)
    return coef if float(left @ np.linalg.solve(covariance, left)) <= _SOLVED * order else None

"""What solvers by private steps share: shares of a budget, believed informations, steps merged by precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpregress.accounting import GDP, split
from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import sandwich, symmetric_power
from dpregress.public.facts import PublicFacts
from dpregress.solvers.shared.posterior import Step, widening
from dpregress.solvers.shared.repair import floored

#: What a step misses by curvature, as a share of the squared length it moved: measured best of .03 to 1.
_CURVATURE = 0.3
#: Labels that differ by less are taken for one.
_ALIKE = 1e-90
#: Ratios of an information to the Gram matrix, in medians, that count as this much in their mean.
_ANY = 10.0
#: Share of a covariance's trace below which an eigenvalue is rounding.
_DIGITS = 1e-15


def has_prior(facts: PublicFacts) -> bool:
    """Whether there are labelled public rows enough for a fit of their own: 30, and twice the columns.

    Labels that are all alike say nothing of slopes, and too much of how sure one may be.
    """
    if facts.public is None or facts.public.rows is None or facts.trusted_labels is None:
        return False
    if float(np.ptp(facts.trusted_labels)) <= _ALIKE:
        return False
    return facts.public.n >= 2 * facts.start.space.order


def allocate_budget(
    budget: GDP, shares: Mapping[str, float], steps: Sequence[float]
) -> tuple[dict[str, GDP], tuple[GDP, ...]]:
    """What each question with a share of mu^2 gets, and each step of what is left, by its weight."""
    rest = (1 - sum(shares.values())) / sum(steps)
    asked = [name for name, share in shares.items() if share > 0]
    parts = split(budget, [*(shares[name] for name in asked), *(rest * weight for weight in steps)])
    return dict(zip(asked, parts, strict=False)), parts[len(asked) :]


def floor_information(information: Matrix, gram: Matrix, share: float) -> Matrix:
    """The information with its eigenvalues relative to the Gram matrix floored: the same in any coordinates."""
    root = np.linalg.cholesky(gram)
    relative = np.linalg.solve(root, np.linalg.solve(root, information).T)
    values = np.linalg.eigvalsh(relative)
    usual = float(np.mean(np.minimum(values, _ANY * np.median(values))))  # directions that no row takes have any ratio
    return np.asarray(root @ floored(relative, share * usual) @ root.T)


def curvature_slack(length: float, left: Vector, gram: Matrix) -> Matrix:
    """What a step may have missed: by the change of information along its squared length, and by being shortened."""
    bent = _CURVATURE * length * min(length, 1.0)
    return np.asarray(bent / len(gram) * np.linalg.inv(gram) + np.outer(left, left))


def inflate_prior(known: Matrix, system: Matrix, noise: float, step: Vector) -> Matrix:
    """What is known before a step, widened where the step lies further away than that allows for.

    A prior from public rows of another population would else be believed for ever. The step is released, so
    this is post-processing.
    """
    return np.asarray(known * widening(known, Step(step, system, noise)))


def solvable(system: Matrix) -> Matrix:
    """The system with its eigenvalues kept apart from rounding: by now the budget is spent, and it must be solved."""
    return symmetric_power(system, 1.0, smallest=_DIGITS * 100 * float(np.trace(system)))


@dataclass(frozen=True, eq=False)
class Merged:
    """Covariance of the coefficients about the private optimum after a step, the step's gain, what noise adds."""

    known: Matrix
    gain: Matrix
    privacy: Matrix


def merged(known: Matrix, privacy: Matrix, system: Matrix, noise: float) -> Merged:
    """A step ``system^{-1} score`` with noise of variance ``noise`` on its score, merged with what is known."""
    identity = np.eye(len(system))
    before = _inverse(known)
    known = _inverse(before + system @ system / noise)
    kept = known @ before
    gain = identity - kept
    # a step starts from coefficients that carry the noise of those before; what it gains replaces it
    carried = kept @ privacy @ kept.T + gain @ sandwich(system, noise * identity) @ gain.T
    return Merged(known, gain, np.asarray(carried))


def _inverse(covariance: Matrix) -> Matrix:
    """Of a covariance or a precision, however far apart its eigenvalues are."""
    return symmetric_power(covariance, -1.0, smallest=max(_DIGITS * float(np.trace(covariance)), 1e-300))

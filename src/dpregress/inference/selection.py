r"""Penalties and selection of columns from estimates and their covariance alone: the least-squares approximation.

Minus twice the log-likelihood of slopes b is about ``(b - beta)' V^{-1} (b - beta)``, with V the covariance of the
estimates beta, the privacy noise included (Wang and Leng 2007). Whatever the family, a penalised fit minimises

    phi / (2 n) (b - beta)' V^{-1} (b - beta) + alpha (l1_ratio |b|_1 + (1 - l1_ratio) / 2 |b|_2^2),

phi the dispersion. Without privacy noise ``V = phi (X'X)^{-1}`` for a linear model, X centred, and this is
scikit-learn's ElasticNet. With noise, directions that it hides count for less, and ``V^{-1}`` is positive definite
where a released Gram matrix need not be. The intercept is not penalised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import enet_path

from dpregress.coordinates import Matrix, Vector
from dpregress.coordinates.matrices import symmetric_power
from dpregress.display import ShownInShort, some_and_more, text_table
from dpregress.errors import InvalidInput, check_choice
from dpregress.inference.goodness import effective_rows, submodel
from dpregress.inference.hypotheses import pseudo_inverse
from dpregress.inference.selected import SelectedModel
from dpregress.inference.simultaneous import Simultaneous
from dpregress.releases import Estimates
from dpregress.releases.estimates import INTERCEPT

CRITERIA = ("bic", "aic")
#: The smallest penalty as a share of the largest; and the part of an absolute penalty that sets the largest one of
#: ridge.
_SMALLEST, _RIDGE = 1e-4, 1e-3
#: The same share for ridge, whose penalties keep all slopes.
_SMALLEST_RIDGE = 1e-6
_ITERATIONS, _TOLERANCE = 100_000, 1e-10
#: With more terms, there are too many subsets.
MOST_TERMS = 20
#: Penalties of a path that are printed.
_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Approximation(ShownInShort):
    """Slopes with their covariance, on which all of this rests.

    Parameters
    ----------
    estimates : Estimates
    n : int
        Rows.
    names : tuple of str
        The identified slopes. Others stay in the model without a penalty, and have no estimate.
    """

    estimates: Estimates
    n: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, estimates: Estimates, n: int) -> Approximation:
        """Of one linear predictor.

        Raises
        ------
        InvalidInput
            If no slope is identified.
        """
        pairs = zip(estimates.names, estimates.identified, strict=True)
        names = tuple(name for name, known in pairs if known and name != INTERCEPT)
        if not names:
            raise InvalidInput(
                "no slope is identified, so that there is nothing to select: spend more, or fit more rows"
            )
        return cls(estimates, n, names)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The slopes that are not identified."""
        return tuple(name for name in self.estimates.unidentified if name != INTERCEPT)

    @property
    def places(self) -> list[int]:
        """Those of the slopes among the estimates."""
        return self.estimates.places(self.names)

    @property
    def slopes(self) -> Vector:
        """Of shape (d,)."""
        return self.estimates.estimate[self.places]

    @property
    def covariance(self) -> Matrix:
        """Of shape (d, d)."""
        return self.estimates.covariance[np.ix_(self.places, self.places)]

    @property
    def rows(self) -> float:
        """The number of rows that would tell as much without noise."""
        return max(effective_rows(self.estimates, self.n), 1.0)

    def criteria(self, distance: Vector, df: Vector) -> tuple[Vector, Vector]:
        """AIC and BIC of models at these distances."""
        return distance + 2 * df, distance + math.log(self.rows) * df

    def without(self, dropped: Sequence[str]) -> Estimates:
        """The estimates of a submodel."""
        return submodel(self.estimates, self.n, dropped).estimates if dropped else self.estimates

    def intercepts(self, slopes: Matrix) -> Vector:
        """Intercepts that go with slopes of shape (k, d): 0 without an intercept."""
        if INTERCEPT not in self.estimates.names:
            return np.zeros(len(slopes))
        place = self.estimates.names.index(INTERCEPT)
        gain = self.estimates.covariance[place, self.places] @ pseudo_inverse(self.covariance)[0]
        return np.asarray(self.estimates.estimate[place] + (slopes - self.slopes) @ gain)


class _Judged:
    """Models with a criterion each."""

    aic: Vector
    bic: Vector

    def best(self, criterion: str = "bic") -> int:
        """The place of the model with the smallest criterion, "bic" or "aic"."""
        check_choice("criterion", criterion, CRITERIA)
        return int(np.argmin(self.bic if criterion == "bic" else self.aic))

    def _judged(self, place: int) -> list[str]:
        """The criteria of a model as text, above the smallest of all."""
        return [f"{each[place] - each.min():.1f}" for each in (self.aic, self.bic)]


@dataclass(frozen=True, eq=False, repr=False)
class PenaltyPath(_Judged, ShownInShort):
    """Coefficients along a path of penalties, the largest first.

    Parameters
    ----------
    names : tuple of str
    l1_ratio : float
        1 for the lasso, 0 for ridge.
    alphas : ndarray of shape (k,)
    coef : ndarray of shape (k, d)
        In original units.
    intercept : ndarray of shape (k,)
    df : ndarray of shape (k,)
        Effective numbers of slopes.
    aic, bic : ndarray of shape (k,)
        ``(b - beta)' V^{-1} (b - beta)`` plus 2 df, or ``df log(n_effective)``.
    """

    names: tuple[str, ...]
    l1_ratio: float
    alphas: Vector
    coef: Matrix
    intercept: Vector
    df: Vector
    aic: Vector
    bic: Vector
    _known: Approximation

    def refit(self, criterion: str = "bic") -> SelectedModel:
        """The columns that the best penalty keeps, fitted without it: not shrunk, with intervals after selection."""
        kept = self.coef[self.best(criterion)] != 0
        return _selected(self._known, [name for name, stays in zip(self.names, kept, strict=True) if stays])

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each penalty."""
        import pandas as pd

        return pd.DataFrame(self.coef, index=pd.Index(self.alphas, name="alpha"), columns=list(self.names))

    def __str__(self) -> str:
        best = self.best()
        places = sorted({best, *np.linspace(0, len(self.alphas) - 1, _SHOWN).astype(int).tolist()})
        rows = [
            [f"{self.alphas[i]:.3g}", str(np.count_nonzero(self.coef[i])), f"{self.df[i]:.1f}", *self._judged(i)]
            for i in places
        ]
        kept = [name for name, slope in zip(self.names, self.coef[best], strict=True) if slope]
        chosen = some_and_more(kept) or "no slope"
        table = text_table(("alpha", "slopes", "df", "AIC", "BIC"), rows)
        least = f"BIC is smallest at {self.alphas[best]:.3g}, with {chosen}"
        return f"{table}\nAIC and BIC above the smallest of all; {least}."


@dataclass(frozen=True, eq=False, repr=False)
class SubsetPath(_Judged, ShownInShort):
    """The best sets of terms that a selection found, from none to all.

    Parameters
    ----------
    terms : tuple of tuple of str
    columns : tuple of tuple of str
        The coefficients of these terms.
    aic, bic : ndarray of shape (k,)
    """

    terms: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, ...], ...]
    aic: Vector
    bic: Vector
    _known: Approximation

    def refit(self, criterion: str = "bic") -> SelectedModel:
        """The best set, with intervals after selection."""
        return _selected(self._known, self.columns[self.best(criterion)])

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each set: which terms it has, AIC and BIC."""
        import pandas as pd

        among = self.terms[-1]
        has = pd.DataFrame([[term in chosen for term in among] for chosen in self.terms], columns=list(among))
        return has.assign(aic=self.aic, bic=self.bic)

    def __str__(self) -> str:
        names = [some_and_more(chosen) or "(no term)" for chosen in self.terms]
        rows = [[name, str(len(self.columns[i])), *self._judged(i)] for i, name in enumerate(names)]
        table = text_table(("terms", "slopes", "AIC", "BIC"), rows)
        return f"{table}\nAIC and BIC above the smallest of all; BIC is smallest with {names[self.best()]}."


def penalty_path(
    known: Approximation, l1_ratio: float, alphas: Sequence[float] | int = 100, *, standardized: bool = True
) -> PenaltyPath:
    """Penalised fits along a path of penalties.

    Parameters
    ----------
    known : Approximation
    l1_ratio : float
        Between 0 (ridge) and 1 (lasso).
    alphas : sequence of float, or int
        Penalties, or how many of them.
    standardized : bool
        Whether slopes are penalised in standard deviations of their columns.
    """
    if not 0 <= l1_ratio <= 1:
        raise InvalidInput(f"l1_ratio takes a number between 0 (ridge) and 1 (lasso), not {l1_ratio}")
    scale = _scale(known, standardized)
    precision = pseudo_inverse(known.covariance)[0]
    dispersion = known.estimates.dispersion or 1.0
    beta = known.slopes * scale
    system = dispersion / known.n * precision / np.outer(scale, scale)
    penalties = _penalties(alphas, system @ beta, l1_ratio)
    if l1_ratio > 0:
        root = math.sqrt(len(beta)) * symmetric_power(system, 0.5)  # rows whose mean second moment is the system
        found = enet_path(root, root @ beta, l1_ratio=l1_ratio, alphas=penalties, max_iter=_ITERATIONS, tol=_TOLERANCE)[
            1
        ].T
    else:
        found = np.array([np.linalg.solve(system + alpha * np.eye(len(beta)), system @ beta) for alpha in penalties])
    df = np.array([_df(system, alpha * (1 - l1_ratio), b != 0) for alpha, b in zip(penalties, found, strict=True)])
    coef = found / scale
    left = coef - known.slopes
    distance = np.einsum("ki,ij,kj->k", left, precision, left)
    aic, bic = known.criteria(distance, df)
    return PenaltyPath(known.names, l1_ratio, penalties, coef, known.intercepts(coef), df, aic, bic, known)


def forward_selection(known: Approximation, terms: Mapping[str, Sequence[str]]) -> SubsetPath:
    """Terms added one by one, each time the one that explains most; all columns of a term together.

    Parameters
    ----------
    known : Approximation
    terms : mapping of str to sequence of str
        The coefficients of each term.
    """
    groups, joint = _groups(known, terms), _joint(known)
    left, order, distances = list(groups), [], [float(joint[-1, -1])]
    while left:
        gains = {name: float(joint[-1, -1] - _eliminated(joint, groups[name])[-1, -1]) for name in left}
        chosen = max(left, key=lambda name: gains[name] / len(groups[name]))
        joint = _eliminated(joint, groups[chosen])
        left.remove(chosen)
        order.append(chosen)
        distances.append(float(joint[-1, -1]))
    return _subset_path(known, terms, [order[:size] for size in range(len(order) + 1)], distances)


def best_subsets(known: Approximation, terms: Mapping[str, Sequence[str]]) -> SubsetPath:
    """The best set of terms of every size, among all sets.

    All sets are compared at once: for each term in turn, every matrix of a set of the terms before it is kept as it is,
    and once with the columns of the term eliminated.

    Parameters
    ----------
    known : Approximation
    terms : mapping of str to sequence of str

    Raises
    ------
    InvalidInput
        For more than twenty terms.
    """
    groups = _groups(known, terms)
    if len(groups) > MOST_TERMS:
        raise InvalidInput(
            f"best subsets are found among at most {MOST_TERMS} terms, not {len(groups)}: select forward"
        )
    order = [place for group in groups.values() for place in group] + [len(known.names)]
    joint = _joint(known)[np.ix_(order, order)][None]
    for group in groups.values():
        size = len(group)
        inner, across, rest = joint[:, :size, :size], joint[:, :size, size:], joint[:, size:, size:]
        joint = np.concatenate([rest, rest - np.swapaxes(across, 1, 2) @ np.linalg.solve(inner, across)])
    distance, sets = joint[:, 0, 0], np.arange(len(joint))
    names = list(groups)
    sizes = np.array([bin(each).count("1") for each in range(len(joint))])
    chosen, distances = [], []
    for size in range(len(names) + 1):
        among = sets[sizes == size]
        best = int(among[np.argmin(distance[among])])
        chosen.append([name for place, name in enumerate(names) if best >> place & 1])
        distances.append(float(distance[best]))
    return _subset_path(known, terms, chosen, distances)


def _selected(known: Approximation, kept: Sequence[str]) -> SelectedModel:
    dropped = [name for name in known.names if name not in kept]
    law = Simultaneous.of(known.covariance, known.estimates.df)
    return SelectedModel(tuple(kept), known.without(dropped), law, known.unknown)


def _subset_path(
    known: Approximation, terms: Mapping[str, Sequence[str]], sets: Sequence[Sequence[str]], distances: Sequence[float]
) -> SubsetPath:
    columns = [tuple(name for term in chosen for name in terms[term] if name in known.names) for chosen in sets]
    df, distance = np.array([len(each) for each in columns]), np.maximum(distances, 0.0)
    return SubsetPath(tuple(map(tuple, sets)), tuple(columns), *known.criteria(distance, df), known)


def _groups(known: Approximation, terms: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """Places of the identified slopes of each term that has any."""
    places = {name: place for place, name in enumerate(known.names)}
    found = {term: [places[name] for name in names if name in places] for term, names in terms.items()}
    return {term: group for term, group in found.items() if group}


def _joint(known: Approximation) -> Matrix:
    """``V^{-1}`` bordered by ``V^{-1} beta`` and ``beta' V^{-1} beta``: eliminating columns fits them."""
    scale = np.sqrt(np.diag(known.covariance))
    ratio = known.slopes / scale
    precision = pseudo_inverse(known.covariance / np.outer(scale, scale))[0]
    wanted = precision @ ratio
    return np.block([[precision, wanted[:, None]], [wanted[None, :], np.array([[ratio @ wanted]])]])


def _eliminated(joint: Matrix, group: Sequence[int]) -> Matrix:
    """The matrix after a fit on these columns, which become 0."""
    own = joint[np.ix_(group, group)]
    return np.asarray(joint - joint[:, group] @ np.linalg.pinv(own, hermitian=True) @ joint[group])


def _scale(known: Approximation, standardized: bool) -> Vector:
    """Standard deviations of the columns, or the scale that the covariance implies where they were not released."""
    if not standardized:
        return np.ones(len(known.names))
    estimates = known.estimates
    if estimates.spread is not None:
        slopes = [name for name in estimates.names if name != INTERCEPT]
        variance = np.diag(estimates.spread)[[slopes.index(name) for name in known.names]]
    else:
        variance = (estimates.dispersion or 1.0) / known.n * np.diag(pseudo_inverse(known.covariance)[0])
    return np.sqrt(np.maximum(variance, 1e-300))


def _penalties(alphas: Sequence[float] | int, wanted: Vector, l1_ratio: float) -> Vector:
    if isinstance(alphas, int):
        largest = max(float(np.abs(wanted).max()) / max(l1_ratio, _RIDGE), 1e-300)
        smallest = _SMALLEST if l1_ratio > _RIDGE else _SMALLEST_RIDGE
        return np.geomspace(largest, largest * smallest, max(alphas, 1))
    given = np.empty(0)
    with suppress(TypeError, ValueError, OverflowError):  # their texts show what was given
        given = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    if given.ndim != 1 or not given.size or not (np.isfinite(given) & (given >= 0)).all():
        raise InvalidInput("alphas takes penalties that are finite and not negative, or how many there shall be")
    return np.asarray(given)


def _df(system: Matrix, ridge: float, active: Vector) -> float:
    """The trace of the map from unpenalised to penalised slopes on the active ones."""
    own = system[np.ix_(active, active)]
    if not len(own):
        return 0.0
    return float(np.trace(np.linalg.solve(own + ridge * np.eye(len(own)), own)))

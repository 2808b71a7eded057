"""Estimated marginals of a coded table: a matrix of second moments, and a mixture from which rows can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpregress.accounting import Event
from dpregress.coordinates.domain import Domain
from dpregress.coordinates.svec import Matrix, Vector
from dpregress.coordinates.whitened import ResponseScale, WhitenedSpace
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput
from dpregress.releases.block_noise import BlockNoise, TableNoise
from dpregress.releases.moment_noise import MomentNoise
from dpregress.releases.noise import NoiseLaw
from dpregress.releases.release import Moments

#: Positions of levels, of shape (rows, attributes).
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(ShownInShort):
    """An equal mixture of products of categorical distributions over a domain.

    Parameters
    ----------
    domain : Domain
    chances : ndarray of shape (components, levels)
        Probabilities of all levels of all attributes, side by side; those of each attribute sum to 1.
    """

    domain: Domain
    chances: Matrix

    def one_way(self, attribute: int) -> Matrix:
        """Probabilities of an attribute's levels."""
        return np.asarray(self.chances[:, self.domain.levels_of(attribute)].mean(axis=0))

    def pair(self, first: int, second: int) -> Matrix:
        """Probabilities of two attributes' levels, of shape (k_first, k_second)."""
        left, right = (self.chances[:, self.domain.levels_of(j)] for j in (first, second))
        return np.asarray(left.T @ right / len(self.chances))

    @cached_property
    def design_moment(self) -> Matrix:
        """``E z z'`` of the design columns, the constant first."""
        attributes = self.domain.attributes
        blocks = [self.chances[:, self.domain.levels_of(j)] @ a.encoding for j, a in enumerate(attributes)]
        encoded_design = np.hstack([np.ones((len(self.chances), 1)), *blocks])
        moment = encoded_design.T @ encoded_design / len(encoded_design)
        for j, attribute in enumerate(attributes):
            own = self.domain.columns_of(j)
            moment[own, own] = attribute.encoding.T @ (self.one_way(j)[:, None] * attribute.encoding)
        return np.asarray(moment)

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Codes of independent rows, of shape (rows, attributes)."""
        component = rng.integers(len(self.chances), size=rows)
        codes = np.empty((rows, len(self.domain.attributes)), dtype=np.int64)
        for j in range(codes.shape[1]):
            codes[:, j] = self._levels(j, component, rng.random(rows))
        return codes

    def points(self, rows: int) -> Codes:
        """Codes of evenly spread rows that represent the mixture: a deterministic sample, the same at every call."""
        each = max(1, rows // len(self.chances))
        place = np.arange(1.0, each * len(self.chances) + 1)
        component = np.repeat(np.arange(len(self.chances)), each)
        codes = np.empty((len(place), len(self.domain.attributes)), dtype=np.int64)
        for j in range(codes.shape[1]):
            # a Kronecker sequence: the steps of two attributes are never rational multiples of each other
            codes[:, j] = self._levels(j, component, place * np.sqrt(_prime(j)) % 1.0)
        return codes

    def shares(self, attribute: int, rows: int) -> Matrix:
        """Probabilities of an attribute's levels for each of ``points(rows)``, given its component."""
        each = max(1, rows // len(self.chances))
        return np.asarray(np.repeat(self.chances[:, self.domain.levels_of(attribute)], each, axis=0))

    def _levels(self, attribute: int, component: Codes, uniform: Vector) -> Codes:
        """The level at which each component's distribution function reaches its uniform number."""
        cumulated = np.cumsum(self.chances[:, self.domain.levels_of(attribute)], axis=1)
        # each component's interval is shifted by its number, so that one sorted search serves all
        edges = (cumulated / cumulated[:, -1:] + np.arange(len(cumulated))[:, None]).ravel()
        place = np.searchsorted(edges, component + uniform, side="right") - component * cumulated.shape[1]
        return np.asarray(np.clip(place, 0, cumulated.shape[1] - 1), dtype=np.int64)


def encoded_design(domain: Domain, codes: Codes | Matrix, features: Sequence[str]) -> Matrix:
    """The design matrix of coded rows, of shape (rows, p): the constant, then features without reference levels."""
    return np.hstack(
        [np.ones((len(codes), 1)), *_columns(domain, codes, features, [a.encoding for a in domain.attributes])]
    )


def original_design(domain: Domain, codes: Codes | Matrix, features: Sequence[str]) -> Matrix:
    """The same columns in the units of users, of shape (rows, p - 1): without the constant."""
    return np.hstack(_columns(domain, codes, features, [attribute.design for attribute in domain.attributes]))


def _columns(domain: Domain, codes: Codes | Matrix, features: Sequence[str], tables: Sequence[Matrix]) -> list[Matrix]:
    """Rows of each feature's table of levels, without reference levels."""
    places = [domain.index(name) for name in features]
    return [tables[j][codes[:, j].astype(np.int64), int(not domain.attributes[j].numeric) :] for j in places]


def design_names(domain: Domain, features: Sequence[str]) -> tuple[str, ...]:
    """Names of the features' design columns, without reference levels."""
    found = (domain.attributes[domain.index(name)] for name in features)
    return tuple(name for a in found for name in a.columns[int(not a.numeric) :])


def regression_space(domain: Domain, target: str, features: Sequence[str], level: str | None = None) -> WhitenedSpace:
    """The design columns of a regression with an intercept: encodings in [-1, 1] of what users measure in their units.

    Parameters
    ----------
    domain : Domain
    target : str
        A number with evenly spaced levels, in the units of its values; or a class, whose indicator of ``level`` is the
        response.
    features : sequence of str
    level : str, optional

    Raises
    ------
    InvalidInput
        For a target that is a feature, or is not of the kind that ``level`` says.
    """
    attribute = domain.attributes[domain.index(target)]
    if target in features or not features:
        raise InvalidInput(f"regress {target!r} on at least one other column, and not on itself")
    if level is not None and attribute.numeric:
        raise InvalidInput(f"{target!r} is a number: level= is for a class")
    if level is None and not (attribute.numeric and attribute.evenly_spaced):
        raise InvalidInput(f"{target!r} has no evenly spaced levels: list it in numeric=, or name a level")
    centre, half = attribute.scale
    label = target if level is None else f"{target}={level}"
    names = design_names(domain, features)
    fill: list[float] = []
    whitening = np.eye(1 + len(names))
    for name in features:
        own = domain.attributes[domain.index(name)]
        fill.extend(own.design[own.unknown, int(not own.numeric) :])
        if own.numeric:
            middle, reach = own.scale
            whitening[len(fill), [0, len(fill)]] = -middle / reach, 1 / reach
    radius = float(np.sqrt(len(whitening)))
    return WhitenedSpace(names, whitening, radius, np.array(fill), True, ResponseScale(label, centre, half, 1.0))


def _prime(place: int) -> int:
    """The prime at this place."""
    found, number = -1, 1
    while found < place:
        number += 1
        found += all(number % divisor for divisor in range(2, int(number**0.5) + 1))
    return number


@dataclass(frozen=True, eq=False, repr=False)
class Marginals(ShownInShort):
    """The estimates from a private release of pair tables. Anything computed from them is post-processing.

    Parameters
    ----------
    domain : Domain
    count : float
        The released number of rows.
    gram : ndarray of shape (width, width)
        Second moments of the domain's design columns, in counts; the constant first.
    noise : NoiseLaw
        The noise in ``gram``: exact for unbiased releases, an approximation where a mixture was fitted.
    mixture : Mixture
    events : tuple of Event
    level_error : ndarray of shape (levels,)
        Standard deviation of the noise in each level's released count.
    unshrunk : pair of ndarray of shape (width, width) and TableNoise, or None
        The same second moments without shrinkage towards the mixture, and the law of their noise, for inference; None
        where a method has none, and for files of earlier versions.
    """

    domain: Domain
    count: float
    gram: Matrix
    noise: NoiseLaw
    mixture: Mixture
    events: tuple[Event, ...]
    level_error: Vector
    unshrunk: tuple[Matrix, TableNoise] | None = None

    @property
    def moments_only(self) -> bool:
        """Whether pairs of numbers were released as moments, rather than as tables."""
        return self.unshrunk is not None and isinstance(self.unshrunk[1], BlockNoise | MomentNoise)

    def groups(self, features: Sequence[str]) -> list[int]:
        """The position of the feature to which each design column belongs, without the constant."""
        return [place for place, name in enumerate(features) for _ in design_names(self.domain, [name])]

    def numbers(self, features: Sequence[str]) -> list[bool]:
        """For each design column without the constant, whether it is a number."""
        attributes = [self.domain.attributes[self.domain.index(name)] for name in features]
        return [a.numeric for a in attributes for _ in a.columns[int(not a.numeric) :]]

    def places(self, features: Sequence[str]) -> list[int]:
        """Positions of the constant and of these attributes' design columns, without reference levels."""
        found = [0]
        for name in features:
            j = self.domain.index(name)
            columns = self.domain.columns_of(j)
            found.extend(range(columns.start + (not self.domain.attributes[j].numeric), columns.stop))
        return found

    def moments(self, target: str, features: Sequence[str], level: str | None = None) -> Moments:
        """Moments of a regression of one attribute on others, with an intercept.

        Parameters
        ----------
        target : str
            A numeric attribute, in the units of its values; or a class, whose indicator of ``level`` is the response.
        features : sequence of str
        level : str, optional
        """
        space = regression_space(self.domain, target, features, level)
        own = self.domain.columns_of(self.domain.index(target))
        attribute = self.domain.attributes[self.domain.index(target)]
        place = own.start + (0 if level is None else attribute.levels.index(level))
        joint = [*self.places(features), place]
        total = self.gram[np.ix_(joint, joint)]
        return Moments(total, max(1, round(self.count)), self.noise.cut(joint), self.events, space)

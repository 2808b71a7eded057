"""What users tell of rows and responses in one message, and the parts of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from dpregress.coordinates import svec
from dpregress.coordinates.svec import Matrix, Vector
from dpregress.coordinates.whitened import WhitenedSpace
from dpregress.display import ShownInShort
from dpregress.errors import InvalidInput
from dpregress.releases.release import Release

#: Factors are multiples of it, so that values stay on grids.
_STEP = 2.0**-10
_MOST_NODES = 65


@dataclass(frozen=True, repr=False)
class MessageParts(ShownInShort):
    """What a message holds beside rows times responses, by the factor of each part; 0 where it is left out.

    Parameters
    ----------
    first : float
        f, of the rows themselves: a multiple of 1/1024 up to 1.
    hat : float
        h, of rows times hats of their response: a multiple of 1/1024 up to 1.
    nodes : int
        Nodes of the hats, equally spaced from -1 to 1: none, or at least two.
    gram : float
        g, of the products of a row with itself: a power of two, or 0.
    """

    first: float = 0.0
    hat: float = 0.0
    nodes: int = 0
    gram: float = 0.0

    def __post_init__(self) -> None:
        factors = (self.first, self.hat)
        if not all(0 <= each <= 1 and (each / _STEP).is_integer() for each in factors):
            raise InvalidInput(f"factors of a message are multiples of 1/1024 from 0 to 1, not {factors}")
        if (self.nodes > 0) != (self.hat > 0) or not (self.nodes == 0 or 2 <= self.nodes <= _MOST_NODES):
            raise InvalidInput(f"hats have 2 to {_MOST_NODES} nodes and a factor, not {self.nodes} and {self.hat}")
        if self.gram and not (0 < self.gram <= 1 and math.frexp(self.gram)[0] == 0.5 and self.gram > 2.0**-100):
            raise InvalidInput(f"the factor of products is a power of two up to 1, not {self.gram}")

    @property
    def width(self) -> int:
        """By how many numbers a row is multiplied."""
        return 1 + (self.first > 0) + self.nodes

    def size(self, order: int) -> int:
        """Entries of a message about rows of so many coordinates."""
        return order * self.width + (svec.length(order) if self.gram else 0)

    def bound(self, radius: float, response: float) -> float:
        """The largest norm of a message: ``R sqrt(C^2 + f^2 + h^2 + g^2 R^2)``."""
        return radius * math.hypot(response, self.first, self.hat, self.gram * radius)

    @property
    def places(self) -> Vector:
        """The nodes, of shape (nodes,)."""
        return np.linspace(-1.0, 1.0, self.nodes)

    def hats_at(self, response: Vector) -> Matrix:
        """``phi_j(y~)``, of shape (nodes, m): how a response between two nodes is divided between them."""
        along = (np.clip(response, -1.0, 1.0) + 1) * (self.nodes - 1) / 2
        return np.asarray(np.maximum(1 - np.abs(along - np.arange(self.nodes)[:, None]), 0.0))

    def unexplained(self, mean: Vector, gram: Matrix) -> Vector:
        """The mean message about rows with these moments whose responses are at either end, whatever the row."""
        first = [self.first * mean] if self.first else []
        ends = [self.hat * mean * (place in (0, self.nodes - 1)) / 2 for place in range(self.nodes)]
        products = [self.gram * svec.svec(gram)] if self.gram else []
        return np.concatenate([np.zeros(len(mean)), *first, *ends, *products])

    def encode(self) -> dict[str, Any]:
        """As it stands in files."""
        return asdict(self)

    @classmethod
    def decode(cls, record: dict[str, Any]) -> Self:
        """The inverse; InvalidInput for anything else."""
        if not isinstance(record, dict) or set(record) != {"first", "hat", "nodes", "gram"}:
            raise InvalidInput("parts of a message are first, hat, nodes and gram")
        nodes, factors = record["nodes"], [record[name] for name in ("first", "hat", "gram")]
        whole = isinstance(nodes, int) and not isinstance(nodes, bool)
        if not whole or not all(isinstance(each, float) for each in factors):
            raise InvalidInput("parts of a message are numbers, and nodes a whole one")
        first, hat, gram = factors
        return cls(first, hat, nodes, gram)


@dataclass(frozen=True, eq=False, repr=False)
class CrossMoments(Release):
    """Noisy sums of ``x~`` times functions of ``y~``, and of products of ``x~`` with itself where they were asked."""

    space: WhitenedSpace
    parts: MessageParts

    @property
    def columns(self) -> Matrix:
        """``mean x~ psi(y~)``, of shape (p, width), divided by the factors of the parts."""
        order, width = self.space.order, self.parts.width
        return np.asarray(self.mean[: order * width].reshape(width, order).T / self.factors)

    @property
    def factors(self) -> Vector:
        """Of the columns: 1 of the response, f, and h for every node."""
        first = [self.parts.first] if self.parts.first else []
        return np.array([1.0, *first, *[self.parts.hat] * self.parts.nodes])

    @property
    def gram(self) -> Matrix | None:
        """``mean x~ x~'``, of shape (p, p), if it was asked."""
        if not self.parts.gram:
            return None
        return svec.unsvec(self.mean[self.space.order * self.parts.width :] / self.parts.gram, self.space.order)

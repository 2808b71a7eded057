"""Whether the public rows suited the private ones: released moments in the coordinates that public rows gave."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Matrix, Vector, WhitenedSpace
from dpregress.coordinates.matrices import eigen
from dpregress.display import ShownInShort, how_many

#: From here on something is worth mending: the condition number, the ratio of variances, the shift of the mean in
#: standard deviations, and the share of rows that count less.
_CONDITION, _RATIO, _SHIFT, _SHORTENED = 30.0, 4.0, 0.5, 0.3
#: With fewer public rows a column, their own moments are too uncertain to compare.
_ROWS_OF_A_COLUMN = 10
#: Eigenvalues of the public moment below this share of the largest are directions that public rows do not have.
_UNSEEN = 1e-9


@dataclass(frozen=True, repr=False)
class Suitability(ShownInShort):
    """How far public rows are from the released moments of the private ones; no further cost, and noise included.

    Parameters
    ----------
    rows : int
        Public rows.
    columns : int
        Whitened columns.
    condition : float
        The condition number of the private second moment in the whitened coordinates; 1 where they suit exactly.
    wider, narrower : float
        The largest and the smallest ratio of private to public variance in any direction.
    shift : float or None
        The largest distance of the private mean from the public one along a principal direction of the public rows, in
        their standard deviations there; None without an intercept.
    weight : float or None
        The mean squared weight of private rows, 1 if none is shortened; None without an intercept.
    shortened : float or None
        The share of rows that are shortened, if a diagnosis paid for it.
    left_out : bool
        Whether the fit left the public rows out, since many private ones lie far beyond them.
    told : bool
        Whether the fit learned enough of the private rows to compare them.
    """

    rows: int
    columns: int
    condition: float
    wider: float
    narrower: float
    shift: float | None
    weight: float | None
    shortened: float | None = None
    left_out: bool = False
    told: bool = True

    def _in_short(self) -> str:
        if not self.told:
            return f"of {self.rows:,} public rows: too little was learned to compare them"
        return f"of {self.rows:,} public rows: they {'suit' if self.suits else 'do not suit'} the private ones"

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    @property
    def suits(self) -> bool:
        """Whether nothing is worth mending."""
        return not self._mends()

    def sentences(self) -> tuple[str, ...]:
        """The numbers, and what to mend."""
        if not self.told:
            return (
                f"Public table: {how_many(self.rows, 'row')}. Too little was learned of the private rows to tell",
                "whether they resemble these.",
            )
        shift = "" if self.shift is None else f", and means differ by up to {self.shift:.2g} sd"
        first = (
            f"Public table: {how_many(self.rows, 'row')}, condition number {self.condition:.3g} after whitening.",
            "Compared with the public rows, variances of the private rows are",
            f"{self._ratio} times as large{shift}.",
            *(() if self.shortened is None else (f"{self.shortened:.0%} of the private rows are downweighted.",)),
        )
        return (*first, *(self._mends() or ("The public rows resemble the private rows well enough.",)))

    @property
    def _ratio(self) -> str:
        """Between which numbers the ratios of variances lie."""
        ends = f"{self.narrower:.2g}", f"{self.wider:.2g}"
        return f"about {ends[0]}" if ends[0] == ends[1] else " to ".join(ends)

    def _mends(self) -> tuple[str, ...]:
        found: list[str] = []
        if self.left_out:
            found += [
                "Many private rows lie far beyond the public ones.",
                "The public rows were not used; the fit rests on the schema alone.",
            ]
        elif self.rows < _ROWS_OF_A_COLUMN * self.columns:
            found += [f"{self.rows:,} public rows are few for {self.columns:,} columns: give more of them."]
        elif self.narrower < 1 / _RATIO or self.wider > _RATIO or (self.shift or 0.0) > _SHIFT:
            found += [
                "The public rows are unlike the private ones: supply public rows from the same population, or",
                "drop them and declare bounds and levels for all columns.",
            ]
        elif self.condition > _CONDITION:
            found += ["The public rows have rare values or collinear columns: give more of them."]
        if self._share > _SHORTENED:
            found += [
                "Many rows lie beyond the truncation radius: take logarithms of skewed columns, or",
                "spend more, as the radius grows with the budget.",
            ]
        return tuple(found)

    @property
    def _share(self) -> float:
        if self.shortened is not None:
            return self.shortened
        return 0.0 if self.weight is None else 1 - self.weight


def suitability(
    space: WhitenedSpace,
    gram: Matrix,
    public: Matrix,
    shortened: float | None = None,
    *,
    left_out: bool = False,
    told: bool = True,
) -> Suitability | None:
    """Compare public rows with the released second moment of the private ones; None if that is not positive.

    Parameters
    ----------
    space : WhitenedSpace
        Of the release.
    gram : ndarray of shape (p, p)
        The released mean ``x~ x~'`` of the weighted private rows.
    public : ndarray of shape (m, d)
    shortened : float, optional
        The released share of rows outside the radius.
    left_out : bool, default=False
        Whether the fit left the public rows out.
    told : bool, default=True
        Whether the fit learned enough of the private rows to compare them.
    """
    whitened = space.whiten(public)
    weight = space.weights(whitened)
    rows = whitened * weight[:, None]
    known = rows.T @ rows / len(rows)
    values = np.linalg.eigvalsh(gram)
    if not values[0] > 0:
        return None
    shift, square = None, None
    if space.intercept:
        constant = space.constant
        square = float(constant @ gram @ constant)
        private, theirs = _centred(gram, constant), _centred(known, constant)
        shift = float(np.sqrt(max(_distance(private[0] - theirs[0], theirs[1]), 0.0)))
        gram, known = private[1], theirs[1]
    ratios = _ratios(gram, known)
    return Suitability(
        rows=len(public),
        columns=space.order,
        condition=float(values[-1] / values[0]),
        wider=float(ratios.max()),
        narrower=float(ratios.min()),
        shift=shift,
        weight=None if square is None else min(square, 1.0),
        shortened=shortened,
        left_out=left_out,
        told=told,
    )


def _centred(gram: Matrix, constant: Vector) -> tuple[Vector, Matrix]:
    """The mean row and the covariance of a second moment of weighted rows."""
    square = float(constant @ gram @ constant)
    mean = gram @ constant / square
    return mean, gram / square - np.outer(mean, mean)


def _seen(known: Matrix) -> Matrix:
    """Directions in which public rows vary, scaled to variance 1."""
    values, vectors = eigen(known)
    kept = values > _UNSEEN * max(float(values[-1]), 1e-300)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _ratios(gram: Matrix, known: Matrix) -> Vector:
    """Ratios of private to public variances in the principal directions, from the smallest."""
    turn = _seen(known)
    found = np.linalg.eigvalsh(turn.T @ gram @ turn) if turn.shape[1] else np.ones(1)
    return np.maximum(found, 0.0)


def _distance(move: Vector, known: Matrix) -> float:
    """The largest squared component, in public standard deviations."""
    turn = _seen(known)
    return float(np.max((turn.T @ move) ** 2)) if turn.shape[1] and math.isfinite(float(move @ move)) else 0.0

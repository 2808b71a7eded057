"""Estimates for inference: not shrunk, with the covariances of sampling and of privacy noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpregress.coordinates.svec import Matrix, Vector
from dpregress.display import NO_ESTIMATE, UNIDENTIFIED, ShownInShort, text_table
from dpregress.errors import InvalidInput, check_choice
from dpregress.json_files import DAMAGED, finite_or_null

#: How the sampling covariance was found: from a release of squared scores, or from the model alone.
CovarianceType = Literal["robust", "model"]

#: The name of the intercept among coefficients.
INTERCEPT = "(intercept)"

#: How far correlations that are read from a file may be from possible ones.
_ROUNDING = 1e-6
#: Entries of covariances are no larger, so that their sums are numbers.
_LARGEST = 1e300


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(ShownInShort):
    """Coefficients in original units on which intervals and tests are centred.

    Predictions are made with :class:`Coefficients`, which are shrunk towards what is known beside the private rows.

    Parameters
    ----------
    names : tuple of str
        The intercept first, if there is one, then the features; for several classes ``"class: name"``, class by class.
    estimate : ndarray of shape (k,)
    sampling, privacy : ndarray of shape (k, k)
        Covariances due to the sampling of rows, and due to privacy noise, with what weights and clips may have moved.
    identified : ndarray of bool, of shape (k,)
        Whether released and public facts determine the coefficient; no interval is offered for others.
    shift : ndarray of shape (k,)
        How far row weights and clips may move the coefficient from that of the unweighted population, if the model
        misses the mean response by a tenth of the residuals' standard deviation.
    df : float
        Degrees of freedom of the sampling covariance; infinite if it is the model's.
    cov_type : {"robust", "model"}
    dispersion : float or None
        The variance of a response about its mean over that which the family gives it (the residual variance of a
        linear model), if it was released.
    spread : ndarray of shape (d, d) or None
        The released covariance of the features in original units.
    """

    names: tuple[str, ...]
    estimate: Vector
    sampling: Matrix
    privacy: Matrix
    identified: NDArray[np.bool_]
    shift: Vector
    df: float
    cov_type: CovarianceType
    dispersion: float | None = None
    spread: Matrix | None = None

    @property
    def covariance(self) -> Matrix:
        """Of sampling and privacy noise together, of shape (k, k)."""
        return np.asarray(sum(np.clip(part, -_LARGEST, _LARGEST) for part in (self.sampling, self.privacy)))

    def places(self, names: Sequence[str]) -> list[int]:
        """Those of coefficients, by their names."""
        return [self.names.index(name) for name in names]

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Names of the coefficients that are not identified."""
        return tuple(name for name, known in zip(self.names, self.identified, strict=True) if not known)

    def in_order(self, features: Sequence[str]) -> Self:
        """The same estimates of one linear predictor, in the order of these features."""
        own = [name for name in self.names if name != INTERCEPT]
        order = [place for place, name in enumerate(self.names) if name == INTERCEPT]
        order += self.places(features)
        pairs, slopes = np.ix_(order, order), [own.index(name) for name in features]
        return replace(
            self,
            names=tuple(self.names[place] for place in order),
            estimate=self.estimate[order],
            sampling=self.sampling[pairs],
            privacy=self.privacy[pairs],
            identified=self.identified[order],
            shift=self.shift[order],
            spread=None if self.spread is None else self.spread[np.ix_(slopes, slopes)],
        )

    @property
    def degrees_of_freedom(self) -> Vector:
        """Of each ratio, of shape (k,)."""
        return self.df_along(np.eye(len(self.names)))

    def df_along(self, rows: Matrix) -> Vector:
        """Of the ratios of linear combinations: only the sampling part of a variance is estimated (Satterthwaite 1946).

        Parameters
        ----------
        rows : ndarray of shape (r, k)
        """
        variance = np.einsum("ri,ij,rj->r", rows, self.covariance, rows)
        sampling = np.einsum("ri,ij,rj->r", rows, self.sampling, rows)
        known = (variance > 0) & np.isfinite(variance)
        share = np.divide(sampling, variance, out=np.ones(len(variance)), where=known)
        return np.asarray(self.df / np.maximum(share, 1e-12) ** 2)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each coefficient; errors are NaN where it is not identified."""
        import pandas as pd

        columns = {"coef": self.estimate, "std err": self._errors(self.covariance)}
        columns |= {"sampling s.e.": self._errors(self.sampling), "privacy s.e.": self._errors(self.privacy)}
        return pd.DataFrame(columns, index=list(self.names))

    def _errors(self, covariance: Matrix) -> Vector:
        return np.where(self.identified, np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.nan)

    def _in_short(self) -> str:
        df = "" if np.isinf(self.df) else f", df = {self.df:.4g}"
        return f"of {len(self.names)} coefficients: {self.cov_type} covariance{df}"

    def __str__(self) -> str:
        columns = (self.estimate, self._errors(self.covariance), self._errors(self.privacy))
        rows = []
        for name, known, *values in zip(self.names, self.identified, *columns, strict=True):
            cells = [f"{value:.6g}" for value in values]
            rows.append([name, *(cells if known else [NO_ESTIMATE, UNIDENTIFIED, ""])])
        return text_table(("", "coef", "std err", "privacy s.e."), rows)

    def encode(self) -> dict[str, Any]:
        """Plain values for JSON: null for what is not finite; of a symmetric matrix the rows up to the diagonal."""
        return {
            "names": list(self.names),
            "estimate": finite_or_null(self.estimate),
            "sampling": _lower(self.sampling),
            "privacy": _lower(self.privacy),
            "identified": [bool(known) for known in self.identified],
            "shift": finite_or_null(self.shift),
            "df": finite_or_null([self.df])[0],
            "cov_type": self.cov_type,
            "dispersion": None if self.dispersion is None else finite_or_null([self.dispersion])[0],
            "spread": None if self.spread is None else _lower(self.spread),
        }

    @classmethod
    def decode(cls, record: Mapping[str, Any]) -> Self:
        """Read back what :meth:`encode` wrote.

        Raises
        ------
        InvalidInput
            For numbers that do not fit together.
        """
        names = tuple(str(name) for name in record["names"])
        k, spread = len(names), record["spread"]
        check_choice("cov_type", record["cov_type"], ("robust", "model"))
        df = np.inf if record["df"] is None else float(record["df"])
        dispersion = None if record["dispersion"] is None else float(record["dispersion"])
        if not df > 0 or (dispersion is not None and dispersion < 0) or len(set(names)) != k:
            raise InvalidInput(f"its estimates hold an invalid number or name: {DAMAGED}")
        identified = np.array([known is True for known in record["identified"]], dtype=np.bool_)
        if identified.shape != (k,):
            raise InvalidInput(f"its {k} estimates do not say which of them are identified")
        estimate, shift = _numbers(record["estimate"], k), _numbers(record["shift"], k)
        sampling, privacy = _symmetric(record["sampling"], k), _symmetric(record["privacy"], k)
        identified &= np.isfinite(estimate) & np.isfinite(np.diag(sampling + privacy))
        known = np.ix_(identified, identified)
        if (shift < 0).any() or not (_possible(sampling[known]) and _possible(privacy[known])):
            raise InvalidInput(f"its estimates or their covariances hold invalid numbers: {DAMAGED}")
        return cls(
            names=names,
            estimate=estimate,
            sampling=sampling,
            privacy=privacy,
            identified=identified,
            shift=shift,
            df=df,
            cov_type=record["cov_type"],
            dispersion=dispersion,
            spread=None if spread is None else _symmetric(spread, len(spread)),
        )


def _lower(matrix: Matrix) -> list[list[float | None]]:
    return [finite_or_null(row[: place + 1]) for place, row in enumerate(matrix)]


def _numbers(values: Any, count: int) -> Vector:
    if not isinstance(values, list) or len(values) != count:
        raise InvalidInput(f"its estimates hold a list that has not {count} numbers")
    if not all(value is None or type(value) in (int, float) for value in values):
        raise InvalidInput("its estimates hold something else in place of a number")
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _possible(covariance: Matrix) -> bool:
    """Whether this may be a covariance: without negative variances, of single coefficients or of combinations."""
    variance = np.diag(covariance)
    if not (np.isfinite(covariance).all() and (variance >= 0).all()):
        return False
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    with np.errstate(over="ignore"):
        correlation = covariance / deviation[:, None] / deviation
    within = bool((np.abs(correlation) <= 1 + _ROUNDING).all())
    return within and bool((np.linalg.eigvalsh(correlation) >= -_ROUNDING * len(variance)).all())


def _symmetric(rows: Any, order: int) -> Matrix:
    if not isinstance(rows, list) or len(rows) != order:
        raise InvalidInput(f"its estimates hold a matrix that has not {order} rows")
    found = np.empty((order, order))
    for place, row in enumerate(rows):
        found[place, : place + 1] = found[: place + 1, place] = _numbers(row, place + 1)
    return found

"""Public moments: the scale of private rows as estimated from public rows or a published matrix."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from dpregress.coordinates import Matrix, Vector
from dpregress.display import html_table, shown
from dpregress.errors import InvalidInput, did_you_mean, reason
from dpregress.json_files import MALFORMED, parsed

_FORMAT = "dpregress.public-moments/1"
_LARGEST = 1e180
#: Larger counts are not exact as floats.
_MOST_ROWS = 1 << 53


@dataclass(frozen=True, eq=False)
class PublicMoments:
    r"""Count, means and raw second moment of public rows, ``S = (1/m) sum v v'``.

    Nothing here is protected: use rows that are already public, or a published matrix.

    Parameters
    ----------
    names : tuple of str
        Columns, in the order of the private table's design columns.
    n : int
        Number of public rows m.
    second : ndarray of shape (d, d)
    mean : ndarray of shape (d,) or None
    rows : ndarray of shape (m, d) or None
        Kept in memory for leave-one-out norms; never written to files.
    labels : ndarray of shape (m,) or None
        Responses of the public rows, if these are public too.
    exposure : ndarray of shape (m,) or None
        Exposures of the public rows, for models that have one.

    Examples
    --------
    >>> import numpy as np
    >>> from dpregress import PublicMoments
    >>> PublicMoments.from_rows(np.eye(3) * 2).second[0, 0].round(3)
    np.float64(1.333)
    """

    names: tuple[str, ...]
    n: int
    second: Matrix
    mean: Vector | None = None
    rows: Matrix | None = None
    labels: Vector | None = None
    exposure: Vector | None = None

    def __post_init__(self) -> None:
        order = len(self.names)
        if self.second.shape != (order, order) or (self.mean is not None and self.mean.shape != (order,)):
            raise InvalidInput(f"public moments of {order} columns need a matrix of shape {(order, order)}")
        if self.n < 1:
            raise InvalidInput("public moments need at least one row")
        if self.n > _MOST_ROWS:
            raise InvalidInput("n of the public moments is too large: give the true number of rows")
        numbers = np.concatenate([self.second.ravel(), [] if self.mean is None else self.mean])
        if not (np.abs(numbers) <= _LARGEST).all():
            raise InvalidInput("public moments must be finite: remove or correct missing and huge public cells first")
        if np.linalg.eigvalsh(self.second)[0] < -1e-9 * max(float(np.trace(self.second)), 0.0):
            raise InvalidInput("this matrix is not a second moment: it has negative eigenvalues")
        if len(set(self.names)) != order:
            raise InvalidInput("names of public columns must differ")

    @classmethod
    def from_rows(
        cls,
        V: ArrayLike,
        y: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        exposure: ArrayLike | None = None,
    ) -> PublicMoments:
        """Moments of public rows, labelled or not.

        Parameters
        ----------
        V : array-like of shape (m, d)
            Finite numbers; a data frame's column names are kept.
        y : array-like of shape (m,), optional
            Public responses.
        names : sequence of str, optional
        exposure : array-like of shape (m,), optional
            Positive public exposures; required for labelled rows if the private rows have exposures.

        Raises
        ------
        InvalidInput
            For missing or non-finite cells, an empty table, labels or exposures of another length, and exposures
            that are not positive.
        """
        if isinstance(V, pa.Table):
            names = V.column_names if names is None else names
            V = np.column_stack([column.to_numpy() for column in V.columns])
        elif names is None and getattr(V, "columns", None) is not None:
            names = [str(name) for name in V.columns]  # type: ignore[union-attr]  # pandas and Polars
        rows = _matrix(V)
        if names is None:
            names = [f"x{i}" for i in range(rows.shape[1])]
        labels = None if y is None else _labels(y, len(rows))
        exposures = None if exposure is None else _labels(exposure, len(rows), "exposures")
        if exposures is not None and not (exposures > 0).all():
            raise InvalidInput("public exposures must be positive: drop those rows first")
        second = rows.T @ rows / len(rows)
        return cls(tuple(names), len(rows), (second + second.T) / 2, rows.mean(axis=0), rows, labels, exposures)

    @classmethod
    def from_matrix(
        cls, S: ArrayLike, *, n: int, mean: ArrayLike | None = None, names: Sequence[str] | None = None
    ) -> PublicMoments:
        """Moments from a published raw second moment.

        Parameters
        ----------
        S : array-like of shape (d, d)
            Symmetric, ``(1/n) sum v v'`` (not centred).
        n : int
            The number of rows from which it was computed.
        mean : array-like of shape (d,), optional
            Column means; required for a model with an intercept.
        names : sequence of str, optional
        """
        try:
            second = np.asarray(S, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"a second moment is a matrix of numbers: {error}") from error
        if second.ndim != 2 or second.shape[0] != second.shape[1] or not np.allclose(second, second.T):
            raise InvalidInput("a second moment is a symmetric square matrix")
        if names is None:
            names = [f"x{i}" for i in range(len(second))]
        return cls(tuple(names), int(n), second, None if mean is None else np.asarray(mean, dtype=np.float64))

    @property
    def labelled(self) -> bool:
        """Whether public responses are known."""
        return self.labels is not None

    def unlabelled(self) -> PublicMoments:
        """The same moments without the responses."""
        return replace(self, labels=None)

    def select(self, names: Sequence[str]) -> PublicMoments:
        """The same moments with the columns in this order.

        Raises
        ------
        InvalidInput
            When a name is not among the public columns.
        """
        absent = [name for name in names if name not in self.names]
        if absent:
            held = f"they have {', '.join(self.names[:12])}"
            raise InvalidInput(
                f"the public rows have no column {absent[0]!r}: {did_you_mean(absent[0], self.names, held)}"
            )
        at = [self.names.index(name) for name in names]
        return replace(
            self,
            names=tuple(names),
            second=self.second[np.ix_(at, at)],
            mean=None if self.mean is None else self.mean[at],
            rows=None if self.rows is None else self.rows[:, at],
        )

    def augmented(self, intercept: bool) -> Matrix:
        """Second moment of ``(1, x)`` with an intercept, of x without.

        Raises
        ------
        InvalidInput
            With an intercept when the means are not known.
        """
        if not intercept:
            return self.second
        if self.mean is None:
            raise InvalidInput("an intercept needs the public means: give mean=, or fit_intercept=False")
        return np.block([[np.ones((1, 1)), self.mean[None, :]], [self.mean[:, None], self.second]])

    @property
    def deviation(self) -> Vector:
        """Standard deviations of the columns, of shape (d,); NaN without means."""
        if self.mean is None:
            return np.full(len(self.names), np.nan)
        return np.sqrt(np.maximum(self.second.diagonal() - self.mean**2, 0.0))

    def __repr__(self) -> str:
        return f"<PublicMoments {self.n} x {len(self.names)}>"

    def _repr_html_(self) -> str:
        means = np.full(len(self.names), np.nan) if self.mean is None else self.mean
        rows = [
            [name, f"{mean:.4g}", f"{sd:.4g}"] for name, mean, sd in zip(self.names, means, self.deviation, strict=True)
        ]
        labelled = "unlabelled" if self.labels is None else "labelled"
        return html_table(("column", "mean", "std. deviation"), rows, f"{self.n:,} public rows, {labelled}")

    def text(self) -> str:
        """The count, names, means and second moment as JSON text, without rows and labels."""
        record = {
            "format": _FORMAT,
            "n": self.n,
            "names": list(self.names),
            "mean": None if self.mean is None else self.mean.tolist(),
            "second_moment": self.second.tolist(),
        }
        return json.dumps(record, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write :meth:`text` to a file."""
        Path(path).write_text(self.text(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> PublicMoments:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file does not hold public moments.
        """
        try:
            record: Mapping[str, Any] = parsed(Path(path).read_text(encoding="utf-8"))
            if record["format"] != _FORMAT:
                raise InvalidInput(f"it is of format {record['format']!r}, not {_FORMAT!r}")
            names = record["names"]
            if type(record["n"]) is not int or not isinstance(names, list):
                raise InvalidInput("it needs a whole number n and a list of names")
            if not all(isinstance(name, str) for name in names):
                raise InvalidInput("a name is not text: write it in quotes")
            return cls.from_matrix(record["second_moment"], n=record["n"], mean=record["mean"], names=names)
        except (OSError, *MALFORMED) as error:
            raise InvalidInput(f"{shown(path)} is not a file of public moments: {reason(error)}") from error


def _matrix(V: ArrayLike) -> Matrix:
    try:
        rows = np.ascontiguousarray(V, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"public rows must be numbers: {error}") from error
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise InvalidInput("public rows must be a table with at least one row and one column")
    if not (np.abs(rows) <= 1e90).all():
        raise InvalidInput("public rows hold huge, missing or non-finite cells: remove or correct them first")
    return rows


def _labels(y: ArrayLike, rows: int, what: str = "labels") -> Vector:
    try:
        labels = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"public {what} must be numbers: {error}") from error
    if labels.shape != (rows,):
        raise InvalidInput(f"{rows} public rows need {rows} {what}, not {labels.size}")
    if not (np.abs(labels) <= 1e90).all():
        raise InvalidInput(f"public {what} hold huge, missing or non-finite values: drop those rows first")
    return labels

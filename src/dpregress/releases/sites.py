"""Released moments of the columns of a table at one or several sites, as versioned JSON. Nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.accounting import PrivacyStatement
from dpregress.coordinates import Matrix, Weighting, WhitenedSpace
from dpregress.coordinates.matrices import eigen, invertible, symmetric_power
from dpregress.display import ShownInShort, shown
from dpregress.errors import InvalidInput, reason
from dpregress.json_files import DAMAGED, MALFORMED, parsed
from dpregress.releases.model_files import decode_moments, encode_moments
from dpregress.releases.noise import Isotropic
from dpregress.releases.release import Moments

_FORMAT = "dpregress.moments/2"
_LARGEST = 1e100
#: The least eigenvalue of what is recoloured, the rounding of eigenvalues, and the largest one of whitened rows.
_SMALLEST, _ROUNDING, _LONGEST = 1e-3, 1e-9, 1e12


@dataclass(frozen=True, eq=False, repr=False)
class SiteMoments(ShownInShort):
    """What one site released.

    Parameters
    ----------
    name : str
        Of the site; empty where there is only one.
    moments : Moments
        Of all columns, without a response.
    privacy : PrivacyStatement
    lost : ndarray of shape (p, p)
        The part of ``mean x~ x~'`` that row weights take: about ``mean (1 - s)^2 x~ x~'``.
    shortfall : ndarray of shape (p, p)
        What the released ``mean s^2 x~ x~'`` is short of ``mean x~ x~'``, by rows that take the place of private ones.
    """

    name: str
    moments: Moments
    privacy: PrivacyStatement
    lost: Matrix
    shortfall: Matrix


@dataclass(frozen=True, eq=False, repr=False)
class Shortened(ShownInShort):
    """What weights take of rows that take the place of private ones, each of shape (p, p).

    Parameters
    ----------
    gram : ndarray
        ``mean s^2 x~ x~'`` of these rows.
    lost, shortfall : ndarray
        As of :class:`SiteMoments`.
    """

    gram: Matrix
    lost: Matrix
    shortfall: Matrix

    @classmethod
    def of(cls, gram: Matrix, lost: Matrix, shortfall: Matrix) -> Shortened:
        """From products of matrices, which rounding leaves not quite symmetric."""
        return cls(*((part + part.T) / 2 for part in (gram, lost, shortfall)))

    @classmethod
    def together(cls, sites: Sequence[SiteMoments]) -> Shortened:
        """Of the rows of all sites; their noisy second moment is made positive definite."""
        shares = np.array([site.moments.n for site in sites]) / sum(site.moments.n for site in sites)
        gram = np.tensordot(shares, [site.moments.gram for site in sites], 1)
        lost = np.tensordot(shares, [site.lost for site in sites], 1)
        shortfall = np.tensordot(shares, [site.shortfall for site in sites], 1)
        return cls(symmetric_power((gram + gram.T) / 2, 1.0, smallest=_SMALLEST), lost, shortfall)

    def recoloured(self, gram: Matrix) -> Shortened:
        """Of the same rows, transformed to have this positive definite second moment."""
        turn = symmetric_power(gram, 0.5) @ symmetric_power(self.gram, -0.5, smallest=_SMALLEST)
        return Shortened.of(gram, turn @ self.lost @ turn.T, turn @ self.shortfall @ turn.T)


@dataclass(frozen=True, eq=False, repr=False)
class MomentsFile(ShownInShort):
    """The contents of a file: coordinates, what its columns are, and the releases of its sites, if any.

    Parameters
    ----------
    space : WhitenedSpace
    columns : tuple of str
        The columns of the table, of which the schema makes the design columns of the space.
    schema : str or None
        In TOML.
    sites : tuple of SiteMoments
    shortened : Shortened or None
        Of public rows, if coordinates were fixed by these.
    """

    space: WhitenedSpace
    columns: tuple[str, ...]
    schema: str | None
    sites: tuple[SiteMoments, ...]
    shortened: Shortened | None = None

    def text(self, software: str) -> str:
        """The file as JSON text."""
        record = {
            "format": _FORMAT,
            "software": software,
            "space": self.space.encode(),
            "columns": list(self.columns),
            "schema": self.schema,
            "sites": [_encoded(site) for site in self.sites],
        }
        if self.shortened is not None:
            record["shortened"] = {name: part.tolist() for name, part in vars(self.shortened).items()}
        return json.dumps(record, indent=1, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> MomentsFile:
        """Read what :meth:`text` wrote.

        Raises
        ------
        InvalidInput
            If the file is not a file of moments, or has another version.
        """
        try:
            record = parsed(Path(path).read_text(encoding="utf-8"))
            if record["format"] != _FORMAT:
                raise InvalidInput(f"it is of format {record['format']!r}, not {_FORMAT!r}")
            space = WhitenedSpace.decode(record["space"])
            check_symmetric_space(space)
            schema = record["schema"]
            if schema is not None and not isinstance(schema, str):
                raise InvalidInput("its schema is not text")
            sites = tuple(_decoded(site, space) for site in record["sites"])
            check_names([site.name for site in sites])
            columns = tuple(str(name) for name in record["columns"])
            return cls(space, columns, schema, sites, _shortened(record.get("shortened"), space))
        except (OSError, *MALFORMED) as error:
            raise InvalidInput(f"{shown(path)} is not a file of released moments: {reason(error)}") from error


def check_symmetric_space(space: WhitenedSpace) -> None:
    """Refuse coordinates that treat one column unlike the others.

    Raises
    ------
    InvalidInput
    """
    alike = space.response is None and space.exposure is None and space.weighting is Weighting.ROW
    if not (alike and space.intercept and np.isfinite(space.radius)):
        raise InvalidInput("these are not the coordinates of a release of all columns")
    if not invertible(space.slopes[1:]):
        raise InvalidInput("the coordinates cannot be inverted")


def check_names(names: Sequence[str]) -> None:
    """Refuse sites of one name.

    Raises
    ------
    InvalidInput
    """
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidInput(f"two sites are called {twice[0]!r}: their people must differ, so give each site a name")


def _encoded(site: SiteMoments) -> dict[str, Any]:
    moments = encode_moments(site.moments)
    del moments["frame"]  # that of the file
    return {
        "name": site.name,
        "moments": moments,
        "lost": site.lost.tolist(),
        "shortfall": site.shortfall.tolist(),
        "privacy": site.privacy.encode(),
    }


def _decoded(record: Mapping[str, Any], space: WhitenedSpace) -> SiteMoments:
    moments = decode_moments({**record["moments"], "frame": space.encode()})
    lost, shortfall = (np.array(record[name], dtype=np.float64) for name in ("lost", "shortfall"))
    possible = (
        isinstance(moments.noise, Isotropic)
        and 0 <= moments.noise.sigma <= _LARGEST
        and 1 <= moments.n < 2**53
        and lost.shape == shortfall.shape == moments.total.shape
        and all(_symmetric(matrix) for matrix in (moments.total, lost, shortfall))
        and all(_is_square(matrix) for matrix in (lost, shortfall))
    )
    if not possible:
        raise InvalidInput(f"its moments hold invalid numbers: {DAMAGED}")
    return SiteMoments(str(record["name"]), moments, PrivacyStatement.decode(record["privacy"]), lost, shortfall)


def _shortened(record: Mapping[str, Any] | None, space: WhitenedSpace) -> Shortened | None:
    if record is None:
        return None
    parts = [np.array(record[name], dtype=np.float64) for name in ("gram", "lost", "shortfall")]
    if not all(part.shape == (space.order, space.order) and _symmetric(part) and _is_square(part) for part in parts):
        raise InvalidInput(f"its public moments hold invalid numbers: {DAMAGED}")
    return Shortened(*parts)


def _is_square(matrix: Matrix) -> bool:
    """Whether it may be a mean of squares, but for rounding, of rows that are not absurdly long."""
    values = eigen(matrix)[0]
    return bool(-_ROUNDING * max(abs(values[-1]), 1.0) <= values[0] and values[-1] <= _LONGEST)


def _symmetric(matrix: Matrix) -> bool:
    return bool((np.abs(matrix) <= _LARGEST).all()) and np.array_equal(matrix, matrix.T)

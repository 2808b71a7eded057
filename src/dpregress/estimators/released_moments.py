"""Released moments of all columns of a table, and everything that is computed from them at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpregress.accounting import PrivacyStatement, parallel_statement
from dpregress.coordinates import Matrix, WhitenedSpace
from dpregress.display import html_table
from dpregress.errors import InvalidInput, one_line, type_of
from dpregress.estimators.saving import write_whole
from dpregress.inference import (
    CorrelationTable,
    HeterogeneityTest,
    PrincipalComponents,
    ReleasedCovariance,
    coefficient_heterogeneity,
    moment_estimates,
    moment_heterogeneity,
    principal_components,
)
from dpregress.inputs.names import listed
from dpregress.public import Categorical, Schema
from dpregress.releases import Estimates, Moments
from dpregress.releases.sites import MomentsFile, Shortened, SiteMoments, check_names
from dpregress.releases.subsets import RegressionMoments, not_released, regression_moments
from dpregress.rows import Encoder
from dpregress.version import SOFTWARE

__all__ = ["ReleasedMoments", "SharedSpace", "combine"]

_COMPONENTS = 10


@dataclass(frozen=True, eq=False, repr=False)
class SharedSpace:
    """Coordinates in which several sites release their moments, fixed from public facts alone.

    Parameters
    ----------
    space : WhitenedSpace
    columns : tuple of str
        The columns of the tables.
    schema : Schema or None
    shortened : Shortened or None
        What weights take there of the public rows that fixed them.
    """

    space: WhitenedSpace
    columns: tuple[str, ...]
    schema: Schema | None
    shortened: Shortened | None = None

    def save(self, path: str | Path) -> None:
        """Write a file that :meth:`load` and ``dpregress release --like`` read; OutputError if that cannot be done."""
        write_whole({Path(path): self.text()})

    def text(self) -> str:
        """The text of the file."""
        return MomentsFile(self.space, self.columns, _toml(self.schema), (), self.shortened).text(SOFTWARE)

    @classmethod
    def load(cls, path: str | Path) -> SharedSpace:
        """Read the coordinates of a file, of which a release may follow; InvalidInput for another file."""
        found = MomentsFile.load(path)
        schema = _schema(found.schema, path)
        if found.sites:
            return cls(found.space, found.columns, schema, Shortened.together(found.sites))
        return cls(found.space, found.columns, schema, found.shortened)

    def __repr__(self) -> str:
        return f"<SharedSpace of {len(self.columns)} columns>"


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedMoments:
    """The noisy second moment of all columns of a table. Whatever is computed from it costs nothing more.

    Made by :func:`~dpregress.release_moments`, :func:`~dpregress.combine` and :meth:`load`. Regressions are
    ``DPLinearRegression.from_moments(moments, target, features)``.

    Parameters
    ----------
    space : WhitenedSpace
    columns : tuple of str
        The columns of the table. Those of ``names`` are its design columns: a level of a categorical column has one.
    schema : Schema or None
    sites : tuple of SiteMoments
        One, or one for each site if releases were combined.
    """

    space: WhitenedSpace
    columns: tuple[str, ...]
    schema: Schema | None
    sites: tuple[SiteMoments, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The design columns."""
        return self.space.features

    @property
    def n(self) -> int:
        """The number of rows that count, at all sites together."""
        return self.moments.n

    @property
    def moments(self) -> Moments:
        """The sum over the sites, in whitened coordinates, with the law of its noise."""
        first, *others = (site.moments for site in self.sites)
        for other in others:
            first = first + other
        return first

    @property
    def lost(self) -> Matrix:
        """The part of the second moment of the whitened rows that row weights take, of shape (p, p)."""
        return self.shortened.lost

    @property
    def shortfall(self) -> Matrix:
        """What the second moment of the weighted rows falls short of that of the rows, of shape (p, p)."""
        return self.shortened.shortfall

    @property
    def shortened(self) -> Shortened:
        """The same of all rows together, for releases in these coordinates."""
        return Shortened.together(self.sites)

    @property
    def privacy_(self) -> PrivacyStatement:
        """The guarantee: that of the site, or of several sites by parallel composition."""
        return parallel_statement([site.privacy for site in self.sites])

    @property
    def rows_of_a_unit(self) -> int:
        """The largest number of rows of a unit, 1 where the unit is a record."""
        return max(site.privacy.max_rows_per_unit or 1 for site in self.sites)

    # ------------------------------------------------------------- without a response

    def covariance(self, columns: Sequence[str] | None = None) -> ReleasedCovariance:
        """Means and covariance of the columns; default: of all."""
        found = ReleasedCovariance.of(self.moments, self.shortfall, rows_of_a_unit=self.rows_of_a_unit)
        return found.keeping([self.names.index(name) for name in self.design(columns)])

    def correlations(self, columns: Sequence[str] | None = None) -> CorrelationTable:
        """The correlations of the columns; default: of all."""
        return self.covariance(columns).correlations()

    def partial_correlations(self, columns: Sequence[str] | None = None) -> CorrelationTable:
        """The correlation of each pair of these columns given the others of them."""
        return self.covariance(columns).partial_correlations()

    def principal_components(
        self, components: int = _COMPONENTS, *, columns: Sequence[str] | None = None, correlation: bool = True
    ) -> PrincipalComponents:
        """The first principal components of the columns.

        Parameters
        ----------
        components : int
        columns : sequence of str, optional
            Default: all.
        correlation : bool
            Whether of the correlation matrix; otherwise of the covariance matrix.
        """
        if isinstance(components, bool) or not isinstance(components, int) or components < 1:
            raise InvalidInput(f"components takes a whole number of at least 1, not {one_line(components)}")
        return principal_components(self.covariance(columns), components, correlation=correlation)

    # ------------------------------------------------------------- regressions

    def design(self, columns: Sequence[str] | None = None, *, other_than: str | None = None) -> tuple[str, ...]:
        """The design columns of these columns; default: all but those of one column.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns of the table or design columns.
        other_than : str, optional
            A column or design column, whose own design columns are not among the default.

        Raises
        ------
        InvalidInput
            For a column that was not released.
        """
        if columns is None:
            own = () if other_than is None else self._beside(other_than)
            return tuple(name for name in self.names if name not in own)
        found = [each for name in listed(columns, "columns") for each in self._designed(name)]
        return tuple(dict.fromkeys(found))

    def response(self, target: Any) -> str:
        """The design column of a response: a number, or an indicator.

        Raises
        ------
        InvalidInput
            For a column that was not released, or has several levels.
        """
        found = self._designed(target)
        declared = None if self.schema is None else self.schema.column(str(target))
        if isinstance(declared, Categorical):
            raise InvalidInput(f"{target!r} is categorical: regress one of its indicators, such as {found[0]!r}")
        return found[0]

    def estimates(
        self, target: str, features: Sequence[str], *, intercept: bool = True, site: SiteMoments | None = None
    ) -> Estimates:
        """Least squares of a design column on others, with errors of sampling and of privacy noise.

        Parameters
        ----------
        target : str
        features : sequence of str
        intercept : bool
        site : SiteMoments, optional
            One of several; default: all together.
        """
        moments = self.moments if site is None else site.moments
        return self.estimates_of(regression_moments(moments, target, features, intercept=intercept), site)

    def estimates_of(self, own: RegressionMoments, site: SiteMoments | None = None) -> Estimates:
        """The same from the moments of the regression.

        Parameters
        ----------
        own : RegressionMoments
        site : SiteMoments, optional
            From which they are; default: all sites together.
        """
        taken = self.shortened if site is None else site
        lost, shortfall = (own.axes.T @ part @ own.axes for part in (taken.lost, taken.shortfall))
        found = moment_estimates(
            own.moments, lost=lost[:-1, :-1], shortfall=shortfall, rows_of_a_unit=self.rows_of_a_unit
        )
        return replace(found, estimate=found.estimate + own.baseline)

    def heterogeneity(self, target: str | None = None, features: Sequence[str] | None = None) -> HeterogeneityTest:
        """Test whether the sites agree, by Cochran's Q.

        Parameters
        ----------
        target : str, optional
            With a target: whether the sites have the same coefficients of its regression. Without one: whether their
            rows have the same means and covariances, which takes them as normal.
        features : sequence of str, optional
            Default: all other columns.

        Raises
        ------
        InvalidInput
            If there is only one site.
        """
        if target is None:
            return moment_heterogeneity([site.moments for site in self.sites])
        response, chosen = self.response(target), self.design(features, other_than=target)
        return coefficient_heterogeneity([self.estimates(response, chosen, site=site) for site in self.sites])

    # ------------------------------------------------------------- files

    def text(self) -> str:
        """The text of the file."""
        return MomentsFile(self.space, self.columns, _toml(self.schema), self.sites).text(SOFTWARE)

    def save(self, path: str | Path) -> None:
        """Write a file that :meth:`load` and ``dpregress regress`` read; OutputError if that cannot be done."""
        write_whole({Path(path): self.text()})

    @classmethod
    def load(cls, path: str | Path) -> ReleasedMoments:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            For another file, or coordinates in which nothing has been released yet.
        """
        found = MomentsFile.load(path)
        if not found.sites:
            raise InvalidInput(f"{path} holds coordinates and no moments: release in them first (like=)")
        return cls(found.space, found.columns, _schema(found.schema, path), found.sites)

    def __repr__(self) -> str:
        sites = f" at {len(self.sites)} sites" if len(self.sites) > 1 else ""
        return f"<ReleasedMoments of {len(self.columns)} columns, {self.n:,} rows{sites}>"

    def table(self) -> tuple[tuple[str, ...], list[list[str]]]:
        """Header and rows of a table of means and standard deviations, with errors, for print."""
        found = self.covariance()
        sampling, privacy = found.mean_errors
        deviation = np.sqrt(np.diag(found.matrix))
        columns = (found.mean, np.hypot(sampling, privacy), privacy, deviation)
        rows = [
            [name, *(f"{value:.4g}" for value in values)] for name, *values in zip(self.names, *columns, strict=True)
        ]
        return ("column", "mean", "std err", "privacy s.e.", "std. deviation"), rows

    def _repr_html_(self) -> str:
        header, rows = self.table()
        return html_table(header, rows, f"{self.n:,} rows; {self.privacy_.describe()}")

    def _designed(self, name: Any) -> tuple[str, ...]:
        """The design columns of a column, or the design column itself."""
        if name in self.columns:
            (declared,) = (
                column for each, column in Encoder.of(self.columns, None, self.schema).columns if each == name
            )
            return declared.design(name)
        if name in self.names:
            return (str(name),)
        raise not_released(name, self.columns)

    def _beside(self, name: str) -> tuple[str, ...]:
        """All design columns of the column to which this design column belongs."""
        for each, column in Encoder.of(self.columns, None, self.schema).columns:
            if name == each or name in column.design(each):
                return column.design(each)
        return self._designed(name)


def combine(releases: Sequence[ReleasedMoments]) -> ReleasedMoments:
    """The moments of several sites with the same columns and different people, as one release.

    Totals and variances of noise add up. Every person has the guarantee of their own site: parallel composition
    (McSherry 2009, Theorem 4). Nobody may be in two of the tables.

    Parameters
    ----------
    releases : sequence of ReleasedMoments
        In the same coordinates, by ``like=`` of :func:`~dpregress.release_moments`. Sites without a name are numbered.

    Raises
    ------
    InvalidInput
        For releases in other coordinates, sites of one name, or one release twice.
    """
    if not releases or not all(isinstance(each, ReleasedMoments) for each in releases):
        other = next((each for each in releases if not isinstance(each, ReleasedMoments)), releases)
        raise InvalidInput(f"combine takes a list of released moments, not {type_of(other)}")
    first = releases[0]
    for each in releases[1:]:
        if not (first.space.same_as(each.space) and first.columns == each.columns and first.schema == each.schema):
            raise InvalidInput(
                "these releases are in different coordinates: fix them beforehand from public facts (shared_space, "
                "dpregress space), or release each site in those of the first release (like=)"
            )
    sites = [site for each in releases for site in each.sites]
    named = [replace(site, name=site.name or f"site {place + 1}") for place, site in enumerate(sites)]
    check_names([site.name for site in named])
    for place, site in enumerate(named):
        if any(np.array_equal(site.moments.total, other.moments.total) for other in named[:place]):
            raise InvalidInput(f"the release of {site.name!r} is given twice: the people of the sites must differ")
    return ReleasedMoments(first.space, first.columns, first.schema, tuple(named))


def _toml(schema: Schema | None) -> str | None:
    return None if schema is None else schema.to_toml()


def _schema(text: str | None, path: str | Path) -> Schema | None:
    return None if text is None else Schema.from_text(text, f"the schema in {path}")

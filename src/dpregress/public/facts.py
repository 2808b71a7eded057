"""Everything that a solver may know before it asks a question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpregress.coordinates import Exposure, Matrix, Vector
from dpregress.public.moments import PublicMoments
from dpregress.public.response import OUTSIDE, far_beyond, widened
from dpregress.public.schema import Schema
from dpregress.public.whitening import Start

#: With fewer public responses their scale is too uncertain, and they are not used.
FEWEST_LABELS = 30
#: With fewer public rows for each column their second moment is too uncertain beside a private one.
_FEWEST_ROWS = 2


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """The public side of one fit.

    Parameters
    ----------
    n : int
        Private rows, public under replace-one neighbours.
    target : str
        Name of the response.
    start : Start
        The first space and whether to refine it.
    public : PublicMoments or None
        Moments of the design columns, in their order.
    schema : Schema or None
    exposure : Exposure or None
        Bounds of the exposures, if the rows have exposures.
    coded : bool
        Whether public responses were left out as codes for missing ones.
    """

    n: int
    target: str
    start: Start
    public: PublicMoments | None
    schema: Schema | None
    exposure: Exposure | None = None
    coded: bool = False

    @property
    def labels(self) -> Vector | None:
        """Public responses, if there are any."""
        return None if self.public is None else self.public.labels

    @property
    def trusted_labels(self) -> Vector | None:
        """Public responses, if there are enough to estimate the scale of the private ones."""
        labels = self.labels
        return labels if labels is not None and len(labels) >= FEWEST_LABELS else None

    @property
    def response_bounds(self) -> tuple[float, float] | None:
        """Of the response, if the schema declares them."""
        declared = self.schema is not None and self.schema.bounds_all([self.target])
        return self.schema.bounds_of(self.target) if self.schema is not None and declared else None

    @property
    def credible_bounds(self) -> tuple[float, float] | None:
        """The same, unless public responses lie beyond them."""
        bounds, labels = self.response_bounds, self.labels
        if bounds is None or labels is None or not len(labels):
            return bounds
        return bounds if bounds[0] <= float(labels.min()) and float(labels.max()) <= bounds[1] else None

    @property
    def possible(self) -> tuple[float, float] | None:
        """Where responses lie that are no codes: the bounds and half a width, unless many public ones are beyond."""
        if self.response_bounds is None:
            return None
        labels, bounds = self.labels, self.response_bounds
        many = labels is not None and len(labels) and float(np.mean(far_beyond(labels, bounds))) > OUTSIDE
        return None if many else widened(bounds)

    @property
    def known_rows(self) -> Matrix | None:
        """Public rows whose second moment is like that of private rows in the coordinates of the fit.

        In coordinates that private moments refine, it is if these start from bounds, and if there are enough rows.
        Norms are not: one far row would set the radius, and with it all noise.
        """
        if self.public is None or self.public.rows is None:
            return None
        if not self.start.refinements:
            return self.public.rows
        enough = max(FEWEST_LABELS, _FEWEST_ROWS * len(self.public.names))
        return self.public.rows if self.start.whitened_privately and self.public.n >= enough else None

    @property
    def numbers(self) -> list[bool]:
        """Which features are numbers, by the schema and by public rows; others are indicators of two values."""
        rows = None if self.public is None else self.public.rows
        names = self.start.space.features
        several = [True] * len(names) if rows is None else [len(np.unique(column)) > 2 for column in rows.T]
        declared = [self.schema is not None and self.schema.is_indicator(name) for name in names]
        return [more and not levels for more, levels in zip(several, declared, strict=True)]

    def assumed_public(self) -> tuple[str, ...]:
        """What the guarantee assumes to be public, in words."""
        public = [
            "the number of private records",
            "the names and types of the columns",
            "the choice of model, features, penalty and budget",
        ]
        if self.public is not None:
            labels = " with their responses" if self.public.labelled else ""
            labels += " and exposures" if labels and self.exposure is not None else ""
            public.append(f"the moments of {self.public.n} public rows{labels}")
        if self.schema is not None:
            public.append("the bounds, levels and missing rules of the schema")
        if self.start.row_bound:
            public.append("the bound on the norm of a row")
        return tuple(public)

"""The interface of encoders, which convert batches of a table to design columns."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from dpregress.coordinates import Matrix, Vector


class Design(ABC):
    """Computes design columns and the response of a table row by row, from public knowledge only."""

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """Names of the design columns."""

    @property
    @abstractmethod
    def needed(self) -> tuple[str, ...]:
        """Columns of the table that are read."""

    @abstractmethod
    def x(self, batch: pa.Table | pa.RecordBatch) -> Matrix:
        """Design matrix of shape (m, d); missing cells are NaN."""

    @abstractmethod
    def y(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """Response of shape (m,); missing cells are NaN. None where there is no response."""

    @abstractmethod
    def exposure(self, batch: pa.Table | pa.RecordBatch) -> Vector | None:
        """Exposure of shape (m,); missing cells are NaN. None where the model has none."""

    @abstractmethod
    def check_types(self, schema: pa.Schema) -> None:
        """Refuse missing columns and types that cannot be read; types are public, cells are not."""

    @abstractmethod
    def responses(self) -> Design:
        """The same response and exposure without design columns."""

"""Tables of Spark, which sums their rows on its workers.

A DataFrame says where its rows are: ``spark.table("main.clinic.visits")``, or any query. The function that its workers
run is sent by value, so they need NumPy and Arrow and nothing of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from dpregress.coordinates.exact import Integers
from dpregress.rows import row_kernel
from dpregress.rows.readers.base import Aggregator, PushedSums, Reader, Writer
from dpregress.rows.readers.failures import planning, reading


@dataclass(frozen=True)
class SparkDatabase(Aggregator):
    """The rows of a DataFrame, classic or by Spark Connect.

    A task that Spark runs twice counts once, because the result of a DataFrame has each row once.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    most_columns: ClassVar[int] = 400
    frame: Any

    def summed(self, sums: PushedSums) -> tuple[Integers, int, int]:
        from pyspark import cloudpickle

        names = [*sums.features, *sums.beside.values()]
        columns = [self.frame[_quoted(name)] for name in names]
        uncast = [name in sums.uncast for name in names]
        numbers = [cell if kept else cell.cast("double") for cell, kept in zip(columns, uncast, strict=True)]
        cells = [cell.alias(f"c{i}") for i, cell in enumerate(numbers)]
        kernel = row_kernel.kernel(sums.program, sums.given)
        cloudpickle.register_pickle_by_value(row_kernel)
        try:
            rows = self.frame.select(cells) if sums.cap is None else self._capped(sums.cap, cells, tuple(sums.beside))
            parts = rows.mapInArrow(kernel, row_kernel.SCHEMA).toArrow()
        finally:
            cloudpickle.unregister_pickle_by_value(row_kernel)
        return sums.of_words([parts])

    def _capped(self, cap: row_kernel.UnitCap, cells: Sequence[Any], beside: Sequence[str]) -> Any:
        """The columns of a cap with ``counts``, for which Spark brings the rows of a unit together."""
        from pyspark.sql import Window
        from pyspark.sql import functions as by

        blanks = by.lit(" \t\n\r")
        unit = by.btrim(self.frame[_quoted(cap.ids)].cast("string"), blanks).alias("unit")
        kinds = ", ".join([*(f"{column} double" for column in cap.columns), "m bigint", "unit string"])
        rows = self.frame.select([*cells, unit]).mapInArrow(row_kernel.numbering(cap, beside), kinds)
        digest = by.md5(by.concat(by.md5(rows["unit"]), by.lit("/"), rows["m"].cast("string")))
        order = Window.partitionBy(by.col("unit").cast("binary")).orderBy("digest", *cap.columns)
        counts = (by.length("unit") > 0) & (by.row_number().over(order) <= cap.most)
        numbered = rows.withColumn("digest", digest).withColumn("counts", by.when(counts, 1.0).otherwise(0.0))
        return numbered.select(*cap.columns, "counts")

    def plan(self, sums: PushedSums) -> None:
        SparkDatabase(self.frame.limit(0)).summed(sums)

    def holding(self, table: pa.Table, write: Writer) -> SparkDatabase:  # noqa: ARG002  # it takes tables
        return SparkDatabase(self.frame.sparkSession.createDataFrame(table))


class SparkReader(Reader):
    """A DataFrame of Spark. Unless an engine leaves the sums to Spark, the driver collects its rows in every pass."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def name(self) -> str:
        return "the Spark table"

    @cached_property
    def schema(self) -> pa.Schema:
        with planning(f"{self.name} cannot be planned"):
            return self._frame.limit(0).toArrow().schema

    @cached_property
    def n(self) -> int:
        with reading(self.name):
            return int(self._frame.count())

    @property
    def database(self) -> SparkDatabase:
        return SparkDatabase(self._frame)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        chosen = self._frame.select([self._frame[_quoted(name)] for name in columns])
        yield from chosen.toArrow().to_batches(max_chunksize=rows)


def _quoted(name: str) -> str:
    """A name of a column that may hold dots."""
    return f"`{name.replace('`', '``')}`"

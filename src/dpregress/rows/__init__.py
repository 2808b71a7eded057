"""Private rows: where they come from, how they are bounded, how sums over them are computed."""

from dpregress.rows.bounded import BoundedRows, RawRows, ResponseRows, RowMap, WhitenedRows
from dpregress.rows.codes import CodedParquet, CodedSource, LevelRows
from dpregress.rows.encoding import Encoder
from dpregress.rows.engines import Engine, ThreadedEngine
from dpregress.rows.private import PrivateRows
from dpregress.rows.sources import ArraySource, Source, TableSource

__all__ = [
    "ArraySource",
    "BoundedRows",
    "CodedParquet",
    "CodedSource",
    "Encoder",
    "Engine",
    "LevelRows",
    "PrivateRows",
    "RawRows",
    "ResponseRows",
    "RowMap",
    "Source",
    "TableSource",
    "ThreadedEngine",
    "WhitenedRows",
]

"""Private rows: where they come from, how they are bounded, how sums over them are computed."""

from dpregress.rows.bounded import BoundedRows, RawRows, ResponseRows, RowMap, WhitenedRows
from dpregress.rows.codes import CodedParquet, CodedSource, LevelRows
from dpregress.rows.dask_engine import DaskEngine
from dpregress.rows.design.base import Design
from dpregress.rows.design.encoder import Encoder
from dpregress.rows.design.formula import FormulaEncoder
from dpregress.rows.engines import Engine, ThreadedEngine
from dpregress.rows.ordered import OrderedRows
from dpregress.rows.private import PrivateRows
from dpregress.rows.push_down_engine import PushDownEngine
from dpregress.rows.ranged import RangedSource
from dpregress.rows.readers.sql import SQLQuery
from dpregress.rows.sources import ArraySource, ExposedSource, Source, StreamSource, TableSource, WeightedSource
from dpregress.rows.units import CappedSource

__all__ = [
    "ArraySource",
    "BoundedRows",
    "CappedSource",
    "CodedParquet",
    "CodedSource",
    "DaskEngine",
    "Design",
    "Encoder",
    "Engine",
    "ExposedSource",
    "FormulaEncoder",
    "LevelRows",
    "OrderedRows",
    "PrivateRows",
    "PushDownEngine",
    "RangedSource",
    "RawRows",
    "ResponseRows",
    "RowMap",
    "SQLQuery",
    "Source",
    "StreamSource",
    "TableSource",
    "ThreadedEngine",
    "WeightedSource",
    "WhitenedRows",
]

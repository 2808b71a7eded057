"""Real tables for demonstrations, experiments, tests and benchmarks."""

from dpregress.datasets.catalogue import DATASETS, Dataset, dataset_named
from dpregress.datasets.fetch import agreed, check_dataset, fetch_dataset, record_agreement
from dpregress.datasets.loaders import data_folder, folder_table, has_table, keep, randhie, where_is

__all__ = [
    "DATASETS",
    "Dataset",
    "agreed",
    "check_dataset",
    "data_folder",
    "dataset_named",
    "fetch_dataset",
    "folder_table",
    "has_table",
    "keep",
    "randhie",
    "record_agreement",
    "where_is",
]

"""Data sets: two built in, others from the folder that `LIKELY_DATA` names, and your own files."""

from likely.datasets.catalogue import DatasetInfo, load, names
from likely.datasets.dataset import Dataset
from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.paths import read

__all__ = ["DataError", "DataNotFoundError", "Dataset", "DatasetInfo", "load", "names", "read"]

"""Data sets: two built in, others from the folder that `LIKELY_DATA` names, and your own files; and text."""

from likely.datasets.catalogue import DatasetInfo, load, names
from likely.datasets.dataset import Dataset
from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.delimited.table import Table
from likely.datasets.formats.user_files import read, read_table
from likely.datasets.text.corpus import Corpus, as_corpus
from likely.datasets.text.encoded import CONVENTION, Encoded
from likely.datasets.text.text_dataset import TextDataset
from likely.datasets.text.vocabulary import Vocabulary

__all__ = [
    "CONVENTION",
    "Corpus",
    "DataError",
    "DataNotFoundError",
    "Dataset",
    "DatasetInfo",
    "Encoded",
    "Table",
    "TextDataset",
    "Vocabulary",
    "as_corpus",
    "load",
    "names",
    "read",
    "read_table",
]

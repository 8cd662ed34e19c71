"""Two tables: adult (census records, mixed columns with holes) and wine (chemistry of red wine, rounded numbers)."""

from __future__ import annotations

from typing import Any

from likely.datasets.dataset import Dataset, cut_validation, split_rows
from likely.datasets.errors import DataError
from likely.datasets.folder import find
from likely.datasets.formats.compressed import read_bytes
from likely.datasets.formats.csv_and_parquet import parse_csv
from likely.schema import Schema

ADULT_FILES = ("tabular/adult.data", "tabular/adult.test")
WINE_FILES = ("tabular/winequality-red.csv",)

# As in adult.names, which calls six of them continuous.
_ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip

_WINE_COLUMNS = (
    "fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free sulfur dioxide",
    "total sulfur dioxide", "density", "pH", "sulphates", "alcohol", "quality",
)  # fmt: skip


def load_adult(*, seed: int = 0) -> Dataset:
    """Adult: 29,305 / 3,256 / 16,281 rows of 15 columns, 6 of numbers and 9 categorical, "?" for unobserved.

    The test set is the official one; validation is a tenth of the training set, drawn with `seed`. The income is a
    column like the others. Categories are collected over all three parts.
    """
    import polars as pl

    train, test = (_read_adult(file) for file in ADULT_FILES)
    schema = Schema.infer(pl.concat([train, test]))
    kept, valid = cut_validation(len(train), name="adult", seed=seed)
    return Dataset(train[kept], train[valid], test, schema, "adult")


def load_wine(*, seed: int = 0) -> Dataset:
    """Red wine: 1,279 / 160 / 160 rows of 12 numbers, the quality (3 to 8) among them; split drawn with `seed`."""
    path = find(WINE_FILES[0], "wine")
    table = parse_csv(read_bytes(path), path)
    if table.width != len(_WINE_COLUMNS):
        raise DataError(f"{path} has {table.width} columns, needed are {len(_WINE_COLUMNS)}: it is another file.")
    table = table.rename(dict(zip(table.columns, _WINE_COLUMNS, strict=True)))
    schema = Schema.infer(table)
    train, valid, test = split_rows(len(table), name="wine", seed=seed).take(table)
    return Dataset(train, valid, test, schema, "wine")


def _read_adult(file: str) -> Any:
    import polars as pl

    path = find(file, "adult")
    text = read_bytes(path)
    # The official test file opens with a line of its own, and its labels end in a full stop.
    text = text.partition(b"\n")[2] if text.startswith(b"|") else text
    table = parse_csv(text, path, header=False, separator=",")
    if table.width != len(_ADULT_COLUMNS):
        raise DataError(f"{path} has {table.width} columns, needed are {len(_ADULT_COLUMNS)}: it is another file.")
    table = table.rename(dict(zip(table.columns, _ADULT_COLUMNS, strict=True)))
    return table.with_columns(pl.col("income").str.strip_suffix("."))

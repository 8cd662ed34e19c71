"""The data of a studio as they are read now: a table, or text."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from likely.cli.output import as_table
from likely.datasets import Dataset, TextDataset, load
from likely.schema import Schema

MOST_SENTENCES = 2000  # of the test part that are shown and judged on a page


class Source:
    """A table as it is read now: all of its rows in the order of the file, and the parts that models see."""

    def __init__(self, dataset: Dataset):
        self.dataset, self.schema = dataset, dataset.schema
        parts = [dataset.train, dataset.valid, dataset.test]
        is_frame = hasattr(parts[0], "columns")
        rows = pl.concat(parts) if is_frame else np.concatenate([np.asarray(part) for part in parts])
        if dataset.row_numbers is not None:
            order = np.argsort(np.concatenate([dataset.row_numbers[part] for part in ("train", "valid", "test")]))
            rows = rows[order]
        self.rows: Any = rows  # what models are given

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows as a polars table, for people."""
        return as_table(self.rows, self.schema) if isinstance(self.rows, np.ndarray) else self.rows

    @cached_property
    def encoded(self) -> np.ndarray:
        """(n, d) the columns that models learn from, as numbers; NaN where unobserved."""
        return self.schema.encode(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class TextSource:
    """Text: three corpora of sentences. Pages show those of the test part, which no model has seen."""

    def __init__(self, dataset: TextDataset):
        self.dataset = dataset

    @cached_property
    def sentences(self) -> list[list[str]]:
        """The first test sentences that have a token, as lists of tokens."""
        return list(islice((tokens for tokens in self.dataset.test if tokens), MOST_SENTENCES))

    def spelled(self, tokens: list[str]) -> str:
        """Tokens as the text that they were cut from."""
        return ("" if self.dataset.test.tokenizer == "character" else " ").join(tokens)


def open_data(data: str, kinds: dict[Any, Any], drop: list[str]) -> Dataset | TextDataset:
    """Text, or a table with its columns read as the user wants; those that are dropped stay in its rows, unseen."""
    dataset = load(data, **({"kinds": kinds} if kinds else {}))
    if not drop or isinstance(dataset, TextDataset):
        return dataset
    whole = pl.concat([dataset.train, dataset.valid, dataset.test])
    return replace(dataset, schema=Schema.infer(whole, kinds=kinds or None, drop=drop))

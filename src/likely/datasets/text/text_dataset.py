"""Text in three parts, for training, validation and test; from a file of one's own, or by a name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from likely.datasets.errors import DataError
from likely.datasets.formats.compressed import stem_of
from likely.datasets.text.corpus import Corpus, Tokenizer

TEXT_SUFFIXES = (".txt", ".tokens", ".txt.gz", ".tokens.gz")
# Of ten lines the ninth is for validation and the tenth for the test: neighbours, so that the parts are alike, and a
# rule that needs no second look at a file.
_PARTS = {"train": range(8), "valid": (8,), "test": (9,)}


@dataclass(frozen=True, eq=False, repr=False)
class TextDataset:
    """Three corpora: `train`, `valid` and `test`; and what tables and reports call them."""

    train: Corpus
    valid: Corpus
    test: Corpus
    name: str

    def __repr__(self) -> str:
        return f"TextDataset({self.name!r}: train, valid and test, {self.train.convention})"


def is_text(path: Path) -> bool:
    """Whether a file's name says that it is text: .txt or .tokens, also .gz."""
    return path.name.lower().endswith(TEXT_SUFFIXES)


def load_text(path: Path, *, tokenizer: Tokenizer = "whitespace") -> TextDataset:
    """A text file, a sentence a line: of each ten lines eight for training, one for validation, one for the test."""
    whole = Corpus.from_files(path, tokenizer=tokenizer)
    parts = {
        part: Corpus(partial(_some, whole, places), tokenizer=tokenizer, name=f"{path.name} {part}")
        for part, places in _PARTS.items()
    }
    if next(iter(parts["test"]), None) is None:
        raise DataError(f"{path} has fewer than 10 lines, and a sentence is a line: give more text.")
    return TextDataset(parts["train"], parts["valid"], parts["test"], stem_of(path))


def _some(corpus: Corpus, places: Any) -> Iterator[str]:
    """The lines whose number, modulo ten, is among `places`."""
    number = 0
    for lines in corpus._read():
        for line in lines:
            if number % 10 in places:
                yield line
            number += 1

"""Sentences as numbers: one array of token ids, sentence after sentence, each closed by `</s>`.

The array holds exactly what perplexity counts: every token and `</s>`, not `<s>`. It lies in a file that has no name
where it is large, so that text need not fit into memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.datasets.text.vocabulary import END_ID, GAP_ID, UNKNOWN_ID, Vocabulary

_TOKENS_A_LOOK = 1 << 16  # Masks of so many stay in a cache, and of a map of a file little is held at a time.
CONVENTION = "counting every token and </s>, not <s>"
"""What a perplexity counts, for people."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Sentences as token ids.

    Parameters
    ----------
    tokens : (n_tokens,) int32; every sentence ends with `</s>`, none begins with `<s>`; -1 is an unobserved token.
    offsets : (n_sentences + 1,) int64: sentence i is tokens[offsets[i]:offsets[i + 1]].
    vocabulary : what the ids mean.

    Examples
    --------
    >>> from likely.datasets import Corpus
    >>> corpus = Corpus(["the dog ran", "the dog"])
    >>> encoded = corpus.encode(corpus.vocabulary())
    >>> encoded.tokens.tolist(), encoded.offsets.tolist()
    ([4, 3, 5, 2, 4, 3, 2], [0, 4, 7])
    """

    tokens: np.ndarray
    offsets: np.ndarray
    vocabulary: Vocabulary

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        """The ids of a sentence, `</s>` included."""
        return self.tokens[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    @property
    def n_counted(self) -> np.ndarray:
        """(n_sentences,) tokens that perplexity counts: all but gaps, `</s>` included."""
        lengths = np.diff(self.offsets)
        gaps = self.gaps
        if not len(gaps):
            return lengths
        return lengths - np.bincount(np.searchsorted(self.offsets, gaps, side="right") - 1, minlength=len(self))

    @property
    def gaps(self) -> np.ndarray:
        """Places of the tokens that are not observed."""
        return self.where(GAP_ID)

    def where(self, token_id: int) -> np.ndarray:
        """Places of a token, found block by block."""
        step = _TOKENS_A_LOOK
        starts = range(0, len(self.tokens), step)
        return np.concatenate(
            [np.flatnonzero(self.tokens[start : start + step] == token_id) + start for start in starts]
            or [np.zeros(0, np.int64)]
        )

    @property
    def share_unknown(self) -> float:
        """Share of `<unk>` among the counted tokens."""
        return len(self.where(UNKNOWN_ID)) / max(1, int(self.n_counted.sum()))

    @property
    def only_unknown(self) -> bool:
        """Whether there is no token but `<unk>`, `</s>` and gaps."""
        step = _TOKENS_A_LOOK
        return not any((self.tokens[s : s + step] > END_ID).any() for s in range(0, len(self.tokens), step))

    def fingerprint(self) -> str:
        """A short name for these sentences in this vocabulary: where a token is `<unk>` is part of the question."""
        from hashlib import sha256

        digest = sha256("\n".join(self.vocabulary.tokens).encode())
        digest.update(np.ascontiguousarray(self.offsets).data)
        step = _TOKENS_A_LOOK
        for start in range(0, len(self.tokens), step):
            digest.update(np.ascontiguousarray(self.tokens[start : start + step]).data)
        return digest.hexdigest()[:16]


class Spill:
    """A growing array of numbers: in memory up to so many bytes, then in a file without a name.

    Used in a `with` statement. The file is gone when the array is; it lies where `tempfile` puts things: set TMPDIR to
    choose.
    """

    def __init__(self, dtype: Any, memory_budget: int):
        self.dtype, self.budget = np.dtype(dtype), memory_budget
        self.parts: list[np.ndarray] = []
        self.held = self.length = 0
        self.file: Any = None

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *error: Any) -> None:
        if self.file is not None:
            self.file.close()  # A map of the file keeps its content.

    def append(self, part: np.ndarray) -> None:
        """Add numbers at the end."""
        self.parts.append(np.ascontiguousarray(part, self.dtype))
        self.held += part.size * self.dtype.itemsize
        self.length += part.size
        if self.held > self.budget:
            self._write()

    def array(self) -> np.ndarray:
        """All of it: an array, or a map of the file."""
        if self.file is None:
            return np.concatenate(self.parts) if self.parts else np.zeros(0, self.dtype)
        self._write()
        self.file.flush()
        return np.asarray(np.memmap(self.file, self.dtype, mode="r+", shape=(self.length,)))

    def _write(self) -> None:
        if self.file is None:
            self.file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        for part in self.parts:
            self.file.write(part.data)
        self.parts, self.held = [], 0


def room(length: int, dtype: Any, memory_budget: int) -> np.ndarray:
    """Zeros to write into: in memory if they take at most `memory_budget` bytes, else in a file without a name."""
    dtype = np.dtype(dtype)
    if length * dtype.itemsize <= memory_budget:
        return np.zeros(length, dtype)
    with tempfile.TemporaryFile() as file:  # The map keeps the file until it is let go.
        file.truncate(length * dtype.itemsize)
        return np.asarray(np.memmap(file, dtype, mode="r+", shape=(length,)))

"""A vocabulary: tokens by number, the rare ones as `<unk>`, and marks for where a sentence begins and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from likely.datasets.errors import DataError

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
SPECIAL = (UNKNOWN, BEGIN, END)
UNKNOWN_ID, BEGIN_ID, END_ID = range(3)
GAP_ID = -1  # of a token that is not observed


class Vocabulary:
    """Tokens and their numbers; 0, 1 and 2 are `<unk>`, `<s>` and `</s>`, the others follow from the most frequent on.

    Parameters
    ----------
    tokens : in the order of their numbers, from 3 on; the three marks may be among them and are set aside.
    counts : {token: how often it occurs}, where that is known, `<unk>` and `</s>` included.

    Attributes
    ----------
    tokens : all of them, the marks first. counts : (n_tokens,) int64.

    Examples
    --------
    >>> vocabulary = Vocabulary.count([["a", "b", "a"], ["a", "c"]], min_count=2)
    >>> vocabulary.tokens, vocabulary.counts.tolist()
    (('<unk>', '<s>', '</s>', 'a'), [2, 0, 2, 3])
    >>> vocabulary.ids(["a", "b", None])
    [3, 0, -1]
    """

    def __init__(self, tokens: Iterable[str], counts: Mapping[str, int] | None = None):
        words = [token for token in tokens if token not in SPECIAL]
        self.tokens: tuple[str, ...] = (*SPECIAL, *words)
        odd = next((token for token in words if not isinstance(token, str)), None)
        if odd is not None:
            raise DataError(f"tokens must be strings, got {odd!r}.")
        if len(set(words)) != len(words):
            twice = Counter(words).most_common(1)[0][0]
            raise DataError(f"token {twice!r} stands twice in the vocabulary: give each once.")
        known = counts or {}
        self.counts = np.array([known.get(token, 0) for token in self.tokens], dtype=np.int64)

    @classmethod
    def count(cls, sentences: Iterable[list[Any]], *, min_count: int = 1, max_size: int | None = None) -> Vocabulary:
        """The vocabulary of some sentences; see `Corpus.vocabulary`."""
        counter: Counter[Any] = Counter()
        n_sentences = 0
        for sentence in sentences:
            counter.update(sentence)
            n_sentences += 1
        return cls.of_counts(counter, n_sentences, min_count=min_count, max_size=max_size)

    @classmethod
    def of_counts(
        cls, counter: Counter[Any], n_sentences: int, *, min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """From counts of tokens: those that occur `min_count` times, of these the `max_size` most frequent."""
        _check_cut(min_count, max_size)
        gaps = counter.pop(None, 0)
        total = counter.total()
        found = {token: n for token, n in counter.items() if token not in SPECIAL}
        if not total:
            raise DataError("the corpus is empty: it has " + ("only gaps." if gaps else "no tokens."))
        # Equal counts are ordered by the alphabet, so that numbers do not depend on the order of the sentences.
        order = sorted((token for token, n in found.items() if n >= min_count), key=lambda t: (-found[t], t))[:max_size]
        if not order:
            raise DataError(_only_unknown(found, min_count))
        kept = {token: found[token] for token in order}
        return cls(order, kept | {UNKNOWN: total - sum(kept.values()), END: n_sentences})

    @cached_property
    def index(self) -> dict[str | None, int]:
        """Number of each token: `<unk>`'s of any other, and -1 of None, which is a gap."""
        return _Index({None: GAP_ID} | {token: place for place, token in enumerate(self.tokens)})

    @cached_property
    def fast(self) -> Any:
        """The same for blocks of text, compiled: see `likely.datasets.text.fast_tokens`."""
        from likely.datasets.text.fast_tokens import FastTokens

        return FastTokens(self)

    def ids(self, tokens: Iterable[str | None]) -> list[int]:
        """Numbers of tokens."""
        return list(map(self.index.__getitem__, tokens))

    def words(self, ids: Iterable[int]) -> list[str]:
        """Tokens of numbers."""
        return [self.tokens[i] for i in ids]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The vocabulary for a file: UTF-8 bytes, where each token ends in them, and the counts."""
        encoded = [token.encode() for token in self.tokens]
        ends = np.cumsum([len(token) for token in encoded], dtype=np.int64)
        return {"bytes": np.frombuffer(b"".join(encoded), np.uint8), "ends": ends, "counts": self.counts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Vocabulary:
        """What `to_arrays` gave."""
        data, ends = arrays["bytes"].tobytes(), arrays["ends"].tolist()
        tokens = [data[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]
        if tuple(tokens[:3]) != SPECIAL or len(arrays["counts"]) != len(tokens):
            raise DataError("these arrays hold no vocabulary.")
        return cls(tokens, dict(zip(tokens, arrays["counts"].tolist(), strict=True)))

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token is not None and token in self.index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} tokens)"


class _Index(dict[Any, int]):
    """A dictionary that has `<unk>`'s number for whatever it lacks."""

    def __missing__(self, token: Any) -> int:
        return UNKNOWN_ID


def _check_cut(min_count: Any, max_size: Any) -> None:
    for name, value in (("min_count", min_count), ("max_size", max_size)):
        if value is None and name == "max_size":
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}.")


def _only_unknown(found: dict[str, int], min_count: int) -> str:
    if not found:
        return "every token of the corpus is <unk>, so there is nothing to learn: give text with words."
    token = max(found, key=lambda t: found[t])
    return (
        f"min_count={min_count} leaves only <unk>: the most frequent token, {token!r}, occurs {found[token]} times. "
        "Lower min_count, or give more text."
    )

"""Text as word2vec reads it: frequent words thinned out, windows of random reach, noise words by an alias table.

A word of frequency f stays with probability min(1, √(t/f) + t/f), t = `subsample`; what is dropped is dropped before
windows are laid, so that they reach further. Words are numbered from 0 here: their number in the vocabulary less the
three marks. Unknown and unobserved tokens are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from likely.datasets.text.encoded import Encoded
from likely.datasets.text.vocabulary import END_ID, SPECIAL
from likely.montecarlo.alias import AliasTable, alias_table

N_MARKS = len(SPECIAL)
# Text is thinned out and numbered block by block, and need not be in memory. Windows do not reach from one block into
# the next, which concerns some ten words of a million.
_TOKENS_A_BLOCK = 1 << 20


class Block(NamedTuple):
    """Some text to train on.

    words : (n,) int32; -1 after each sentence. reach : (n,) uint8, how many words to either side are the context.
    start, end : which part of all training it is, from 0 to 1. seed : of its noise words.
    """

    words: np.ndarray
    reach: np.ndarray
    start: float
    end: float
    seed: np.uint64


def count_words(encoded: Encoded) -> np.ndarray:
    """(n_words,) how often each word of the vocabulary occurs in this text."""
    counts = np.zeros(len(encoded.vocabulary), np.int64)
    for start in range(0, len(encoded.tokens), _TOKENS_A_BLOCK):
        tokens = encoded.tokens[start : start + _TOKENS_A_BLOCK]
        counts += np.bincount(tokens[tokens >= 0], minlength=len(counts))
    return counts[N_MARKS:]


def keep_probability(counts: np.ndarray, subsample: float) -> np.ndarray:
    """(n_words,) how likely an occurrence of each word is kept; `subsample` 0 keeps all."""
    if subsample == 0:
        return np.ones(len(counts))
    ratio = subsample * counts.sum() / np.maximum(counts, 1)
    return np.minimum(1.0, np.sqrt(ratio) + ratio)


def noise_table(counts: np.ndarray, power: float) -> AliasTable:
    """The words by counts^power."""
    return alias_table(np.where(counts > 0, np.maximum(counts, 1.0) ** power, 0.0))


def has_neighbours(encoded: Encoded) -> bool:
    """Whether any sentence has two words, so that there is something to learn."""
    return any(((words[1:] >= 0) & (words[:-1] >= 0)).any() for words in _words(encoded))


def blocks(encoded: Encoded, keep: np.ndarray, window: int, n_epochs: int, epoch: int, seed: int) -> Iterator[Block]:
    """The text of one epoch, thinned out anew; the same for the same seed and epoch."""
    n_blocks = -(-len(encoded.tokens) // _TOKENS_A_BLOCK)
    padded = np.append(keep, 1.0).astype(np.float32)  # -1, the end of a sentence, finds the last, and is always kept
    for place, words in enumerate(_words(encoded)):
        random = np.random.default_rng([seed, epoch, place])
        kept = words[random.random(len(words), np.float32) < padded[words]]
        reach = random.integers(1, window + 1, len(kept), np.uint8)
        start, end = ((epoch + (place + more) / n_blocks) / n_epochs for more in (0, 1))
        yield Block(kept, reach, start, end, random.integers(0, 2**64, dtype=np.uint64))


def _words(encoded: Encoded) -> Iterator[np.ndarray]:
    for start in range(0, len(encoded.tokens), _TOKENS_A_BLOCK):
        tokens = encoded.tokens[start : start + _TOKENS_A_BLOCK]
        yield np.where(tokens == END_ID, -1, tokens - N_MARKS)[tokens >= END_ID].astype(np.int32)

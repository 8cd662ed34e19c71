"""Vectors of words: neighbours by the cosine, analogies, agreement with people's judgements."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likely.datasets import DataError


class Weights(NamedTuple):
    """What an embedding learns.

    vectors : (n_words, d) float32, of words as contexts: the embedding. outputs : (n_words, d), of words as outcomes.
    bias : (n_words,) of outcomes; 0 in negative sampling. The last two are empty where a file held vectors alone.
    """

    vectors: np.ndarray
    outputs: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True)
class Agreement:
    """How well cosines order pairs of words as people did: Spearman's correlation, and of how many pairs.

    Examples
    --------
    >>> print(Agreement(0.36621, 291, 62))
    Spearman's correlation 0.366 (291 pairs, 62 with an unknown word left out)
    """

    correlation: float
    n_pairs: int
    n_unknown: int

    def __float__(self) -> float:
        return self.correlation

    def __str__(self) -> str:
        left_out = f"{self.n_unknown} with an unknown word left out"
        return f"Spearman's correlation {self.correlation:.3f} ({self.n_pairs} pairs, {left_out})"


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


def nearest(units: np.ndarray, target: np.ndarray, n: int, excluded: Sequence[int]) -> list[tuple[int, float]]:
    """The n rows with the largest cosine to a vector, best first, some rows left out."""
    cosines = units @ unit_rows(target)
    cosines[list(excluded)] = -np.inf
    n = min(n, len(units) - len(set(excluded)))
    best = np.argpartition(-cosines, n - 1)[:n] if n else np.zeros(0, int)
    order = np.lexsort((best, -cosines[best]))  # Equal cosines are ordered by the number of the row.
    return [(int(i), float(cosines[i])) for i in best[order]]


def agreement(units: np.ndarray, index: dict[str, int], pairs: Iterable[tuple[str, str, float]]) -> Agreement:
    """Spearman's correlation of cosines with the pairs' scores."""
    from scipy.stats import spearmanr

    pairs = list(pairs)
    known = [(index[a], index[b], score) for a, b, score in pairs if a in index and b in index]
    if len(known) < 3:
        raise ValueError(f"of {len(pairs)} pairs of words {len(known)} are known, and 3 are needed: give more text.")
    first, second, scores = (np.array(part) for part in zip(*known, strict=True))
    cosines = np.einsum("nd,nd->n", units[first], units[second])
    if np.ptp(scores) == 0 or np.ptp(cosines) == 0:
        raise ValueError("all pairs score the same, so that there is no order to agree with.")
    return Agreement(float(spearmanr(cosines, scores).statistic), len(known), len(pairs) - len(known))


def read_pairs(path: str | os.PathLike[str]) -> list[tuple[str, str, float]]:
    """Pairs of words with scores: a line for each, divided by tabs, commas or blanks; # begins a comment."""
    pairs = []
    for number, line in enumerate(Path(path).expanduser().read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.replace(",", " ").split()
        try:
            first, second, score = fields
            pairs.append((first, second, float(score)))
        except ValueError:
            raise DataError(f"{path}, line {number:,}: two words and a score are needed, got {line[:60]!r}.") from None
    return pairs


def as_pairs(pairs: Any) -> list[tuple[str, str, float]]:
    """Pairs from a file or from triples."""
    if isinstance(pairs, str | os.PathLike):
        return read_pairs(pairs)
    triples = [tuple(pair) for pair in pairs]
    odd = next((pair for pair in triples if len(pair) != 3), None)
    if odd is not None:
        raise ValueError(f"a pair must be two words and a score, got {odd!r}.")
    return [(str(first), str(second), float(score)) for first, second, score in triples]

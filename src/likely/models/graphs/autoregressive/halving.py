"""A class among ordered ones, found by halving: which half of all classes, which half of that half, and so on.

P(k) is the product of the shares of the halves that lead to k (McCarter, 2024, has boosted trees do so). One classifier
serves all intervals of a level: the cell's own column says which, by the interval's first class. log2 K binary
classifiers take the place of K sums of trees for K classes, and what one learns of an interval serves its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Logits = Callable[[int, np.ndarray], np.ndarray]
"""Of a level and first classes (n,): (n,) the logits of the upper halves of the intervals."""


def n_levels(n_classes: int) -> int:
    """How often so many classes are halved until one is left; the last halves may be empty."""
    return (n_classes - 1).bit_length()


def firsts_of(classes: np.ndarray, level: int, n_classes: int) -> np.ndarray:
    """The first class of the interval of a level that each class is in."""
    width = n_levels(n_classes) - level
    return (classes >> width) << width


def is_upper(classes: np.ndarray, level: int, n_classes: int) -> np.ndarray:
    """Whether each class is in the upper half of its interval."""
    return (classes >> (n_levels(n_classes) - level - 1)) & 1 == 1


def upper_sizes(firsts: np.ndarray, level: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """How many classes the upper halves of intervals have, and the whole ones."""
    width = 1 << (n_levels(n_classes) - level)
    whole = np.minimum(firsts + width, n_classes) - firsts
    return np.maximum(whole - width // 2, 0), whole


def log_prob(classes: np.ndarray, n_classes: int, n_rows: float, logits: Logits) -> np.ndarray:
    """(n,) log P of classes (n,)."""
    out = np.zeros(len(classes))
    for level in range(n_levels(n_classes)):
        firsts = firsts_of(classes, level, n_classes)
        upper = _upper_share(firsts, level, n_classes, n_rows, logits)
        out += np.log(np.where(is_upper(classes, level, n_classes), upper, 1 - upper))
    return out


def draw(uniforms: np.ndarray, n_classes: int, n_rows: float, logits: Logits) -> np.ndarray:
    """(n,) the classes that variates stay at or below with probabilities `uniforms` (n,)."""
    firsts, u = np.zeros(len(uniforms), np.int64), np.array(uniforms)
    for level in range(n_levels(n_classes)):
        upper = _upper_share(firsts, level, n_classes, n_rows, logits)
        goes_up = (u >= 1 - upper) & (upper > 0)  # Rounding may bring u to 1.
        u = np.where(goes_up, (u - (1 - upper)) / np.maximum(upper, 1e-300), u / np.maximum(1 - upper, 1e-300))
        firsts = firsts + goes_up * (1 << (n_levels(n_classes) - level - 1))
    return firsts


def _upper_share(firsts: np.ndarray, level: int, n_classes: int, n_rows: float, logits: Logits) -> np.ndarray:
    """(n,) the share of the upper half of each interval, with one row of ignorance among n_rows."""
    upper, whole = upper_sizes(firsts, level, n_classes)
    learned = 1 / (1 + np.exp(-np.clip(logits(level, firsts), -700, 700)))
    return np.where(upper > 0, (n_rows * learned + upper / whole) / (n_rows + 1), 0.0)

"""Sequences of tokens as numbers: texts are split into characters, lists are taken as they are.

Numbers of a vocabulary are 1, 2, ...; 0 is a token that it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

UNKNOWN = 0


def read_sequences(X: Any, name: str, *, may_be_empty: bool = False) -> list[list[Any]]:
    """Lists of tokens, which are strings or whole numbers."""
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise ValueError(f"{name} must be a list of sequences, texts or lists of tokens, got {X!r}.")
    if len(X) == 0:
        raise ValueError(f"{name} has no sequences.")
    return [_read_sequence(x, f"sequence {number} of {name}", may_be_empty) for number, x in enumerate(X)]


def _read_sequence(x: Any, which: str, may_be_empty: bool) -> list[Any]:
    """One sequence as a list of Python's own strings and numbers, as files of models hold them."""
    sequence = x.tolist() if isinstance(x, np.ndarray) else x
    if not isinstance(sequence, str | list | tuple):
        raise ValueError(f"{which} must be a text or a list of tokens, got {sequence!r}.")
    if len(sequence) == 0 and not may_be_empty:
        raise ValueError(f"{which} is empty: leave it out.")
    odd = [token for token in sequence if not isinstance(token, str | int | np.integer)]
    if odd:
        raise ValueError(f"{which} holds {odd[0]!r}: tokens are strings or whole numbers.")
    return [token.item() if isinstance(token, np.integer) else token for token in sequence]


def are_texts(X: Any) -> bool:
    """Whether sequences were given as texts, and should come back as such."""
    return all(isinstance(x, str) for x in X)


def vocabulary_of(sequences: Sequence[Sequence[Any]], name: str) -> list[Any]:
    """Every token once, in order."""
    tokens = {token for sequence in sequences for token in sequence}
    if not tokens:
        raise ValueError(f"{name} has no tokens: every sequence is empty.")
    if len({isinstance(token, str) for token in tokens}) > 1:
        raise ValueError(f"{name} mixes strings and numbers as tokens: make them all strings.")
    return sorted(tokens)


def numbered(
    sequences: Sequence[Sequence[Any]], vocabulary: Sequence[Any], *, name: str = "", closed: bool = False
) -> list[np.ndarray]:
    """Tokens by their numbers; of a closed vocabulary, every one must be known."""
    number = {token: place + 1 for place, token in enumerate(vocabulary)}
    if closed:
        for sequence in sequences:
            new = next((token for token in sequence if token not in number), None)
            if new is not None:
                raise ValueError(f"{name} holds {new!r}, which no target had in fit: there is no probability for it.")
    return [np.array([number.get(token, UNKNOWN) for token in sequence], np.int32) for sequence in sequences]


def check_as_many(X: Sequence[Any], y: Sequence[Any]) -> None:
    """Raise unless there is a target for each input."""
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences and y has {len(y)}: give as many.")

"""Checks of stacks: tests give the real model, controls wrong ones."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np


def all_bits(n: int) -> np.ndarray:
    """(2^n, n) all rows of n bits."""
    return np.array(list(product((0.0, 1.0), repeat=n)))


def check_weighted_sum(stack: Any, members: list[Any]) -> None:
    """The probability of every row is the weighted sum of what the members say."""
    rows = all_bits(6)
    parts = np.stack([np.exp(member.score_samples(rows)) for member in members])
    assert stack.evidence(rows).kind == "exact"
    np.testing.assert_allclose(np.exp(stack.score_samples(rows)), np.array(stack.weights_) @ parts, rtol=1e-9)

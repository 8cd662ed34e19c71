"""Holes in drawn rows: cells taken out at random, each column by a share of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from likely.runtime import generator


def check_holes(model: Any, holes: Any) -> np.ndarray | None:
    """(d,) the share of each column that is to be unobserved; None where nothing is."""
    if holes is None:
        return None
    if isinstance(holes, str):
        if holes != "seen":
            raise ValueError(
                f"`holes` must be a share such as 0.1, or 'seen' for the shares of the fit, got {holes!r}."
            )
        seen = getattr(model, "hole_shares_", None)
        if seen is None:
            raise ValueError(
                "the model has seen no holes: it was written down, not fitted, or saved before their shares were kept. "
                "Give a share, such as 0.1."
            )
        return np.asarray(seen)
    if isinstance(holes, bool) or not isinstance(holes, int | float | np.number) or not 0 <= holes < 1:
        raise ValueError(
            f"`holes` must be a share from 0 to below 1, or 'seen' for the shares of the fit, got {holes!r}."
        )
    return np.full(model.schema_.n_columns, float(holes))


def with_holes(encoded: np.ndarray, shares: np.ndarray | None, whole: Sequence[int], key: jax.Array) -> np.ndarray:
    """Encoded rows with cells taken out, each by itself with the share of its column; those at `whole` stay."""
    if shares is None:
        return encoded
    shares = shares.copy()
    shares[list(whole)] = 0
    return np.where(generator(key).random(encoded.shape) < shares, np.nan, encoded)

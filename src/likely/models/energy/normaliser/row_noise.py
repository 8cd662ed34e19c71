"""Noise of its own for every row: draws of different rows are independent, and none depends on the rows beside it.

A row's key is made of the key of the call, of what the row holds, and of how many equal rows came before it. So a row
has the same draws in any order, subset or block of rows; of equal rows the first has the same, and so has the second.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, UInt32


def row_numbers(rows: np.ndarray) -> UInt32[np.ndarray, "n 3"]:
    """64 bits of what each row (n, d) holds, NaN where unobserved, and which of the rows equal to it this one is.

    Examples
    --------
    >>> numbers = row_numbers(np.array([[1.0, np.nan], [0.0, np.nan], [1.0, np.nan]]))
    >>> bool((numbers[0, :2] == numbers[2, :2]).all()), bool((numbers[0] == numbers[1]).all()), numbers[:, 2].tolist()
    (True, False, [0, 0, 1])
    """
    # In one type, with one zero and one NaN, so that equal rows have equal bytes. Of 32 bits two of a hundred thousand
    # rows would be likely to have the same, and with them the same noise; of 64 bits it takes billions of rows.
    cells = np.where(np.isnan(rows), np.nan, rows + 0.0).astype(np.float64)
    seen: Counter[bytes] = Counter()
    out = np.empty((len(rows), 3), np.uint32)
    for place, row in enumerate(cells):
        content = blake2b(row.tobytes(), digest_size=8).digest()
        out[place, :2], out[place, 2] = np.frombuffer(content, "<u4"), seen[content]
        seen[content] += 1
    return out


@jax.jit
def row_keys(key: Key[Array, ""], numbers: UInt32[Array, "n 3"]) -> Key[Array, " n"]:
    """A key for each row, from the key of a call and `row_numbers`."""
    fold = jax.vmap(jax.random.fold_in)
    keys = jnp.broadcast_to(key, (len(numbers),))
    for part in range(3):
        keys = fold(keys, numbers[:, part])
    return keys

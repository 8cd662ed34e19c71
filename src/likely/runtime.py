"""What likely sets up in JAX before the first computation, and how models run over blocks of rows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# One block shape for every number of rows: each function compiles once, and a row's result does not depend on how many
# others are asked for with it.
BLOCK_ROWS = 256
_LOOKED_AT = 1 << 22  # cells at a time


def use_compilation_cache() -> None:
    """Keep compiled programs between runs, in LIKELY_CACHE or the user's cache folder, unless JAX was told another."""
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = os.environ.get("LIKELY_CACHE") or Path(home) / "likely"
    jax.config.update("jax_compilation_cache_dir", str(Path(folder) / "jax"))
    # All of them: a table's first look needs some hundred programs, most of which take less than a tenth of a second.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def float_dtype() -> np.dtype:
    """float32, or float64 when JAX runs with x64."""
    return np.dtype(jax.dtypes.canonicalize_dtype(np.float64))


def on_device(array: Any, dtype: Any = None) -> jax.Array:
    """A copy of NumPy's array, or of a number, as one of JAX's; outside compiled functions.

    `jnp.asarray` compiles a program for each new shape, and another to change the type: 20 ms each, which adds up in
    the first fit of a table. A conversion by NumPy and a transfer compile nothing.
    """
    return jax.device_put(np.asarray(array, dtype), may_alias=False)


def rounded_up(n: int) -> int:
    """How many places an array for n rows gets: a power of two from 64 to 1024, above that at most an eighth more.

    A compiled program is for one shape. Tables of about the same length share it where what fills them up weighs
    nothing.

    >>> [rounded_up(n) for n in (1, 64, 65, 1000, 1024, 1025, 100_000)]
    [64, 64, 128, 1024, 1024, 1152, 106496]
    """
    step = max(64, 1 << (n.bit_length() - 4)) if n > 1024 else 1 << max(6, (n - 1).bit_length())
    return -(-n // step) * step


def generator(key: jax.Array) -> np.random.Generator:
    """NumPy's randomness for what is drawn outside compiled programs, as one of JAX's keys has it."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())


def after(first: jax.Array, array: jax.Array) -> jax.Array:
    """The array, but not before `first` is there; inside a compiled function.

    A call of LAPACK for many matrices shares them out among the threads of XLA's pool and waits: in jaxlib 0.10 as many
    such calls at a time as there are threads wait for each other for ever. What has several of them that do not depend
    on each other puts them in a row with this.
    """
    return array + 0 * jnp.nan_to_num(jnp.ravel(first)[0]).astype(array.dtype)


def has_holes(rows: np.ndarray) -> bool:
    """Whether a cell is NaN; block by block, so that there is no room needed for a mask of all rows."""
    step = max(1, _LOOKED_AT // max(1, rows.shape[1]))
    return any(np.isnan(rows[start : start + step]).any() for start in range(0, len(rows), step))


def by_blocks(
    function: Callable[..., Any], rows: np.ndarray, size: int = BLOCK_ROWS, beside: np.ndarray | None = None
) -> Any:
    """function(x, observed) over blocks of rows, results joined along the first axis as NumPy arrays.

    x is (size, d) with zeros where unobserved. Complete rows and rows with holes go in different blocks, `observed` is
    None for the former, so that a row's result does not depend on the rows beside it. The last block of each is padded,
    its padding cut off again. `function` should call something compiled, and may return any pytree of arrays with the
    rows first. What is given `beside` the rows, an array with a row for each, goes along, padded with zeros, as a third
    argument.
    """
    # A program for rows with holes rounds otherwise than one for complete rows: which of the two a row gets may depend
    # on nothing but the row.
    holed = np.isnan(rows).any(axis=1)
    groups = [index for index in (np.flatnonzero(~holed), np.flatnonzero(holed)) if len(index)]
    parts = []
    for index in groups or [np.arange(0)]:
        blocks = _padded_blocks(rows if len(groups) == 1 else rows[index], size)
        for number, (x, observed, weight) in enumerate(blocks):
            n = int(weight.sum())
            own = () if beside is None else (_padded(beside[index][number * size :][:size], size),)
            parts.append(jax.tree.map(lambda a, n=n: np.asarray(a)[:n], function(x, observed, *own)))
    places = np.argsort(np.concatenate(groups)) if len(groups) > 1 else slice(None)
    return jax.tree.map(lambda *pieces: np.concatenate(pieces)[places], *parts)


def sum_blocks(function: Callable[..., Any], rows: np.ndarray, weights: np.ndarray | None = None) -> Any:
    """function(x, observed, weight) over blocks as in `by_blocks`, results summed in float64.

    weight is 1 for a row, or what `weights` (n,) has for it, and 0 for padding: `function` must weigh its rows with it.
    Blocks are larger for many rows.
    """
    size = BLOCK_ROWS if len(rows) <= 16 * BLOCK_ROWS else 16 * BLOCK_ROWS
    total = None
    for number, (x, observed, weight) in enumerate(_padded_blocks(rows, size)):
        if weights is not None:
            own = weights[number * size :][:size]
            weight[: len(own)] = own
        part = jax.tree.map(lambda a: np.asarray(a, np.float64), function(x, observed, on_device(weight)))
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


def in_blocks(
    rows: np.ndarray, size: int, dtype: Any, weights: np.ndarray | None = None, n_blocks: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All rows at once in blocks of one size, for programs that go over them many times without Python in between.

    Returns
    -------
    x (n_blocks, size, d) with zeros where unobserved, which cells are observed (n_blocks, size, d), and weights
    (n_blocks, size): 1, or as they are given. Rows that fill up the last block, or more blocks where their number is
    given, have weight 0 and nothing observed.
    """
    n, d = rows.shape
    n_blocks = -(-n // size) if n_blocks is None else n_blocks
    padded = np.full((n_blocks * size, d), np.nan, dtype)
    padded[:n] = rows
    x = padded.reshape(n_blocks, size, d)
    weight = (np.arange(n_blocks * size) < n).astype(dtype)
    if weights is not None:
        weight[:n] = weights
    return np.nan_to_num(x, nan=0.0), ~np.isnan(x), weight.reshape(n_blocks, size)


def draws_by_blocks(
    draw: Callable[[jax.Array, jax.Array, jax.Array | None, int], Any], rows: np.ndarray, key: jax.Array, n: int
) -> np.ndarray:
    """(n, n_rows, d) draws of every row by `draw(key, x, observed, n) -> (size, n, d)`; each block has its own key."""
    keys = (jax.random.fold_in(key, block) for block in itertools.count())
    return np.swapaxes(by_blocks(lambda x, observed: draw(next(keys), x, observed, n), rows), 0, 1)


def _padded(block: np.ndarray, size: int) -> jax.Array:
    padded = np.zeros((size, *block.shape[1:]), block.dtype)
    padded[: len(block)] = block
    return on_device(padded)


def _padded_blocks(rows: np.ndarray, size: int) -> Iterator[tuple[jax.Array, jax.Array | None, np.ndarray]]:
    complete = not has_holes(rows)
    for start in range(0, max(1, len(rows)), size):
        block = rows[start : start + size]
        padded = np.zeros((size, rows.shape[1]), dtype=float_dtype())
        padded[: len(block)] = block
        observed = None if complete else on_device(~np.isnan(padded))
        weight = (np.arange(size) < len(block)).astype(padded.dtype)
        yield on_device(padded if complete else np.nan_to_num(padded, nan=0.0)), observed, weight

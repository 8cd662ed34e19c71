"""Rows on their way to the device: whole when they fit, block by block when they do not, in a shuffled order.

A run is a sequence of *spans*: pieces of work on one array on the device, whose steps run without Python in between. In
memory, a span is one epoch, or several if they are short; streamed, it is one block of one epoch. All blocks have one
shape, so that one compiled program serves them. Which row comes when depends on the key and the epoch alone.

One device holds a block and is told the order of its rows. Several devices share every batch out, and each of them
holds the rows of its own share alone, in the order in which the steps of a span ask for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import equinox as eqx
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float

from likely.placement import place, shared_out
from likely.runtime import rounded_up

# Epochs share a span until it has this many steps, as each span costs a call and a copy of its order to the device;
# but the order of its rows may not take more bytes than the second number.
SHORT_SPAN = 1024
_MAX_ORDER_BYTES = 16 << 20
# The same where there are several devices, which get the rows of a span in their order instead.
_MAX_ORDERED_BYTES = 64 << 20
# Of a streamed block there are, at worst, the block as read, the same without its NaN, its mask, and the block before
# it on the device: the budget is for all of them.
_BLOCKS_IN_BUDGET = 4
_HASHED_BYTES = 64 << 20  # of the rows, at most, behind a fingerprint: it is made before every run with a checkpoint


class Batch(eqx.Module):
    """Rows as an objective sees them: zeros where unobserved, weight 0 for rows that only fill up the batch."""

    x: Float[Array | np.ndarray, "rows columns"]
    observed: Bool[Array | np.ndarray, "rows columns"] | None  # None promises that every cell is observed
    weight: Float[Array | np.ndarray, " rows"]


@dataclass(frozen=True)
class Span:
    """A piece of work: `n_epochs` epochs from `epoch` on, or one block of epoch `epoch`."""

    epoch: int
    n_epochs: int
    block: int
    n_steps: int
    ends_epoch: bool


class Blocks:
    """Rows cut into contiguous blocks of one shape; a single one where they fit into the budget."""

    def __init__(self, rows: Any, dtype: Any, budget: int, multiple: int) -> None:
        self.rows, self.dtype = check_rows(rows), np.dtype(dtype)
        n_rows, row_bytes = len(self.rows), self.rows.nbytes // len(self.rows)
        self.streamed = self.rows.nbytes > budget
        fitting = budget // (_BLOCKS_IN_BUDGET * row_bytes) // multiple * multiple
        self.block_rows = min(max(multiple, fitting), n_rows) if self.streamed else n_rows
        self.n_blocks = math.ceil(n_rows / self.block_rows)
        self.complete = all(_is_complete(self._part(block)) for block in range(self.n_blocks))

    def n_rows(self, block: int) -> int:
        """Rows of a block, without padding."""
        return min(self.block_rows, len(self.rows) - block * self.block_rows)

    def read(self, block: int, multiple: int = 1, least: int = 0) -> Batch:
        """A block as NumPy arrays, padded to the common number of rows, `least` and a multiple; padding weighs 0."""
        part = self._part(block)
        # `astype` is what reads a memory map: what it returns is in memory.
        x = np.ascontiguousarray(part.astype(self.dtype, copy=isinstance(part, np.memmap)))
        missing = -(-max(self.block_rows, least) // multiple) * multiple - len(x)
        weight = np.pad(np.ones(len(x), dtype=self.dtype), (0, missing))
        if missing:
            # Padding repeats the last row. Its weight is 0, but 0 times an overflow would be NaN, and what happens to a
            # row of zeros, or of anything else that the data never hold, nobody knows.
            x = np.pad(x, ((0, missing), (0, 0)), mode="edge")
        if self.complete:
            return Batch(x, None, weight)
        observed = ~np.isnan(x)
        return Batch(np.where(observed, x, x.dtype.type(0)), observed, weight)

    def take(self, block: int, numbers: np.ndarray) -> Batch:
        """Rows of a block by their numbers in it, in the shape of the numbers; -1 is padding, and weighs 0."""
        x = self._part(block)[np.maximum(numbers, 0)].astype(self.dtype, copy=False)
        weight = (numbers >= 0).astype(self.dtype)
        if self.complete:
            return Batch(x, None, weight)
        observed = ~np.isnan(x)
        return Batch(np.where(observed, x, x.dtype.type(0)), observed, weight)

    def _part(self, block: int) -> np.ndarray:
        return self.rows[block * self.block_rows : (block + 1) * self.block_rows]


class Feed:
    """The spans of a training run: which rows, in what order.

    Parameters
    ----------
    rows : (n, d) array or memory map, NaN where unobserved.
    batch_size : rows a step, None for all.
    aligned : None, or a number of epochs at whose multiples a span must end.
    words : the key's words; with the epoch they determine the order.
    shuffle : False leaves the rows in theirs.
    """

    def __init__(
        self,
        rows: Any,
        *,
        dtype: Any,
        batch_size: int | None,
        n_epochs: int,
        budget: int,
        aligned: int | None,
        words: Sequence[int],
        mesh: Mesh | None,
        shuffle: bool = True,
    ) -> None:
        n_rows = len(check_rows(rows))
        # Where all rows are asked for at once, no order is needed, and no copy of the rows in it.
        self.whole = batch_size is None
        self.batch_size = n_rows if batch_size is None else min(batch_size, rounded_up(n_rows))
        self.blocks = Blocks(rows, dtype, budget, self.batch_size)
        self.n_epochs, self.words, self.mesh, self.shuffle = n_epochs, tuple(words), mesh, shuffle
        self.steps = [math.ceil(self.blocks.n_rows(block) / self.batch_size) for block in range(self.blocks.n_blocks)]
        self.steps_per_epoch = sum(self.steps)
        self.epochs_per_span = self._epochs_per_span(aligned)
        self.n_spans = math.ceil(n_epochs / self.epochs_per_span) * self.blocks.n_blocks
        self._kept: Batch | None = None

    def _epochs_per_span(self, aligned: int | None) -> int:
        """As many as make a span of SHORT_SPAN steps, and where they must be `aligned` a divisor of that."""
        if self.blocks.n_blocks > 1:
            return 1
        # An order has four bytes for each row of each step.
        row_bytes, most_bytes = 4, _MAX_ORDER_BYTES
        if self.mesh is not None:
            row_bytes, most_bytes = self.blocks.rows.nbytes // len(self.blocks.rows), _MAX_ORDERED_BYTES
        fitting = max(1, most_bytes // (row_bytes * self.steps_per_epoch * self.batch_size))
        most = min(self.n_epochs, math.ceil(SHORT_SPAN / self.steps_per_epoch), SHORT_SPAN if self.whole else fitting)
        return most if aligned is None else max(k for k in range(1, min(most, aligned) + 1) if aligned % k == 0)

    def span(self, index: int) -> Span:
        """What span number `index` consists of."""
        if self.blocks.n_blocks == 1:
            epoch = index * self.epochs_per_span
            count = min(self.epochs_per_span, self.n_epochs - epoch)
            return Span(epoch, count, 0, count * self.steps_per_epoch, True)
        # Streamed, blocks come in a new order each epoch, and rows are shuffled within them. In memory any two rows may
        # meet in a batch, here only those of a block; but each block is read once.
        epoch, place = divmod(index, self.blocks.n_blocks)
        block = int(self._random(epoch, 0).permutation(self.blocks.n_blocks)[place]) if self.shuffle else place
        return Span(epoch, 1, block, self.steps[block], place == self.blocks.n_blocks - 1)

    def data(self, span: Span) -> Batch:
        """The rows of a span on the device; on several devices in the order of its steps."""
        if self._kept is not None:
            return self._kept
        if self.mesh is None:
            # Filled up with rows that no step asks for, so that tables of about this length share a program.
            least = 0 if self.blocks.streamed or self.whole else rounded_up(self.blocks.block_rows)
            data = place(self.blocks.read(span.block, 1, least), None)
        else:
            data = self._shared_out(span, self.mesh)
        if not self.blocks.streamed and (self.mesh is None or self.whole):
            self._kept = data
        return data

    def order(self, span: Span) -> Array:
        """(steps, rows a step) int32: row numbers within the block, -1 for padding; one shape for all spans."""
        if self.whole or self.mesh is not None:
            return place(np.zeros((1, 1), dtype=np.int32), self.mesh)
        return place(self._numbers(span, rounded_up(self.epochs_per_span * max(self.steps))), None)

    def _numbers(self, span: Span, n_steps: int, multiple: int = 1) -> np.ndarray:
        """(n_steps, batch size filled up to a multiple) row numbers within the block, -1 for padding."""
        n_rows = self.blocks.n_rows(span.block)
        epochs = range(span.epoch, span.epoch + span.n_epochs)
        randoms = [self._random(epoch, 1 + span.block) if self.shuffle else None for epoch in epochs]
        dealt = np.concatenate([deal(random, n_rows, self.batch_size) for random in randoms])
        numbers = np.full((n_steps, -(-dealt.shape[1] // multiple) * multiple), -1, dtype=np.int32)
        numbers[: len(dealt), : dealt.shape[1]] = dealt
        return numbers

    def _shared_out(self, span: Span, mesh: Mesh) -> Batch:
        """The rows of a span on several devices, of each batch a share."""
        if self.whole:
            numbers, axis = filled_up(self.blocks.n_rows(span.block), mesh.size), 0
        else:
            numbers, axis = self._numbers(span, self.epochs_per_span * max(self.steps), mesh.size), 1
        return shared_out(lambda piece: self.blocks.take(span.block, numbers[piece]), numbers.shape, mesh, axis)

    def _random(self, epoch: int, stream: int) -> np.random.Generator:
        """Randomness of an epoch: stream 0 for the order of blocks, 1 + b for the rows of block b.

        By the epoch's number and not one after the other, so that a resumed run needs no replay.
        """
        return np.random.default_rng([*self.words, epoch, stream])


def deal(random: np.random.Generator | None, n_rows: int, batch_size: int) -> np.ndarray:
    """(steps, batch_size) a permutation of the rows, dealt evenly: no step is left with a handful of rows.

    Without randomness their own order: then every step but the last is full, so that states can follow the rows.

    >>> deal(np.random.default_rng(0), 7, 3)
    array([[ 2,  4,  1],
           [ 3,  6, -1],
           [ 5,  0, -1]], dtype=int32)
    """
    steps = math.ceil(n_rows / batch_size)
    if random is None:
        order = np.full(steps * batch_size, -1, dtype=np.int32)
        order[:n_rows] = np.arange(n_rows)
        return order.reshape(steps, batch_size)
    shuffled = random.permutation(np.arange(n_rows, dtype=np.int32))
    each, over = divmod(n_rows, steps)  # `over` steps get one row more
    order = np.full((steps, batch_size), -1, dtype=np.int32)
    order[:, :each] = shuffled[: steps * each].reshape(steps, each)
    order[:over, each : each + 1] = shuffled[steps * each :, None]
    return order


def filled_up(n_rows: int, multiple: int) -> np.ndarray:
    """Row numbers in their order, with -1 up to a multiple.

    >>> filled_up(3, 4)
    array([ 0,  1,  2, -1], dtype=int32)
    """
    numbers = np.full(-(-n_rows // multiple) * multiple, -1, dtype=np.int32)
    numbers[:n_rows] = np.arange(n_rows)
    return numbers


def check_rows(rows: Any) -> np.ndarray:
    """Rows as a two-dimensional array of real numbers; memory maps stay on disk."""
    rows = rows if isinstance(rows, np.ndarray) else np.asarray(rows)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"rows must be a table (n_rows, n_columns) with at least one of each, got shape {rows.shape}.")
    if rows.dtype.kind not in "fiub":
        raise TypeError(f"rows must be real numbers with NaN for unobserved cells, got dtype {rows.dtype}.")
    return rows


def fingerprint(rows: Any) -> str:
    """A short name for rows: shape, type and content, of evenly spaced stretches only where there are very many."""
    rows = check_rows(rows)
    digest = blake2b(f"{rows.shape} {rows.dtype}".encode(), digest_size=16)
    pieces = 1 if rows.nbytes <= _HASHED_BYTES else 64
    length = min(len(rows), max(1, _HASHED_BYTES * len(rows) // (pieces * rows.nbytes)))
    for start in np.linspace(0, len(rows) - length, pieces).astype(int):
        digest.update(np.ascontiguousarray(rows[start : start + length]).tobytes())
    return digest.hexdigest()


def _is_complete(part: np.ndarray) -> bool:
    return part.dtype.kind != "f" or not np.isnan(part).any()

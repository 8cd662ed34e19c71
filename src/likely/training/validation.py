"""The mean validation loss, over all rows, with the same randomness each time."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array

from likely.placement import place, shared_out
from likely.training.batches import Batch, Blocks, filled_up
from likely.training.config import TrainingConfig
from likely.training.program import Inputs, ValidationProgram, comparable, split, validation

MIN_BATCH = 256  # Validation needs no gradients, so the small batches of a training would only cost time.


class Validator:
    """Rows, a loss for each of them, and the compiled mean of it.

    Parameters
    ----------
    rest : the module without its trainable arrays.
    validate : (module, batch, key) -> (rows,) losses.
    """

    def __init__(
        self,
        rest: Any,
        validate: Any,
        rows: Any,
        *,
        config: TrainingConfig,
        dtype: Any,
        key: Array,
        mesh: Mesh | None,
    ) -> None:
        width = min(max(config.batch_size or len(rows), MIN_BATCH), len(rows))
        self.width = width if mesh is None else -(-width // mesh.size) * mesh.size
        self.blocks, self.mesh = Blocks(rows, dtype, config.room, self.width), mesh
        arrays, static = split((rest, comparable(validate)))
        self.inputs = Inputs(place(arrays, mesh), place(key, mesh), {})
        self.compiled = validation(ValidationProgram(static, mesh))
        self._kept: Batch | None = None

    def mean(self, params: Any) -> float:
        """Mean loss of the module with these trainable arrays."""
        parts = [self.compiled(params, self.inputs, self._data(block), block) for block in range(self.blocks.n_blocks)]
        return sum(float(np.asarray(part, np.float64).sum()) for part in parts) / len(self.blocks.rows)

    def _data(self, block: int) -> Batch:
        if self._kept is not None:
            return self._kept
        data = self._read(block)
        if self.blocks.n_blocks == 1:
            self._kept = data
        return data

    def _read(self, block: int) -> Batch:
        """A block in batches (n_batches, width, ...), each of them shared out over the devices."""
        if self.mesh is None:
            data = self.blocks.read(block, self.width)
            return place(jax.tree.map(lambda a: a.reshape(-1, self.width, *a.shape[1:]), data), None)
        numbers = filled_up(self.blocks.n_rows(block), self.width).reshape(-1, self.width)
        numbers = np.pad(
            numbers, ((0, -(-self.blocks.block_rows // self.width) - len(numbers)), (0, 0)), constant_values=-1
        )
        return shared_out(lambda piece: self.blocks.take(block, numbers[piece]), numbers.shape, self.mesh, axis=1)

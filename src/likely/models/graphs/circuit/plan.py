"""The shape of a circuit: blocks of numbers a row, each made of blocks before it; the last one is p(x).

| block   | value of a row, (K,)                                                       |
|---------|----------------------------------------------------------------------------|
| Leaf    | the probability, or density, of one cell under each of K distributions     |
| Product | the product, state by state, of blocks of K states about different cells   |
| Sum     | a matrix (K, L), whose rows sum to one, times a block of L states          |
| Joined  | blocks about the same cells laid side by side                              |

A hidden tree, a mixture and a circuit of single sums and products are all of this shape (Choi, Vergari and Van den
Broeck, 2020). A cell that is not observed has probability one in its leaves, which makes every marginal one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likely.columns import Columns


@dataclass(frozen=True)
class Leaf:
    """Distributions of one cell."""

    cell: int
    size: int
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Product:
    """Products over blocks of one size."""

    parts: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Sum:
    """Sums over the states of one block."""

    parts: tuple[int]
    size: int


@dataclass(frozen=True)
class Joined:
    """Blocks side by side."""

    parts: tuple[int, ...]
    size: int


Block = Leaf | Product | Sum | Joined
_NAMES: dict[str, Any] = {"product": Product, "sum": Sum, "joined": Joined}


def states_of(columns: Columns, cell: int) -> int:
    """States of a discrete cell, 0 of a number."""
    kind = columns.kinds[cell]
    return {"binary": 2, "categorical": columns.n_categories[cell]}.get(kind, 0)


@dataclass(frozen=True)
class Plan:
    """The blocks in an order in which parts come first, and where the parameters of each stand."""

    blocks: tuple[Block, ...]
    columns: Columns

    @classmethod
    def read(cls, described: Sequence[Sequence[Any]], columns: Columns) -> Plan:
        """What `described` wrote."""
        blocks: list[Block] = []
        for kind, size, *rest in described:
            blocks.append(Leaf(rest[0], size) if kind == "leaf" else _NAMES[kind](tuple(rest), size))
        return cls(tuple(blocks), columns)

    @property
    def described(self) -> list[list[Any]]:
        """As lists of text and numbers, for files."""
        out: list[list[Any]] = []
        for block in self.blocks:
            rest = (block.cell,) if isinstance(block, Leaf) else block.parts
            out.append([type(block).__name__.lower(), block.size, *rest])
        return out

    @cached_property
    def weight_slots(self) -> dict[int, tuple[int, int, int]]:
        """Of each sum: where its matrix starts among the weights, its rows, and its columns."""
        slots, start = {}, 0
        for place, block in enumerate(self.blocks):
            if isinstance(block, Sum):
                shape = (block.size, self.blocks[block.parts[0]].size)
                slots[place] = (start, *shape)
                start += shape[0] * shape[1]
        return slots

    @cached_property
    def n_weights(self) -> int:
        return sum(rows * columns for _, rows, columns in self.weight_slots.values())

    @cached_property
    def leaf_slots(self) -> dict[int, tuple[int, int, int]]:
        """Of each leaf: where its statistics start, how many it has a state, and its states.

        The statistics of a discrete cell are its probabilities; of a count the number of rows and their sum; of a real
        cell the number of rows, their sum, and that of their squares. Divided by the number they are parameters.
        """
        slots, start = {}, 0
        for place, block in enumerate(self.blocks):
            if isinstance(block, Leaf):
                n = states_of(self.columns, block.cell) or {"count": 2, "real": 3}[self.columns.kinds[block.cell]]
                slots[place] = (start, n, block.size)
                start += n * block.size
        return slots

    @cached_property
    def n_leaf_statistics(self) -> int:
        return sum(n * size for _, n, size in self.leaf_slots.values())

    @cached_property
    def uses(self) -> np.ndarray:
        """(n_blocks,) how many blocks each is a part of."""
        out = np.zeros(len(self.blocks), np.int64)
        for block in self.blocks:
            np.add.at(out, list(block.parts), 1)
        return out

    @cached_property
    def width(self) -> int:
        """Numbers that all blocks hold for a row: what memory is counted by."""
        return sum(block.size for block in self.blocks)

    def matrix(self, flat: np.ndarray, place: int) -> np.ndarray:
        """A sum's part (K, L) of all weights, a view."""
        start, rows, columns = self.weight_slots[place]
        return flat[start : start + rows * columns].reshape(rows, columns)

    def table(self, flat: np.ndarray, place: int) -> np.ndarray:
        """A leaf's part (statistics, K) of all leaves, a view."""
        start, n, size = self.leaf_slots[place]
        return flat[start : start + n * size].reshape(n, size)

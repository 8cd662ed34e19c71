"""Hidden Chow-Liu trees: a latent of K states beside each cell, and the latents along the cells' most likely tree.

p(x) = Σ_z p(z_root) Π_j p(x_j | z_j) p(z_j | z_parent of j) (Liu and Van den Broeck, 2021). As a circuit it has a leaf,
a product and a sum for each cell. The first parameters lie near a mixture: a latent copies its parent's state but for a
share, and each state's cells lean to those of a training row. From there EM lets the latents differ where that pays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.columns import Columns
from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.leaves import CellRows
from likely.models.graphs.circuit.plan import Block, Joined, Leaf, Plan, Product, Sum, states_of
from likely.models.graphs.structure.chow_liu import pairwise_information, spanning_tree

_BINS = 8  # of a number, for the information that it shares with other cells
_MOST_ROWS = 50_000  # that the information of pairs is counted on


@dataclass(frozen=True)
class Start:
    """How the first parameters are drawn."""

    copying: float = 0.9  # the share of a latent that copies its parent's
    leaning: float = 0.8  # the share of a row in the cells of the state that it was drawn for


def tree_of(rows: np.ndarray, columns: Columns, rng: np.random.Generator | None = None) -> list[tuple[int, int]]:
    """Edges (parent, child) between cells, parents first; of rows drawn with repetition where `rng` is given."""
    n = len(rows)
    if rng is not None:
        rows = rows[rng.integers(n, size=min(n, _MOST_ROWS))]
    elif n > _MOST_ROWS:
        rows = rows[np.linspace(0, n - 1, _MOST_ROWS).astype(np.int64)]
    sizes = [states_of(columns, cell) or _BINS for cell in range(columns.n_columns)]
    codes = np.stack([_binned(rows[:, cell], columns, cell) for cell in range(columns.n_columns)], axis=1)
    information = pairwise_information(codes, Columns(("categorical",) * len(sizes), tuple(sizes)))
    # Counts of many states share some information by chance (Miller, 1955), which would draw all edges to them.
    free = np.array(sizes, np.float64) - 1
    return spanning_tree(information - free[:, None] * free / (2 * max(1, len(rows))))


def _binned(cells: np.ndarray, columns: Columns, cell: int) -> np.ndarray:
    if states_of(columns, cell):
        return cells
    seen = ~np.isnan(cells)
    if not seen.any():
        return cells
    edges = np.quantile(cells[seen], np.arange(1, _BINS) / _BINS)
    return np.where(seen, np.searchsorted(edges, cells, side="right"), np.nan)


def tree_blocks(edges: list[tuple[int, int]], n_cells: int, n_states: int, first: int = 0) -> list[Block]:
    """The blocks of a hidden tree, numbered from `first`; the last one, of one state, is its p(x)."""
    children: dict[int, list[int]] = {cell: [] for cell in range(n_cells)}
    for parent, child in edges:
        children[parent].append(child)
    order = [edges[0][0] if edges else 0, *(child for _, child in edges)]
    blocks: list[Block] = []
    message: dict[int, int] = {}  # the block of each cell's sum
    for cell in reversed(order):
        blocks.append(Leaf(cell, n_states))
        place = first + len(blocks) - 1
        if children[cell]:
            blocks.append(Product((place, *(message[child] for child in children[cell])), n_states))
            place += 1
        is_root = cell == order[0]
        blocks.append(Sum((place,), 1 if is_root else n_states))
        message[cell] = place + 1
    return blocks


def trees_of(plan: Plan) -> list[list[tuple[int, int]]]:
    """Edges (parent, child) of each hidden tree that a plan is made of, parents first: what `tree_blocks` was given."""
    last = plan.blocks[-1]
    joined = plan.blocks[last.parts[0]] if last.parts else last
    roots = joined.parts if isinstance(joined, Joined) else (len(plan.blocks) - 1,)
    cell_of: dict[int, int] = {}  # of each block the cell whose latent it is about
    trees: list[list[tuple[int, int]]] = []
    edges: list[tuple[int, int]] = []
    for place, block in enumerate(plan.blocks[: max(roots) + 1]):
        if isinstance(block, Joined) or (isinstance(block, Product) and block.parts[0] not in cell_of):
            raise ValueError("this circuit is not made of hidden trees, and has no tree of its columns.")
        cell_of[place] = block.cell if isinstance(block, Leaf) else cell_of[block.parts[0]]
        if isinstance(block, Product):
            # Children were written before their parents, and the last child of a parent first.
            edges += [(cell_of[place], cell_of[part]) for part in block.parts[:0:-1]]
        if place in roots:
            trees.append(edges[::-1])
            edges = []
    return trees


def mixture_plan(trees: list[list[Block]], columns: Columns) -> Plan:
    """One plan of several, each numbered from 0, as a mixture; that of a single one is its own."""
    if len(trees) == 1:
        return Plan(tuple(trees[0]), columns)
    blocks: list[Block] = []
    roots = []
    for tree in trees:
        shift = len(blocks)
        for block in tree:
            parts = tuple(part + shift for part in block.parts)
            blocks.append(block if isinstance(block, Leaf) else type(block)(parts, block.size))  # type: ignore[arg-type]
        roots.append(len(blocks) - 1)
    blocks.append(Joined(tuple(roots), len(roots)))
    blocks.append(Sum((len(blocks) - 1,), 1))
    return Plan(tuple(blocks), columns)


def first_parameters(
    plan: Plan, rows: np.ndarray, priors: list[np.ndarray], start: Start, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and mean statistics of a hidden tree to start from."""
    weights = np.empty(plan.n_weights)
    for place in plan.weight_slots:
        matrix = plan.matrix(weights, place)
        matrix[:] = (1 - start.copying) * rng.dirichlet(np.ones(matrix.shape[1]), size=len(matrix))
        matrix += start.copying * (np.eye(len(matrix)) if len(matrix) == matrix.shape[1] else 1 / matrix.shape[1])
    n_states = max(block.size for block in plan.blocks)
    chosen = CellRows.of(rows[rng.choice(len(rows), n_states, replace=len(rows) < n_states)], plan.columns)
    statistics = leaves.spread_prior(plan, priors)
    for place in plan.leaf_slots:
        cell = plan.blocks[place].cell  # type: ignore[union-attr]
        table = plan.table(statistics, place)
        own = leaves.gather(np.eye(n_states, table.shape[1]), cell, chosen, plan.columns, len(table))
        table[:] = leaves.leaning(table, own, start.leaning, plan.columns.kinds[cell])
    return weights, statistics

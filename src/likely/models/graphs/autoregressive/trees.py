"""Conditionals by trees: p(x_j | before) is the average of several trees, each grown from other rows and inputs.

Breiman, Friedman, Olshen and Stone (1984); averaging after Breiman (1996, 2001); leaves smoothed towards their
ancestors as in `growing`. An average of laws is a law, so every chain has an exact likelihood. Cost of a fit: for each
conditional and tree about rows × inputs × depth; of a row: trees × depth for each cell.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from likely.columns import Columns
from likely.models.graphs.autoregressive.answers import LearnedChains
from likely.models.graphs.autoregressive.coding import Coding, make_coding
from likely.runtime import on_device

STRENGTHS = (1.0, 4.0, 16.0, 64.0, 256.0)  # of smoothing, in rows, of which the held-out rows choose
HELD_OUT = 0.25  # share of a tree's rows that choose what of it stays
MOST_GROWN = 1 << 17  # rows that one tree is grown from; all rows fill its leaves
LEAST_BYTES = 1 << 24  # that all trees may take of a small table: little for a model, and bins of numbers gain by it

_ROWS_CODED = 1 << 14  # rows whose codes are alive together


class TreeParams(eqx.Module):
    """All trees of all chains; see `coding` for how cells become codes and `tree_loops` for how leaves are read."""

    orders: Int[Array, "m d"]  # of each chain, the cells one after the other
    roots: Int[Array, "m d t"]  # of each cell's trees
    feature: Int[Array, " N"]  # -1 for leaves
    child: Int[Array, " N"]  # the first of two that stand side by side
    bits: UInt32[Array, "N w"]  # the codes that go to the first
    value: Int[Array, " N"]  # of leaves, where their law begins in `tables` or stands in `normals`
    tables: Float[Array, " P"]
    normals: Float[Array, "Q 3"]  # mean, deviation, weight of the parent's law
    above: Int[Array, " Q"]  # the parent's place
    n_codes: Int[Array, " d"]
    starts: Int[Array, " d1"]
    edges: Float[Array, " E"]
    n_classes: Int[Array, " d"]
    stays: Float[Array, " d"]

    @classmethod
    def empty(cls, n_chains: int, n_columns: int, n_trees: int, sizes: dict[str, int]) -> TreeParams:
        """Zeros of the right shapes; `sizes` are `sizes_of` fitted ones."""
        m, d, t, n = n_chains, n_columns, n_trees, sizes
        whole = lambda *shape: jnp.zeros(shape, jnp.int32)  # noqa: E731
        number = lambda *shape: jnp.zeros(shape, jnp.float32)  # noqa: E731
        bits = jnp.zeros((n["nodes"], n["words"]), jnp.uint32)
        return cls(
            whole(m, d), whole(m, d, t), whole(n["nodes"]), whole(n["nodes"]), bits, whole(n["nodes"]),
            number(n["table"]), number(n["normals"], 3), whole(n["normals"]),
            whole(d), whole(d + 1), number(n["edges"]), whole(d), number(d),
        )  # fmt: skip

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that depend on the data."""
        return {
            "nodes": len(self.feature),
            "words": self.bits.shape[1],
            "table": len(self.tables),
            "normals": len(self.normals),
            "edges": len(self.edges),
        }


class Growth(NamedTuple):
    """How trees are grown."""

    n_trees: int
    min_rows: int
    max_depth: int | None
    min_gain: float
    max_features: float
    max_size: float  # bytes of all trees beside those of the training rows in float64


class Tree(NamedTuple):
    """One tree, its nodes numbered from 0, and the laws of its leaves (classes) or of all its nodes (numbers)."""

    feature: np.ndarray
    child: np.ndarray
    bits: np.ndarray
    laws: np.ndarray  # (n_nodes, n_classes), or (n_nodes, 3): mean, deviation, weight of the parent's law
    parent: np.ndarray


class _Table(NamedTuple):
    """Training rows as trees read them."""

    codes: np.ndarray  # (d, n)
    cells: np.ndarray  # (d, n) float64
    coding: Coding
    logs: np.ndarray


def fit_trees(
    rows: np.ndarray, columns: Columns, orders: np.ndarray, growth: Growth, seed: int, ordered: tuple[bool, ...] | None
) -> TreeParams:
    """The trees of chains with the given orders (m, d)."""
    from likely.models.graphs.autoregressive.growing import log_table
    from likely.montecarlo.compiled import n_threads

    coding = make_coding(rows, columns, ordered)
    codes = code(coding, rows)
    n, d = rows.shape
    table = _Table(np.ascontiguousarray(codes.T), np.ascontiguousarray(rows.T, np.float64), coding, log_table(n))
    n_bytes = max(growth.max_size * 8 * n * d, LEAST_BYTES) / (len(orders) * d * growth.n_trees)
    tasks = [
        (table, int(j), np.sort(order[:place]).astype(np.int32), growth, n_bytes, (seed, chain, int(j), number))
        for chain, order in enumerate(orders)
        for place, j in enumerate(order)
        for number in range(growth.n_trees)
    ]
    with ThreadPoolExecutor(n_threads()) as pool:
        trees = list(pool.map(lambda task: _fit_tree(*task), tasks))
    return _joined(trees, [task[1] for task in tasks], orders, growth.n_trees, coding)


def code(coding: Coding, rows: np.ndarray) -> np.ndarray:
    """(n, d) codes of rows."""
    from likely.models.graphs.autoregressive.tree_loops import code_rows

    out = np.zeros(rows.shape, np.uint8)
    code_rows(rows, coding.is_real, coding.n_codes, coding.n_classes, coding.starts, coding.edges, out)
    return out


def _fit_tree(table: _Table, j: int, inputs: np.ndarray, growth: Growth, n_bytes: float, seed: tuple) -> Tree:
    """One tree for cell j from the cells `inputs`, of at most so many bytes; the seed says which rows grow it."""
    from likely.models.graphs.autoregressive import growing

    coding, rng = table.coding, np.random.default_rng(seed)
    target = _Target(table.codes, table.cells[j], int(coding.n_classes[j]), bool(coding.is_ordered[j]))
    seen = np.flatnonzero(~np.isnan(target.cells)).astype(np.int32)
    some = rng.permutation(seen)[: int(MOST_GROWN / (1 - HELD_OUT))]
    n_grown = round((1 - HELD_OUT) * len(some))
    grown, held = np.sort(some[:n_grown]), np.sort(some[n_grown:])
    n_tried = max(1, int(np.ceil(growth.max_features * len(inputs))))
    split_classes = int(coding.n_codes[j]) if target.n_classes else 0
    feature, child, bits = growing.grow(
        table.codes, table.codes[j], target.cells, grown.copy(), inputs, coding.n_codes, coding.is_ordered,
        split_classes, _limits(growth, n_bytes, target.n_classes, coding.n_words), growth.min_gain, n_tried,
        rng.integers(1 << 62), table.logs,
    )  # fmt: skip
    is_leaf, strength = _chosen(target, (feature, child, bits), grown, held)
    feature, child, bits, _ = growing.kept_part(feature, child, bits, is_leaf)
    _, parent, sums = target.counted(seen, feature, child, bits)
    if target.n_classes:
        return Tree(feature, child, bits, target.laws(sums, parent, strength), parent)
    sums[:, 2] = strength / (sums[:, 2] + strength)
    sums[0, 2] = 0.0  # Above the root there is nothing.
    return Tree(feature, child, bits, sums, parent)


class _Target(NamedTuple):
    """The cells of one column, of which a tree tells."""

    codes: np.ndarray  # (d, n) of all columns
    cells: np.ndarray  # (n,) of this one, NaN where unobserved
    n_classes: int  # 0 of real numbers
    is_ordered: bool

    def counted(
        self, rows: np.ndarray, feature: np.ndarray, child: np.ndarray, bits: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of rows, their leaves, the nodes' parents, and what the laws of a discrete or a real target are made of."""
        from likely.models.graphs.autoregressive import growing

        leaf, parent = growing.leaves_of(self.codes, rows, feature, child, bits), growing.parents_of(feature, child)
        if self.n_classes:
            classes = np.minimum(self.cells[rows], self.n_classes - 1).astype(np.int32)
            return leaf, parent, growing.class_totals(leaf, classes, parent, self.n_classes)
        return leaf, parent, growing.normal_laws(leaf, self.cells[rows], parent)

    def laws(self, sums: np.ndarray, parent: np.ndarray, strength: float) -> np.ndarray:
        """Laws of the nodes of classes, smoothed towards their ancestors."""
        from likely.models.graphs.autoregressive import growing

        return (growing.ordered_laws if self.is_ordered else growing.class_laws)(sums, parent, strength)


def _limits(growth: Growth, n_bytes: float, n_classes: int, n_words: int) -> tuple[int, int, int]:
    """The least rows of a node, and how many leaves and how deep a tree may have."""
    # A node takes 12 bytes (feature, child, value) and its words; a tree has about twice as many nodes as leaves.
    # Leaves of classes have a law of their own; of numbers every node has one: mean, deviation, weight and parent.
    a_leaf = 4 * n_classes + 2 * (12 + 4 * n_words) if n_classes else 2 * (28 + 4 * n_words)
    deepest = 1 << 20 if growth.max_depth is None else growth.max_depth
    return growth.min_rows, max(1, int(n_bytes / a_leaf)), deepest


def _chosen(target: _Target, nodes: tuple, grown: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, float]:
    """Which nodes of a grown tree become leaves, and the strength of smoothing, as the rows that were held out say."""
    from likely.models.graphs.autoregressive import growing

    feature, child, _ = nodes
    _, parent, sums = target.counted(grown, *nodes)
    leaf, _, judged = target.counted(held, *nodes)
    best, strength, is_leaf = -np.inf, STRENGTHS[0], np.ones(len(feature), bool)
    for candidate in STRENGTHS:
        if target.n_classes:
            fit = growing.class_fit(judged, target.laws(sums, parent, candidate))
        else:
            fit = growing.value_fit(leaf, target.cells[held], parent, sums, candidate)
        value, leaves = growing.cut_back(fit, feature, child)
        if value > best:
            best, strength, is_leaf = value, candidate, leaves
    return is_leaf, strength


def _joined(trees: list[Tree], cells: list[int], orders: np.ndarray, n_trees: int, coding: Coding) -> TreeParams:
    """Trees, in the order of chains, of their cells and of the trees of a cell, as one set of arrays."""
    firsts = np.concatenate([[0], np.cumsum([len(tree.feature) for tree in trees])])
    value, tables, normals, above, n_table, n_normals = [], [], [], [], 0, 0
    for tree, j in zip(trees, cells, strict=True):
        own, is_leaf = np.zeros(len(tree.feature), np.int32), tree.feature < 0
        if coding.n_classes[j]:
            n = int(coding.n_classes[j])
            own[is_leaf] = n_table + n * np.arange(is_leaf.sum())
            tables.append(tree.laws[is_leaf].ravel())
            n_table += len(tables[-1])
        else:
            own[:] = n_normals + np.arange(len(own))
            normals.append(tree.laws)
            above.append(np.where(tree.parent < 0, -1, tree.parent + n_normals))
            n_normals += len(own)
        value.append(own)
    roots = np.zeros((*orders.shape, n_trees), np.int32)
    starts = firsts[:-1].reshape(*orders.shape, n_trees)
    for chain, order in enumerate(orders):
        roots[chain, order] = starts[chain]
    whole = lambda parts: on_device(np.concatenate(parts), jnp.int32)  # noqa: E731
    number = lambda parts, *shape: on_device(  # noqa: E731
        np.concatenate([np.zeros((0, *shape)), *parts]), jnp.float32
    )
    return TreeParams(
        orders=on_device(orders, jnp.int32),
        roots=on_device(roots),
        feature=whole([tree.feature for tree in trees]),
        child=whole([tree.child + first for tree, first in zip(trees, firsts[:-1], strict=True)]),
        bits=on_device(np.concatenate([tree.bits for tree in trees]), jnp.uint32),
        value=whole(value),
        tables=number(tables),
        normals=number(normals, 3),
        above=whole([np.zeros(0, np.int32), *above]),
        n_codes=on_device(coding.n_codes),
        starts=on_device(coding.starts),
        edges=on_device(coding.edges),
        n_classes=on_device(coding.n_classes),
        stays=on_device(coding.stays),
    )


class Trees(LearnedChains):
    """Chains of trees, as `answers` asks them."""

    @cached_property
    def _coding(self) -> tuple[np.ndarray, ...]:
        p, is_real = self.params, np.array(self.columns.kinds) == "real"
        return is_real, *(np.asarray(a) for a in (p.n_codes, p.n_classes, p.starts, p.edges))

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        p = self.params
        nodes = np.column_stack([p.feature, p.child, p.value, np.asarray(p.bits).view(np.int32)])
        return nodes, *(np.asarray(array) for array in (p.n_classes, p.stays, p.tables, p.normals, p.above))

    def log_terms(self, chain: int, rows: np.ndarray) -> np.ndarray:
        """(n,) the sum of log p(x_j | the cells before) over the observed cells of rows (n, d)."""
        from likely.models.graphs.autoregressive import tree_loops
        from likely.montecarlo.compiled import share_out

        loops: Any = tree_loops  # Compiled functions have no types.
        out = np.zeros(len(rows))
        roots, order = np.asarray(self.params.roots)[chain], self.orders[chain]

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _ROWS_CODED):
                part = slice(first, min(stop, first + _ROWS_CODED))
                own = np.asarray(rows[part], np.float64)
                codes = np.zeros(own.shape, np.uint8)
                loops.code_rows(own, *self._coding, codes)
                loops.log_terms(own, codes, order, roots, *self._arrays, out[part])

        share_out(work, len(rows), multiple=tree_loops.ROWS_TOGETHER)
        return out

    def complete(
        self, chain: int, rows: np.ndarray, uniforms: np.ndarray, normals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with unobserved cells drawn along a chain, and log p of the observed ones on the way.

        uniforms (n, d, 2) and normals (n, d) are the randomness of each cell.
        """
        from likely.models.graphs.autoregressive import tree_loops
        from likely.montecarlo.compiled import share_out

        loops: Any = tree_loops
        filled, out = np.array(rows, np.float64), np.zeros(len(rows))
        is_real, n_codes, _, starts, edges = self._coding
        roots, order = np.asarray(self.params.roots)[chain], self.orders[chain]

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            loops.complete(
                filled[part], uniforms[part], normals[part], order, self.switches, is_real, n_codes, starts, edges,
                roots, *self._arrays, out[part],
            )  # fmt: skip

        share_out(work, len(rows))
        return filled, out

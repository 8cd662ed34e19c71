"""The order of the cells in a chain: as given, by entropy, along a Chow-Liu tree, at random, or named one by one.

Any order can represent any distribution; which one is learned best from few rows depends on the conditionals. Trees do
best where cells of many values come first: they have few inputs there, and the cells of few values, whose laws take few
rows to learn, get all of them. Cost: one pass over the rows; all pairs of cells for the Chow-Liu tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.columns import Columns
from likely.information.dependence import entropy, mutual_information
from likely.models.graphs.autoregressive.coding import make_coding

NAMED = ("given", "entropy", "tree", "random")
# Chains after the first differ: their entropies are moved by normal noise of a nat, the size of a typical difference.
JITTER = 1.0
_MOST_ROWS = 20_000  # that entropies are estimated from: an error of a hundredth of a nat changes no order that matters


def check_order(order: Any, names: Sequence[str], left_out: Sequence[str] = ()) -> list[int] | str:
    """An order as positions, or one of the names of a way to find it; ValueError for anything else.

    Columns of the table that are left out, constants and names of rows, may be in the order as well: they are skipped.
    """
    if isinstance(order, str):
        if order not in NAMED:
            raise ValueError(f"`order` must be one of {', '.join(NAMED)}, or a list of all columns, got {order!r}.")
        return order
    if not isinstance(order, list | tuple | np.ndarray):
        raise ValueError(f"`order` must be one of {', '.join(NAMED)}, or a list of all columns, got {order!r}.")
    order = [label for label in order if not (isinstance(label, str) and label in left_out)]
    places = [_place(label, list(names)) for label in order]
    twice = next((label for at, label in enumerate(order) if places[at] in places[:at]), None)
    if twice is not None:
        raise ValueError(f"`order` names column {twice!r} twice: name each of the {len(names)} columns once.")
    absent = [name for place, name in enumerate(names) if place not in places]
    if absent:
        some = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
        raise ValueError(f"`order` misses {len(absent)} of {len(names)} columns: {some}. Name each of them once.")
    return places


def make_orders(
    order: list[int] | str,
    n_chains: int,
    rows: np.ndarray,
    columns: Columns,
    rng: np.random.Generator,
    column_of: np.ndarray | None = None,
) -> np.ndarray:
    """(n_chains, d) the cells of each chain, one after the other.

    column_of : (d,) the user's column that each cell belongs to, which an order names; None where they are the same.
        Cells of one column stay together, in the order that they have.
    """
    owner = np.arange(columns.n_columns) if column_of is None else np.asarray(column_of)
    cells = _orders_of_cells(order, n_chains, rows, columns, rng, owner)
    first = [list(dict.fromkeys(owner[own].tolist())) for own in cells]  # columns as they first appear
    return np.stack([np.concatenate([np.flatnonzero(owner == column) for column in each]) for each in first])


def _orders_of_cells(
    order: list[int] | str,
    n_chains: int,
    rows: np.ndarray,
    columns: Columns,
    rng: np.random.Generator,
    owner: np.ndarray,
) -> np.ndarray:
    d = columns.n_columns
    if order == "random":
        return np.stack([rng.permutation(d) for _ in range(n_chains)])
    if order == "entropy":
        values = np.array([entropy(np.bincount(codes[codes >= 0])) for codes in _codes(rows, columns, rng).T])
        moved = [values] + [values + JITTER * rng.normal(size=d) for _ in range(n_chains - 1)]
        return np.stack([np.argsort(-each, kind="stable") for each in moved])
    if order == "tree":
        return _tree_orders(_codes(rows, columns, rng), n_chains)
    if order == "given":
        return np.tile(np.arange(d), (n_chains, 1))
    return np.tile(np.argsort(np.argsort(np.array(order))[owner], kind="stable"), (n_chains, 1))


def _tree_orders(codes: np.ndarray, n_chains: int) -> np.ndarray:
    """Orders in which each cell comes after its parent in the tree of most mutual information (Chow and Liu, 1968).

    Chain i starts from the cell that shares the i-th most with all others, and goes on with the neighbour that shares
    most with what is there: Prim's algorithm.
    """
    d = codes.shape[1]
    shared = np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            shared[i, j] = shared[j, i] = mutual_information(codes[:, i], codes[:, j])
    roots = np.argsort(-shared.sum(axis=1), kind="stable")
    orders = []
    for chain in range(n_chains):
        order = [int(roots[chain % d])]
        while len(order) < d:
            near = shared[order].max(axis=0)
            near[order] = -np.inf
            order.append(int(np.argmax(near)))
        orders.append(order)
    return np.array(orders)


def _codes(rows: np.ndarray, columns: Columns, rng: np.random.Generator) -> np.ndarray:
    """(n, d) codes of some rows, -1 where unobserved."""
    from likely.models.graphs.autoregressive.trees import code

    some = rows if len(rows) <= _MOST_ROWS else rows[np.sort(rng.choice(len(rows), _MOST_ROWS, replace=False))]
    coded = code(make_coding(some, columns), some).astype(np.int64)
    return np.where(np.isnan(some), -1, coded)


def _place(label: Any, names: list[str]) -> int:
    if isinstance(label, str) and label in names:
        return names.index(label)
    if isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < len(names):
        return int(label)
    raise ValueError(f"`order` names column {label!r}, which is not there; columns: {', '.join(names[:20])}.")

"""Conditionals by boosted trees: the logits, log rate or mean of a cell are a sum of trees of the cells before it.

scikit-learn's histogram gradient boosting (Friedman, 2001; Ke et al., 2017) learns them, stopped early by a tenth of
the rows; its trees are kept as arrays and read by loops of our own. Classes with an order, such as bins of numbers, are
halved again and again (`halving`). One row of ignorance is mixed into the laws of classes; a real cell has one scale,
measured on the rows that stopped it. Cost of a fit: rows × inputs × trees for each category of a cell, or each
level of halves; of a row: trees × depth.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32
from scipy.special import gammaln

from likely.columns import Columns
from likely.models.graphs.autoregressive import halving
from likely.models.graphs.autoregressive.answers import LearnedChains
from likely.models.graphs.autoregressive.cell_laws import MAX_LOG_RATE, poisson_quantile
from likely.models.graphs.autoregressive.scikit_trees import Nodes, nodes_of
from likely.runtime import on_device

HELD_OUT = 0.1  # share of the rows that say when to stop
PATIENCE = 10  # trees without a better fit of them
MOST_NAMED = 255  # categories that scikit-learn can split as sets; with more they are read as numbers


class BoostedParams(eqx.Module):
    """All trees of all chains.

    first_tree, first_output : (m, d + 1) where the trees and the raw outputs of each cell begin, in the order of cells.
    roots, output : of trees, where they begin among the nodes, and the raw output of the cell that they add to.
    feature, threshold, child, bits, hole_left, value : of nodes. A number up to the threshold, or a category in the
        set, goes to the first of two children that stand side by side; feature is -1 for leaves, which have a value.
    base, classes : of raw outputs, what they are before the first tree, and the category that they are the logit of.
    scale, n_rows : (m, d) of real cells their scale, and of all the rows behind them.
    """

    orders: Int[Array, "m d"]
    first_tree: Int[Array, "m d1"]
    first_output: Int[Array, "m d1"]
    roots: Int[Array, " T"]
    output: Int[Array, " T"]
    feature: Int[Array, " N"]
    threshold: Float[Array, " N"]
    child: Int[Array, " N"]
    bits: UInt32[Array, "N w"]
    hole_left: Int[Array, " N"]
    value: Float[Array, " N"]
    base: Float[Array, " B"]
    classes: Int[Array, " B"]
    scale: Float[Array, "m d"]
    n_rows: Float[Array, "m d"]

    @classmethod
    def empty(cls, n_chains: int, n_columns: int, sizes: dict[str, int]) -> BoostedParams:
        """Zeros of the right shapes; `sizes` are those of fitted ones."""
        m, d, t, n, b = n_chains, n_columns, sizes["trees"], sizes["nodes"], sizes["outputs"]
        whole = lambda *shape: jnp.zeros(shape, jnp.int32)  # noqa: E731
        number = lambda *shape: jnp.zeros(shape, jnp.float32)  # noqa: E731
        return cls(
            whole(m, d), whole(m, d + 1), whole(m, d + 1), whole(t), whole(t), whole(n), number(n), whole(n),
            jnp.zeros((n, sizes["words"]), jnp.uint32), whole(n), number(n), number(b), whole(b),
            number(m, d), number(m, d),
        )  # fmt: skip

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that depend on the data."""
        words = self.bits.shape[1]
        return {"trees": len(self.roots), "nodes": len(self.feature), "outputs": len(self.base), "words": words}


class Boosting(NamedTuple):
    """How trees are boosted."""

    n_rounds: int
    rate: float
    max_leaves: int
    min_rows: int


class Learned(NamedTuple):
    """What was learned of a cell: trees and the raw outputs that they add to; outputs before them; classes; scale."""

    trees: list[Nodes]
    output: list[int]
    base: np.ndarray
    classes: np.ndarray
    scale: float
    n_rows: int


def fit_boosting(
    rows: np.ndarray, columns: Columns, orders: np.ndarray, boosting: Boosting, seed: int
) -> BoostedParams:
    """Boosted trees for every cell of every chain."""
    from likely.montecarlo.compiled import n_threads

    x = np.asarray(rows, np.float64)
    named = np.array([kind == "categorical" for kind in columns.kinds]) & (np.array(columns.n_categories) <= MOST_NAMED)
    named &= ~np.array(columns.ordered or (False,) * columns.n_columns)
    tasks = [
        (x, int(j), order[: int(np.argsort(order)[j])], columns, named, boosting, (seed, chain, int(j)))
        for chain, order in enumerate(orders)
        for j in range(columns.n_columns)
    ]
    with ThreadPoolExecutor(n_threads()) as pool:
        learned = list(pool.map(lambda task: _on_one_thread(*task), tasks))
    most_named = max((n for n, is_named in zip(columns.n_categories, named, strict=True) if is_named), default=1)
    return _joined(learned, orders, -(-most_named // 32))


def _on_one_thread(*task: Any) -> Learned:
    """`_fit_cell`, with cells side by side rather than the loops of each.

    On a busy machine loops whose threads wait for each other take twenty times as long, and the order of their sums
    depends on how many there are.
    """
    import sklearn.ensemble  # noqa: F401  # Only threads of libraries that are loaded can be limited.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1, "openmp"):
        return _fit_cell(*task)


def _fit_cell(
    x: np.ndarray, j: int, inputs: np.ndarray, columns: Columns, named: np.ndarray, boosting: Boosting, seed: tuple
) -> Learned:
    """One cell given those before it."""
    rng, kind = np.random.default_rng(seed), columns.kinds[j]
    seen = rng.permutation(np.flatnonzero(~np.isnan(x[:, j])))
    n_held = int(HELD_OUT * len(seen))
    held, grown = seen[:n_held], seen[n_held:]
    inputs = np.array([i for i in np.sort(inputs) if np.nanmin(x[:, i]) < np.nanmax(x[:, i])], np.intp)
    if is_halved(columns, j):
        return _fit_halves(x, j, inputs, columns.n_categories[j], named, boosting, (grown, held), rng)
    classes = np.unique(x[grown, j]) if kind in ("binary", "categorical") else np.zeros(0)
    held = held[np.isin(x[held, j], classes)] if len(classes) else held
    if not len(inputs) or len(held) < 2 or len(classes) == 1:
        return _marginal(x[seen, j], kind, columns.n_categories[j])
    target = x[:, j] if kind != "count" or x[grown, j].any() else x[:, j] + 1e-9  # A Poisson loss refuses zeros alone.
    loss = {"count": "poisson", "real": "squared_error"}.get(kind)
    model = _boosted(x, inputs, target, (grown, held), named, boosting, loss, rng)
    scale = 1.0
    if kind == "real":
        off = x[held, j] - model.predict(x[np.ix_(held, inputs)])
        scale = float(np.sqrt(((off**2).sum() + 1) / (len(off) + 1)))
    base, pairs = np.ravel(model._baseline_prediction), [list(enumerate(trees)) for trees in model._predictors]
    if len(classes) == 2:  # scikit-learn has the logit of the second class alone.
        base, pairs = np.append(0.0, base), [[(1, trees[0])] for trees in model._predictors]
    trees = [nodes_of(tree, model, inputs, named[inputs]) for round_ in pairs for _, tree in round_]
    return Learned(trees, [output for round_ in pairs for output, _ in round_], base, classes, scale, len(seen))


def _boosted(
    x: np.ndarray, inputs: np.ndarray, target: np.ndarray, parts: tuple[np.ndarray, np.ndarray],
    named: np.ndarray, boosting: Boosting, loss: str | None, rng: np.random.Generator,
) -> Any:  # fmt: skip
    """scikit-learn's model of a target, grown from the first part of the rows and stopped by the second."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    grown, held = parts
    options: dict[str, Any] = {
        "max_iter": boosting.n_rounds,
        "learning_rate": boosting.rate,
        "max_leaf_nodes": boosting.max_leaves,
        "min_samples_leaf": boosting.min_rows,
        "categorical_features": named[inputs] if named[inputs].any() else None,
        "early_stopping": True,
        "n_iter_no_change": PATIENCE,
        "random_state": int(rng.integers(1 << 31)),
    }
    make = HistGradientBoostingClassifier if loss is None else HistGradientBoostingRegressor
    model = make(**options | ({} if loss is None else {"loss": loss}))
    return model.fit(x[np.ix_(grown, inputs)], target[grown], X_val=x[np.ix_(held, inputs)], y_val=target[held])


def is_halved(columns: Columns, j: int) -> bool:
    """Whether the law of a cell is found by halves."""
    return columns.kinds[j] == "categorical" and bool(columns.ordered) and columns.ordered[j]


def _fit_halves(
    x: np.ndarray, j: int, inputs: np.ndarray, n_classes: int, named: np.ndarray, boosting: Boosting,
    parts: tuple[np.ndarray, np.ndarray], rng: np.random.Generator,
) -> Learned:  # fmt: skip
    """The trees of every level of halves; the cell's own column says which interval it is."""
    trees: list[Nodes] = []
    output: list[int] = []
    base = np.zeros(halving.n_levels(n_classes))
    classes = np.nan_to_num(x[:, j]).astype(np.int64)
    for level in range(len(base)):
        told = np.array(x)
        told[:, j] = halving.firsts_of(classes, level, n_classes)
        upper = halving.is_upper(classes, level, n_classes).astype(np.float64)
        asked = halving.upper_sizes(told[:, j].astype(np.int64), level, n_classes)[0] > 0
        grown, held = (part[asked[part]] for part in parts)
        shares = upper[np.concatenate([grown, held])]
        base[level] = np.log((shares.sum() + 0.5) / ((1 - shares).sum() + 0.5))
        own = np.append(inputs, j) if len(np.unique(told[grown, j])) > 1 else inputs
        if not len(own) or len(held) < 2 or len(np.unique(upper[grown])) < 2:
            continue
        model = _boosted(told, own, upper, (grown, held), named, boosting, None, rng)
        base[level] = float(np.ravel(model._baseline_prediction)[0])
        trees += [nodes_of(tree, model, own, named[own]) for (tree,) in model._predictors]
        output += [level] * len(model._predictors)
    return Learned(trees, output, base, np.zeros(0), 1.0, sum(map(len, parts)))


def _marginal(cells: np.ndarray, kind: str, n_categories: int) -> Learned:
    """The law of a cell that nothing says anything of, with a row of ignorance."""
    n = len(cells)
    if kind == "real":
        mean = cells.sum() / (n + 1)
        scale = float(np.sqrt(max((1 + (cells**2).sum()) / (n + 1) - mean**2, 1e-6)))
        return Learned([], [], np.array([mean]), np.zeros(0), scale, n)
    if kind == "count":
        return Learned([], [], np.array([np.log((cells.sum() + 1) / (n + 1))]), np.zeros(0), 1.0, n)
    classes, counts = np.unique(cells, return_counts=True)
    return Learned([], [], np.log(counts / n), classes, 1.0, n)


def _joined(flat: list[Learned], orders: np.ndarray, n_words: int) -> BoostedParams:
    """What was learned of all cells, chain by chain, as one set of arrays; sets of categories take so many words."""
    trees = [tree for cell in flat for tree in cell.trees]
    starts = np.concatenate([[0], np.cumsum([len(tree.feature) for tree in trees])]).astype(np.int64)
    join = lambda parts, dtype, *shape: on_device(  # noqa: E731
        np.concatenate([np.zeros((0, *shape)), *parts]).astype(dtype)
    )
    each = lambda name: [getattr(tree, name) for tree in trees]  # noqa: E731
    m, d = orders.shape
    ends = [np.cumsum([sizes(cell) for cell in flat]).reshape(m, d) for sizes in (_n_trees, _n_outputs)]
    firsts = [np.hstack([np.append(0, end[:-1, -1])[:, None], end]) for end in ends]
    per_cell = lambda name: on_device(  # noqa: E731
        np.array([getattr(cell, name) for cell in flat]).reshape(m, d), jnp.float32
    )
    return BoostedParams(
        orders=on_device(orders, jnp.int32),
        first_tree=on_device(firsts[0], jnp.int32),
        first_output=on_device(firsts[1], jnp.int32),
        roots=on_device(starts[:-1], jnp.int32),
        output=join([cell.output for cell in flat], np.int32),
        feature=join(each("feature"), np.int32),
        threshold=join(each("threshold"), np.float32),
        child=join([tree.child + start for tree, start in zip(trees, starts[:-1], strict=True)], np.int32),
        bits=join([bits[:, :n_words] for bits in each("bits")], np.uint32, n_words),
        hole_left=join(each("hole_left"), np.int32),
        value=join(each("value"), np.float32),
        base=join([cell.base for cell in flat], np.float32),
        classes=join([cell.classes if len(cell.classes) else np.full(len(cell.base), -1) for cell in flat], np.int32),
        scale=per_cell("scale"),
        n_rows=per_cell("n_rows"),
    )


def _n_trees(cell: Learned) -> int:
    return len(cell.trees)


def _n_outputs(cell: Learned) -> int:
    return len(cell.base)


class BoostedChains(LearnedChains):
    """Chains of boosted trees, as `answers` asks them."""

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, ...]:
        p = self.params
        return tuple(np.asarray(a) for a in (p.feature, p.threshold, p.child, p.bits, p.hole_left, p.value))

    def log_terms(self, chain: int, rows: np.ndarray) -> np.ndarray:
        """(n,) the sum of log p(x_j | the cells before) over the observed cells of rows (n, d)."""
        out = np.zeros(len(rows))
        for j in self.orders[chain]:
            seen = np.flatnonzero(~np.isnan(rows[:, j]))
            if len(seen):
                out[seen] += self._log_prob(chain, int(j), rows[seen])
        return out

    def complete(
        self, chain: int, rows: np.ndarray, uniforms: np.ndarray, normals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with unobserved cells drawn along a chain, and log p of the observed ones on the way."""
        filled, logs = np.array(rows, np.float64), np.zeros(len(rows))
        for j in self.orders[chain]:
            holes = np.isnan(filled[:, j])
            if (~holes).any():
                logs[~holes] += self._log_prob(chain, int(j), filled[~holes])
            if self.switches[j] >= 0:
                holes &= ~(filled[:, self.switches[j]] > 0)
            if holes.any():
                own = np.flatnonzero(holes)
                filled[own, j] = self._draw(chain, int(j), filled[own], uniforms[own, j], normals[own, j])
        return filled, logs

    def _raw(self, chain: int, j: int, rows: np.ndarray, level: int | None = None) -> np.ndarray:
        """(n, outputs) raw outputs of a cell; of one with halves all but those of a level are not worked out."""
        from likely.models.graphs.autoregressive.boosting_loops import add_trees
        from likely.montecarlo.compiled import share_out

        p, add = self.params, _untyped(add_trees)
        trees = slice(*np.asarray(p.first_tree)[chain, j : j + 2])
        outputs = slice(*np.asarray(p.first_output)[chain, j : j + 2])
        out = np.tile(np.asarray(p.base, np.float64)[outputs], (len(rows), 1))
        x, roots, output = np.asarray(rows, np.float64), np.asarray(p.roots)[trees], np.asarray(p.output)[trees]
        if level is not None:
            roots, output = roots[output == level], output[output == level]
        share_out(lambda start, stop: add(x[start:stop], roots, output, *self._nodes, out[start:stop]), len(rows))
        return out

    def _logits(self, chain: int, j: int, rows: np.ndarray) -> halving.Logits:
        """The logits of halves of a cell's classes."""

        def logits(level: int, firsts: np.ndarray) -> np.ndarray:
            told = np.array(rows, np.float64)
            told[:, j] = firsts
            return self._raw(chain, j, told, level)[:, level]

        return logits

    def _shares(self, chain: int, j: int, rows: np.ndarray) -> np.ndarray:
        """(n, K) probabilities of the categories of a cell."""
        raw, p = self._raw(chain, j, rows), self.params
        n_classes = 2 if self.columns.kinds[j] == "binary" else self.columns.n_categories[j]
        classes = np.asarray(p.classes)[slice(*np.asarray(p.first_output)[chain, j : j + 2])]
        weights = np.exp(raw - raw.max(axis=1, keepdims=True))
        n = float(p.n_rows[chain, j])
        out = np.full((len(rows), n_classes), 1 / n_classes / (n + 1))
        out[:, classes] += weights / weights.sum(axis=1, keepdims=True) * (n / (n + 1))
        return out

    def _log_prob(self, chain: int, j: int, rows: np.ndarray) -> np.ndarray:
        x, kind = np.asarray(rows[:, j], np.float64), self.columns.kinds[j]
        if is_halved(self.columns, j):
            n_rows = float(self.params.n_rows[chain, j])
            return halving.log_prob(
                x.astype(np.int64), self.columns.n_categories[j], n_rows, self._logits(chain, j, rows)
            )
        if kind in ("binary", "categorical"):
            return np.log(self._shares(chain, j, rows)[np.arange(len(x)), x.astype(np.intp)])
        raw = self._raw(chain, j, rows)[:, 0]
        if kind == "count":
            raw = np.minimum(raw, MAX_LOG_RATE)
            return x * raw - np.exp(raw) - gammaln(x + 1)
        scale = float(self.params.scale[chain, j])
        return -0.5 * ((x - raw) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)

    def _draw(self, chain: int, j: int, rows: np.ndarray, uniforms: np.ndarray, normals: np.ndarray) -> np.ndarray:
        kind = self.columns.kinds[j]
        if is_halved(self.columns, j):
            n_classes, n_rows = self.columns.n_categories[j], float(self.params.n_rows[chain, j])
            return halving.draw(uniforms[:, 1], n_classes, n_rows, self._logits(chain, j, rows)).astype(np.float64)
        if kind in ("binary", "categorical"):
            total = np.cumsum(self._shares(chain, j, rows), axis=1)
            return np.minimum((uniforms[:, 1:] > total).sum(axis=1), total.shape[1] - 1).astype(np.float64)
        raw = self._raw(chain, j, rows)[:, 0]
        if kind == "count":
            return poisson_quantile(uniforms[:, 1], raw)
        return raw + float(self.params.scale[chain, j]) * normals


def _untyped(function: Any) -> Any:
    return function  # Compiled functions have no types.

"""Passes over a circuit: up, the probability of rows; down, what each state had to do with it, or draws.

Values are kept in proportion: each product is divided by its largest state, and the logarithms of the divisors add up
apart, so that nothing under- or overflows however many columns there are. The flow of a state is P(state | observed
cells): the gradient of log p by the logarithm of its value, and the expected count of EM. Cost of a pass: a matrix
product of rows × K × L for each sum; downwards two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.leaves import CellRows
from likely.models.graphs.circuit.plan import Joined, Leaf, Plan, Product, Sum, states_of

_UNSCALED = 3  # factors that are multiplied before the product is divided by its largest state
_FEWEST, _MOST = 16, 256  # rows of a pass
_BYTES = 96 << 20  # that the values of a pass may take


@dataclass(eq=False)
class Upward:
    """What a pass upwards leaves behind."""

    rows: CellRows
    values: list[np.ndarray]
    log_scales: list[np.ndarray | float]

    @property
    def log_prob(self) -> np.ndarray:
        """(n,) log p of the observed cells."""
        with np.errstate(divide="ignore"):
            return np.log(self.values[-1][:, 0].astype(np.float64)) + self.log_scales[-1]


@dataclass(eq=False)
class Passes:
    """A circuit with its parameters, in the precision of its sums.

    Parameters
    ----------
    weights : of all sums, each matrix flat; rows sum to one.
    statistics : mean statistics of all leaves.
    dtype : float32 is enough to learn by; answers take float64.
    """

    plan: Plan
    weights: np.ndarray
    statistics: np.ndarray
    dtype: type = np.float64

    @cached_property
    def _matrices(self) -> dict[int, np.ndarray]:
        weights: np.ndarray = self.weights.astype(self.dtype)
        return {place: self.plan.matrix(weights, place) for place in self.plan.weight_slots}

    @cached_property
    def _leaves(self) -> dict[int, np.ndarray]:
        """Tables of discrete cells with a row of ones for what is unobserved; mean statistics of numbers."""
        out = {}
        columns = self.plan.columns
        for place in self.plan.leaf_slots:
            table = self.plan.table(self.statistics, place)
            if states_of(columns, self.plan.blocks[place].cell):  # type: ignore[union-attr]
                table = np.concatenate([table, np.ones((1, table.shape[1]))]).astype(self.dtype)
            out[place] = table
        return out

    @property
    def n_rows(self) -> int:
        """Rows of a pass, so many that its values fit into the memory that is meant for them."""
        # Twice: for the values and for the flows.
        fitting = _BYTES // (2 * self.plan.width * np.dtype(self.dtype).itemsize)
        return int(max(_FEWEST, min(_MOST, 1 << max(0, int(fitting).bit_length() - 1))))

    # ------------------------------------------------------------------------ upwards
    def upward(self, rows: CellRows) -> Upward:
        """Values of all blocks."""
        up = Upward(rows, [], [])
        for place, block in enumerate(self.plan.blocks):
            value: np.ndarray
            scale: np.ndarray | float
            if isinstance(block, Leaf):
                value, scale = leaves.likelihood(self._leaves[place], block.cell, rows, self.plan.columns)
                value = value.astype(self.dtype, copy=False)
            elif isinstance(block, Sum):
                part = block.parts[0]
                value, scale = up.values[part] @ self._matrices[place].T, up.log_scales[part]
            elif isinstance(block, Product):
                value, scale = self._product(block, up)
            else:
                value, scale = _joined(block, up)
            up.values.append(value)
            up.log_scales.append(scale)
        return up

    def _product(self, block: Product, up: Upward) -> tuple[np.ndarray, np.ndarray | float]:
        first, *others = block.parts
        value = up.values[first] * up.values[others[0]] if others else up.values[first].copy()
        scale = sum(up.log_scales[part] for part in block.parts)
        for number, part in enumerate(others[1:]):
            value *= up.values[part]
            if number % _UNSCALED == _UNSCALED - 2:
                scale = scale + _divide(value)
        return value, scale + _divide(value)

    def log_prob(self, rows: np.ndarray) -> np.ndarray:
        """(n,) log p of the observed cells of rows (n, d)."""
        found = [up.log_prob[:n] for up, n in self.blocks(rows)]
        return np.concatenate(found) if found else np.zeros(0)

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[Upward, int]]:
        """Passes upwards over blocks of one number of rows, and how many of them are no padding.

        One shape for all, so that what is found for a row does not depend on the rows beside it.
        """
        size = self.n_rows
        for start in range(0, len(rows), size):
            block = np.full((size, rows.shape[1]), np.nan)
            own = rows[start : start + size]
            block[: len(own)] = own
            yield self.upward(CellRows.of(block, self.plan.columns)), len(own)

    def first_rows(self, up: Upward, n: int) -> Upward:
        """A pass with its padding cut off."""
        cut = [scale if isinstance(scale, float) else scale[:n] for scale in up.log_scales]
        return Upward(up.rows.take(slice(n)), [value[:n] for value in up.values], cut)

    # ---------------------------------------------------------------------- downwards
    def downward(
        self, up: Upward, weights_out: np.ndarray | None = None, row_weights: np.ndarray | None = None
    ) -> dict[int, np.ndarray]:
        """Flows (n, K) of every leaf, in all the rows' weights, 1 where there are none.

        Expected counts of the sums' terms are added to `weights_out`.
        """
        plan = self.plan
        whole: np.ndarray = np.ones(len(up.rows), self.dtype) if row_weights is None else row_weights.astype(self.dtype)
        flows: dict[int, np.ndarray] = {len(plan.blocks) - 1: whole[:, None]}
        out = {}
        for place in range(len(plan.blocks) - 1, -1, -1):
            block, flow = plan.blocks[place], flows.pop(place, None)
            if flow is None:
                continue
            if isinstance(block, Leaf):
                out[place] = flow
            elif isinstance(block, Sum):
                # Of a sum's flow each term has the share weight × value / sum, which is its posterior probability.
                # Scales cancel: a sum and its part have the same one.
                part = block.parts[0]
                matrix, value = self._matrices[place], up.values[part]
                share = _ratio(flow, up.values[place])
                if weights_out is not None:
                    counts = plan.matrix(weights_out, place)
                    counts += matrix * (share.T @ value)
                self._add(flows, part, value * (share @ matrix))
            elif isinstance(block, Product):
                for part in block.parts:  # All factors of a product are in the state of the product.
                    self._add(flows, part, flow)
            else:
                start = 0
                for part in block.parts:
                    size = plan.blocks[part].size
                    self._add(flows, part, flow[:, start : start + size])
                    start += size
        return out

    def _add(self, flows: dict[int, np.ndarray], part: int, flow: np.ndarray) -> None:
        flows[part] = flows[part] + flow if part in flows else flow

    def counts(
        self, up: Upward, weights_out: np.ndarray, statistics_out: np.ndarray, row_weights: np.ndarray | None = None
    ) -> None:
        """Expected counts and statistics of the rows of a pass, added up in place."""
        for place, flow in self.downward(up, weights_out, row_weights).items():
            cell = self.plan.blocks[place].cell  # type: ignore[union-attr]
            table = self.plan.table(statistics_out, place)
            table += leaves.gather(flow, cell, up.rows, self.plan.columns, len(table))

    # -------------------------------------------------------------------------- draws
    def draw(self, rng: np.random.Generator, up: Upward, n: int) -> np.ndarray:
        """(rows, n, d) joint draws of whole rows given their observed cells, which are drawn anew and mean nothing."""
        plan, n_rows = self.plan, len(up.rows)
        row_of = np.repeat(np.arange(n_rows), n)
        out = np.zeros((n_rows * n, plan.columns.n_columns))
        last = len(plan.blocks) - 1
        # Of each block that a draw comes through: which draws, and in which state they are.
        chosen = {last: [(np.arange(len(row_of)), np.zeros(len(row_of), np.int64))]}
        for place in range(last, -1, -1):
            block, parts = plan.blocks[place], chosen.pop(place, None)
            if parts is None:
                continue
            who, state = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
            if isinstance(block, Leaf):
                leaf = plan.table(self.statistics, place)
                out[who, block.cell] = _draw_cells(rng, leaf[:, state], plan.columns.kinds[block.cell])
            elif isinstance(block, Sum):
                part = block.parts[0]
                odds = self._matrices[place][state] * up.values[part][row_of[who]]
                chosen.setdefault(part, []).append((who, choose(rng, odds)))
            elif isinstance(block, Product):
                for part in block.parts:
                    chosen.setdefault(part, []).append((who, state))
            else:
                for part, start, stop in _spans(block, plan):
                    own = (state >= start) & (state < stop)
                    if own.any():
                        chosen.setdefault(part, []).append((who[own], state[own] - start))
        return out.reshape(n_rows, n, -1)


# ------------------------------------------------------------------------------- helpers
def _divide(value: np.ndarray) -> np.ndarray:
    """Divide rows by their largest states, in place; the divisors' logarithms, -inf for a row of nothing."""
    top = value.max(axis=1)
    with np.errstate(divide="ignore"):
        logs = np.log(top)
    value /= np.where(top > 0, top, 1)[:, None]
    return logs


def _joined(block: Joined, up: Upward) -> tuple[np.ndarray, np.ndarray]:
    """Blocks side by side, brought to the scale of the largest."""
    n = len(up.rows)
    scales = np.stack([np.broadcast_to(up.log_scales[part], (n,)) for part in block.parts])
    top = np.where(np.isfinite(scales.max(axis=0)), scales.max(axis=0), 0.0)
    factors = np.exp(scales - top)
    values = [
        (up.values[part] * factor[:, None]).astype(up.values[part].dtype)
        for part, factor in zip(block.parts, factors, strict=True)
    ]
    return np.concatenate(values, axis=1), top


def _ratio(flow: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Flow over value, nothing where there is no value."""
    if value.all():
        return flow / value
    return np.divide(flow, value, out=np.zeros_like(value), where=value > 0)


def _spans(block: Joined, plan: Plan) -> Iterator[tuple[int, int, int]]:
    start = 0
    for part in block.parts:
        yield part, start, start + plan.blocks[part].size
        start += plan.blocks[part].size


def choose(rng: np.random.Generator, odds: np.ndarray) -> np.ndarray:
    """(n,) states with probabilities in proportion to odds (n, K)."""
    steps = np.cumsum(odds, axis=1)
    # What is drawn is below the last step, so that a state without odds is never taken.
    return (steps <= (rng.random(len(odds)) * steps[:, -1])[:, None]).sum(axis=1)


def _draw_cells(rng: np.random.Generator, leaf: np.ndarray, kind: str) -> np.ndarray:
    """One cell for each of the mean statistics (s, n)."""
    if kind in ("binary", "categorical"):
        return choose(rng, leaf.T).astype(np.float64)
    if kind == "count":
        return rng.poisson(leaf[1]).astype(np.float64)
    return rng.normal(leaf[1], np.sqrt(leaves.variance_of(leaf)))

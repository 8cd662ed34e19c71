"""What every model that is a circuit answers, all of it exactly: evidence, draws, conditionals, moments."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import numpy as np

from likely.columns.counts import Counts, poisson
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import Model
from likely.models.graphs.circuit.leaves import variance_of
from likely.models.graphs.circuit.passes import Passes
from likely.models.graphs.circuit.plan import Leaf, Plan, states_of
from likely.runtime import float_dtype, generator


class CircuitParams(eqx.Module):
    """The sums' weights, each matrix flat with rows that sum to one, and the leaves.

    Leaves are held as mean statistics, but for the variances of real cells in the place of their mean squares: in
    single precision a difference of squares would lose them.
    """

    terms: np.ndarray
    leaves: np.ndarray

    @classmethod
    def packed(cls, plan: Plan, weights: np.ndarray, statistics: np.ndarray) -> CircuitParams:
        """As they are kept."""
        kept = statistics.copy()
        for place in _real_leaves(plan):
            table = plan.table(kept, place)
            table[2] = variance_of(table)
        return cls(weights.astype(float_dtype()), kept.astype(float_dtype()))

    def passes(self, plan: Plan) -> Passes:
        """The circuit in double precision, with probabilities that sum to one in it."""
        weights, kept = np.array(self.terms, np.float64), np.array(self.leaves, np.float64)
        for place in plan.weight_slots:
            matrix = plan.matrix(weights, place)
            matrix /= matrix.sum(axis=1, keepdims=True)
        for place in plan.leaf_slots:
            if states_of(plan.columns, plan.blocks[place].cell):  # type: ignore[union-attr]
                table = plan.table(kept, place)
                table /= table.sum(axis=0)
        for place in _real_leaves(plan):
            table = plan.table(kept, place)
            table[2] += table[1] ** 2
        return Passes(plan, weights, kept)


def _real_leaves(plan: Plan) -> list[int]:
    return [place for place in plan.leaf_slots if plan.columns.kinds[plan.blocks[place].cell] == "real"]  # type: ignore[union-attr]


class CircuitModel(Model):
    """A model whose `plan_` and `params_` are a circuit."""

    _why_not: ClassVar[dict[str, str]] = dict.fromkeys(
        ("transform", "fit_transform", "inverse_transform", "denoise"),
        "its latents stand beside columns, and none is a code of the row",
    )

    def _init(self, key, columns):
        plan = Plan.read(self.plan_, columns)
        return CircuitParams(np.zeros(plan.n_weights, float_dtype()), np.zeros(plan.n_leaf_statistics, float_dtype()))

    def _evidence(self, rows, key):
        return Evidence.exact(self._passes.log_prob(np.asarray(rows)), method="one pass over the circuit")

    def _sample(self, key, n):
        return draws(self._passes, generator(key), np.full((1, self.columns_.n_columns), np.nan), n)[:, 0]

    def _condition(self, rows, key):
        passes, rows = self._passes, np.asarray(rows)
        mean, counts = expectations(passes, rows)
        return ConditionalParts(mean, lambda k, n: draws(passes, generator(k), rows, n), counts=counts)

    def _packed(self, plan: Plan, weights: np.ndarray, statistics: np.ndarray) -> CircuitParams:
        """What is learned; the plan is remembered for files and answers."""
        self.plan_ = plan.described
        return CircuitParams.packed(plan, weights, statistics)

    @property
    def _passes(self) -> Passes:
        # Kept with the parameters that it was made for: a new fit has others.
        kept = vars(self).get("_kept")
        if kept is None or kept[0] is not self.params_:
            kept = (self.params_, self.params_.passes(Plan.read(self.plan_, self.columns_)))
            vars(self)["_kept"] = kept
        return kept[1]


def draws(passes: Passes, rng: np.random.Generator, rows: np.ndarray, n: int) -> np.ndarray:
    """(n, n_rows, d) joint draws of whole rows given their observed cells."""
    at_once = max(1, (1 << 22) // (passes.n_rows * max(block.size for block in passes.plan.blocks)))
    parts = []
    for up, n_own in passes.blocks(rows):
        only = passes.first_rows(up, n_own)
        pieces = [passes.draw(rng, only, min(at_once, n - done)) for done in range(0, n, at_once)]
        parts.append(np.concatenate(pieces, axis=1))
    return np.swapaxes(np.concatenate(parts), 0, 1)


def expectations(passes: Passes, rows: np.ndarray) -> tuple[np.ndarray, Counts | None]:
    """(n, D) expected statistics given the observed cells, and what is known of unobserved counts."""
    plan, columns = passes.plan, passes.plan.columns
    mean = np.zeros((len(rows), columns.n_statistics))
    own = [np.flatnonzero(columns.column_of == cell) for cell in range(columns.n_columns)]
    count_cells = [cell for cell, kind in enumerate(columns.kinds) if kind == "count"]
    flows: dict[int, list[np.ndarray]] = {}  # of the leaves of counts, block after block
    start = 0
    for up, n in passes.blocks(rows):
        for place, flow in passes.downward(up).items():
            cell = plan.blocks[place].cell  # type: ignore[union-attr]
            leaf = plan.table(passes.statistics, place)
            n_states = states_of(columns, cell)
            of_states = leaf if n_states and columns.kinds[cell] == "categorical" else leaf[1:]
            mean[start : start + n, own[cell]] += flow[:n] @ of_states.T
            if cell in count_cells:
                flows.setdefault(place, []).append(flow[:n])
        start += n
    # Shares of states add up to one but for rounding, which must not make a probability more than that.
    discrete = np.isin(columns.column_of, [cell for cell in range(columns.n_columns) if states_of(columns, cell)])
    mean[:, discrete] = np.minimum(mean[:, discrete], 1.0)
    if not np.isnan(rows[:, count_cells]).any():
        return mean, None
    return mean, _counts(passes, count_cells, {place: np.concatenate(own) for place, own in flows.items()}, len(rows))


def _counts(passes: Passes, cells: list[int], flows: dict[int, np.ndarray], n_rows: int) -> Counts:
    """Unobserved counts: mixtures of the leaves' Poissons by the flows of their states."""
    plan = passes.plan
    leaves: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in cells]
    for place, flow in flows.items():
        block = plan.blocks[place]
        assert isinstance(block, Leaf)
        leaves[cells.index(block.cell)].append((flow, plan.table(passes.statistics, place)[1]))
    squares = np.zeros((n_rows, len(cells)))
    for number, own in enumerate(leaves):
        for flow, rate in own:
            squares[:, number] += flow @ (rate**2 + rate)

    def pmf(number: int, values: np.ndarray) -> np.ndarray:
        return sum(flow @ poisson(values, rate) for flow, rate in leaves[number])

    return Counts(tuple(cells), squares, pmf)

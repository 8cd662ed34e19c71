"""Rows under a network: their evidence, what follows for their missing cells, joint draws, expected statistics.

A row without holes is a product of entries. Rows with holes share a junction tree over the discrete cells; what real
and count cells say enters as factors that differ from row to row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from likely.columns.counts import Counts, poisson
from likely.models.graphs.bayesian_network.continuous import Continuous, GroupAnswer
from likely.models.graphs.bayesian_network.nodes import Layout, NetworkParams, Node
from likely.models.graphs.inference.engine import Batch, Engine, Product, impossible
from likely.models.graphs.inference.memory import TooLargeError

_ROWS_TOGETHER = 4096  # rows that are held at a time


@dataclass(eq=False)
class Piece:
    """Rows of one form: the same holes among coupled real cells, so that one tree serves them.

    Parameters
    ----------
    index : of the rows. rows : themselves. states : (R, n) of discrete cells, -1 where missing.
    answers : of groups of real nodes. counts : nodes and their log-probabilities (R, q).
    scopes : of the row factors, by numbers of discrete cells. logs : (R, T) their values. constant : (R,) what
        depends on no discrete cell.
    """

    index: np.ndarray
    rows: np.ndarray
    states: np.ndarray
    answers: list[GroupAnswer]
    counts: list[tuple[Node, np.ndarray]]
    scopes: list[tuple[int, ...]]
    logs: np.ndarray
    constant: np.ndarray


class NetworkRows:
    """A network's answers about rows in standard units, NaN for missing cells."""

    def __init__(self, layout: Layout, params: NetworkParams, budget: float | None = None):
        self.layout, self.params, self.budget = layout, params, budget
        self.continuous = Continuous(layout, params)

    @cached_property
    def engine(self) -> Engine:
        """Exact inference over the discrete cells."""
        nodes = [self.layout.nodes[place] for place in self.layout.discrete]
        return Engine(
            Product(
                tuple(self.layout.names[node.place] for node in nodes),
                self.layout.n_states[list(self.layout.discrete)],
                tuple(self.layout.scope(node) for node in nodes),
                tuple(normalised(self.params.nodes[node.place].table) for node in nodes),
                is_directed=True,
            ),
            self.budget,
        )

    # ----------------------------------------------------------------- evidence
    def evidence(self, rows: np.ndarray) -> np.ndarray:
        """(R,) log p of the observed cells; raises `TooLargeError` where exact sums do not fit into memory."""
        out = np.empty(len(rows))
        complete = ~np.isnan(rows).any(axis=1)
        out[complete] = self.of_complete(rows[complete])
        holed = np.flatnonzero(~complete)
        for start in range(0, len(holed), _ROWS_TOGETHER):
            some = holed[start : start + _ROWS_TOGETHER]
            for piece in self.pieces(rows[some], needed=True):
                out[some[piece.index]] = self._piece_evidence(piece)
        return out

    def _piece_evidence(self, piece: Piece) -> np.ndarray:
        if not self.layout.discrete:
            return piece.constant
        try:
            return self._batch(piece).infer(piece.states, piece.logs).log_evidence + piece.constant
        except TooLargeError:
            # What is observed cuts the tables of each row, and nodes without an observed descendant fall out of it.
            return np.array([self._row_evidence(piece, r) for r in range(len(piece.rows))]) + piece.constant

    def _row_evidence(self, piece: Piece, r: int) -> float:
        product, findings = self.engine.product, piece.states[r]
        asked = {*np.flatnonzero(findings >= 0).tolist(), *(v for scope in piece.scopes for v in scope)}
        batch = Batch(product, piece.scopes, (), findings, product.relevant(asked), self.budget)
        return float(batch.infer(None, piece.logs[r : r + 1]).log_evidence[0])

    def _batch(self, piece: Piece, targets: tuple[tuple[int, ...], ...] = ()) -> Batch:
        """The tree for a piece's evidence; nodes that no row of it asks about are left out."""
        asked = {*np.flatnonzero((piece.states >= 0).any(axis=0)).tolist(), *(v for s in piece.scopes for v in s)}
        keep = self.engine.product.relevant(asked)
        return self.engine.batch(piece.scopes, targets, keep=None if len(keep) == len(self.layout.discrete) else keep)

    def of_complete(self, rows: np.ndarray) -> np.ndarray:
        """(R,) log p of rows without holes."""
        rows = np.asarray(rows, np.float64)
        total = np.zeros(len(rows))
        for node in self.layout.nodes:
            params, row = self.params.nodes[node.place], self._row(node, rows)
            x = rows[:, node.place]
            if node.is_discrete:
                table = normalised(params.table).reshape(node.n_rows, node.n_states)
                with np.errstate(divide="ignore"):
                    total += np.log(table)[row, x.astype(np.int64)]
            elif node.kind == "real":
                weights, variance = np.reshape(params.weights, (node.n_rows, -1))[row], np.reshape(params.variance, -1)
                mean = weights[:, 0] + (weights[:, 1:] * rows[:, list(node.real)]).sum(axis=1)
                total += -0.5 * ((x - mean) ** 2 / variance[row] + np.log(2 * np.pi * variance[row]))
            else:
                rate = np.reshape(params.rate, -1)[row]
                total += x * np.log(rate) - rate - gammaln(x + 1)
        return total

    def _row(self, node: Node, rows: np.ndarray) -> np.ndarray:
        """The row of a node's parameters that each row's discrete parents choose."""
        row = np.zeros(len(rows), np.int64)
        for place, size in zip(node.discrete, node.shape, strict=True):
            row = row * size + rows[:, place].astype(np.int64)
        return row

    # ------------------------------------------------------------------- pieces
    def pieces(self, rows: np.ndarray, needed: bool) -> Iterator[Piece]:
        """Rows by their form; `needed` leaves out missing cells that say nothing about observed ones."""
        layout, continuous = self.layout, self.continuous
        codes = np.asarray(rows[:, list(layout.discrete)], np.float64)
        states = np.where(np.isnan(codes), -1, np.nan_to_num(codes)).astype(np.int64)
        for index, missing in continuous.patterns(rows):
            own, scopes, logs = rows[index], [], []
            constant = np.zeros(len(index))
            answers = [continuous.answer(group, own, missing) for group in continuous.groups(missing, needed)]
            counts = [(node, continuous.count_logs(node, own)) for node in continuous.counts]
            found = [(answer.group.scope, answer.logs) for answer in answers]
            found += [(node.discrete, values) for node, values in counts]
            for scope, values in found:
                if scope:
                    scopes.append(tuple(layout.number[place] for place in scope))
                    logs.append(values)
                else:
                    constant += values[:, 0]
            table = np.concatenate(logs, axis=1) if logs else np.zeros((len(index), 0))
            yield Piece(index, own, states[index], answers, counts, scopes, table, constant)

    # ---------------------------------------------------------------- conditionals
    def condition(self, rows: np.ndarray, cut: bool = False) -> tuple[np.ndarray, Counts | None]:
        """(R, D) expected statistics of all cells given the observed ones, and what is known of counts.

        With `cut`, of one row, what it observed is entered before the tree is chosen, which makes tables smaller.
        """
        layout = self.layout
        n, d = rows.shape
        size = int(layout.n_states.max(initial=1))
        # Of every cell: probabilities of states, or the first two moments.
        moments = np.zeros((n, d, max(size, 2)))
        mixed = [np.ones((n, node.n_rows)) for node in self.continuous.counts]
        for start in range(0, n, _ROWS_TOGETHER):
            block = slice(start, min(n, start + _ROWS_TOGETHER))
            for piece in self.pieces(rows[block], needed=False):
                self._fill(piece, moments[block], [own[block] for own in mixed], cut)
        return self._statistics(rows, moments), self._counts(moments, mixed)

    def _fill(self, piece: Piece, moments: np.ndarray, mixed: list[np.ndarray], cut: bool) -> None:
        """Moments of the cells of a piece's rows, and which rows of parameters their counts come from."""
        layout, index = self.layout, piece.index
        posteriors: list[np.ndarray] = [np.ones((len(index), 1)) for _ in (*piece.answers, *piece.counts)]
        if layout.discrete:
            targets = tuple(piece.scopes)
            batch = self.engine.batch(piece.scopes, targets, observed=piece.states[0] if cut else None)
            states = None if cut else piece.states
            found = batch.infer(states, piece.logs, marginals=True, targets=True, per_row=True)
            _check_possible(found.log_evidence)
            marginals, starts = found.marginals, batch.tree.marginal_starts
            for number, place in enumerate(layout.discrete):
                own = marginals[:, starts[number] : starts[number + 1]]  # type: ignore[index]
                moments[index, place, : own.shape[1]] = own
            scoped = [i for i, scope in enumerate(self._scopes_of(piece)) if scope]
            for number, i in enumerate(scoped):
                posteriors[i] = batch.target(found, number).reshape(len(index), -1)
        for answer, weights in zip(piece.answers, posteriors, strict=False):
            for i, place in enumerate(answer.group.nodes):
                mean, square = answer.means[:, :, i], answer.means[:, :, i] ** 2 + answer.covariance[:, i, i]
                moments[index, place, 0] = (weights * mean).sum(axis=1)
                moments[index, place, 1] = (weights * square).sum(axis=1)
        for number, ((node, _), weights) in enumerate(zip(piece.counts, posteriors[len(piece.answers) :], strict=True)):
            rate = np.reshape(self.params.nodes[node.place].rate, -1)
            moments[index, node.place, 0] = weights @ rate
            moments[index, node.place, 1] = weights @ (rate**2 + rate)
            mixed[number][index] = weights

    @staticmethod
    def _scopes_of(piece: Piece) -> list[tuple[int, ...]]:
        return [*(answer.group.scope for answer in piece.answers), *(node.discrete for node, _ in piece.counts)]

    def _statistics(self, rows: np.ndarray, moments: np.ndarray) -> np.ndarray:
        """Moments as the statistics of the columns; observed cells have those of their value."""
        columns = self.layout.columns
        out = np.empty((len(rows), columns.n_statistics))
        for block in columns.blocks:
            places = list(block.places)
            x = np.asarray(rows[:, places], np.float64)
            if block.kind == "binary":
                cells, known = moments[:, places, 1:2], x[..., None]
            elif block.kind == "categorical":
                cells = moments[:, places, : block.n_statistics]
                known = (x[..., None] == np.arange(block.n_statistics)).astype(np.float64)
            else:
                cells = moments[:, places, : block.n_statistics]
                known = x[..., None] ** np.arange(1, block.n_statistics + 1)
            cells = np.where(np.isnan(x)[..., None], cells, known)
            out[:, block.start : block.stop] = block.flat(cells)
        return out

    def statistics_of(self, rows: np.ndarray) -> np.ndarray:
        """(R, D) the statistics of complete rows."""
        size = max(2, int(self.layout.n_states.max(initial=1)))
        return self._statistics(rows, np.zeros((*rows.shape, size)))

    def _counts(self, moments: np.ndarray, mixed: list[np.ndarray]) -> Counts | None:
        nodes = self.continuous.counts
        if not nodes:
            return None
        rates = [np.reshape(self.params.nodes[node.place].rate, -1) for node in nodes]
        squares = np.stack([moments[:, node.place, 1] for node in nodes], axis=1)
        pmf = lambda number, values: mixed[number] @ poisson(values, rates[number])  # noqa: E731
        return Counts(tuple(node.place for node in nodes), squares, pmf)

    # --------------------------------------------------------------------- draws
    def draws(self, rng: np.random.Generator, rows: np.ndarray, n: int, cut: bool = False) -> np.ndarray:
        """(n, R, d) joint draws of the missing cells of each row; observed cells stay. `cut` as in `condition`."""
        out = np.repeat(np.asarray(rows, np.float64)[None], n, axis=0)
        holed = np.flatnonzero(np.isnan(rows).any(axis=1))
        for start in range(0, len(holed), _ROWS_TOGETHER):
            some = holed[start : start + _ROWS_TOGETHER]
            for piece in self.pieces(rows[some], needed=False):
                index = some[piece.index]
                own = out[:, index]
                self._draw(rng, piece, own, cut)
                out[:, index] = np.where(np.isnan(rows[index])[None], own, rows[index][None])
        return out

    def _draw(self, rng: np.random.Generator, piece: Piece, out: np.ndarray, cut: bool) -> None:
        layout = self.layout
        if layout.discrete:
            batch = self.engine.batch(piece.scopes, observed=piece.states[0] if cut else None)
            states = batch.draw(rng, len(out), None if cut else piece.states, piece.logs)
            out[:, :, list(layout.discrete)] = states
        for answer in piece.answers:
            scope = answer.group.scope
            row = self._chosen(scope, out)
            means = answer.means[np.arange(answer.means.shape[0])[None], row]
            factor = _root(answer.covariance)[row]
            noise = rng.normal(size=means.shape)
            out[:, :, list(answer.group.nodes)] = means + np.einsum("srij,srj->sri", factor, noise)
        for node, _ in piece.counts:
            rate = np.reshape(self.params.nodes[node.place].rate, -1)
            out[:, :, node.place] = rng.poisson(rate[self._chosen(node.discrete, out)])

    def _chosen(self, scope: tuple[int, ...], out: np.ndarray) -> np.ndarray:
        """(n, R) the number of the states of some discrete cells in draws."""
        row = np.zeros(out.shape[:2], np.int64)
        for place in scope:
            row = row * int(self.layout.n_states[place]) + out[:, :, place].astype(np.int64)
        return row

    def ancestral(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """(n, d) rows, each cell after its parents."""
        out = np.zeros((n, len(self.layout.names)))
        for place in self.layout.order:
            node = self.layout.nodes[place]
            out[:, place] = draw_node(rng, node, self.params.nodes[place], self._row(node, out), out)
        return out


def draw_node(rng: np.random.Generator, node: Node, params: Any, row: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(n,) draws of a node given its parents, whose discrete ones choose a row of its parameters."""
    if node.is_discrete:
        sums = np.cumsum(normalised(params.table).reshape(node.n_rows, node.n_states), axis=1)
        sums[:, -1] = np.inf  # rounding must not leave a gap above the last state
        return (rng.random(len(row))[:, None] >= sums[row]).sum(axis=1).astype(np.float64)
    if node.kind == "real":
        weights = np.reshape(params.weights, (node.n_rows, -1))[row]
        mean = weights[:, 0] + (weights[:, 1:] * rows[:, list(node.real)]).sum(axis=1)
        return mean + np.sqrt(np.reshape(params.variance, -1)[row]) * rng.normal(size=len(row))
    return rng.poisson(np.reshape(params.rate, -1)[row]).astype(np.float64)


def normalised(table: Any) -> np.ndarray:
    """A table whose rows sum to one; those of files are rounded to a few digits."""
    table = np.asarray(table, np.float64)
    return table / table.sum(axis=-1, keepdims=True)


def _root(covariance: np.ndarray) -> np.ndarray:
    """A root of each covariance, which may have rows of zeros where cells are observed."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))[:, None, :]


def _check_possible(logs: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(logs))
    if len(bad):
        raise type(impossible())(f"row {int(bad[0])}: {impossible()}")

"""Junction tree: exact marginals of products of tables, p(x) ∝ Π_f f(x_scope), for one finding or for many rows.

Lauritzen and Spiegelhalter (1988), with the messages of Jensen, Lauritzen and Olesen (1990). The size of every table is
known when the tree is, and above a budget of memory nothing is allocated. Cost: a few nanoseconds a state of all
cliques together, for each row that is asked for; a row's observed nodes have one state each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likely.models.graphs.inference.elimination import CliqueTree, best_tree, packed
from likely.models.graphs.inference.memory import check_memory

_BYTES = 8  # of a number of a table
# The smallest largest entry of a message at which all digits are still there: entries a hundred orders of magnitude
# below it are above the smallest number that a float64 holds in full.
_SAFE = 1e-200


class ImpossibleError(ValueError):
    """Findings that contradict each other: their probability is zero."""


@dataclass(frozen=True, eq=False)
class Scopes:
    """Tables over nodes, laid out for a tree: their cliques, their strides along its axes, where each starts."""

    homes: np.ndarray
    first: np.ndarray
    strides: np.ndarray
    starts: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.homes, self.first, self.strides, self.starts


@dataclass(frozen=True, eq=False)
class Inferred:
    """What propagation found for rows.

    Parameters
    ----------
    log_evidence : (R,) log of the sum over all states that agree with a row; -inf where there is none.
    marginals : (R, S) probabilities of all states of all nodes, one node after the other; None if not asked for.
    tables : (R or 1, T) probabilities of the targets' states, one target after the other.
    """

    log_evidence: np.ndarray
    marginals: np.ndarray | None
    tables: np.ndarray


class JunctionTree:
    """A tree of cliques for factors with given scopes.

    Parameters
    ----------
    n_states : (n,) of each node.
    scopes : the nodes of each factor, in the order of its table's axes.
    besides : sets of nodes that must lie in a clique together: joint distributions that will be asked for, and factors
        that differ from row to row.
    observed : (n,) states that all rows have observed, -1 where they have not; tables are cut before the tree is
        chosen.
    budget : bytes that the tables may take; None takes a quarter of the free memory, inf does not check.
    names : of nodes, for messages.
    """

    def __init__(
        self,
        n_states: Sequence[int] | np.ndarray,
        scopes: Sequence[Sequence[int]],
        *,
        besides: Sequence[Sequence[int]] = (),
        observed: np.ndarray | None = None,
        budget: float | None = None,
        names: Sequence[str] | None = None,
    ):
        from likely.models.graphs.inference import tree_loop as loop

        self.full_states = np.asarray(n_states, np.int64)
        self.scopes = scopes
        n = len(self.full_states)
        self.observed = np.full(n, -1, np.int64) if observed is None else np.asarray(observed, np.int64)
        seen = self.observed >= 0
        self.n_states = np.where(seen, 1, self.full_states)
        kept = [*scopes, *besides]
        if seen.any():
            hidden = (~seen).tolist()
            kept = [[v for v in scope if hidden[v]] for scope in kept]
        starts, members = packed(kept)
        self.tree: CliqueTree = best_tree(self.n_states, starts, members)
        self._check(budget, names)
        tree = self.tree
        logs = np.add.reduceat(np.log(self.n_states[tree.members]), tree.starts[:-1]) if n else np.zeros(0)
        self.sizes = np.rint(np.exp(logs)).astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        self._seps = loop.separators(tree.starts, tree.members, tree.parents, n)
        self._factors = self.laid_out(scopes)
        singles = np.arange(n, dtype=np.int64)
        homes = loop.homes(tree.starts, tree.members, self.sizes, self.n_states, np.arange(n + 1), singles)
        self._arrays = (
            tree.starts,
            tree.members,
            tree.parents,
            self.n_states,
            self.offsets,
            *self._seps,
            homes,
        )
        self.marginal_starts = np.concatenate([[0], np.cumsum(self.full_states)])

    def _check(self, budget: float | None, names: Sequence[str] | None) -> None:
        """Refuse, before anything is allocated, tables that are too large."""
        tree = self.tree
        logs = np.log2(self.n_states)
        bits = [float(logs[clique].sum()) for clique in tree.cliques()]
        worst = int(np.argmax(bits)) if bits else 0
        # Two tables of the size of all cliques: the products of factors, and the row that is worked on.
        self.n_bytes = 2 * _BYTES * sum(2.0**b for b in bits)
        labels = [names[v] if names else str(v) for v in tree.cliques()[worst]] if bits else []
        check_memory(self.n_bytes, budget, labels, bits[worst] if bits else 0.0)

    @cached_property
    def width(self) -> int:
        """How many nodes the largest clique has."""
        return int(np.diff(self.tree.starts).max(initial=0))

    # ------------------------------------------------------------------ tables
    def laid_out(self, scopes: Sequence[Sequence[int]]) -> Scopes:
        """Tables in C order, one after the other, over the nodes of each scope, which a clique must hold."""
        from likely.models.graphs.inference import tree_loop as loop

        full, hidden = self.full_states.tolist(), (self.observed < 0).tolist()
        seen_states = self.observed.tolist()
        members, strides, starts, table_starts, size_so_far = [], [], [0], [], 0
        for scope in scopes:
            step, at = 1, size_so_far
            for v in reversed(scope):
                if hidden[v]:
                    members.append(v)
                    strides.append(step)
                else:
                    at += seen_states[v] * step
                step *= full[v]
            starts.append(len(members))
            table_starts.append(at)
            size_so_far += step
        self_tree, arrays = self.tree, [np.array(one, np.int64) for one in (starts, members, strides, table_starts)]
        homes = loop.homes(self_tree.starts, self_tree.members, self.sizes, self.n_states, arrays[0], arrays[1])
        if (homes < 0).any():
            raise ValueError(f"no clique holds the scope {scopes[int(np.argmin(homes))]}: give it in `besides`.")
        first, stride = loop.strides_in_cliques(self_tree.starts, self_tree.members, homes, *arrays[:3])
        return Scopes(homes, first, stride, arrays[3])

    def filled(self, tables: np.ndarray) -> np.ndarray:
        """(total,) the product of the factors of each clique, from their values one after the other."""
        from likely.models.graphs.inference import tree_loop as loop

        tree, f = self.tree, self._factors
        where = (f.homes, f.first, f.strides, tables, f.starts)
        arguments = (tree.starts, tree.members, self.n_states, self.offsets, *where, self._room())
        return loop.fill_cliques(*arguments)

    # ---------------------------------------------------------------- questions
    def infer(
        self,
        base: np.ndarray,
        findings: np.ndarray | None = None,
        *,
        marginals: bool = False,
        targets: Scopes | None = None,
        n_target_states: int = 0,
        weights: np.ndarray | None = None,
        row_scopes: Scopes | None = None,
        row_tables: np.ndarray | None = None,
        per_row: bool = False,
    ) -> Inferred:
        """Evidence, marginals and joint tables of rows.

        Parameters
        ----------
        base : what `filled` returned.
        findings : (R, n) states of rows, -1 where unobserved; None is one row without findings.
        targets, n_target_states : tables to be found, as `laid_out` laid them out, and how many states they have in
            all.
        weights : (R,) of the rows in these tables, which are added up, unless each row has its own (`per_row`).
        row_scopes, row_tables : factors that differ from row to row, and their values (R, T).
        """
        from likely.models.graphs.inference.propagation_loop import propagate

        rows = self._findings(findings)
        n_rows = len(rows)
        out = np.zeros((n_rows, int(self.marginal_starts[-1])) if marginals else (0, 0))
        # One table for all rows is told from a table a row by its length, which must not be one in both cases.
        sums = np.zeros((n_rows if per_row else 1, n_target_states))
        logs, lowest = propagate(
            self._arrays,
            base,
            rows,
            _arrays_of(row_scopes),
            np.zeros((n_rows, 0)) if row_tables is None else row_tables,
            not marginals and targets is None,
            self._cut_starts,
            out,
            _arrays_of(targets),
            sums,
            np.ones(n_rows) if weights is None else weights,
            self._room(),
        )
        self._check_digits(logs, lowest)
        return Inferred(logs, self._full_marginals(out) if marginals else None, sums)

    def draw(
        self,
        base: np.ndarray,
        findings: np.ndarray | None,
        uniforms: np.ndarray | None,
        *,
        row_scopes: Scopes | None = None,
        row_tables: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Joint draws (R, S, n) of all nodes given the findings of each row, and the rows' log-evidence.

        Parameters
        ----------
        uniforms : (R, S, n_cliques) numbers in [0, 1); None asks for the most probable states, with S = 1, and the
            log-evidence is then that of these states and the findings together.
        """
        from likely.models.graphs.inference.propagation_loop import draw

        rows = self._findings(findings)
        largest = uniforms is None
        noise = np.zeros((len(rows), 1, self.n_cliques)) if uniforms is None else uniforms
        states = np.zeros((len(rows), noise.shape[1], len(self.n_states)), np.int64)
        logs, lowest = draw(
            self._arrays,
            base,
            rows,
            _arrays_of(row_scopes),
            np.zeros((len(rows), 0)) if row_tables is None else row_tables,
            noise,
            largest,
            states,
            self._room(),
        )
        self._check_digits(logs, lowest)
        seen = self.observed >= 0
        states[:, :, seen] = self.observed[seen]
        return states, logs

    @property
    def n_cliques(self) -> int:
        return len(self.tree.parents)

    # ----------------------------------------------------------------- plumbing
    def _findings(self, findings: np.ndarray | None) -> np.ndarray:
        """Rows of states as the tree has them: what all rows share is no longer there."""
        if findings is None:
            rows = np.full((1, len(self.n_states)), -1, np.int64)
        else:
            rows = np.ascontiguousarray(findings, np.int64)
        seen = self.observed >= 0
        if seen.any():
            rows = rows.copy()
            rows[:, seen] = -1  # a node of one state needs no finding
        return rows

    @cached_property
    def _cut_starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.n_states)])

    def _full_marginals(self, cut: np.ndarray) -> np.ndarray:
        """Probabilities of all states; of nodes that all rows observed, the finding has all of it."""
        seen = np.flatnonzero(self.observed >= 0)
        if len(seen) == 0:
            return cut
        out = np.zeros((len(cut), int(self.marginal_starts[-1])))
        hidden = np.repeat(self.observed < 0, self.full_states)
        out[:, hidden] = cut[:, : int(self._cut_starts[-1])][:, np.repeat(self.observed < 0, self.n_states)]
        out[:, self.marginal_starts[seen] + self.observed[seen]] = 1.0
        return out

    def _room(self) -> np.ndarray:
        return np.zeros((3, 3 * self.width + 3), np.int64)

    def _check_digits(self, logs: np.ndarray, lowest: np.ndarray) -> None:
        self.lost_digits = np.flatnonzero(lowest < _SAFE)


def _arrays_of(scopes: Scopes | None) -> tuple[np.ndarray, ...]:
    nothing = np.zeros(0, np.int64)
    return (nothing, np.zeros(1, np.int64), nothing, nothing) if scopes is None else scopes.arrays


def table_size(n_states: Any, scope: Sequence[int]) -> int:
    """Number of entries of a table over some nodes."""
    return math.prod(int(n_states[v]) for v in scope)

"""Exact answers about a product of tables: single questions, with the findings entered before the tree is chosen, and
rows in batches, which share one tree.

Rows that are so improbable that the compiled propagation lost digits go through logarithms; rows that contradict
themselves are told from those by propagating which entries are not zero.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.junction_tree import ImpossibleError, Inferred, JunctionTree, Scopes, table_size
from likely.models.graphs.inference.log_domain import LogTree

Scope = tuple[int, ...]
Extra = tuple[Sequence[Scope], np.ndarray | None]  # scopes of further factors, and their logs (1, T)
_MOST_BATCHES = 64  # trees that are kept,
_MOST_KEPT = 1 << 28  # and bytes of their tables
_DRAWS_TOGETHER = 1 << 22  # random numbers that are held at a time


@dataclass(frozen=True, eq=False)
class Product:
    """A product of tables over nodes 0 ... n-1.

    Parameters
    ----------
    names : of the nodes.
    n_states : (n,) of each node.
    scopes, tables : of each factor, an axis for each node of its scope.
    is_directed : each table is p(last node of its scope | others), one a node, so that what nothing depends on sums
        to 1.
    """

    names: tuple[str, ...]
    n_states: np.ndarray
    scopes: tuple[Scope, ...]
    tables: tuple[np.ndarray, ...]
    is_directed: bool

    def relevant(self, nodes: set[int]) -> set[int]:
        """The nodes on which a question about some depends: their ancestors, or all of an undirected product."""
        if not self.is_directed:
            return set(range(len(self.names)))
        parents = {scope[-1]: scope[:-1] for scope in self.scopes}
        found, front = set(nodes), list(nodes)
        while front:
            for parent in parents[front.pop()]:
                if parent not in found:
                    found.add(parent)
                    front.append(parent)
        return found


class Batch:
    """A tree for rows, or for one question, with the tables of its cliques filled.

    Parameters
    ----------
    product : what is asked about.
    row_scopes : of factors that differ from row to row.
    targets : scopes whose probabilities will be asked for.
    observed : (n,) findings that all rows share, -1 elsewhere.
    keep : the nodes that matter; None is all of them.
    budget : of memory, in bytes.
    """

    def __init__(
        self,
        product: Product,
        row_scopes: Sequence[Scope] = (),
        targets: Sequence[Scope] = (),
        observed: np.ndarray | None = None,
        keep: set[int] | None = None,
        budget: float | None = None,
    ):
        self.product = product
        seen = np.full(len(product.names), -1, np.int64) if observed is None else observed.copy()
        if keep is not None:
            # A node that does not matter keeps one state and no table: it takes no room.
            seen[[v for v in range(len(seen)) if v not in keep]] = 0
        self.places = [i for i, scope in enumerate(product.scopes) if keep is None or scope[-1] in keep]
        scopes = [product.scopes[i] for i in self.places]
        self.tables = [product.tables[i] for i in self.places]
        self.tree = JunctionTree(
            product.n_states,
            scopes,
            besides=[*row_scopes, *targets],
            observed=seen,
            budget=budget,
            names=product.names,
        )
        flat = np.concatenate([table.ravel() for table in self.tables]) if self.tables else np.ones(1)
        self.base = self.tree.filled(flat)
        self._flat = flat
        self.row_scopes: Scopes | None = self.tree.laid_out(row_scopes) if row_scopes else None
        self.row_scope_list = list(row_scopes)
        self.row_sizes = [table_size(product.n_states, scope) for scope in row_scopes]
        self.targets: Scopes | None = self.tree.laid_out(targets) if targets else None
        self.target_scopes = list(targets)
        sizes = [table_size(product.n_states, scope) for scope in targets]
        self.target_starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    # ----------------------------------------------------------------- questions
    def infer(
        self,
        rows: np.ndarray | None = None,
        row_logs: np.ndarray | None = None,
        *,
        marginals: bool = False,
        targets: bool = False,
        weights: np.ndarray | None = None,
        per_row: bool = False,
    ) -> Inferred:
        """Log-evidence of rows (R, n), marginals, and tables of the targets; `row_logs` (R, T) are logs of row
        factors.
        """
        n_rows = 1 if rows is None else len(rows)
        weights = np.ones(n_rows) if weights is None else weights
        tables, shift = self._row_tables(row_logs)
        options: dict[str, Any] = {"marginals": marginals, "per_row": per_row, "row_scopes": self.row_scopes}
        if targets:
            options |= {"targets": self.targets, "n_target_states": int(self.target_starts[-1])}
        found = self.tree.infer(self.base, rows, weights=weights, row_tables=tables, **options)
        lost = self.tree.lost_digits
        lost = lost[self._possible(rows, lost)] if len(lost) else lost
        logs = found.log_evidence + shift
        if len(lost) == 0:
            return Inferred(logs, found.marginals, found.tables)
        if targets and not per_row:  # what the lost rows added is taken out again
            others = weights.copy()
            others[lost] = 0.0
            found = self.tree.infer(self.base, rows, weights=others, row_tables=tables, **options)
            logs = found.log_evidence + shift
        for r in lost:
            self._in_logs(int(r), rows, row_logs, weights, logs, found, targets, per_row)
        return Inferred(logs, found.marginals, found.tables)

    def draw(
        self, rng: np.random.Generator, n: int, rows: np.ndarray | None = None, row_logs: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, R, nodes) joint draws of each row's nodes given its findings."""
        n_rows = 1 if rows is None else len(rows)
        tables, _ = self._row_tables(row_logs)
        step = max(1, _DRAWS_TOGETHER // max(1, n * self.tree.n_cliques))
        out = np.empty((n, n_rows, len(self.product.names)), np.int64)
        for start in range(0, n_rows, step):
            some = slice(start, min(n_rows, start + step))
            noise = rng.random((some.stop - some.start, n, self.tree.n_cliques))
            part = None if rows is None else rows[some]
            own = None if tables is None else tables[some]
            states, logs = self.tree.draw(self.base, part, noise, row_scopes=self.row_scopes, row_tables=own)
            if not np.isfinite(logs).all():
                raise impossible()
            out[:, some] = states.swapaxes(0, 1)
        return out

    def most_probable(self, row_logs: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """(n,) the most probable states of all nodes, and the log of their probability with the findings."""
        tables, shift = self._row_tables(row_logs)
        states, logs = self.tree.draw(self.base, None, None, row_scopes=self.row_scopes, row_tables=tables)
        if not np.isfinite(logs[0]):
            raise impossible()
        return states[0, 0], float(logs[0] + np.sum(shift))

    def target(self, found: Inferred, number: int) -> np.ndarray:
        """The table of a target, with the rows first where each has its own."""
        a, b = self.target_starts[number], self.target_starts[number + 1]
        shape = [int(self.product.n_states[v]) for v in self.target_scopes[number]]
        return found.tables[:, a:b].reshape(len(found.tables), *shape)

    # ------------------------------------------------------------------ plumbing
    def _row_tables(self, row_logs: np.ndarray | None) -> tuple[np.ndarray | None, Any]:
        """Values of row factors, each divided by its largest, and the logs of those."""
        if row_logs is None or not self.row_sizes:
            return None, 0.0
        starts = np.concatenate([[0], np.cumsum(self.row_sizes)[:-1]])
        tops = np.maximum.reduceat(row_logs, starts, axis=1)
        safe = np.where(np.isfinite(tops), tops, 0.0)
        values = np.exp(row_logs - np.repeat(safe, self.row_sizes, axis=1))
        return values, safe.sum(axis=1)

    def _possible(self, rows: np.ndarray | None, lost: np.ndarray) -> np.ndarray:
        """Which of the lost rows have a positive probability after all."""
        base = self.tree.filled((self._flat > 0).astype(np.float64))
        found = self.tree.infer(base, None if rows is None else rows[lost])
        return np.isfinite(found.log_evidence)

    def _in_logs(
        self,
        r: int,
        rows: np.ndarray | None,
        row_logs: np.ndarray | None,
        weights: np.ndarray,
        logs: np.ndarray,
        found: Inferred,
        targets: bool,
        per_row: bool,
    ) -> None:
        """The answers about one row by logarithms, written over those that were lost."""
        n_states = self.product.n_states
        scopes = [self.product.scopes[i] for i in self.places]
        factors = [Factor.of(map(str, scope), table) for scope, table in zip(scopes, self.tables, strict=True)]
        start = 0
        for scope, size in zip(self.row_scope_list, self.row_sizes, strict=True):
            values = np.asarray(row_logs)[r, start : start + size].reshape([int(n_states[v]) for v in scope])
            factors.append(Factor(tuple(map(str, scope)), values))
            start += size
        findings = np.full(len(n_states), -1) if rows is None else rows[r]
        tree = LogTree(self.tree, factors, findings)
        logs[r] = tree.log_evidence
        if found.marginals is not None:
            found.marginals[r] = np.concatenate([tree.joint([v], n_states) for v in range(len(n_states))])
        if targets:
            tables = [tree.joint(scope, n_states).ravel() for scope in self.target_scopes]
            own = np.concatenate(tables)
            if per_row:
                found.tables[r] = own
            else:
                found.tables[0] += weights[r] * own


class Engine:
    """Exact inference in a product of tables; trees are kept for questions of the same form."""

    def __init__(self, product: Product, budget: float | None = None):
        self.product, self.budget = product, budget
        self._batches: OrderedDict[Hashable, Batch] = OrderedDict()

    def batch(
        self,
        row_scopes: Sequence[Scope] = (),
        targets: Sequence[Scope] = (),
        observed: np.ndarray | None = None,
        keep: set[int] | None = None,
    ) -> Batch:
        """The tree for questions of a form."""
        key = (
            tuple(row_scopes),
            tuple(targets),
            None if observed is None else observed.tobytes(),
            None if keep is None else frozenset(keep),
        )
        if key not in self._batches:
            self._batches[key] = Batch(self.product, row_scopes, targets, observed, keep, self.budget)
            while len(self._batches) > 1 and (len(self._batches) > _MOST_BATCHES or self._n_bytes > _MOST_KEPT):
                self._batches.popitem(last=False)
        self._batches.move_to_end(key)
        return self._batches[key]

    def marginals(self, findings: np.ndarray, extra: Extra = ((), None)) -> tuple[np.ndarray, float]:
        """(S,) probabilities of the states of all nodes, one after the other, given findings; and their
        log-evidence.
        """
        scopes, logs = extra
        found = self.batch(scopes, observed=findings).infer(None, logs, marginals=True)
        self._check(found)
        return found.marginals[0], float(found.log_evidence[0])  # type: ignore[index]

    def joint(self, nodes: Scope, findings: np.ndarray, extra: Extra = ((), None)) -> np.ndarray:
        """Probabilities of the states of some nodes together; nodes that do not matter are left out of the tree."""
        scopes, logs = extra
        asked = {*nodes, *np.flatnonzero(findings >= 0).tolist(), *(v for scope in scopes for v in scope)}
        batch = self.batch(scopes, [nodes], observed=findings, keep=self.product.relevant(asked))
        found = batch.infer(None, logs, targets=True)
        self._check(found)
        return batch.target(found, 0)[0]

    def log_evidence(self, findings: np.ndarray, extra: Extra = ((), None)) -> float:
        """Log-probability of findings; -inf where they contradict each other."""
        scopes, logs = extra
        asked = {*np.flatnonzero(findings >= 0).tolist(), *(v for scope in scopes for v in scope)}
        batch = self.batch(scopes, observed=findings, keep=self.product.relevant(asked))
        return float(batch.infer(None, logs).log_evidence[0])

    def most_probable(self, findings: np.ndarray, extra: Extra = ((), None)) -> tuple[np.ndarray, float]:
        """The most probable states of all nodes given findings, and the log of their joint probability."""
        scopes, logs = extra
        return self.batch(scopes, observed=findings).most_probable(logs)

    @property
    def _n_bytes(self) -> int:
        return sum(batch.base.nbytes for batch in self._batches.values())

    @staticmethod
    def _check(found: Inferred) -> None:
        if not np.isfinite(found.log_evidence[0]):
            raise impossible()


def impossible() -> ImpossibleError:
    """The error for findings that contradict each other."""
    return ImpossibleError(
        "the findings have probability zero under this model: they contradict each other, so that nothing follows from "
        "them. Check them, or fit with a pseudo_count above 0."
    )

"""The potentials of a field: logs of tables over scopes of discrete cells, and what follows from them by exact sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likely.models.graphs.inference.engine import Engine, Product, Scope
from likely.models.graphs.inference.factor import Factor


@dataclass(frozen=True, eq=False)
class Potentials:
    """log Π_f φ_f(x) over discrete nodes.

    Parameters
    ----------
    names, n_states : of the nodes.
    scopes, logs : of each factor; logs have an axis for each node of the scope.
    """

    names: tuple[str, ...]
    n_states: np.ndarray
    scopes: tuple[Scope, ...]
    logs: tuple[np.ndarray, ...]

    @cached_property
    def shift(self) -> float:
        """The logs of the largest entries of all factors together, which the tables of exact sums leave out."""
        tops = [float(np.max(one)) for one in self.logs]
        return float(sum(top for top in tops if np.isfinite(top)))

    @cached_property
    def product(self) -> Product:
        """The factors as tables, each divided by its largest entry."""
        tops = [float(np.max(one)) for one in self.logs]
        pairs = zip(self.logs, tops, strict=True)
        tables = tuple(np.exp(one - (top if np.isfinite(top) else 0.0)) for one, top in pairs)
        return Product(self.names, self.n_states, self.scopes, tables, is_directed=False)

    def engine(self, budget: float | None) -> Engine:
        """Exact inference; the log-evidence of its answers lacks `shift`."""
        return Engine(self.product, budget)

    def energies(self, states: np.ndarray) -> np.ndarray:
        """(R,) logs of the product at states (R, n)."""
        total = np.zeros(len(states))
        for scope, logs in zip(self.scopes, self.logs, strict=True):
            total += logs[tuple(states[:, v] for v in scope)]
        return total

    def counts(self, states: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
        """How often each factor's entries occur in states (R, n): the sufficient statistics."""
        out = []
        for scope, logs in zip(self.scopes, self.logs, strict=True):
            codes = [states[:, v] for v in scope]
            flat = np.ravel_multi_index(codes, logs.shape) if scope else np.zeros(len(states), np.int64)
            out.append(np.bincount(flat, weights, minlength=logs.size).reshape(logs.shape).astype(np.float64))
        return out

    def factors(self, given: dict[int, int] | None = None) -> list[Factor]:
        """The factors by the numbers of their nodes, cut to findings."""
        states = {str(v): s for v, s in (given or {}).items()}
        out = []
        for scope, logs in zip(self.scopes, self.logs, strict=True):
            factor = Factor(tuple(map(str, scope)), logs)
            out.append(factor.given({name: states[name] for name in factor.names if name in states}))
        return out

    def with_logs(self, logs: Sequence[np.ndarray]) -> Potentials:
        """The same scopes with other values."""
        return Potentials(self.names, self.n_states, self.scopes, tuple(logs))

    @property
    def is_pairwise(self) -> bool:
        return all(len(scope) <= 2 for scope in self.scopes)

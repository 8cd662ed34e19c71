"""log Z of a field: exact, or between two strict bounds with an annealed estimate.

Below, mean field. Above, tree-reweighting (Wainwright, Jaakkola and Willsky, 2005): log Z is convex in the
potentials, so that log Z(θ) ≤ Σ_T ρ_T log Z(θ_T) for any trees T whose potentials average to θ. Every choice gives a
bound; the node potentials of the trees are shifted against each other until it is the least. Fields with larger
factors have mini-buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likely.models.graphs.inference.bounds import mean_field, mini_buckets
from likely.models.graphs.inference.engine import Engine
from likely.models.graphs.inference.memory import TooLargeError
from likely.models.graphs.markov_field.gibbs import annealed_log_z
from likely.models.graphs.markov_field.potentials import Potentials

_MOST_TREES = 64  # whose mixture bounds log Z: eight, and more until every edge is in one, but no more than this
_ROUNDING = 1e-14  # of a factor and nat: some fifty units of the last place of a double


@dataclass(frozen=True)
class LogPartition:
    """log Z with strict limits.

    Parameters
    ----------
    value : exact, or the annealed estimate, kept within the limits.
    lower, upper : limits that hold; equal to the value where it is exact.
    stderr : Monte Carlo error of the value; 0 where it is exact.
    method : how it was found.
    """

    value: float
    lower: float
    upper: float
    stderr: float
    method: str

    @property
    def kind(self) -> str:
        """Whether it is "exact" or an "estimate"."""
        return "exact" if self.lower == self.upper else "estimate"


def log_partition(
    field: Potentials, budget: float | None, rng: np.random.Generator, n_temperatures: int, n_chains: int
) -> LogPartition:
    """Exact where the memory holds the tables, else between bounds."""
    try:
        value = exact_log_z(field, budget)
        return LogPartition(value, value, value, 0.0, "junction tree")
    except TooLargeError:
        pass
    lower, upper = limits(field)
    value, error = annealed_log_z(rng, field, n_temperatures, n_chains)
    above = "tree-reweighting" if field.is_pairwise else "mini-buckets"
    return LogPartition(min(max(value, lower), upper), lower, upper, error, f"mean field, AIS, {above}")


def exact_log_z(field: Potentials, budget: float | None, findings: np.ndarray | None = None) -> float:
    """log of the sum over all states that agree with findings (n,)."""
    seen = np.full(len(field.names), -1) if findings is None else findings
    return field.engine(budget).log_evidence(seen) + field.shift


def limits(field: Potentials, findings: np.ndarray | None = None) -> tuple[float, float]:
    """Strict limits of the log of the sum over states that agree with findings."""
    given = {} if findings is None else {v: int(s) for v, s in enumerate(findings) if s >= 0}
    factors = field.factors(given)
    hidden = {str(v): int(n) for v, n in enumerate(field.n_states) if v not in given}
    if not hidden:
        total = float(sum(float(factor.logs) for factor in factors))
        return total, total
    lower, upper = mean_field(factors, hidden), mini_buckets(factors, hidden)
    if field.is_pairwise and all(np.isfinite(one).all() for one in field.logs):
        upper = min(upper, tree_reweighted(_cut(field, given)))
    # A bound that is tight must not cross the sum by rounding, of which each factor has some.
    slack = _ROUNDING * len(factors) * (1 + abs(upper)) if np.isfinite(upper) else 0.0
    return lower - slack, upper + slack


def _cut(field: Potentials, given: dict[int, int]) -> Potentials:
    """The field of the nodes that are not observed."""
    kept = [v for v in range(len(field.names)) if v not in given]
    number = {v: i for i, v in enumerate(kept)}
    scopes, logs = [], []
    for factor in field.factors(given):
        scopes.append(tuple(number[int(name)] for name in factor.names))
        logs.append(factor.logs)
    return Potentials(tuple(field.names[v] for v in kept), field.n_states[kept], tuple(scopes), tuple(logs))


def tree_reweighted(field: Potentials, max_iter: int = 60) -> float:
    """The least upper bound on log Z that spanning trees of a pairwise field gave."""
    from scipy.optimize import minimize

    nodes, edges, constant = _merged(field)
    if not edges:
        return constant + float(sum(np.logaddexp.reduce(one) for one in nodes))
    trees = spanning_trees(len(nodes), list(edges))
    share = {edge: sum(edge in tree for tree in trees) / len(trees) for edge in edges}
    sizes = [len(one) for one in nodes]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    k, width = len(trees), int(starts[-1])

    def bound(values: np.ndarray) -> tuple[float, np.ndarray]:
        shifts = values.reshape(k, width)
        shifts = shifts - shifts.mean(axis=0)  # they must cancel
        total, gradients = 0.0, np.zeros((k, width))
        for t, tree in enumerate(trees):
            own = [one + shifts[t, a:b] for one, a, b in zip(nodes, starts[:-1], starts[1:], strict=True)]
            log_z, marginals = _tree_sum(own, {edge: edges[edge] / share[edge] for edge in tree})
            total += log_z / k
            gradients[t] = marginals / k
        return total, (gradients - gradients.mean(axis=0)).ravel()

    found = minimize(bound, np.zeros(k * width), jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return constant + float(found.fun)


def _tree_sum(nodes: Sequence[np.ndarray], edges: dict[tuple[int, int], np.ndarray]) -> tuple[float, np.ndarray]:
    scopes = [*((v,) for v in range(len(nodes))), *edges]
    logs = (*nodes, *edges.values())
    names = tuple(str(v) for v in range(len(nodes)))
    own = Potentials(names, np.array([len(one) for one in nodes]), tuple(scopes), tuple(logs))
    marginals, log_evidence = Engine(own.product, np.inf).marginals(np.full(len(nodes), -1))
    return log_evidence + own.shift, marginals


def _merged(field: Potentials) -> tuple[list[np.ndarray], dict[tuple[int, int], np.ndarray], float]:
    """One potential a node and one an edge, and what depends on nothing."""
    nodes = [np.zeros(int(n)) for n in field.n_states]
    edges: dict[tuple[int, int], np.ndarray] = {}
    constant = 0.0
    for scope, logs in zip(field.scopes, field.logs, strict=True):
        if len(scope) == 2:
            pair = (min(scope), max(scope))
            edges[pair] = edges.get(pair, 0.0) + (logs if scope == pair else logs.T)
        elif len(scope) == 1:
            nodes[scope[0]] = nodes[scope[0]] + logs
        else:
            constant += float(logs)
    return nodes, edges, constant


def spanning_trees(n: int, edges: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Spanning trees (forests of graphs in parts) that cover every edge, about equally often.

    Each next tree takes the edges that earlier ones have least often.
    """
    rng = np.random.default_rng(0)
    used = dict.fromkeys(edges, 0)
    trees: list[list[tuple[int, int]]] = []
    while len(trees) < _MOST_TREES and (len(trees) < 8 or min(used.values()) == 0):
        order = sorted(edges, key=lambda edge: (used[edge], rng.random()))
        home = list(range(n))

        def root(v: int, home: list[int] = home) -> int:
            while home[v] != v:
                home[v] = home[home[v]]
                v = home[v]
            return v

        tree = []
        for a, b in order:
            if root(a) != root(b):
                home[root(a)] = root(b)
                tree.append((a, b))
                used[a, b] += 1
        trees.append(tree)
        if len(tree) == len(edges):
            break
    left = [edge for edge in edges if used[edge] == 0]
    # A dense graph needs more trees than are worth while: the edges that are left come one forest each.
    trees += [[edge] for edge in left]
    return trees

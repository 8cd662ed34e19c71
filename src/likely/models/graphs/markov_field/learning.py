"""Potentials from rows: by exact likelihood, by pseudo-likelihood, or by persistent chains.

The gradient of the log-likelihood is the difference of moments, of the data and of the model (Della Pietra, Della
Pietra and Lafferty, 1997). Exact where a junction tree fits into memory, also for rows with holes, whose moments are
expected given what is observed. Pseudo-likelihood (Besag, 1975) needs no sum over states but those of one node;
persistent chains (Tieleman, 2008) estimate the model's moments. `pseudo_count` rows in which all states are alike
stand in for a prior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.models.graphs.markov_field.gibbs import sweeps
from likely.models.graphs.markov_field.potentials import Potentials


def flat(tables: Any) -> np.ndarray:
    """Tables one after the other."""
    return np.concatenate([np.ravel(table) for table in tables])


def unflat(values: np.ndarray, like: Potentials) -> Potentials:
    """The potentials whose logs stand one after the other."""
    logs, start = [], 0
    for one in like.logs:
        logs.append(values[start : start + one.size].reshape(one.shape))
        start += one.size
    return like.with_logs(logs)


def ignorance(field: Potentials) -> np.ndarray:
    """Expected statistics where all states are alike."""
    return flat([np.full(one.shape, 1 / one.size) for one in field.logs])


def features(field: Potentials, shared: bool) -> np.ndarray:
    """The feature of every entry of every factor: its own, or where they are shared, one for the factors of a shape."""
    if not shared:
        return np.arange(sum(one.size for one in field.logs))
    first: dict[tuple[int, ...], int] = {}
    out, n = [], 0
    for one in field.logs:
        if one.shape not in first:
            first[one.shape], n = n, n + one.size
        out.append(first[one.shape] + np.arange(one.size))
    return np.concatenate(out)


def maximise(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]], own: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, list[float], bool]:
    """The maximum of a concave function over weights of features, by L-BFGS from 0; its values on the way, and whether
    it met `tol`.

    Parameters
    ----------
    own : (T,) the feature of each entry of the factors, as `features` numbers them.
    """
    from scipy.optimize import minimize

    trace: list[float] = []

    def negative(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(weights[own])
        trace.append(value)
        return -value, -np.bincount(own, gradient)

    options = {"maxiter": max_iter, "ftol": tol * 1e-3, "gtol": tol}
    found = minimize(negative, np.zeros(int(own.max()) + 1), jac=True, method="L-BFGS-B", options=options)
    return found.x[own], trace, bool(found.success)


def likelihood_objective(
    field: Potentials, states: np.ndarray, pseudo_count: float, budget: float | None
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Mean log-likelihood of rows (R, n), -1 where missing, with the prior's part; and its gradient."""
    holed = (states < 0).any(axis=1)
    whole = flat(field.counts(states[~holed])) + pseudo_count * ignorance(field)
    n, rows = len(states) + pseudo_count, states[holed]

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        own = unflat(values, field)
        batch = own.engine(budget).batch(targets=own.scopes)
        model = batch.infer(None, targets=True)
        gradient = whole - (len(states) + pseudo_count) * model.tables[0]
        total = float(whole @ values) - (len(states) + pseudo_count) * (float(model.log_evidence[0]) + own.shift)
        if len(rows):
            found = batch.infer(rows, targets=True)
            gradient = gradient + found.tables[0]
            total += float(found.log_evidence.sum()) + len(rows) * own.shift
        return total / n, gradient / n

    return objective


def _add_node(own: Potentials, v: int, factors: list[int], x: np.ndarray, gradients: list[np.ndarray]) -> float:
    """The sum over rows x of log p(x_v | others), which only the factors that touch v decide; and its gradients added.

    The derivative by the entry of a factor that a row selects with x_v = s is 1[x_v = s] - p(s | others).
    """
    k, rows = int(own.n_states[v]), np.arange(len(x))
    at = lambda f, s: tuple(np.full(len(x), s) if u == v else x[:, u] for u in own.scopes[f])  # noqa: E731
    index = {f: [at(f, s) for s in range(k)] for f in factors}
    logits = np.zeros((len(x), k))
    for f in factors:
        for s in range(k):
            logits[:, s] += own.logs[f][index[f][s]]
    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    value = float(np.log(p[rows, x[:, v]]).sum())
    p[rows, x[:, v]] -= 1.0
    for f in factors:
        for s in range(k):
            # Several rows may select the same entry: `+=` with an index would count only one of them.
            np.add.at(gradients[f], index[f][s], -p[:, s])
    return value


def pseudo_objective(
    field: Potentials, states: np.ndarray, pseudo_count: float
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Mean over rows of Σ_v log p(x_v | others); terms in which a cell is missing are left out."""
    n = len(states) + pseudo_count
    touching = [[f for f, scope in enumerate(field.scopes) if v in scope] for v in range(len(field.names))]
    seen = []
    for v, factors in enumerate(touching):
        blanket = sorted({u for f in factors for u in field.scopes[f]} | {v})
        seen.append(states[(states[:, blanket] >= 0).all(axis=1)])

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        own = unflat(values, field)
        gradients = [np.zeros(one.shape) for one in own.logs]
        total = pseudo_count * float(ignorance(field) @ values)
        for v, factors in enumerate(touching):
            total += _add_node(own, v, factors, seen[v], gradients)
        # The prior pulls potentials towards all states being alike, each factor as if it stood alone.
        for f, one in enumerate(own.logs):
            top = one.max()
            weights = np.exp(one - top)
            total -= pseudo_count * float(top + np.log(weights.sum()))
            gradients[f] -= pseudo_count * weights / weights.sum()
        return total / n, (flat(gradients) + pseudo_count * ignorance(field)) / n

    return objective


def persistent(
    rng: np.random.Generator,
    field: Potentials,
    states: np.ndarray,
    pseudo_count: float,
    n_chains: int,
    n_steps: int,
    own: np.ndarray,
) -> tuple[np.ndarray, list[float]]:
    """Potentials after steps of gradient ascent with persistent chains, averaged over the second half.

    Rows are complete. The trace holds the largest difference between moments of data and chains. `own` is the feature
    of each entry; entries that share one move together.
    """
    times = np.bincount(own)
    n = len(states) + pseudo_count
    data = (flat(field.counts(states)) + pseudo_count * ignorance(field)) / n
    values, total, kept = np.zeros(len(data)), np.zeros(len(data)), 0
    chains = states[rng.integers(0, len(states), n_chains)].copy()
    moment, trace = np.zeros(len(data)), []
    for step in range(n_steps):
        now = unflat(values, field)
        chains = sweeps(rng, now, chains, 2)
        gap = (np.bincount(own, data - flat(now.counts(chains)) / n_chains) / times)[own]
        moment = 0.9 * moment + 0.1 * gap
        values = values + 0.5 / (1 + step / 50) * moment
        trace.append(float(np.abs(moment).max()))
        if step >= n_steps // 2:
            total, kept = total + values, kept + 1
    return total / kept, trace

"""Marginals by sampling: likelihood weighting and Gibbs chains, with standard errors.

Exact sums are checked against them; where tables are too large, they are what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from likely.models.graphs.bayesian_network.rows import NetworkRows, draw_node, normalised
from likely.models.graphs.inference.junction_tree import ImpossibleError
from likely.runtime import generator

if TYPE_CHECKING:
    from likely.models.graphs.bayesian_network.questions import Findings, Marginals, Questions

N_DRAWS = 20_000  # of likelihood weighting, where no number is asked for
_N_CHAINS = 32  # of Gibbs sampling side by side; how they differ is the error


@dataclass(frozen=True, eq=False)
class Estimate:
    """The distribution of a column by sampling.

    Parameters
    ----------
    probabilities, stderr : by state.
    n_effective : how many independent draws it is worth.
    method : how it was found.
    """

    probabilities: dict[Any, float]
    stderr: dict[Any, float]
    n_effective: float
    method: str
    kind: str = "estimate"


def estimated(
    questions: Questions, target: str, given: Mapping[str, Any] | None, method: str, n_draws: int, key: jax.Array
) -> Estimate:
    """p(target | given) by a method."""
    found = questions.findings(given)
    number = questions.number(target)
    place = questions.layout.discrete[number]
    states = questions.states_of(place)
    rng = generator(key)
    if method == "weighting":
        draws, logs = weighted_draws(questions, found, rng, n_draws)
        p, error, effective = weighted_frequencies(draws[:, place].astype(np.int64), logs, len(states))
        about = f"likelihood weighting, {n_draws} draws"
    elif method == "gibbs":
        p, error, effective, about = _gibbs(questions, found, rng, n_draws, number, len(states))
    else:
        raise ValueError(f"`method` must be 'weighting' or 'gibbs', got {method!r}.")
    pair = [dict(zip(states, values.tolist(), strict=True)) for values in (p, error)]
    return Estimate(pair[0], pair[1], effective, about)


def weighted_draws(
    questions: Questions, found: Findings, rng: np.random.Generator, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n, d) rows drawn parents first with the findings held, and the log of each one's weight."""
    return drawn_by_weight(questions.answers, found.row[0], rng, n, found.soft)


def drawn_by_weight(
    answers: NetworkRows, given: np.ndarray, rng: np.random.Generator, n: int, soft: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The same, of a row (d,) in standard units, NaN where it is open, and weights of states of discrete cells."""
    layout = answers.layout
    out, logs = np.zeros((n, len(layout.names))), np.zeros(n)
    for place in layout.order:
        node, params = layout.nodes[place], answers.params.nodes[place]
        row, value = answers._row(node, out), given[place]
        if np.isnan(value):
            out[:, place] = draw_node(rng, node, params, row, out)
            number = layout.number.get(place, -1)
            if number in soft:
                with np.errstate(divide="ignore"):
                    logs += np.log(soft[number])[out[:, place].astype(np.int64)]
            continue
        out[:, place] = value
        logs += _log_of(node, params, row, out)
    if not np.isfinite(logs).any():
        raise ImpossibleError(
            f"none of {n} draws agrees with the findings, which are impossible or very improbable: exact sums would "
            "tell, if `memory_budget` allowed them."
        )
    return out, logs


def _log_of(node: Any, params: Any, row: np.ndarray, rows: np.ndarray) -> np.ndarray:
    x = rows[:, node.place]
    if node.is_discrete:
        table = normalised(params.table).reshape(node.n_rows, node.n_states)
        with np.errstate(divide="ignore"):
            return np.log(table[row, x.astype(np.int64)])
    if node.kind == "real":
        weights = np.reshape(params.weights, (node.n_rows, -1))[row]
        variance = np.reshape(params.variance, -1)[row]
        mean = weights[:, 0] + (weights[:, 1:] * rows[:, list(node.real)]).sum(axis=1)
        return -0.5 * ((x - mean) ** 2 / variance + np.log(2 * np.pi * variance))
    rate = np.reshape(params.rate, -1)[row]
    from scipy.special import gammaln

    return x * np.log(rate) - rate - gammaln(x + 1)


def weighted_frequencies(states: np.ndarray, logs: np.ndarray, n_states: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Weighted shares of states, their standard errors (delta method), and how many draws the weights are worth."""
    weights = np.exp(logs - logs.max())
    total = weights.sum()
    p = np.bincount(states, weights, minlength=n_states) / total
    share = weights / total
    squares = np.bincount(states, share**2, minlength=n_states)
    # Var of a ratio of sums: Σ w² (1[x = s] - p)², of which the part at s has (1 - p)² and the rest p².
    error = np.sqrt(squares * (1 - p) ** 2 + np.maximum(share @ share - squares, 0.0) * p**2)
    return p, error, float(1 / (share @ share))


def weighted_marginals(questions: Questions, found: Findings) -> Marginals:
    """Marginals of all discrete columns by likelihood weighting, typed as an estimate."""
    from likely.models.graphs.bayesian_network.questions import Marginals

    layout = questions.layout
    draws, logs = weighted_draws(questions, found, np.random.default_rng(questions.model.seed_), N_DRAWS)
    out, errors, effective = Marginals(), {}, 0.0
    for place in layout.discrete:
        states = questions.states_of(place)
        p, error, effective = weighted_frequencies(draws[:, place].astype(np.int64), logs, len(states))
        out[layout.names[place]] = dict(zip(states, p.tolist(), strict=True))
        errors[layout.names[place]] = dict(zip(states, error.tolist(), strict=True))
    out.kind, out.stderr = "estimate", errors
    out.method = f"likelihood weighting, {N_DRAWS} draws worth {effective:.0f}"
    return out


def weighted_joint(questions: Questions, found: Findings, places: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The joint table of some discrete columns by likelihood weighting, and its standard errors."""
    draws, logs = weighted_draws(questions, found, np.random.default_rng(questions.model.seed_), N_DRAWS)
    shape = tuple(int(questions.layout.n_states[place]) for place in places)
    codes = np.ravel_multi_index([draws[:, place].astype(np.int64) for place in places], shape)
    p, error, _ = weighted_frequencies(codes, logs, int(np.prod(shape)))
    return p.reshape(shape), error.reshape(shape)


def _gibbs(
    questions: Questions, found: Findings, rng: np.random.Generator, n_draws: int, number: int, n_states: int
) -> tuple[np.ndarray, np.ndarray, float, str]:
    """Shares of states in chains that visit each unobserved discrete column in turn; error from chains' means."""
    questions._all_discrete("Gibbs")
    product = questions.answers.engine.product
    with np.errstate(divide="ignore"):
        tables = [np.log(table) for table in product.tables]
    # Of each node the factors that it is in, its own axis last, and the nodes of the others.
    touching: list[list[tuple[np.ndarray, tuple[int, ...]]]] = [[] for _ in product.names]
    for scope, table in zip(product.scopes, tables, strict=True):
        for at, v in enumerate(scope):
            touching[v].append((np.moveaxis(table, at, -1), tuple(u for u in scope if u != v)))
    start, _ = weighted_draws(questions, found, rng, _N_CHAINS)
    x = start[:, list(questions.layout.discrete)].astype(np.int64)
    # Draws that agree with the findings are states from which a chain can go on; the first fifth of the sweeps is
    # thrown away, in which they come from the prior to the posterior.
    hidden = np.flatnonzero(found.states < 0)
    n_sweeps = max(4, n_draws // _N_CHAINS)
    n_settle = n_sweeps // 5
    shares = np.zeros((_N_CHAINS, n_states))
    for sweep in range(n_sweeps):
        for v in hidden:
            logs = np.zeros((_N_CHAINS, int(product.n_states[v])))
            for own, others in touching[v]:
                logs += own[tuple(x[:, u] for u in others)]
            if int(v) in found.soft:
                with np.errstate(divide="ignore"):
                    logs += np.log(found.soft[int(v)])
            top = logs.max(axis=1, keepdims=True)
            p = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
            sums = np.cumsum(p, axis=1)
            x[:, v] = (rng.random(_N_CHAINS)[:, None] * sums[:, -1:] >= sums[:, :-1]).sum(axis=1)
        if sweep >= n_settle:
            shares[np.arange(_N_CHAINS), x[:, number]] += 1
    shares /= max(1, n_sweeps - n_settle)
    p = shares.mean(axis=0)
    error = shares.std(axis=0, ddof=1) / np.sqrt(_N_CHAINS)
    # Of independent draws the share with the largest variance would have this error.
    worth = float(np.max(p * (1 - p)) / max(float(error.max()) ** 2, 1e-12))
    return p, error, worth, f"Gibbs, {_N_CHAINS} chains of {n_sweeps} sweeps"

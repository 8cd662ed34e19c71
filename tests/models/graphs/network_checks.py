"""Oracles of networks: random ones over every kind of cell, and their answers by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.stats import multivariate_normal, poisson

from likely.columns import Columns
from likely.models.graphs.bayesian_network.nodes import (
    GaussianParams,
    Layout,
    NetworkParams,
    PoissonParams,
    TableParams,
)
from likely.models.graphs.bayesian_network.rows import NetworkRows
from likely.models.graphs.graph.graph import Graph


def random_network(rng, kinds, share=0.5, zeros=0.0):
    """A network over cells of these kinds, its graph and parameters drawn; discrete ones have 2 to 4 states."""
    names = tuple(f"c{i}" for i in range(len(kinds)))
    sizes = tuple(int(rng.integers(2, 5)) if kind == "categorical" else 1 for kind in kinds)
    columns = Columns(tuple(kinds), sizes)
    order = sorted(rng.permutation(len(kinds)).tolist(), key=lambda i: kinds[i] in ("real", "count"))
    edges = []
    for a, b in itertools.combinations(order, 2):
        allowed = kinds[a] in ("binary", "categorical") or (kinds[a] == kinds[b] == "real")
        if allowed and rng.random() < share and sum(edge[1] == names[b] for edge in edges) < 3:
            edges.append((names[a], names[b]))
    layout = Layout.of(Graph(edges, nodes=names), names, columns)
    return layout, NetworkParams(tuple(_params(rng, node, zeros) for node in layout.nodes))


def _params(rng, node, zeros):
    if node.is_discrete:
        table = rng.dirichlet(np.ones(node.n_states), node.shape)
        if zeros:
            table = np.where(rng.random(table.shape) < zeros, 0.0, table)
            table[..., 0] += table.sum(axis=-1) == 0
            table = table / table.sum(axis=-1, keepdims=True)
        return TableParams(table)
    if node.kind == "real":
        weights = rng.normal(size=(*node.shape, 1 + len(node.real)))
        return GaussianParams(weights, rng.uniform(0.2, 2.0, node.shape))
    return PoissonParams(rng.uniform(0.5, 5.0, node.shape))


def states_of(layout):
    """All states of the discrete cells."""
    return itertools.product(*(range(int(layout.n_states[place])) for place in layout.discrete))


def gaussian_of(layout, params, state):
    """Mean and covariance of the real cells given the discrete ones, and their places."""
    value = dict(zip(layout.discrete, state, strict=True))
    places = [place for place in layout.order if layout.nodes[place].kind == "real"]
    mean, cov = np.zeros(len(places)), np.zeros((len(places), len(places)))
    for i, place in enumerate(places):
        node, own = layout.nodes[place], params.nodes[place]
        row = tuple(value[p] for p in node.discrete)
        weights, parents = own.weights[row], [places.index(p) for p in node.real]
        slopes = np.zeros(len(places))
        slopes[parents] = weights[1:]
        mean[i] = weights[0] + slopes @ mean
        cov[i, :i] = cov[:i, i] = slopes @ cov[:, :i]
        cov[i, i] = own.variance[row] + slopes @ cov @ slopes
    return places, mean, cov


def enumerated(layout, params, row):
    """log p of a row's observed cells, and of each state of the discrete cells its probability given them.

    Returns the log-evidence, {state: probability}, and the first two moments of every cell.
    """
    logs, moments = {}, {}
    for state in states_of(layout):
        log, first, second = _of_state(layout, params, row, state)
        logs[state], moments[state] = log, (first, second)
    top = max(logs.values())
    if top == -np.inf:
        return -np.inf, {}, None, None
    total = top + np.log(sum(np.exp(log - top) for log in logs.values()))
    posterior = {state: np.exp(log - total) for state, log in logs.items()}
    means = [sum(p * moments[state][i] for state, p in posterior.items()) for i in (0, 1)]
    return total, posterior, means[0], means[1]


def _of_state(layout, params, row, state):
    value = dict(zip(layout.discrete, state, strict=True))
    first, second = np.zeros(len(row)), np.zeros(len(row))
    log = 0.0
    for place, code in value.items():
        node = layout.nodes[place]
        if not np.isnan(row[place]) and row[place] != code:
            return -np.inf, first, second
        with np.errstate(divide="ignore"):
            log += np.log(params.nodes[place].table[(*(value[p] for p in node.discrete), code)])
        first[place], second[place] = code, code**2
    for node in layout.nodes:
        if node.kind == "count":
            rate = params.nodes[node.place].rate[tuple(value[p] for p in node.discrete)]
            x = row[node.place]
            log += 0.0 if np.isnan(x) else poisson.logpmf(x, rate)
            first[node.place], second[node.place] = (rate, rate + rate**2) if np.isnan(x) else (x, x * x)
    places, mean, cov = gaussian_of(layout, params, state)
    if places:
        x = row[places]
        o, m = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        full, left = mean.copy(), cov.copy()
        if len(o):
            log += multivariate_normal.logpdf(x[o], mean[o], cov[np.ix_(o, o)])
            gain = cov[:, o] @ np.linalg.inv(cov[np.ix_(o, o)])
            full, left = mean + gain @ (x[o] - mean[o]), cov - gain @ cov[o, :]
            full[o], left[o, :], left[:, o] = x[o], 0, 0
        first[places], second[places] = full, full**2 + np.diagonal(left)
        assert len(m) + len(o) == len(places)
    return log, first, second


def random_row(rng, layout, params, holes=0.4):
    row = NetworkRows(layout, params).ancestral(rng, 1)[0]
    return np.where(rng.random(len(row)) < holes, np.nan, row)

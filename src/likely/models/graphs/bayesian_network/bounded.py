"""Answers about rows where tables of exact sums do not fit into memory: limits of evidence, sampled conditionals."""

from __future__ import annotations

import jax
import numpy as np
from scipy.special import logsumexp

from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import Mixing
from likely.contract.evidence import Evidence
from likely.models.graphs.bayesian_network.estimates import drawn_by_weight
from likely.models.graphs.bayesian_network.rows import NetworkRows, Piece
from likely.models.graphs.inference.bounds import mean_field, mini_buckets
from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.junction_tree import ImpossibleError
from likely.models.graphs.inference.memory import TooLargeError
from likely.runtime import generator

_DRAWS, _REPLICATES = 4000, 10  # behind what is said of a row whose own sums do not fit either


def bounded_evidence(answers: NetworkRows, rows: np.ndarray, key: jax.Array) -> Evidence:
    """Evidence with strict limits, equal where a row's own sums fit into memory; between them likelihood weighting.

    The mean weight of draws is unbiased, the same noise serves every row, and what falls outside the limits is put on
    the nearer one.
    """
    lower, upper = np.empty(len(rows)), np.empty(len(rows))
    complete = ~np.isnan(rows).any(axis=1)
    lower[complete] = upper[complete] = answers.of_complete(rows[complete])
    holed = np.flatnonzero(~complete)
    for piece in answers.pieces(rows[holed], needed=True) if len(holed) else ():
        for r, row in enumerate(piece.index):
            lower[holed[row]], upper[holed[row]] = _limits(answers, piece, r)
    if not (lower < upper).any():
        return Evidence.exact(lower, method="junction tree of each row")
    # A row whose limits meet has their value in every replicate.
    replicates = np.repeat(lower[:, None], _REPLICATES, axis=1)
    for r in np.flatnonzero(lower < upper).tolist():
        replicates[r] = np.clip(_weighed(answers, rows[r], key), lower[r], upper[r])
    # Where no draw agrees and mean field finds nothing, all that is known is the limit above.
    unknown = np.isneginf(replicates).all(axis=1)
    replicates[unknown] = upper[unknown, None]
    values = logsumexp(replicates, axis=1) - np.log(_REPLICATES)
    method = f"likelihood weighting, {_DRAWS} draws, between mean field and mini-buckets"
    return Evidence.estimate(values, lower, upper, replicates, method=method)


def _weighed(answers: NetworkRows, row: np.ndarray, key: jax.Array) -> np.ndarray:
    """(replicates,) logarithms of mean weights; -inf where no draw agrees with the row."""
    try:
        _, logs = drawn_by_weight(answers, np.asarray(row, np.float64), generator(key), _DRAWS, {})
    except ImpossibleError:
        return np.full(_REPLICATES, -np.inf)
    groups = logs.reshape(_REPLICATES, -1)
    return logsumexp(groups, axis=1) - np.log(groups.shape[1])


def _limits(answers: NetworkRows, piece: Piece, r: int) -> tuple[float, float]:
    try:
        exact = answers._row_evidence(piece, r) + float(piece.constant[r])
        return exact, exact
    except TooLargeError:
        pass
    product, findings = answers.engine.product, piece.states[r]
    asked = {*np.flatnonzero(findings >= 0).tolist(), *(v for scope in piece.scopes for v in scope)}
    keep = product.relevant(asked)
    given = {str(v): int(state) for v, state in enumerate(findings) if state >= 0}
    factors = []
    for scope, table in zip(product.scopes, product.tables, strict=True):
        if scope[-1] in keep:
            factor = Factor.of(map(str, scope), table)
            factors.append(factor.given({name: given[name] for name in factor.names if name in given}))
    start = 0
    for scope in piece.scopes:
        shape = [int(product.n_states[v]) for v in scope]
        size = int(np.prod(shape))
        factor = Factor(tuple(map(str, scope)), piece.logs[r, start : start + size].reshape(shape))
        factors.append(factor.given({name: given[name] for name in factor.names if name in given}))
        start += size
    hidden = {str(v): int(product.n_states[v]) for v in sorted(keep) if str(v) not in given}
    constant = float(piece.constant[r])
    upper = mini_buckets(factors, hidden) + constant
    if len(answers.layout.discrete) == len(answers.layout.nodes):
        upper = min(upper, 0.0)  # No probability is above one, though a density may be.
    return min(mean_field(factors, hidden) + constant, upper), upper


def sampled_condition(answers: NetworkRows, rows: np.ndarray, key: jax.Array) -> ConditionalParts:
    """What follows for missing cells: exact for rows whose own sums fit into memory, else by likelihood weighting.

    The same noise serves every row, so that a row's answer is its own.
    """
    n, holed = len(rows), np.isnan(rows).any(axis=1)
    rows = np.asarray(rows, np.float64)
    mean = np.empty((n, answers.layout.columns.n_statistics))
    stderr, logs, kept = np.zeros_like(mean), np.zeros((n, _DRAWS)), {}
    for r in range(n):
        try:
            mean[r] = answers.condition(rows[[r]], cut=True)[0][0]
        except TooLargeError:
            draws, logs[r] = drawn_by_weight(answers, rows[r], generator(key), _DRAWS, {})
            weights = np.exp(logs[r] - logs[r].max())
            weights /= weights.sum()
            values = answers.statistics_of(draws)
            mean[r] = weights @ values
            stderr[r] = np.sqrt((weights**2) @ (values - mean[r]) ** 2)
            kept[r] = weights
    sampled = np.isin(np.arange(n), list(kept))
    mixing = Mixing.of_weights(logs, sampled & holed)

    def sample(k: jax.Array, m: int) -> np.ndarray:
        rng, out = generator(k), np.repeat(rows[None], m, axis=0)
        for r in np.flatnonzero(holed).tolist():
            if r in kept:
                # Drawn anew, for draws of different rows must be independent.
                draws, own = drawn_by_weight(answers, rows[r], rng, max(_DRAWS, 4 * m), {})
                share = np.exp(own - own.max())
                out[:, r] = draws[rng.choice(len(draws), m, p=share / share.sum())]
            else:
                out[:, r] = answers.draws(rng, rows[[r]], m, cut=True)[:, 0]
        return out

    return ConditionalParts(mean, sample, f"likelihood weighting, {_DRAWS} draws", stderr, mixing)

"""Evidence of rows between bounds, where the tables of exact sums do not fit into memory."""

from __future__ import annotations

import numpy as np

from likely.contract.evidence import Evidence
from likely.models.graphs.bayesian_network.rows import NetworkRows, Piece
from likely.models.graphs.inference.bounds import mean_field, mini_buckets
from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.memory import TooLargeError


def bounded_evidence(answers: NetworkRows, rows: np.ndarray) -> Evidence:
    """Evidence with strict limits: equal where a row's own sums fit into memory."""
    lower, upper = np.empty(len(rows)), np.empty(len(rows))
    complete = ~np.isnan(rows).any(axis=1)
    lower[complete] = upper[complete] = answers.of_complete(rows[complete])
    holed = np.flatnonzero(~complete)
    for piece in answers.pieces(rows[holed], needed=True) if len(holed) else ():
        for r, row in enumerate(piece.index):
            lower[holed[row]], upper[holed[row]] = _limits(answers, piece, r)
    finite = np.isfinite(lower)
    values = np.where(finite, (np.where(finite, lower, 0.0) + upper) / 2, upper)
    return Evidence.estimate(values, lower, upper, method="mean field below, mini-buckets above")


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
    return mean_field(factors, hidden) + constant, mini_buckets(factors, hidden) + constant

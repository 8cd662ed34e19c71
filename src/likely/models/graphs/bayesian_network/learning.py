"""Parameters of a network from rows: counts where nothing is missing, expectation-maximisation where something is.

The M-step is the posterior mode under a prior of `pseudo_count` rows of ignorance: BDeu (Buntine, 1991) spreads them
over the whole table of a node, "rows" gives each row of it as many. EM's objective is the log-likelihood with that
prior's part, and never falls (Dempster, Laird and Rubin, 1977; exact expectations: Lauritzen, 1995).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely import distributed
from likely.models.graphs.bayesian_network.continuous import GroupAnswer
from likely.models.graphs.bayesian_network.nodes import (
    GaussianParams,
    Layout,
    NetworkParams,
    Node,
    PoissonParams,
    TableParams,
)
from likely.models.graphs.bayesian_network.rows import NetworkRows, Piece

TABLE_COUNTS = 2.0 ** np.arange(-2, 7.5, 0.5)  # rows of ignorance that are compared
_ROWS_TOGETHER = 4096  # whose expectations are held at a time
_ROWS_COUNTED = 1 << 16  # in double precision, while they are counted


@dataclass(frozen=True)
class Prior:
    """Rows of ignorance: how many, whether for a whole table, the least variance, and the mean of each count.

    Tables may have a number of their own, `table_count`.
    """

    pseudo_count: float
    is_bdeu: bool
    min_variance: float
    count_means: np.ndarray
    table_count: float | None = None

    def per_row(self, node: Node) -> float:
        """Rows of ignorance for each row of a node's parameters."""
        own = self.table_count if node.is_discrete and self.table_count is not None else self.pseudo_count
        return own / node.n_rows if self.is_bdeu else own

    def by_rows(self, rows: np.ndarray, layout: Layout, weights: np.ndarray | None = None) -> Prior:
        """The same with as many for tables as make each row likeliest by the others (Stone, 1974).

        Rows speak for the families that they observe whole. One number serves all tables: one for each would follow
        the noise of small ones.
        """
        weights = np.ones(len(rows)) if weights is None else weights
        return self.by_counts(available_statistics(rows, layout, weights), layout)

    def by_counts(self, counts: list[np.ndarray], layout: Layout) -> Prior:
        """The same, from the statistics of all nodes; expected counts speak as if they had been seen."""
        found = [(node, counts[node.place]) for node in layout.nodes if node.is_discrete]
        if not found:
            return self
        options = [replace(self, table_count=float(count)) for count in TABLE_COUNTS]
        scores = [sum(_left_out(c, one.per_row(node) / node.n_states) for node, c in found) for one in options]
        return options[int(np.argmax(scores))]


def _left_out(counts: np.ndarray, added: float) -> float:
    """Log-likelihood of the rows behind counts (q, K), each by the table of all others and so much in every cell."""
    total = np.maximum(counts.sum(axis=1, keepdims=True) - 1, 0.0) + added * counts.shape[1]
    seen = counts > 0
    shares = (np.maximum(counts - 1, 0.0) + added) / total
    return float((counts[seen] * np.log(shares[seen])).sum())


def fit_params(
    rows: np.ndarray,
    layout: Layout,
    prior: Prior,
    max_iter: int,
    tol: float,
    budget: float | None,
    weights: np.ndarray | None = None,
    start: NetworkParams | None = None,
) -> tuple[NetworkParams, list[float], bool]:
    """The parameters, the objective before each iteration (mean log-likelihood with the prior's part), and whether it
    met `tol`; each row counts once, or as often as its weight says.

    EM begins at `start`, or at the tables of the rows in which a family is whole.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    holed = holed_rows(rows)
    with_holes, whole = np.flatnonzero(holed), np.flatnonzero(~holed)
    fixed = complete_statistics(rows, layout, weights)
    if not len(with_holes):
        params = maximised(fixed, layout, prior)
        return (
            params,
            [float(np.average(_of_complete(rows, NetworkRows(layout, params), whole), weights=weights))],
            True,
        )
    params = maximised(available_statistics(rows, layout, weights), layout, prior) if start is None else start
    history: list[float] = []
    for _ in range(max_iter):
        answers = NetworkRows(layout, params, budget)
        found, log_evidence = expected_statistics(rows, answers, weights, with_holes)
        complete = weights[whole] @ _of_complete(rows, answers, whole)
        total = log_evidence + complete + log_prior(params, layout, prior)
        history.append(float(total / weights.sum()))
        if len(history) > 1 and history[-1] - history[-2] < tol:
            return params, history, True
        params = maximised([one + two for one, two in zip(fixed, found, strict=True)], layout, prior)
    return params, history, False


def prior_and_params(
    rows: np.ndarray,
    layout: Layout,
    prior: Prior,
    max_iter: int,
    tol: float,
    budget: float | None,
    weights: np.ndarray | None = None,
) -> tuple[Prior, NetworkParams, list[float], bool]:
    """`fit_params` with rows of ignorance for tables that the rows choose, and the prior with these.

    Rows in which a family is whole choose first. With holes these are few, and fewest where there are many parents:
    the counts that EM then expects of all rows choose again, and EM goes on from where it is.
    """
    prior = prior.by_rows(rows, layout, weights)
    params, history, done = fit_params(rows, layout, prior, max_iter, tol, budget, weights)
    if not holed_rows(rows).any():
        return prior, params, history, done
    found, _ = expected_statistics(rows, NetworkRows(layout, params, budget), weights)
    again = prior.by_counts(found, layout)
    if again.table_count != prior.table_count:
        prior = again
        params, history, done = fit_params(rows, layout, prior, max_iter, tol, budget, weights, start=params)
    return prior, params, history, done


# ------------------------------------------------------------------------- rows
def holed_rows(rows: np.ndarray) -> np.ndarray:
    """(n,) which rows have holes."""
    return np.concatenate([np.isnan(rows[part]).any(axis=1) for part in _parts(0, len(rows))])


def means_of(rows: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(d,) means of the observed cells."""
    sums, seen = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for part in _parts(0, len(rows)):
        some = np.asarray(rows[part], np.float64)
        own = np.ones(len(some)) if weights is None else weights[part]
        sums += np.nansum(some if weights is None else some * own[:, None], axis=0)
        seen += own @ ~np.isnan(some)
    return sums / seen


def _of_complete(rows: np.ndarray, answers: NetworkRows, numbers: np.ndarray) -> np.ndarray:
    """Log p of the rows of these numbers, which have no holes."""
    return np.concatenate([answers.of_complete(rows[numbers[part]]) for part in _parts(0, len(numbers))])


def _parts(first: int, end: int) -> list[slice]:
    """Rows from the first to before the end, as many at a time as are counted together; one part at least."""
    return [slice(at, min(end, at + _ROWS_COUNTED)) for at in range(first, max(end, first + 1), _ROWS_COUNTED)]


# ------------------------------------------------------------------- statistics
Count = Callable[[np.ndarray, np.ndarray], list[np.ndarray]]  # statistics of some rows and their weights


def complete_statistics(rows: np.ndarray, layout: Layout, weights: np.ndarray) -> list[np.ndarray]:
    """Of each node, of rows without holes: counts (q, K); sums of products of (1, real parents, x) (q, k, k); or rows
    and sum (q, 2).
    """
    answers = NetworkRows(layout, layout.empty())

    def count(some: np.ndarray, own: np.ndarray) -> list[np.ndarray]:
        some, own = _those(~np.isnan(some).any(axis=1), some, own)
        return [_complete(node, some, answers._row(node, some), own) for node in layout.nodes]

    return _counted(rows, weights, count)


def available_statistics(rows: np.ndarray, layout: Layout, weights: np.ndarray) -> list[np.ndarray]:
    """The same, of each node from the rows in which it and its parents are observed: where EM starts."""
    answers = NetworkRows(layout, layout.empty())

    def count(some: np.ndarray, own: np.ndarray) -> list[np.ndarray]:
        out = []
        for node in layout.nodes:
            seen = ~np.isnan(some[:, [node.place, *node.discrete, *node.real]]).any(axis=1)
            family, its = _those(seen, some, own)
            out.append(_complete(node, family, answers._row(node, family), its))
        return out

    return _counted(rows, weights, count)


def _counted(rows: np.ndarray, weights: np.ndarray, count: Count) -> list[np.ndarray]:
    """Sums of statistics over all rows, which are read a part after the other."""
    shares = []
    for first, end in distributed.shares(len(rows)):
        total: list[np.ndarray] | None = None
        for part in _parts(first, end):
            found = count(np.asarray(rows[part], np.float64), weights[part])
            total = found if total is None else [one + two for one, two in zip(total, found, strict=True)]
        shares.append(total)
    return distributed.summed(shares)


def _those(wanted: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (rows, weights) if wanted.all() else (rows[wanted], weights[wanted])


def _complete(node: Node, rows: np.ndarray, row: np.ndarray, weights: np.ndarray) -> np.ndarray:
    x = np.asarray(rows[:, node.place], np.float64)
    if node.is_discrete:
        flat = row * node.n_states + x.astype(np.int64)
        counts = np.bincount(flat, weights, minlength=node.n_rows * node.n_states)
        return counts.reshape(node.n_rows, node.n_states).astype(float)  # Counts of no rows are integers.
    if node.kind == "count":
        sums = [np.bincount(row, own, minlength=node.n_rows) for own in (weights, weights * x)]
        return np.stack(sums, axis=1).astype(float)
    z = np.concatenate([np.ones((len(rows), 1)), rows[:, list(node.real)], x[:, None]], axis=1).astype(np.float64)
    out = np.zeros((node.n_rows, z.shape[1], z.shape[1]))
    for i in range(z.shape[1]):
        for j in range(z.shape[1]):
            out[:, i, j] = np.bincount(row, weights * z[:, i] * z[:, j], minlength=node.n_rows)
    return out


def expected_statistics(
    rows: np.ndarray,
    answers: NetworkRows,
    weights: np.ndarray | None = None,
    numbers: np.ndarray | None = None,
) -> tuple[list[np.ndarray], float]:
    """The same of rows with holes, expected given what is observed; and their log-evidence in all.

    Parameters
    ----------
    numbers : of the rows that are asked about; all without.
    """
    layout = answers.layout
    weights = np.ones(len(rows)) if weights is None else weights
    numbers = np.arange(len(rows)) if numbers is None else numbers
    empty = complete_statistics(rows[:0], layout, weights[:0])
    parts = []
    for first, end in distributed.shares(len(numbers)):
        out, total = [np.zeros_like(one) for one in empty], 0.0
        for start in range(first, end, _ROWS_TOGETHER):
            own = numbers[start : min(end, start + _ROWS_TOGETHER)]
            for piece in answers.pieces(np.asarray(rows[own], np.float64), needed=True):
                total += _add_piece(piece, answers, out, weights[own][piece.index])
        parts.append((out, np.array(total)))
    found, log_evidence = distributed.summed(parts)
    return found, float(log_evidence)


def _add_piece(piece: Piece, answers: NetworkRows, out: list[np.ndarray], row_weights: np.ndarray) -> float:
    """Add a piece's expected statistics; returns its log-evidence."""
    layout = answers.layout
    scoped = [scope for scope in answers._scopes_of(piece) if scope]
    posteriors = [np.ones((len(piece.index), 1)) for _ in answers._scopes_of(piece)]
    log_evidence = piece.constant.copy()
    if layout.discrete:
        families = answers.engine.product.scopes
        batch = answers.engine.batch(piece.scopes, families)
        found = batch.infer(piece.states, piece.logs, targets=True, weights=row_weights)
        log_evidence += found.log_evidence
        for number, place in enumerate(layout.discrete):
            out[place] += batch.target(found, number)[0].reshape(out[place].shape)
        if scoped:
            joint = answers.engine.batch(piece.scopes, tuple(piece.scopes))
            own = joint.infer(piece.states, piece.logs, targets=True, per_row=True)
            number = 0
            for i, scope in enumerate(answers._scopes_of(piece)):
                if scope:
                    posteriors[i] = joint.target(own, number).reshape(len(piece.index), -1)
                    number += 1
    posteriors = [row_weights[:, None] * posterior for posterior in posteriors]
    for answer, weights in zip(piece.answers, posteriors, strict=False):
        _add_group(answer, weights, piece.rows, answers, out)
    for (node, _), weights in zip(piece.counts, posteriors[len(piece.answers) :], strict=True):
        x = np.asarray(piece.rows[:, node.place], np.float64)
        seen = ~np.isnan(x)
        out[node.place] += np.stack([weights[seen].sum(axis=0), weights[seen].T @ x[seen]], axis=1)
    return float(row_weights @ log_evidence)


def _add_group(
    answer: GroupAnswer, weights: np.ndarray, rows: np.ndarray, answers: NetworkRows, out: list[np.ndarray]
) -> None:
    """Expected products of (1, real parents, x) of each node of a group."""
    group, continuous = answer.group, answers.continuous
    inner = {place: i for i, place in enumerate(group.nodes)}
    states = continuous.states(group.scope)
    lone = len(group.nodes) == 1
    for place in group.nodes:
        node = answers.layout.nodes[place]
        members = [*node.real, place]
        n, q = weights.shape
        z, spread = np.ones((n, q, 1 + len(members))), np.zeros((q, 1 + len(members), 1 + len(members)))
        for i, member in enumerate(members, 1):
            known = np.asarray(rows[:, member], np.float64)[:, None]
            z[:, :, i] = answer.means[:, :, inner[member]] if member in inner else known
            for j, other in enumerate(members, 1):
                if member in inner and other in inner and not lone:
                    spread[:, i, j] = answer.covariance[:, inner[member], inner[other]]
        # A lone cell that is missing says nothing of its node, and is left out.
        own = weights * ~np.isnan(rows[:, place])[:, None] if lone else weights
        products = np.einsum("rq,rqi,rqj->qij", own, z, z) + own.sum(axis=0)[:, None, None] * spread
        np.add.at(out[place], continuous.row_of(node, group.scope, states), products)


# ------------------------------------------------------------------ maximisation
def maximised(statistics: list[np.ndarray], layout: Layout, prior: Prior) -> NetworkParams:
    """The posterior mode of every node's parameters."""
    return NetworkParams(tuple(_maximised(node, statistics[node.place], prior) for node in layout.nodes))


def _maximised(node: Node, found: np.ndarray, prior: Prior) -> Any:
    a = prior.per_row(node)
    if node.is_discrete:
        counts = found + a / node.n_states
        sums = counts.sum(axis=1, keepdims=True)
        table = np.where(sums > 0, counts / np.where(sums > 0, sums, 1), 1 / node.n_states)
        return TableParams(table.reshape(*node.shape, node.n_states))
    if node.kind == "count":
        mean = prior.count_means[node.place]
        sums = np.where(found[:, 0] + a > 0, found[:, 0] + a, 1.0)
        rate = np.where(found[:, 0] + a > 0, (found[:, 1] + a * mean) / sums, mean)
        return PoissonParams(np.maximum(rate, 1e-6).reshape(node.shape))
    k = 1 + len(node.real)
    # `a` rows of ignorance say N(0, 1) in standard units: a ridge on the weights, and a variance of one. A ridge of
    # rounding size keeps columns that repeat each other from being singular.
    ridge = a + 1e-9 * (1 + found[:, :k, :k].trace(axis1=1, axis2=2))
    gram = found[:, :k, :k] + ridge[:, None, None] * np.eye(k)
    weights = np.linalg.solve(gram, found[:, :k, k:])[..., 0]
    residual = found[:, k, k] - (weights * found[:, :k, k]).sum(axis=1)
    n = found[:, 0, 0] + a
    variance = np.where(n > 0, (np.maximum(residual, 0) + a) / np.where(n > 0, n, 1), 1.0)
    variance = np.maximum(variance, prior.min_variance)
    return GaussianParams(weights.reshape(*node.shape, k), variance.reshape(node.shape))


def log_prior(params: NetworkParams, layout: Layout, prior: Prior) -> float:
    """What the rows of ignorance add to the log-likelihood."""
    total = 0.0
    for node in layout.nodes:
        own, a = params.nodes[node.place], prior.per_row(node)
        if a == 0:
            continue
        if node.is_discrete:
            total += a / node.n_states * float(np.log(own.table).sum())
        elif node.kind == "count":
            total += a * float((prior.count_means[node.place] * np.log(own.rate) - own.rate).sum())
        else:
            squares = 1 + (np.asarray(own.weights) ** 2).sum(axis=-1)
            total += -0.5 * a * float((np.log(own.variance) + squares / own.variance).sum())
    return total

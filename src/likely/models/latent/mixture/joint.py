"""Expectation-maximisation for mixtures of joint Gaussians over rows with few patterns of holes, in compiled loops.

Rows with the same cells observed share what an E-step needs of each component: the inverse of a Cholesky factor, and
the regression of the unobserved cells on the observed ones. It costs K r³ a pattern where `em` pays it a row with
holes; a row costs K r² / 2 for its densities, and r² / 2 for each component that has a share of it. Sums are of double
precision, so that moments need no centre. Steps are those of `em.em_step`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from likely.models.latent.mixture.chunks import better
from likely.models.latent.mixture.components import Layout, MixtureParams, part
from likely.models.latent.mixture.em import Prior, Sums
from likely.models.latent.mixture.gaussian_block import Moments
from likely.objectives.em import EMResult
from likely.runtime import on_device

MOST_PATTERNS = 64  # of holes: beyond, what a pattern costs is no longer little beside what its rows cost
_ROWS_AT_ONCE = 2048  # whose responsibilities are held
_LEAST = math.log(np.finfo(np.float64).eps)


class Pattern(NamedTuple):
    """Rows with the same joint cells observed; where there are factored columns, their statistics."""

    seen: np.ndarray  # (r,)
    z: np.ndarray  # (n, q) the observed cells
    weight: np.ndarray  # (n,)
    statistics: np.ndarray  # (n, F), zero where unobserved
    present: np.ndarray  # (n, f)
    log_base: float


class Total(NamedTuple):
    """Sums over rows."""

    counts: np.ndarray  # (K,)
    statistics: np.ndarray  # (K, F)
    present: np.ndarray  # (K, f)
    first: np.ndarray  # (K, r)
    second: np.ndarray  # (K, r, r)


def patterns_of(rows: np.ndarray, layout: Layout, weight: np.ndarray | None) -> list[Pattern] | None:
    """The rows by their patterns of joint cells; None where there are too many patterns."""
    joint = np.asarray(rows[:, list(layout.joint_places)], np.float64)
    seen, pattern_of = np.unique(~np.isnan(joint), axis=0, return_inverse=True)
    if len(seen) > MOST_PATTERNS:
        return None
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)
    return [
        _pattern(own, joint, rows, weight, np.flatnonzero(pattern_of.ravel() == number), layout)
        for number, own in enumerate(seen)
    ]


def _pattern(
    seen: np.ndarray, joint: np.ndarray, rows: np.ndarray, weight: np.ndarray, own: np.ndarray, layout: Layout
) -> Pattern:
    statistics = present = np.zeros((len(own), 0))
    log_base = 0.0
    if layout.factored is not None:
        x, observed = part(on_device(np.nan_to_num(rows[own])), on_device(~np.isnan(rows[own])), layout.factored_places)
        statistics = np.asarray(layout.factored.statistics(x, observed), np.float64)
        present = np.asarray(observed, np.float64)
        log_base = float(weight[own] @ np.asarray(layout.factored.log_base(x, observed), np.float64))
    return Pattern(seen, np.ascontiguousarray(joint[own][:, seen]), weight[own], statistics, present, log_base)


def run_joint(
    params: MixtureParams, patterns: list[Pattern], prior: Prior, layout: Layout, *, max_iter: int, tol: float
) -> EMResult:
    """`run_em`, whose E-step is the compiled loop."""
    trace: list[float] = []
    total = sum(float(pattern.weight.sum()) for pattern in patterns)
    converged = False
    while len(trace) < max_iter and not converged:
        params, value = better(params, sums_of(params, patterns, layout), prior, layout)
        trace.append(float(value) / total)
        converged = len(trace) > 1 and trace[-1] - trace[-2] < tol
    ended: list[Any] = [np.array(trace), np.array(len(trace)), np.array(converged)]
    return EMResult(params, *ended)


def sums_of(params: MixtureParams, patterns: list[Pattern], layout: Layout) -> Sums:
    """The sums of the E-step over all rows."""
    gaussian: Any = params.gaussian
    means, tril = np.asarray(gaussian.means, np.float64), np.asarray(gaussian.factors(), np.float64)
    covariances, log_weights = tril @ tril.transpose(0, 2, 1), np.asarray(params.log_weights, np.float64)
    eta = partition = np.zeros((len(means), 0))
    if params.eta is not None:
        eta, partition = np.asarray(params.eta, np.float64), np.asarray(layout.factored.log_partition(params.eta))
    sums, log_likelihood = None, 0.0
    for pattern in patterns:
        own, value = _of_pattern(pattern, means, covariances, log_weights, eta, partition)
        sums = own if sums is None else Total(*map(np.add, sums, own))
        log_likelihood += value
    assert sums is not None
    # Moments about the means of this step, as `gaussian_block.update` takes them.
    first = sums.first - sums.counts[:, None] * means
    cross = sums.first[:, :, None] * means[:, None, :]
    square = means[:, :, None] * means[:, None, :]
    second = sums.second - cross - cross.transpose(0, 2, 1) + sums.counts[:, None, None] * square
    dtype = params.log_weights.dtype
    device = lambda array: on_device(array, dtype)  # noqa: E731
    return Sums(
        device(sums.counts),
        None if params.eta is None else device(sums.statistics),
        None if params.eta is None else device(sums.present),
        Moments(device(first), device(second)),
        jnp.asarray(log_likelihood, dtype),
    )


def _of_pattern(
    pattern: Pattern, means: np.ndarray, covariances: np.ndarray, log_weights: np.ndarray, eta: Any, partition: Any
) -> tuple[Total, float]:
    """Sums over the rows of one pattern, unobserved cells as they are expected to be; and the log likelihood."""
    from likely.models.latent.mixture.joint_loop import add_joint_rows

    k, _r, seen = len(means), means.shape[1], pattern.seen
    q = int(seen.sum())
    whitening = np.linalg.inv(np.linalg.cholesky(covariances[:, seen][:, :, seen]))
    shift = np.einsum("kij,kj->ik", whitening, means[:, seen])
    log_scale = np.log(np.diagonal(whitening, axis1=1, axis2=2)).sum(axis=1) - 0.5 * q * math.log(2 * math.pi)
    lookup = np.ascontiguousarray(whitening.transpose(1, 2, 0)), np.ascontiguousarray(shift)
    counts, statistics, present = np.zeros(k), np.zeros((k, eta.shape[1])), np.zeros((k, partition.shape[1]))
    first, second, log_likelihood = np.zeros((q, k)), np.zeros((q, q, k)), pattern.log_base
    for start in range(0, len(pattern.z), _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        table = (log_weights + log_scale) + pattern.statistics[some] @ eta.T - pattern.present[some] @ partition.T
        log_likelihood += add_joint_rows(pattern.z[some], pattern.weight[some], table, *lookup, first, second, _LEAST)
        counts += table.sum(axis=0)
        statistics += table.T @ pattern.statistics[some]
        present += table.T @ pattern.present[some]
    lower = second.transpose(2, 0, 1)
    observed = lower + np.tril(lower, -1).transpose(0, 2, 1)
    moments = _with_unobserved(seen, counts, first.T, observed, means, covariances)
    return Total(counts, statistics, present, *moments), log_likelihood


def _with_unobserved(
    seen: np.ndarray, counts: np.ndarray, first: np.ndarray, second: np.ndarray, means: np.ndarray, covariances: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Sums (K, r) and (K, r, r) of all joint cells, from those of the observed ones: z = A z_seen + b + noise."""
    if seen.all():
        return first, second
    k, r = means.shape
    slope, offset, noise = np.zeros((k, r, int(seen.sum()))), np.zeros((k, r)), np.zeros((k, r, r))
    slope[:, seen] = np.eye(int(seen.sum()))
    cross = covariances[:, seen][:, :, ~seen]
    gain = np.linalg.solve(covariances[:, seen][:, :, seen], cross).transpose(0, 2, 1)
    slope[:, ~seen] = gain
    offset[:, ~seen] = means[:, ~seen] - np.einsum("kij,kj->ki", gain, means[:, seen])
    noise[np.ix_(np.arange(k), ~seen, ~seen)] = covariances[:, ~seen][:, :, ~seen] - gain @ cross
    moved = np.einsum("kij,kj->ki", slope, first)
    mixed = moved[:, :, None] * offset[:, None, :]
    own = counts[:, None, None] * (noise + offset[:, :, None] * offset[:, None, :])
    return (
        moved + counts[:, None] * offset,
        slope @ second @ slope.transpose(0, 2, 1) + mixed + mixed.transpose(0, 2, 1) + own,
    )

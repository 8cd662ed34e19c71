"""Associative memory over ±1 units: storing patterns, the energy, and recall by descent.

Pairwise memory (Hopfield, 1982): E(x) = -½ xᵀW x - b·x, x_i ← +1 where Σ_j W_ij x_j + b_i ≥ 0, else -1. By Hebb's rule
W = Σ ξξᵀ / N it holds about 0.138 N random patterns (Amit, Gutfreund and Sompolinsky, 1985); by the pseudo-inverse rule
(Personnaz, Guyon and Dreyfus, 1985) any that are linearly independent. Dense memory (Demircigil et al., 2017; Ramsauer
et al., 2021): E(x) = -log Σ_μ exp(β ξ_μ·x) / β holds exponentially many, and at inverse temperature β it is exactly a
mixture of blurred patterns, whose log Z is known.
Cost of recall: one product of states and weights, then a row of weights for each unit that turns round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import Sampling
from likely.models.energy.normaliser.log_sum import LogSum
from likely.models.energy.normaliser.row_noise import row_keys, row_numbers
from likely.runtime import by_blocks, on_device

# Rounds in which incomplete patterns complete each other: what is lost in log p falls until about ten. And overlaps
# between patterns that are held at once, 32 megabytes.
_COMPLETING_ROUNDS, _MOST_OVERLAPS = 10, 1 << 22


class DenseParams(eqx.Module):
    """Stored patterns of ±1, and 0 where a cell was not observed."""

    patterns: Float[Array, "p N"]


# ------------------------------------------------------------------ storing
def hebb(patterns: np.ndarray) -> np.ndarray:
    """Weights of patterns (p, N) of ±1 with NaN where unobserved: over the rows that have both units, p / N ⟨ξ_i ξ_j⟩.

    Examples
    --------
    >>> hebb(np.array([[1, 1, -1], [1, -1, np.nan]])).round(3).tolist()
    [[0.0, 0.0, -0.667], [0.0, 0.0, -0.667], [-0.667, -0.667, 0.0]]
    """
    signs, seen = np.nan_to_num(patterns), (~np.isnan(patterns)).astype(np.float64)
    together = seen.T @ seen
    weights = signs.T @ signs * (len(patterns) / np.maximum(together, 1)) / patterns.shape[1]
    np.fill_diagonal(weights, 0)
    return weights


def pseudo_inverse(patterns: np.ndarray) -> np.ndarray:
    """Weights that project on the span of the patterns, without self-connections; unobserved cells count as 0.

    Each pattern's inputs are (1 - w_ii) times itself, w the projection: all are fixed points unless they span
    everything.
    """
    signs = np.nan_to_num(patterns)
    vectors, lengths, _ = np.linalg.svd(signs.T, full_matrices=False)
    spanning = vectors[:, lengths > lengths[0] * max(signs.shape) * np.finfo(float).eps]
    weights = spanning @ spanning.T
    np.fill_diagonal(weights, 0)
    return (weights + weights.T) / 2


def completed(rng: np.random.Generator, patterns: np.ndarray, beta: float) -> np.ndarray:
    """Patterns (p, N) of ±1 whose NaN are drawn from the dense memory of the other patterns; 0 where none has the unit.

    A hole takes its unit from a pattern that is drawn in proportion to exp(β overlap of the cells that are there), and
    all holes of a row take theirs from the same one, so that they go together. First each is drawn from its column;
    then the memory is completed by itself, again and again. Without this a hole would stand for a unit that is 0 and 1
    by halves, whatever the others say. Cost: that of the evidence of all patterns, in every round.
    """
    hole, seen, whole = np.isnan(patterns), np.nan_to_num(patterns), np.nan_to_num(patterns)
    for unit in np.flatnonzero(hole.any(axis=0) & ~hole.all(axis=0)):
        whole[hole[:, unit], unit] = rng.choice(patterns[~hole[:, unit], unit], hole[:, unit].sum())
    for _ in range(_COMPLETING_ROUNDS):
        whole = np.where(hole, whole[_givers(rng, seen, whole, beta)], seen)
    return whole


def _givers(rng: np.random.Generator, seen: np.ndarray, whole: np.ndarray, beta: float) -> np.ndarray:
    """(p,) for each row another one, drawn in proportion to exp(β overlap)."""
    size, givers = max(1, _MOST_OVERLAPS // len(whole)), []
    for start in range(0, len(whole), size):
        scores = beta * seen[start : start + size] @ whole.T
        scores[np.arange(len(scores)), start + np.arange(len(scores))] = -np.inf  # of itself a row learns nothing
        givers.append(np.argmax(scores + rng.gumbel(size=scores.shape), axis=1))
    return np.concatenate(givers)


# ------------------------------------------------------------------ recall
def energy(weights: np.ndarray, bias: np.ndarray, states: np.ndarray) -> np.ndarray:
    """-½ xᵀW x - b·x of states (n, N)."""
    return -0.5 * np.sum((states @ weights) * states, axis=1) - states @ bias


def dense_energy(patterns: np.ndarray, beta: float, states: np.ndarray) -> np.ndarray:
    """-log Σ_μ exp(β ξ_μ·x) / β of states (n, N)."""
    return -np.logaddexp.reduce(beta * states @ patterns.T, axis=1) / beta


def recall_pairwise(
    weights: np.ndarray,
    bias: np.ndarray,
    states: np.ndarray,
    orders: np.ndarray | None,
    max_iter: int,
    keep: bool = True,
) -> list[np.ndarray]:
    """States (n, N) of ±1, 0 where unknown, after each sweep until none turns any unit; the given ones first.

    Parameters
    ----------
    orders : (max_iter, N) the order in which units are looked at in each sweep; None for all at once.
    keep : all states; else the last few alone.
    """
    if orders is None:
        return _until_settled(lambda x, *_: _signs(x @ weights + bias), states, max_iter, keep)
    from likely.models.energy.pairwise import recall_loop as loop

    fields = states @ weights + bias
    sweep = lambda x, probes, i: loop.pairwise_sweep(weights, fields, probes, x, orders[i])  # noqa: E731
    return _until_settled(sweep, states, max_iter, keep)


def recall_dense(
    patterns: np.ndarray,
    beta: float,
    states: np.ndarray,
    orders: np.ndarray | None,
    max_iter: int,
    keep: bool = True,
) -> list[np.ndarray]:
    """The same for the dense memory; all at once it is x ← sign(Ξᵀ softmax(β Ξ x)), one step of attention."""
    if orders is None:
        return _until_settled(lambda x, *_: _attend(patterns, beta, x), states, max_iter, keep)
    from likely.models.energy.pairwise import recall_loop as loop

    overlaps = states @ patterns.T
    sweep = lambda x, probes, i: loop.dense_sweep(patterns, beta, overlaps, probes, x, orders[i])  # noqa: E731
    return _until_settled(sweep, states, max_iter, keep)


def _until_settled(step: Any, states: np.ndarray, max_iter: int, keep: bool) -> list[np.ndarray]:
    """Sweeps of step(states of some probes, their numbers, sweep), until no probe moves, or only back and forth."""
    trail, moving = [states], np.arange(len(states))
    for sweep in range(max_iter):
        before, new = trail[-1][moving], trail[-1].copy()
        after = new[moving] = step(before.copy(), moving, sweep)
        back = (after == trail[-2][moving]).all(axis=1) if sweep else np.zeros(len(moving), bool)
        moving = moving[(after != before).any(axis=1) & ~back]
        trail = [*(trail if keep else trail[-1:]), new]
        if not len(moving):
            break
    return trail


def _attend(patterns: np.ndarray, beta: float, states: np.ndarray) -> np.ndarray:
    logits = beta * states @ patterns.T
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return _signs(shares @ patterns)


def _signs(fields: np.ndarray) -> np.ndarray:
    return np.where(fields >= 0, 1.0, -1.0)


# ------------------------------------------------------------------ the dense memory as a distribution
@dataclass(frozen=True, eq=False)
class DenseAnswers:
    """p(x) ∝ Σ_μ exp(β ξ_μ·x): independent units about a pattern drawn at random. All exact."""

    params: DenseParams
    beta: float
    columns: Columns
    method: str = "sum over patterns"

    def log_partition(self, key: jax.Array) -> LogSum:
        """Log Σ exp(-βE) over all states."""
        value = np.logaddexp.reduce(np.asarray(_log_weights(self._logits()), np.float64))
        return LogSum.exact(value[None])

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-βE) with the observed cells clamped."""
        eta, columns = self._logits(), self.columns
        return LogSum.exact(by_blocks(lambda x, o: _dense_log_sum(eta, x, o, columns), rows))

    def sample(self, key: jax.Array, n: int) -> Array:
        return _draw(key[None], _log_weights(self._logits())[None], self._logits(), n, self.columns)[:, 0]

    def sampling(self, key: jax.Array) -> Sampling:
        return Sampling()

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        eta, columns = self._logits(), self.columns
        joint = on_device(by_blocks(lambda x, o: _dense_joint(eta, x, o, columns), rows))
        mean = jax.nn.softmax(joint, axis=1) @ columns.mean(eta)

        def draws(key: jax.Array, n: int) -> Array:
            return _draw(row_keys(key, on_device(row_numbers(rows))), joint, eta, n, columns)

        return ConditionalParts(mean, draws)

    def _logits(self) -> Float[Array, "p N"]:
        """Of 0/1 units about each pattern."""
        return 2 * self.beta * self.params.patterns


def _log_weights(eta: Float[Array, "p N"]) -> Float[Array, " p"]:
    """Log Σ_x exp(β ξ·x) of each pattern: 2 cosh β a cell, 2 where the pattern has no cell."""
    return jnp.logaddexp(eta / 2, -eta / 2).sum(axis=1)


@eqx.filter_jit
def _dense_joint(eta: Array, x: Array, observed: Array | None, columns: Columns) -> Float[Array, "n p"]:
    return columns.log_density_table(x, observed, eta) + _log_weights(eta)[None, :]


@eqx.filter_jit
def _dense_log_sum(eta: Array, x: Array, observed: Array | None, columns: Columns) -> Float[Array, " n"]:
    return jax.nn.logsumexp(_dense_joint(eta, x, observed, columns), axis=1)


def _draw(keys: Key[Array, " rows"], joint: Array, eta: Array, n: int, columns: Columns) -> Float[Array, "n rows N"]:
    """A pattern for each row in proportion to exp(joint), then a row about it, with a key for each row."""
    means = columns.mean(eta)

    def of_row(key: Array, logits: Array) -> Array:
        choose, emit = jax.random.split(key)
        noise = jax.random.gumbel(choose, (n, len(logits)), logits.dtype)
        chosen = jnp.argmax(logits[None] + noise, axis=1)
        uniform = jax.random.uniform(emit, (n, eta.shape[1]), eta.dtype)
        return (uniform < means[chosen]).astype(eta.dtype)

    return jax.vmap(of_row, out_axes=1)(keys, joint)


# ------------------------------------------------------------------ what users hand over
def check_signs(states: Any, name: str, *, holes: bool, n_units: int | None = None) -> np.ndarray:
    """(n, N) floats; raises unless every cell is +1 or -1, or NaN where that is allowed."""
    array = np.asarray(states, np.float64)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"`{name}` must be (rows, units), at least one of each, got shape {array.shape}.")
    if n_units is not None and array.shape[1] != n_units:
        raise ValueError(f"`{name}` must have {n_units} units, as the memory has, got {array.shape[1]}.")
    bad = ~((np.abs(array) == 1) | (np.isnan(array) & holes))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        also = ", or NaN for an unknown unit" if holes else ""
        raise ValueError(
            f"`{name}` must be +1 or -1{also}, got {array[row, column]:g} in row {row}, column {column}: "
            "2 * x - 1 turns rows of 0 and 1 into them."
        )
    return array

"""A pairwise machine small enough to enumerate: sums, expectations and draws, all exact.

Only a layout's kept units are enumerated; the others sum out of each configuration. A complete graph of 21 units, or a
bipartite one with 20 on its smaller side, has 2^20 configurations. Cost: one pass over them, for all rows together.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from likely.models.energy.pairwise.machine import Layout, PairwiseParams, logits, unnormalized_log_prob
from likely.montecarlo import MAX_CONFIGURATIONS, configurations, draw, log_sum


def can_enumerate(layout: Layout) -> bool:
    """Whether log Z is within reach."""
    return 2 ** len(layout.kept) <= MAX_CONFIGURATIONS


def can_sum_hidden(layout: Layout) -> bool:
    """Whether the hidden units of a complete row sum out exactly."""
    return not layout.coupled or 2 ** _n_hidden(layout) <= MAX_CONFIGURATIONS


@eqx.filter_jit
def clamped_sum(
    params: PairwiseParams, layout: Layout, x: Float[Array, "n N"], known: Bool[Array, "n N"]
) -> tuple[Float[Array, " n"], Float[Array, "n N"]]:
    """log Σ exp(-E) over the units that are not known in each row, and the expectation of every unit."""
    total = 2 ** len(layout.kept)

    def features(numbers: Array) -> Array:
        kept, inputs, _ = _configurations(params, layout, numbers)
        return jnp.concatenate([kept, jax.nn.sigmoid(inputs)], axis=1)

    value, mean = log_sum(total, lambda numbers: _log_weights(params, layout, x, known, numbers), features)
    # Features are the kept units, then the summed ones: back to the order of the machine's units.
    order = jnp.argsort(jnp.concatenate([layout.kept, layout.summed]))
    return value, jnp.where(known, x, mean[:, order])


@eqx.filter_jit
def clamped_draws(
    keys: Key[Array, " m"], params: PairwiseParams, layout: Layout, n: int, x: Float[Array, "m N"], known: Array
) -> Float[Array, "m n N"]:
    """N exact draws of all units given the known ones, with a key for each row."""
    choose, rest = jax.vmap(jax.random.split, out_axes=1)(keys)
    numbers = draw(choose, n, 2 ** len(layout.kept), lambda c: _log_weights(params, layout, x, known, c))

    def of_row(key: Array, row: Array, seen: Array, chosen: Array) -> Array:
        uniform = jax.random.uniform(key, (n, len(layout.summed)), x.dtype)
        kept, inputs, _ = _configurations(params, layout, chosen)
        summed = (uniform < jax.nn.sigmoid(inputs)).astype(row.dtype)
        states = jnp.zeros((n, len(row)), row.dtype).at[:, layout.kept].set(kept).at[:, layout.summed].set(summed)
        return jnp.where(seen[None], row[None], states)

    return jax.vmap(of_row)(rest, x, known, numbers.T)


@eqx.filter_jit
def hidden_sum(
    params: PairwiseParams, layout: Layout, visible: Float[Array, "n d"]
) -> tuple[Float[Array, " n"], Float[Array, "n k"]]:
    """log Σ_h exp(-E(v, h)) of complete rows, and E[h | v]."""
    d, k = layout.n_visible, _n_hidden(layout)
    states = jnp.pad(visible, ((0, 0), (0, k)))
    base, inputs = unnormalized_log_prob(params, states), logits(params, states)[:, d:]
    if not layout.coupled:
        return base + jax.nn.softplus(inputs).sum(axis=1), jax.nn.sigmoid(inputs)
    among = PairwiseParams(params.weights[d:, d:], jnp.zeros_like(params.bias[d:]), params.chains)
    hidden = lambda numbers: configurations(numbers, (2,) * k).astype(visible.dtype)  # noqa: E731

    def log_weight(numbers: Array) -> Array:
        h = hidden(numbers)
        return inputs @ h.T + unnormalized_log_prob(among, h)[None, :]

    value, mean = log_sum(2**k, log_weight, hidden)
    return base + value, mean


@eqx.filter_jit
def moments(params: PairwiseParams) -> tuple[Array, Float[Array, " N"], Float[Array, "N N"]]:
    """log Z, E[s] and E[s sᵀ] of the whole machine."""
    n = len(params.bias)
    states = lambda numbers: configurations(numbers, (2,) * n).astype(params.bias.dtype)  # noqa: E731
    nothing = jnp.zeros((1, n), params.bias.dtype)
    value, first, second = pair_moments(params, states, 2**n, nothing, jnp.zeros((1, n), bool))
    return value[0], first[0], second[0]


def pair_moments(params, states, total, x, known):
    """log Σ exp(-E), E[s] and E[s sᵀ] of each row's machine, its known units clamped; all units are enumerated."""
    rows, columns = jnp.triu_indices(len(params.bias), 1)

    def features(numbers: Array) -> Array:
        s = states(numbers)
        return jnp.concatenate([s, s[:, rows] * s[:, columns]], axis=1)

    def log_weight(numbers: Array) -> Array:
        s = states(numbers)
        return jnp.where(_agrees(x, known, s), unnormalized_log_prob(params, s)[None, :], -jnp.inf)

    value, mean = log_sum(total, log_weight, features)
    first, pairs = mean[:, : len(params.bias)], mean[:, len(params.bias) :]
    upper = jnp.zeros((len(x), *params.weights.shape), x.dtype).at[:, rows, columns].set(pairs)
    return value, first, upper + upper.swapaxes(1, 2) + jax.vmap(jnp.diag)(first)


def _n_hidden(layout: Layout) -> int:
    return len(layout.kept) + len(layout.summed) - layout.n_visible


def _configurations(params: PairwiseParams, layout: Layout, numbers: Int[Array, " m"]) -> tuple[Array, Array, Array]:
    """States of the kept units, inputs to the summed ones, and the log weight of the kept ones among themselves."""
    kept = configurations(numbers, (2,) * len(layout.kept)).astype(params.bias.dtype)
    inner = PairwiseParams(params.weights[layout.kept][:, layout.kept], params.bias[layout.kept], params.chains)
    inputs = kept @ params.weights[layout.kept][:, layout.summed] + params.bias[layout.summed][None, :]
    return kept, inputs, unnormalized_log_prob(inner, kept)


def _log_weights(
    params: PairwiseParams, layout: Layout, x: Array, known: Array, numbers: Int[Array, " m"]
) -> Float[Array, "n m"]:
    """Of configurations of the kept units that agree with a row; -inf for the others."""
    kept, inputs, inner = _configurations(params, layout, numbers)
    # A unit that sums out by itself adds log(1 + e^input), and one that is known x · input: two products of matrices
    # for all rows and configurations.
    seen = known[:, layout.summed].astype(x.dtype)
    summed = (seen * x[:, layout.summed]) @ inputs.T + (1 - seen) @ jax.nn.softplus(inputs).T
    agrees = _agrees(x[:, layout.kept], known[:, layout.kept], kept)
    return jnp.where(agrees, inner[None, :] + summed, -jnp.inf)


def _agrees(x: Array, known: Array, states: Array) -> Bool[Array, "n m"]:
    """Whether a configuration has a row's known units: a count of disagreements, exact in floating point."""
    seen = known.astype(x.dtype)
    return (seen * x).sum(axis=1)[:, None] + (seen * (1 - 2 * x)) @ states.T == 0

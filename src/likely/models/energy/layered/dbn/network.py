"""Deep belief network: p(x, h1, ..., hL) = p(x | h1) p(h1 | h2) ... p(h_{L-1}, hL), the last factor an RBM's.

Hinton, Osindero and Teh (2006). Below the top, layers are independent units given the layer above; q(h | x) = q(h1 | x)
q(h2 | h1) ... goes the other way. With (h1, ..., h_{L-1}) drawn from q, p(x, h) / q(h | x) times Z of the top RBM is a
weight whose logarithm bounds log p(x) from below in expectation, and the more so the more of them are averaged. Cells
are independent given h1, so unobserved ones are left out, which is their exact marginal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams, along_last
from likely.models.energy.layered.greedy import Encoder, fill
from likely.montecarlo import MAX_CONFIGURATIONS, configurations, draw, log_sum
from likely.montecarlo.importance import Weighted, resample, weigh


class DBNParams(eqx.Module):
    """Weights down (of p) and up (of q) between neighbouring layers below the top, and the RBM on top.

    Both kinds of weights are (below, above); `down_biases` are of the layers below, T(x) first, `up_biases` of those
    above. With one hidden layer only the RBM is there.
    """

    down: tuple[Float[Array, "_below _above"], ...]
    down_biases: tuple[Float[Array, " _below"], ...]
    up: tuple[Float[Array, "_below _above"], ...]
    up_biases: tuple[Float[Array, " _above"], ...]
    top: RBMParams

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of h1, ..., h_{L-1}."""
        return tuple(len(bias) for bias in self.up_biases)

    @property
    def encoder(self) -> Encoder:
        return Encoder(self.up, self.up_biases, self.down[0], self.down_biases[0])


def natural_below(params: DBNParams, level: int, above: Float[Array, "*n k"]) -> Float[Array, "*n m"]:
    """Natural parameters of layer `level`, 0 for x, given the layer above it."""
    natural = above @ params.down[level].T
    return natural + along_last(params.down_biases[level], natural)


def log_prior(params: DBNParams, states: Sequence[Float[Array, "*n _k"]]) -> Float[Array, "*n"]:
    """log p(h1, ..., h_{L-1}) + log Z of the top RBM, its hidden layer summed out."""
    last, top = states[-1], params.top
    logits = last @ top.weights
    value = last @ top.visible_bias + jax.nn.softplus(logits + along_last(top.hidden_bias, logits)).sum(axis=-1)
    for level, (below, above) in enumerate(pairwise(states), start=1):
        value = value + log_bernoulli(below, natural_below(params, level, above))
    return value


def log_bernoulli(bits: Float[Array, "*#n k"], logits: Float[Array, "*#n k"]) -> Float[Array, "*n"]:
    """log of the probability of independent bits."""
    return (bits * logits - jax.nn.softplus(logits)).sum(axis=-1)


@eqx.filter_jit
def weigh_rows(
    key: Key[Array, ""],
    params: DBNParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    columns: Columns,
    n_samples: int,
    conditional: bool = False,
) -> Weighted:
    """Weights of samples from q, with E[T(x)] given the observed cells and all weights where `conditional`.

    Rows share their noise. Unobserved cells are at their expected values in what q sees, and left out of p.
    """
    statistics = fill(params.encoder, x, observed, columns)
    wide = None if observed is None else observed[:, None, :]

    def sampler(noise: Float[Array, "c k"]) -> tuple[Float[Array, "n c"], Any]:
        states, log_q = _up(params, statistics, noise[None])
        natural = natural_below(params, 0, states[0])
        log_p = columns.log_density(x[:, None, :], wide, natural) + log_prior(params, states)
        return log_p - log_q, columns.mean(natural) if conditional else None

    return weigh(key, sampler, n_samples=n_samples, n_latent=sum(params.sizes), dtype=x.dtype, keep_weights=conditional)


@eqx.filter_jit
def resampled_rows(
    key: Key[Array, ""],
    noise_key: Key[Array, ""],
    params: DBNParams,
    log_weights: Float[Array, "n S"],
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"],
    columns: Columns,
) -> Float[Array, "n d"]:
    """A row for each row: a sample of q chosen by its weight, then cells from p(x | h1)."""
    choose, emit = jax.random.split(key)
    noise = resample(choose, noise_key, log_weights, sum(params.sizes))
    states, _ = _up(params, fill(params.encoder, x, observed, columns), noise[:, None, :])
    return columns.sample(emit, natural_below(params, 0, states[0][:, 0]))


@eqx.filter_jit
def draw_down(
    key: Key[Array, ""], params: DBNParams, last: Float[Array, "n k"], columns: Columns
) -> Float[Array, "n d"]:
    """The pass down from states of h_{L-1} to cells."""
    keys, state = jax.random.split(key, len(params.down)), last
    for level in range(len(params.down) - 1, 0, -1):
        p = jax.nn.sigmoid(natural_below(params, level, state))
        state = jax.random.bernoulli(keys[level], p).astype(last.dtype)
    return columns.sample(keys[0], natural_below(params, 0, state))


# ------------------------------------------------------------------------ by enumeration of h1, ..., h_{L-1}
def enumerable(params: DBNParams) -> bool:
    """Whether the layers below the top have few enough configurations."""
    return 2 ** sum(params.sizes) <= MAX_CONFIGURATIONS


@eqx.filter_jit
def exact_sums(
    params: DBNParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, columns: Columns
) -> tuple[Float[Array, " n"], Float[Array, "n D"]]:
    """log p(observed cells) + log Z of the top RBM, and E[T(x)] given the observed cells."""

    def features(numbers: Array) -> Array:
        return columns.mean(natural_below(params, 0, _states(params, numbers)[0]))

    return log_sum(2 ** sum(params.sizes), partial(_log_weights, params, x, observed, columns), features)


@eqx.filter_jit
def exact_expectation(
    params: DBNParams, x: Array, observed: Array | None, columns: Columns, features: Callable[[Array], Array]
) -> Float[Array, "n f"]:
    """E[features(natural parameters of all columns)] given the observed cells."""
    of_states = lambda numbers: features(natural_below(params, 0, _states(params, numbers)[0]))  # noqa: E731
    return log_sum(2 ** sum(params.sizes), partial(_log_weights, params, x, observed, columns), of_states)[1]


@eqx.filter_jit
def exact_draws(
    keys: Key[Array, " rows"],
    params: DBNParams,
    n: int,
    x: Float[Array, "rows d"],
    observed: Bool[Array, "rows d"] | None,
    columns: Columns,
) -> Float[Array, "n rows d"]:
    """n exact draws of the cells of each row given its observed ones, with a key for each row."""
    choose, emit = jax.vmap(jax.random.split, out_axes=1)(keys)
    numbers = draw(choose, n, 2 ** sum(params.sizes), partial(_log_weights, params, x, observed, columns))
    first = _states(params, numbers.reshape(-1))[0].reshape(*numbers.shape, -1)
    emitted = lambda own, h: columns.sample(own, natural_below(params, 0, h))  # noqa: E731
    return jax.vmap(emitted, in_axes=(0, 1), out_axes=1)(emit, first)


def _up(
    params: DBNParams, statistics: Float[Array, "n D"], noise: Float[Array, "a c k"]
) -> tuple[list[Float[Array, "n c _k"]], Float[Array, "n c"]]:
    """Samples of h1, ..., h_{L-1} from standard normal noise, and their log q."""
    below, states, log_q = statistics[:, None, :], [], jnp.zeros((), statistics.dtype)
    parts = jnp.split(jax.scipy.special.ndtr(noise), np.cumsum(params.sizes)[:-1], axis=-1)
    for weights, bias, uniform in zip(params.up, params.up_biases, parts, strict=True):
        logits = below @ weights
        logits = logits + along_last(bias, logits)
        state = (uniform < jax.nn.sigmoid(logits)).astype(statistics.dtype)
        log_q = log_q + log_bernoulli(state, logits)
        states.append(state)
        below = state
    return states, log_q


def _states(params: DBNParams, numbers: Int[Array, " m"]) -> list[Array]:
    """h1, ..., h_{L-1} of the configurations with these numbers."""
    every = configurations(numbers, (2,) * sum(params.sizes)).astype(params.top.weights.dtype)
    return jnp.split(every, np.cumsum(params.sizes)[:-1], axis=1)


def _log_weights(
    params: DBNParams, x: Array, observed: Array | None, columns: Columns, numbers: Int[Array, " m"]
) -> Float[Array, "n m"]:
    states = _states(params, numbers)
    table = columns.log_density_table(x, observed, natural_below(params, 0, states[0]))
    return table + log_prior(params, states)[None, :]

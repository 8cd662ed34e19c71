"""Importance sampling with shared noise, streamed: log (1/S) sum_s w_s of many rows, in memory that S does not enter.

Burda, Grosse and Salakhutdinov (2016): the logarithm of an average of S unbiased weights w_s = p(x, z_s) / q(z_s | x)
is in expectation a lower bound on log p(x) that rises with S to it. The samples of all rows come from the same standard
normal noise, so a row's value does not depend on the rows beside it; what that does to the error of a mean over rows is
carried by replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

N_REPLICATES = 16  # groups of samples whose spread is the Monte Carlo error, then itself known to a fifth
CHUNK = 8  # samples alive at a time: 8 x 256 rows of a network's layer fit into a processor's cache, more do not


class Weighted(NamedTuple):
    """Weights of importance samples, summed up.

    log_mean : (n,) log (1/S) sum_s w_s.
    replicates : (n, R) `log_mean` as each of R groups of samples would have it, to first order in the weights:
        log_mean + (mean of the group's weights / mean of all - 1).
    average : self-normalised average of a function of the samples, rows first; None if there was none.
    log_weights : (n, S), or None when they were not asked for.
    stderr : Monte Carlo error of `average`, by the delta method, sqrt(sum_s w_s² (f_s - average)²) / sum_s w_s; None
        where there are no weights or no average. Where a few weights are all, it is too small.
    """

    log_mean: Float[Array, " n"]
    replicates: Float[Array, "n R"]
    average: Any
    log_weights: Float[Array, "n S"] | None
    stderr: Any = None


def shared_noise(key: Key[Array, ""], chunk: Any, n_latent: int, dtype: Any, size: int = CHUNK) -> Array:
    """(size, n_latent) the standard normal noise number chunk * size and on; the same for every row."""
    return jax.random.normal(jax.random.fold_in(key, chunk), (size, n_latent), dtype)


def weigh(
    key: Key[Array, ""],
    sampler: Callable[[Float[Array, "c k"]], tuple[Float[Array, "n c"], Any]],
    *,
    n_samples: int,
    n_latent: int,
    dtype: Any,
    keep_weights: bool = False,
) -> Weighted:
    """Weigh importance samples, `CHUNK` at a time.

    Parameters
    ----------
    key : of the noise.
    sampler : noise (c, k) -> (log weights (n, c), statistics to average (n, c, ...) or None).
    n_samples : S. n_latent : k.
    keep_weights : also return all log weights, for resampling.
    """
    n_groups = min(N_REPLICATES, n_samples)
    n_chunks = math.ceil(n_samples / CHUNK)

    def body(carry, chunk):
        top, sums, average, spread = carry
        log_weights, statistics = sampler(shared_noise(key, chunk, n_latent, dtype))
        number = chunk * CHUNK + jnp.arange(CHUNK)
        log_weights = jnp.where((number < n_samples)[None, :], log_weights, -jnp.inf)
        higher = jnp.maximum(top, log_weights.max(axis=1))
        # Before the first finite weight there is nothing to rescale, and -inf minus -inf would be NaN.
        safe = jnp.where(jnp.isfinite(higher), higher, 0)
        shrink, weights = jnp.exp(top - safe), jnp.exp(log_weights - safe[:, None])
        sums = sums * shrink[:, None] + weights @ jax.nn.one_hot(number % n_groups, n_groups, dtype=dtype)
        average = jax.tree.map(
            lambda a, f: a * _like(shrink, a) + jnp.einsum("nc,nc...->n...", weights, f), average, statistics
        )
        if keep_weights:
            powers = jax.tree.map(lambda f: (jnp.ones_like(f), f, f**2), statistics)
            spread = jax.tree.map(
                lambda a, f: a * _like(shrink**2, a) + jnp.einsum("nc,nc...->n...", weights**2, f), spread, powers
            )
        return (higher, sums, average, spread), log_weights if keep_weights else None

    start = _start(sampler, n_groups, n_latent, dtype, keep_weights)
    (top, sums, average, spread), kept = lax.scan(body, start, jnp.arange(n_chunks))
    total = sums.sum(axis=1)
    log_mean = top + jnp.log(total) - math.log(n_samples)
    replicates = _replicates(log_mean, sums, total, n_samples)
    average = jax.tree.map(lambda a: a / _like(total, a), average)
    stderr = None
    if keep_weights:
        kept = jnp.moveaxis(kept, 0, 1).reshape(len(total), n_chunks * CHUNK)[:, :n_samples]
        stderr = jax.tree.map(lambda a, powers: _error(total, a, *powers), average, spread)
    return Weighted(log_mean, replicates, average, kept, stderr)


def resample(
    key: Key[Array, ""], noise_key: Key[Array, ""], log_weights: Float[Array, "n S"], n_latent: int
) -> Float[Array, "n k"]:
    """The noise of one sample for each row, drawn in proportion to the weights.

    `noise_key` is the key that `weigh` had.
    """
    n_chunks = math.ceil(log_weights.shape[1] / CHUNK)
    noise = jax.vmap(lambda chunk: shared_noise(noise_key, chunk, n_latent, log_weights.dtype))(jnp.arange(n_chunks))
    return noise.reshape(-1, n_latent)[jax.random.categorical(key, log_weights, axis=1)]


def _replicates(log_mean: Array, sums: Array, total: Array, n_samples: int) -> Array:
    """(n, R) the log mean by each group of samples alone, to first order, from the groups' sums of weights (n, R)."""
    n_groups = sums.shape[1]
    sizes = jnp.array([len(range(g, n_samples, n_groups)) for g in range(n_groups)], sums.dtype)
    share = (sums / sizes[None, :]) / (total / n_samples)[:, None]
    return log_mean[:, None] + share - 1


def _error(total: Array, mean: Array, ones: Array, values: Array, squares: Array) -> Array:
    """The error of a self-normalised mean from the sums of w², w² f and w² f²; rounding must not make it imaginary."""
    return jnp.sqrt(jnp.maximum(squares - 2 * mean * values + mean**2 * ones, 0)) / _like(total, mean)


def _start(sampler: Callable, n_groups: int, n_latent: int, dtype: Any, spread: bool) -> Any:
    shape = jax.ShapeDtypeStruct((CHUNK, n_latent), dtype)
    log_weights, statistics = jax.eval_shape(sampler, shape)
    n = log_weights.shape[0]
    average = jax.tree.map(lambda a: jnp.zeros((n, *a.shape[2:]), a.dtype), statistics)
    powers = jax.tree.map(lambda a: (a, a, a), average) if spread else None
    return jnp.full(n, -jnp.inf, dtype), jnp.zeros((n, n_groups), dtype), average, powers


def _like(per_row: Array, array: Array) -> Array:
    return per_row.reshape(-1, *(1,) * (array.ndim - 1))

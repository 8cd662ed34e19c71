"""Noise-contrastive estimation: learn exp(-E(x) + c) by telling data from noise; c then tends to -log Z.

Gutmann and Hyvärinen (2012). With k noise rows a datum, a row x is data with log-odds
G(x) = -E(x) + c - log q(x) - log k, and the loss is that of logistic regression on G. It is least where exp(-E + c) is
the density of the data, normalised. As k grows its error falls to that of maximum likelihood; how fast depends on how
much the noise q resembles the data. Noise must be possible wherever data are. Cost: 1 + k energies a row.

The conditional form, for p(y | context) over many y, is that of Mnih and Teh (2012): scores need no normaliser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from likely.runtime import by_blocks
from likely.training.batches import Batch

Energy = Callable[[Any, Any], Array]  # (module, rows (n, d)) -> (n,)


class Noise(eqx.Module):
    """A distribution to draw noise from; the functions are static, their numbers are in `params`.

    Parameters
    ----------
    params : a pytree of arrays, or None.
    sample : (key, params, n) -> rows (n, d).
    log_prob : (params, rows) -> (n,), normalised.
    """

    params: Any
    sample: Callable[[Array, Any, int], Array] = eqx.field(static=True)
    log_prob: Callable[[Any, Array], Array] = eqx.field(static=True)

    @classmethod
    def of(cls, sample: Callable[[Array, int], Array], log_prob: Callable[[Array], Array]) -> Noise:
        """From two plain functions: sample(key, n) and log_prob(rows)."""
        return cls(None, partial(_sample, sample), partial(_log_prob, log_prob))


class WithConstant(eqx.Module):
    """A model with the constant c that noise-contrastive estimation learns beside it, an estimate of -log Z."""

    model: Any
    constant: Float[Array, ""]


def noise_contrastive(
    module: WithConstant, batch: Batch, key: Key[Array, ""], noise: Noise, *, energy: Energy, n_noise: int = 1
) -> tuple[Array, tuple[Noise, dict[str, Array]]]:
    """The objective: logistic regression of data against noise drawn anew for each batch.

    Parameters
    ----------
    noise : state; it is not changed.
    energy : (module.model, rows) -> (n,).
    n_noise : k, noise rows for each row of the data.

    Returns
    -------
    The loss of a data row and its noise; the metric "log_partition" is -c, the present estimate of log Z.
    """
    x, share = jnp.asarray(batch.x), jnp.asarray(batch.weight) / jnp.sum(batch.weight)
    drawn = noise.sample(key, noise.params, n_noise * len(x))
    rows = jnp.concatenate([x, drawn])  # One pass through the network serves both.
    ratio = module.constant - energy(module.model, rows) - noise.log_prob(noise.params, rows)
    # All noise counts the same, that drawn beside the rows which only fill up a batch as well: it is as good.
    even = jnp.full(len(drawn), 1 / len(drawn), share.dtype)
    loss = nce_loss(ratio[: len(x)], ratio[len(x) :], share, even, n_noise)
    return loss, (noise, {"log_partition": -module.constant})


def nce_loss(
    data: Float[Array, " n"],
    noise: Float[Array, " m"],
    data_share: Float[Array, " n"],
    noise_share: Float[Array, " m"],
    n_noise: float,
) -> Float[Array, ""]:
    """E_data[-log σ(G)] + k E_noise[-log σ(-G)], G = log-ratio - log k.

    Parameters
    ----------
    data, noise : log p̃(x) - log q(x) of data and of noise rows.
    data_share, noise_share : weights that sum to 1 each.

    Examples
    --------
    A model that is the noise itself can only guess, 1 in 2 for k = 1:

    >>> even, one = jnp.zeros(1), jnp.ones(1)
    >>> round(float(nce_loss(even, even, one, one, 1)), 4), round(2 * math.log(2), 4)
    (1.3863, 1.3863)
    """
    shift = math.log(n_noise)
    return data_share @ jax.nn.softplus(shift - data) + n_noise * (noise_share @ jax.nn.softplus(noise - shift))


def conditional_logits(scores: Float[Array, "*n"], log_noise: Float[Array, "*n"], n_noise: float) -> Float[Array, "*n"]:
    """Log-odds that y came with its context rather than from noise: s(y, context) - log k q(y).

    Where k q = 1 (uniform q over k outcomes) these are the scores themselves: negative sampling.
    """
    return scores - log_noise - math.log(n_noise)


def conditional_nce_loss(
    target_scores: Float[Array, " n"],
    noise_scores: Float[Array, "n k"],
    target_log_noise: Float[Array, " n"],
    noise_log_noise: Float[Array, "n k"],
) -> Float[Array, " n"]:
    """The loss of each context with the outcome that followed it, and k outcomes drawn from noise.

    Scores that minimise its expectation are log p(y | context), normalised without ever summing over y.

    Parameters
    ----------
    target_scores, noise_scores : s(y, context) of the outcome, and of the noise.
    target_log_noise, noise_log_noise : log q(y) of the same.

    Examples
    --------
    >>> two = jnp.log(jnp.array([0.5]))
    >>> float(conditional_nce_loss(two, two[:, None], two, two[:, None])[0])     # again 2 log 2
    1.386...
    """
    k = noise_scores.shape[1]
    target = jax.nn.softplus(-conditional_logits(target_scores, target_log_noise, k))
    return target + jax.nn.softplus(conditional_logits(noise_scores, noise_log_noise, k)).sum(axis=1)


def check_support(noise: Noise, rows: np.ndarray) -> None:
    """Raise if the noise cannot produce a row of the data, with that row; rows with NaN are passed over.

    Examples
    --------
    >>> uniform = Noise.of(jax.random.uniform, lambda x: jnp.where((x >= 0) & (x <= 1), 0.0, -jnp.inf).sum(axis=1))
    >>> check_support(uniform, np.array([[0.5], [1.5]]))
    Traceback (most recent call last):
    ValueError: the noise has no full support: its log density at row 1 is -inf. Noise must be possible wherever ...
    """
    whole = np.flatnonzero(~np.isnan(rows).any(axis=1))
    if not len(whole):
        return
    values = by_blocks(lambda x, _: _log_noise(noise, x), rows[whole])
    refuse_rows(whole[~np.isfinite(values)], lambda row: f"its log density at row {row} is {_at(values, whole, row)}")


def refuse_rows(rows: np.ndarray, what: Callable[[int], str]) -> None:
    """Raise for the first of some rows that a noise cannot produce."""
    if len(rows):
        raise ValueError(
            f"the noise has no full support: {what(int(rows[0]))}. Noise must be possible wherever data are: widen it, "
            "or add a pseudo_count to the model it comes from."
        )


@eqx.filter_jit
def _log_noise(noise: Noise, x: Array) -> Array:
    return noise.log_prob(noise.params, x)


def _at(values: np.ndarray, whole: np.ndarray, row: int) -> str:
    return f"{values[np.searchsorted(whole, row)]:g}"


def _sample(function: Callable[[Array, int], Array], key: Array, params: Any, n: int) -> Array:
    return function(key, n)


def _log_prob(function: Callable[[Array], Array], params: Any, rows: Array) -> Array:
    return function(rows)

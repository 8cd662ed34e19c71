"""Score matching: fit ψ(x) = ∇ₓ log p(x) = -∇ₓ E(x) to the data's, which needs no log Z, for real x.

Hyvärinen (2005): up to a constant, ½ E|ψ - ψ_data|² is E[Σ_i ∂_i ψ_i + ½ ψ_i²], in which the data's own score no longer
occurs. Three ways to it: exactly, by the trace of the Hessian (d second derivatives a row); sliced, by its expectation
over random directions (Song et al., 2020; one each); denoising, by regression on noise that was added (Vincent, 2011;
no second derivatives, but the density learned is that of data with noise). For Gaussians it is maximum likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from likely.training.batches import Batch

Energy = Callable[[Any, Any], Array]  # (module, rows (n, d)) -> (n,)
Returned = tuple[Array, tuple[Any, dict[str, Array]]]


def score(energy: Energy, module: Any, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """-∇ₓ E of each row."""
    # Rows do not meet in an energy, so the gradient of their sum is that of each.
    return -jax.grad(lambda rows: energy(module, rows).sum())(x)


def score_matching(module: Any, batch: Batch, key: Key[Array, ""], state: Any, *, energy: Energy) -> Returned:
    """The objective, exactly: mean of Σ_i ∂_i ψ_i + ½ ψ_i² over the rows.

    Cost: d derivatives of the gradient a row, one column after the other, in the memory of one.
    """
    x = jnp.asarray(batch.x)
    loss = _mean(exact_terms(lambda rows: score(energy, module, rows), x), batch)
    return loss, (state, {})


def exact_terms(psi: Callable[[Array], Array], x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Σ_i ∂_i ψ_i + ½ ψ_i² of each row, the trace by one forward derivative of ψ for each column.

    Examples
    --------
    A standard normal: ψ = -x, so -1 + ½ at x = ±1.

    >>> exact_terms(lambda x: -x, jnp.array([[1.0], [-1.0]])).tolist()
    [-0.5, -0.5]
    """

    def add(trace: Array, direction: Array) -> tuple[Array, None]:
        _, change = jax.jvp(psi, (x,), (jnp.broadcast_to(direction, x.shape),))
        return trace + change @ direction, None

    trace, _ = lax.scan(add, jnp.zeros(len(x), x.dtype), jnp.eye(x.shape[1], dtype=x.dtype))
    return trace + 0.5 * (psi(x) ** 2).sum(axis=1)


def sliced_score_matching(
    module: Any, batch: Batch, key: Key[Array, ""], state: Any, *, energy: Energy, n_slices: int = 1
) -> Returned:
    """The objective with the trace estimated by vᵀ(∂ψ)v over random signs v, whose expectation it is.

    The term ½|ψ|² is taken whole (the form with reduced variance). In one dimension this is exact.

    Parameters
    ----------
    n_slices : directions a row.
    """
    x = jnp.asarray(batch.x)
    signs = jax.random.rademacher(key, (n_slices, *x.shape), x.dtype)
    loss = _mean(sliced_terms(lambda rows: score(energy, module, rows), x, signs), batch)
    return loss, (state, {})


def sliced_terms(
    psi: Callable[[Array], Array], x: Float[Array, "n d"], directions: Float[Array, "s n d"]
) -> Float[Array, " n"]:
    """As `exact_terms`, the trace along given directions of mean square 1."""

    def add(carry: tuple[Array, Array], direction: Array) -> tuple[tuple[Array, Array], None]:
        trace, _ = carry
        value, change = jax.jvp(psi, (x,), (direction,))
        return (trace + (change * direction).sum(axis=1), value), None

    (trace, value), _ = lax.scan(add, (jnp.zeros(len(x), x.dtype), jnp.zeros_like(x)), directions)
    return trace / len(directions) + 0.5 * (value**2).sum(axis=1)


def denoising_score_matching(
    module: Any, batch: Batch, key: Key[Array, ""], state: Any, *, energy: Energy, noise_scale: float = 0.1
) -> Returned:
    """The objective ½|σψ(x + σε) + ε|², ε standard normal: the best guess of the noise from a noisy row is -σψ.

    It has the minimiser of exact score matching on data with noise added; σ = `noise_scale` is the blur of what is
    learned, and the smaller it is the noisier the gradient.
    """
    x = jnp.asarray(batch.x)
    noise = jax.random.normal(key, x.shape, x.dtype)
    loss = _mean(denoising_terms(lambda rows: score(energy, module, rows), x, noise, noise_scale), batch)
    return loss, (state, {})


def denoising_terms(
    psi: Callable[[Array], Array], x: Float[Array, "n d"], noise: Float[Array, "n d"], noise_scale: float
) -> Float[Array, " n"]:
    """½|σψ(x + σε) + ε|² of each row."""
    return 0.5 * ((noise_scale * psi(x + noise_scale * noise) + noise) ** 2).sum(axis=1)


def _mean(terms: Float[Array, " n"], batch: Batch) -> Float[Array, ""]:
    weight = jnp.asarray(batch.weight)
    return (weight @ terms) / weight.sum()

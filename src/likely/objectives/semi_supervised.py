"""The bound for rows of which some have a label: log p(x, y) where y is known, log p(x) = log Σ_y p(x, y) elsewhere.

Kingma, Rezende, Mohamed and Welling (2014), their M2. With B(x, y) the evidence lower bound of x given y:

    log p(x, y) >= log p(y) + B(x, y),        log p(x) >= Σ_y q(y | x) (log p(y) + B(x, y) - log q(y | x)).

The sum over labels is exact: one bound for each class. Labelled rows also teach q(y | x), which they would not touch;
at first they alone do, since a q that has not seen labels yet would settle on classes of its own.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.objectives.elbo import LatentModel, elbo, noise_of_rows


class LabelledModel(Protocol):
    """A latent model for each of K labels, and what connects them."""

    @property
    def n_latent(self) -> int:
        """Number of latents."""

    @property
    def log_prior(self) -> Array:
        """log p(y) up to a constant, (K,)."""

    def given(self, label: Any) -> LatentModel:
        """The model of x for one label, which may be traced."""

    def label_logits(self, x: Array, observed: Array | None) -> Array:
        """log q(y | x) up to a constant, (n, K)."""


def bounds_by_label(
    module: LabelledModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    noise: Float[Array, "n s k"],
) -> Float[Array, "n K"]:
    """log p(y) + B(x, y) of each row and label, from the same noise."""
    log_prior = jax.nn.log_softmax(module.log_prior)
    labels = jnp.arange(len(log_prior))
    # By `vmap` only the labels' part of each first layer is repeated, not its product with the rows.
    bounds = jax.vmap(lambda label: elbo(module.given(label), x, observed, noise)[0])(labels)
    return (log_prior[:, None] + bounds).T


def unlabelled_bound(joint: Float[Array, "n K"], logits: Float[Array, "n K"]) -> Float[Array, " n"]:
    """The bound on log p(x), from log p(y) + B(x, y) and the logits of q(y | x).

    With q(y | x) in proportion to e^joint it is the log of their sum:

    >>> joint = jnp.log(jnp.array([[0.125, 0.375]]))
    >>> round(float(jnp.exp(unlabelled_bound(joint, joint)[0])), 6)
    0.5
    """
    log_q = jax.nn.log_softmax(logits, axis=1)
    return (jnp.exp(log_q) * (joint - log_q)).sum(axis=1)


def negative_labelled_bound(
    module: LabelledModel,
    batch: Any,
    key: Key[Array, ""],
    state: Any,
    *,
    label_weight: float,
    has_holes: bool,
    warmup_steps: int = 0,
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """Objective for `likely.training.train`; the rows' last column is the label's code, unobserved where unknown.

    Parameters
    ----------
    state : number of steps done, an integer array, when there is a warm-up; else None.
    warmup_steps : steps in which only labelled rows teach q(y | x); in as many more, the gradient of the others rises.
    label_weight : of log q(y | x), for each labelled row.
    has_holes : whether cells other than labels may be unobserved.
    """
    influence, state = _influence(state, warmup_steps, batch.x.dtype)
    x, observed, labels, known = _parts(batch, has_holes)
    noise = noise_of_rows(key, module, x, 1)
    joint, logits = bounds_by_label(module, x, observed, noise), module.label_logits(x, observed)
    own = jnp.take_along_axis(joint, labels, axis=1)[:, 0]
    log_label = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=1), labels, axis=1)[:, 0]
    # The value is that of the logits; the gradient that goes back through it is only `influence` times as large.
    taught = influence * logits + (1 - influence) * lax.stop_gradient(logits)
    value = jnp.where(known, own + label_weight * log_label, unlabelled_bound(joint, taught))
    share = batch.weight / batch.weight.sum()
    right = known * (jnp.argmax(logits, axis=1) == labels[:, 0])
    accuracy = (share @ right.astype(x.dtype)) / jnp.maximum(share @ known.astype(x.dtype), 1e-12)
    return -(share @ value), (state, {"accuracy": accuracy})


def labelled_loss(module: LabelledModel, batch: Any, key: Key[Array, ""], *, has_holes: bool) -> Float[Array, " n"]:
    """Minus the bound on log p(x) of each row, for validation; labels are not looked at."""
    x, observed, _, _ = _parts(batch, has_holes)
    noise = noise_of_rows(key, module, x, 4)
    return -unlabelled_bound(bounds_by_label(module, x, observed, noise), module.label_logits(x, observed))


def _influence(state: Any, warmup_steps: int, dtype: Any) -> tuple[Any, Any]:
    """How far rows without a label teach q(y | x) at this step, and the state of the next one."""
    if not warmup_steps:
        return 1.0, state
    return jnp.clip((state + 1) / warmup_steps - 1, 0, 1).astype(dtype), state + 1


def _parts(batch: Any, has_holes: bool) -> tuple[Array, Array | None, Array, Array]:
    """Cells, which are observed, labels (n, 1), and which of them are known."""
    if batch.observed is None:
        observed, known = None, jnp.ones(len(batch.x), bool)
    else:
        observed, known = (batch.observed[:, :-1] if has_holes else None), batch.observed[:, -1]
    return batch.x[:, :-1], observed, batch.x[:, -1:].astype(int), known

"""The evidence lower bound with discrete latents: log p(x) >= E_q[log p(x, z)] + H(q), q(z | x) independent units.

Mnih and Gregor (2014); Jang, Gu and Poole (2017). Its gradient in q is that of an expectation over discrete z, and any
estimator of `likely.gradients` gives it. What has a closed form is left out of the expectation: the entropy of q, and
the prior of the topmost units, which is linear in z. Only observed cells are counted.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from likely.gradients import Estimator
from likely.gradients.distributions import Discrete


class DiscreteModel(Protocol):
    """What the bound needs of a module; z is (s, n, units ...), relaxed or not."""

    family: Discrete

    def posterior(self, x: Array, observed: Array | None) -> Array:
        """Logits of q(z | x), (n, units ...)."""

    def context(self, x: Array, observed: Array | None) -> Array:
        """What a learned baseline reads of each row."""

    def log_likelihood(self, x: Array, observed: Array | None, z: Array) -> Array:
        """log p(x | z), (s, n), of the observed cells."""

    def log_lower_prior(self, z: Array) -> Array:
        """log p(lower units | upper units), (s, n); 0 of a module with one layer."""

    def log_upper_prior(self, z: Array) -> Array:
        """log p(topmost units), (s, n), linear in z."""


def log_weights(
    module: DiscreteModel, x: Array, observed: Array | None, logits: Array, z: Array
) -> Float[Array, "s n"]:
    """log p(x, z) - log q(z | x)."""
    prior = module.log_lower_prior(z) + module.log_upper_prior(z)
    return module.log_likelihood(x, observed, z) + prior - module.family.log_prob(logits, z)


def closed_part(module: DiscreteModel, logits: Array) -> Float[Array, " n"]:
    """E_q log p(topmost units) + H(q)."""
    mean = module.family.mean(logits)
    return module.log_upper_prior(mean[None])[0] + module.family.entropy(logits)


def bound(
    module: DiscreteModel, x: Array, observed: Bool[Array, "n d"] | None, logits: Array, z: Array
) -> Float[Array, " n"]:
    """The bound of each row from s draws z of q, hard or relaxed."""
    sampled = module.log_likelihood(x, observed, z) + module.log_lower_prior(z)
    return sampled.mean(axis=0) + closed_part(module, logits)


def negative_discrete_elbo(
    module: DiscreteModel, batch: Any, key: Key[Array, ""], state: Any, *, estimator: Estimator, n_samples: int
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean bound of the batch's rows.

    Parameters
    ----------
    state : the estimator's.
    estimator : of the gradient; one of the bound of several draws (VIMCO) makes it the importance-weighted bound.
    n_samples : draws a row.
    """
    x, observed = batch.x, batch.observed
    logits = module.posterior(x, observed)

    def f(z):
        if estimator.of_bound:
            return log_weights(module, x, observed, logits, z)
        return module.log_likelihood(x, observed, z) + module.log_lower_prior(z)

    context = module.context(x, observed)
    value, state = estimator.surrogate(key, module.family, logits, f, n_samples, state, context)
    if not estimator.of_bound:
        value = value + closed_part(module, logits)
    mean = (batch.weight / batch.weight.sum()) @ value
    return -mean, (state, {"elbo": mean})


def discrete_elbo_loss(
    module: DiscreteModel, batch: Any, key: Key[Array, ""], *, n_samples: int = 4
) -> Float[Array, " n"]:
    """Minus the bound of each row, from hard draws, for validation."""
    logits = module.posterior(batch.x, batch.observed)
    return -bound(module, batch.x, batch.observed, logits, module.family.sample(key, logits, n_samples))


def draws_of_noise(family: Discrete, logits: Float[Array, "n ..."], noise: Float[Array, "s ..."]) -> Array:
    """(s, n, ...) the logits of every row perturbed by the same noise; `harden` and `soften` make draws of them."""
    shape = (len(noise), *logits.shape)
    return family.perturb(jnp.broadcast_to(logits[None], shape), jnp.broadcast_to(noise[:, None], shape))

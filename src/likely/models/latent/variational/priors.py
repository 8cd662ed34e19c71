"""Priors p(z) of autoencoders: a standard normal, a mixture of Gaussians, or the VampPrior.

The VampPrior (Tomczak and Welling, 2018) is p(z) = (1/C) Σ_c q(z | u_c): the recognition network's own answers to C
pseudo-inputs, which are learned. Cost of log p(z): k operations, for mixtures C times that.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from likely.models.latent.variational.posteriors import HALF_LOG_TWO_PI, Diagonal

PRIORS = ("normal", "mixture", "vamp")


class StandardNormal(eqx.Module):
    """N(0, I)."""

    def log_prob(self, z: Float[Array, "n s k"]) -> Float[Array, "n s"]:
        """Log p(z)."""
        return -0.5 * (z**2).sum(axis=-1) - z.shape[-1] * HALF_LOG_TWO_PI

    def divergence(self, q: Any, z: Float[Array, "n s k"], log_q: Float[Array, "n s"]) -> Float[Array, " n"]:
        """KL(q || p), in closed form where q has one."""
        closed = q.kl_to_standard_normal(z)
        return _sampled(self, z, log_q) if closed is None else closed

    def sample(self, key: Key[Array, ""], n: int, k: int, dtype: Any) -> Float[Array, "n k"]:
        """z ~ p(z)."""
        return jax.random.normal(key, (n, k), dtype)


class MixtureOf(eqx.Module):
    """Σ_c weight_c q_c(z), q a family with `log_prob` that holds C members as its rows."""

    log_weight: Float[Array, " C"]  # up to a constant
    q: Any

    def log_prob(self, z: Float[Array, "n s k"]) -> Float[Array, "n s"]:
        """Log p(z)."""
        points = z.reshape(1, -1, z.shape[-1])
        members = self.q.log_prob(jnp.broadcast_to(points, (len(self.log_weight), *points.shape[1:])))
        return self._mixed(members).reshape(z.shape[:-1])

    def divergence(self, q: Any, z: Float[Array, "n s k"], log_q: Float[Array, "n s"]) -> Float[Array, " n"]:
        """KL(q || p), from the samples."""
        if not isinstance(self.q, Diagonal):
            return _sampled(self, z, log_q)
        log_p = self._mixed(self.q.log_prob_everywhere(z.reshape(-1, z.shape[-1])))
        return (log_q - log_p.reshape(log_q.shape)).mean(axis=1)

    def sample(self, key: Key[Array, ""], n: int, k: int, dtype: Any) -> Float[Array, "n k"]:
        """z ~ p(z)."""
        member_key, noise_key = jax.random.split(key)
        member = jax.random.categorical(member_key, self.log_weight, shape=(n,))
        chosen = jax.tree.map(lambda a: a[member], self.q)
        return chosen.sample(jax.random.normal(noise_key, (n, 1, k), dtype))[0][:, 0]

    def _mixed(self, members: Float[Array, "C p"]) -> Float[Array, " p"]:
        """The mixture's log density at points, from its members'."""
        return jax.nn.logsumexp(members + jax.nn.log_softmax(self.log_weight)[:, None], axis=0)


def _sampled(prior: Any, z: Array, log_q: Array) -> Array:
    return (log_q - prior.log_prob(z)).mean(axis=1)

"""The likelihood of chains of conditionals, one order drawn for each step: E_c[-log p_c(x)] ≥ -log (1/m) Σ_c p_c(x).

Uria, Murray and Larochelle (2014): networks that share their weights among orders are trained on one order at a time.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class ChainModel(Protocol):
    """What the objective needs of a module."""

    @property
    def n_chains(self) -> int:
        """Orders."""

    def log_prob(
        self, chain: Array, x: Array, observed: Array | None, key: Array | None = None, dropout: float = 0.0
    ) -> Array:
        """log p (n,) of the observed cells of rows (n, d) along an order; with a key, units are dropped."""


def negative_log_likelihood(
    module: ChainModel, batch: Any, key: Key[Array, ""], state: None, *, dropout: float = 0.0
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean log likelihood along an order drawn for the step.

    Parameters
    ----------
    dropout : share of the hidden units that are left out, each anew for every row and step.
    """
    chain_key, drop_key = jax.random.split(key)
    chain = jax.random.randint(chain_key, (), 0, module.n_chains)
    share = batch.weight / batch.weight.sum()
    value = module.log_prob(chain, batch.x, batch.observed, drop_key if dropout else None, dropout)
    return -(share @ value), (state, {})


def mixture_loss(module: ChainModel, batch: Any, key: Key[Array, ""]) -> Float[Array, " n"]:
    """Minus log (1/m) Σ_c p_c(x) of each row, for validation."""
    logs = [module.log_prob(jnp.asarray(chain), batch.x, batch.observed) for chain in range(module.n_chains)]
    return math.log(module.n_chains) - jax.nn.logsumexp(jnp.stack(logs), axis=0)

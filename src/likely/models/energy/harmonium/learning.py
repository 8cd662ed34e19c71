"""How a harmonium learns: its coordinates while it does, how holes are filled, and what the objective asks of it.

While it learns, the parameter -1/(2s²) of a real column is held as log s, which any step leaves valid. The objective
itself, contrastive divergence, is `likely.objectives.contrastive_bipartite`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium import enumeration
from likely.models.energy.harmonium.machine import (
    RBMParams,
    gibbs_hidden,
    hidden_logits,
    mean_field,
    sample_hidden,
    unnormalized_log_prob,
    visible_natural,
)
from likely.models.energy.harmonium.tempering import tempered_step
from likely.montecarlo import run_chains
from likely.objectives.contrastive import Rates, unit_rates
from likely.objectives.contrastive_bipartite import ChainState, bipartite_contrast
from likely.training import Batch

# The clamped chain that fills holes starts at a mean field, near where it should be, so that a few steps of both are
# enough; every update pays for them.
_MEAN_FIELD_STEPS, _FILLING_SWEEPS = 5, 3

# The noise of a real column stays within this factor of its spread in the data. Without a limit, a column that is a
# function of the others would learn a density that grows for ever.
_LOG_SCALE_LIMIT = math.log(100.0)


class Harmonium(NamedTuple):
    """A harmonium of these columns, as the objective sees it (`contrastive_bipartite.TwoLayers`)."""

    columns: Columns

    def natural(self, params: RBMParams) -> RBMParams:
        return to_natural(params, self.columns)

    def rates(self, machine: RBMParams, variance: Array) -> Rates | None:
        return unit_rates(machine.visible_bias, variance, self.columns)

    def fill(self, key: Array, machine: RBMParams, batch: Batch) -> Float[Array, "n D"]:
        """T(x) of the batch, unobserved cells drawn by a short clamped chain."""
        x = jnp.asarray(batch.x)
        if batch.observed is None:
            return self.columns.statistics(x)
        observed = jnp.asarray(batch.observed)
        begin, move, end = jax.random.split(key, 3)
        _, guess = mean_field(machine, x, observed, self.columns, _MEAN_FIELD_STEPS)
        hidden = jax.random.bernoulli(begin, guess).astype(guess.dtype)
        clamped = lambda k, h: gibbs_hidden(k, machine, h, self.columns, (x, observed))  # noqa: E731
        hidden = run_chains(move, clamped, hidden, _FILLING_SWEEPS)
        drawn = self.columns.sample(end, visible_natural(machine, hidden))
        return self.columns.statistics(jnp.where(observed, x, drawn))

    def statistics(self, rows: Array) -> Float[Array, "n D"]:
        return self.columns.statistics(rows)

    def hidden_logits(self, machine: RBMParams, statistics: Array) -> Float[Array, "n k"]:
        return hidden_logits(machine, statistics)

    def draw_hidden(self, key: Array, logits: Array) -> Float[Array, "n k"]:
        return sample_hidden(key, logits)

    def draw_visible(self, key: Array, machine: RBMParams, hidden: Array) -> Float[Array, "n d"]:
        return self.columns.sample(key, visible_natural(machine, hidden))

    def gibbs(self, key: Array, machine: RBMParams, hidden: Array) -> Float[Array, "n k"]:
        return gibbs_hidden(key, machine, hidden, self.columns)

    def tempered(
        self, key: Array, machine: RBMParams, base: Array, hidden: Array, parity: Array
    ) -> tuple[Float[Array, "c r k"], Float[Array, "c d"]]:
        return tempered_step(key, machine, base, hidden, self.columns, parity)


def contrast(
    params: RBMParams, batch: Batch, key: Key[Array, ""], state: ChainState, *, columns: Columns, **options: Any
) -> tuple[Array, tuple[ChainState, dict[str, Array]]]:
    """The objective of a harmonium, by `bipartite_contrast`, which has the options."""
    return bipartite_contrast(params, batch, key, state, layers=Harmonium(columns), **options)


def negative_log_prob(
    params: RBMParams, batch: Batch, key: Key[Array, ""], *, columns: Columns, side: enumeration.Side
) -> Float[Array, " n"]:
    """The validation loss of a machine small enough to enumerate: minus the exact log p of each row."""
    machine, x = to_natural(params, columns), jnp.asarray(batch.x)
    nothing = jnp.zeros_like(x[:1])
    log_z = enumeration.clamped_sum(machine, nothing, jnp.zeros(nothing.shape, bool), columns, side)[0]
    if batch.observed is None:
        return log_z - unnormalized_log_prob(machine, x, columns)
    return log_z - enumeration.clamped_sum(machine, x, jnp.asarray(batch.observed), columns, side)[0]


def to_natural(params: RBMParams, columns: Columns) -> RBMParams:
    """From learning coordinates, log s for each real column's x², to the plain parameters -1/(2s²)."""
    if not columns.is_quadratic.any():
        return params
    return eqx.tree_at(lambda p: p.visible_bias, params, _natural(params.visible_bias, columns))


def to_learning(params: RBMParams, columns: Columns) -> RBMParams:
    """The inverse of `to_natural`."""
    if not columns.is_quadratic.any():
        return params
    return eqx.tree_at(lambda p: p.visible_bias, params, _with_log_scales(params.visible_bias, columns))


# Both are asked for outside compiled functions as well, where each operation would be a program for every new width.
@partial(jax.jit, static_argnames="columns")
def _natural(bias: Float[Array, " D"], columns: Columns) -> Float[Array, " D"]:
    return jnp.where(columns.is_quadratic, -0.5 * jnp.exp(-2 * bias), bias)


@partial(jax.jit, static_argnames="columns")
def _with_log_scales(bias: Float[Array, " D"], columns: Columns) -> Float[Array, " D"]:
    log_scale = -0.5 * jnp.log(jnp.where(columns.is_quadratic, -2 * bias, 1.0))
    return jnp.where(columns.is_quadratic, log_scale, bias)


def keep_scales(params: RBMParams, columns: Columns) -> RBMParams:
    """Projection after each update: no real column's noise vanishes or explodes."""
    bias = params.visible_bias
    kept = jnp.clip(bias, -_LOG_SCALE_LIMIT, _LOG_SCALE_LIMIT)
    return eqx.tree_at(lambda p: p.visible_bias, params, jnp.where(columns.is_quadratic, kept, bias))

"""How an energy learns: any of the objectives, on rows whose holes the model itself fills.

Unobserved cells are drawn anew whenever their row is used: several candidates of them all from independent columns, one
of which is chosen in proportion to exp(g) (sampling-importance-resampling). That is the model's conditional the more
nearly the more candidates there are beside the number of cells; it makes learning a stochastic EM.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from likely.models.energy.network.function import EnergyParams, Kind, draw_reference, energy, tilt
from likely.models.energy.network.moves import Target, look, move, tuned
from likely.montecarlo import run_chains
from likely.objectives.contrastive import contrastive_divergence
from likely.objectives.nce import WithConstant, noise_contrastive
from likely.objectives.pseudo_likelihood import negative_pseudo_likelihood
from likely.objectives.ratio_matching import ratio_matching
from likely.objectives.score_matching import denoising_score_matching, score_matching, sliced_score_matching
from likely.training import Batch

# Candidates for the unobserved cells of a row, of which one is chosen by its weight: each costs an energy at every use.
CANDIDATES = 16

# How far the log step sizes of the chains move for an acceptance that is off by 1, per update: slow beside the noise of
# one update's acceptance, fast beside learning.
TUNING_RATE = 0.05

OBJECTIVES = {  # and the kinds of columns that each is for; None: any
    "nce": None,
    "pcd": None,
    "cd": None,
    "score_matching": "real",
    "sliced": "real",
    "denoising": "real",
    "pseudo_likelihood": "binary",
    "ratio_matching": "binary",
}


class Options(NamedTuple):
    """Hyper-parameters of the objectives; static."""

    objective: str
    n_noise: int
    n_steps: int
    n_slices: int
    noise_scale: float
    n_cells: int | None


class LearningState(eqx.Module):
    """What learning carries along: the noise of NCE, the chains of PCD, the log step sizes of the moves."""

    noise: Any  # Noise, or None
    chains: Any  # (c, d), or None
    log_steps: Float[Array, " 2"]


def learn(
    params: EnergyParams, batch: Batch, key: Key[Array, ""], state: LearningState, *, kind: Kind, options: Options
) -> tuple[Array, tuple[LearningState, dict[str, Array]]]:
    """The objective that was asked for, on completed rows."""
    fill, adapt, own = jax.random.split(key, 3)
    fixed = jax.tree.map(lax.stop_gradient, eqx.filter(params, eqx.is_array))
    fixed = eqx.combine(fixed, params)
    batch = filled(fill, fixed, batch, kind)
    of = lambda module, rows: energy(module, rows, kind)  # noqa: E731
    name = options.objective
    if name == "nce":
        together = WithConstant(params, params.constant)
        loss, (_, metrics) = noise_contrastive(together, batch, own, state.noise, energy=of, n_noise=options.n_noise)
        return loss, (state, metrics)
    if name in ("pcd", "cd"):
        return _contrast(params, fixed, batch, own, adapt, state, kind, options)
    plain: dict[str, Any] = {
        "score_matching": (score_matching, {}),
        "sliced": (sliced_score_matching, {"n_slices": options.n_slices}),
        "denoising": (denoising_score_matching, {"noise_scale": options.noise_scale}),
        "pseudo_likelihood": (negative_pseudo_likelihood, {"n_cells": options.n_cells}),
        "ratio_matching": (ratio_matching, {"n_cells": options.n_cells}),
    }
    function, more = plain[name]
    return function(params, batch, own, state, energy=of, **more)


def _contrast(
    params: EnergyParams,
    fixed: EnergyParams,
    batch: Batch,
    key: Array,
    adapt: Array,
    state: LearningState,
    kind: Kind,
    options: Options,
) -> tuple[Array, tuple[LearningState, dict[str, Array]]]:
    """Contrastive divergence, its step sizes adapted to the energy as it changes."""
    persistent, one = options.objective == "pcd", jnp.ones((), state.log_steps.dtype)
    rows = state.chains if persistent else jnp.asarray(batch.x)
    begun = Target(fixed, kind, None, one, state.log_steps)
    chains, log_steps = tuned(adapt, look(fixed, rows, kind), begun, TUNING_RATE)
    target = Target(fixed, kind, None, one, log_steps)

    def kernel(key: Array, _: Any, rows: Array) -> Array:
        """All moves of an update, from the chains on: what is known of a state goes from one to the next."""
        return run_chains(key, lambda k, c: move(k, c, target, len(rows)), chains, options.n_steps).x

    loss, (moved, metrics) = contrastive_divergence(
        params,
        batch,
        key,
        rows,
        free_energy=lambda module, rows: energy(module, rows, kind),
        kernel=kernel,
        n_steps=1,
        persistent=persistent,
    )
    return loss, (LearningState(state.noise, moved if persistent else state.chains, log_steps), metrics)


def filled(key: Key[Array, ""], params: EnergyParams, batch: Batch, kind: Kind) -> Batch:
    """The batch with its unobserved cells drawn."""
    if batch.observed is None:
        return batch
    x, observed = jnp.asarray(batch.x), jnp.asarray(batch.observed)
    begin, choose = jax.random.split(key)
    drawn = draw_reference(begin, params, CANDIDATES * len(x), kind)
    rows = jnp.where(jnp.tile(observed, (CANDIDATES, 1)), jnp.tile(x, (CANDIDATES, 1)), drawn)
    scores = tilt(params, rows, kind).reshape(CANDIDATES, len(x))
    chosen = jax.random.categorical(choose, scores, axis=0)
    x = jnp.take_along_axis(rows.reshape(CANDIDATES, *x.shape), chosen[None, :, None], axis=0)[0]
    return Batch(lax.stop_gradient(x), None, batch.weight)

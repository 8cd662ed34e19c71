"""What is asked of a flow with layers: evidence of rows with holes, and their cells, by weighed draws."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.contract.evidence import Evidence
from likely.models.latent.flow.bijection import GeneratorParams, generate, log_prob
from likely.models.latent.flow.holes import Proposal
from likely.montecarlo.importance import N_REPLICATES, Weighted, resample, weigh
from likely.runtime import by_blocks


@eqx.filter_jit
def weigh_rows(
    key: Key[Array, ""],
    params: GeneratorParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    n_importance: int,
    conditional: bool = False,
) -> tuple[Weighted, Float[Array, "n d"]]:
    """Draws of each row's unobserved cells, weighed, and the rows with NaN there.

    `conditional` also averages x and x² of all cells, and keeps the weights.
    """
    if observed is None:
        return _complete(params, x, n_importance, conditional), x
    proposal = _proposal(params, x, observed)

    def sampler(noise):
        log_weights, rows = _weighed(params, proposal, noise[None])
        return log_weights, jnp.concatenate([rows, rows**2], axis=-1) if conditional else None

    size = x.shape[1] + 1
    found = weigh(key, sampler, n_samples=n_importance, n_latent=size, dtype=x.dtype, keep_weights=conditional)
    return found, jnp.where(observed, x, jnp.nan)


@eqx.filter_jit
def draw_filled(key: Array, noise_key: Array, params: GeneratorParams, log_weights: Array, rows: Array) -> Array:
    """A completed copy of each row, drawn by weight; `noise_key` is the key that `weigh_rows` had."""
    observed = ~jnp.isnan(rows)
    proposal = _proposal(params, jnp.where(observed, rows, 0), observed)
    noise = resample(key, noise_key, log_weights, rows.shape[1] + 1)
    filled = proposal.draw(noise[:, None])[0][:, 0]
    free = generate(params, noise[:, :-1])
    return jnp.where(observed.any(axis=1)[:, None], filled, free)


def flow_evidence(params: GeneratorParams, rows: np.ndarray, key: jax.Array, n_importance: int) -> Evidence:
    """Log p of complete rows, exactly; of others a bound in expectation, with its error."""
    holed = np.isnan(rows).any(axis=1)
    if not holed.any():
        return Evidence.exact(_complete_rows(params, rows), method="change of variables")
    values, replicates = np.zeros(len(rows)), np.zeros((len(rows), min(N_REPLICATES, n_importance)))
    values[~holed] = _complete_rows(params, rows[~holed])
    replicates[~holed] = values[~holed, None]
    values[holed], replicates[holed] = by_blocks(
        lambda x, seen: weigh_rows(key, params, x, seen, n_importance)[0][:2], rows[holed]
    )
    method = f"change of variables; holes by {n_importance} weighed draws"
    upper = np.where(holed & ~np.isnan(rows).all(axis=1), np.inf, values)
    return Evidence.estimate(values, values, upper, replicates if n_importance > 1 else None, method=method)


def _complete_rows(params: GeneratorParams, rows: np.ndarray) -> np.ndarray:
    """(n,) log p of rows without holes."""
    return by_blocks(lambda x, _: _log_prob(params, x), rows) if len(rows) else np.zeros(0)


@eqx.filter_jit
def _log_prob(params: GeneratorParams, x: Array) -> Array:
    return log_prob(params, x, None)


def _proposal(params: GeneratorParams, x: Array, observed: Array) -> Proposal:
    assert params.flow is not None
    return Proposal.of(params.flow.guess, x, observed)


def _weighed(params: GeneratorParams, proposal: Proposal, noise: Float[Array, "1 c k"]) -> tuple[Array, Array]:
    """As `Proposal.weigh`, but where nothing is observed rows are drawn from the map itself, and weigh the same."""
    log_weights, rows = proposal.weigh(lambda x: log_prob(params, x, None), noise)
    nothing = ~proposal.observed.any(axis=1)[:, None]
    free = generate(params, noise[0, :, :-1])[None]
    return jnp.where(nothing, 0, log_weights), jnp.where(nothing[..., None], free, rows)


def _complete(params: GeneratorParams, x: Array, n_importance: int, conditional: bool) -> Weighted:
    """What weighed draws are of rows that have no holes."""
    logs = log_prob(params, x, None)
    replicates = jnp.broadcast_to(logs[:, None], (len(x), min(N_REPLICATES, n_importance)))
    if not conditional:
        return Weighted(logs, replicates, None, None)
    moments = jnp.concatenate([x, x**2], axis=-1)
    return Weighted(logs, replicates, moments, jnp.zeros((len(x), n_importance), x.dtype), jnp.zeros_like(moments))

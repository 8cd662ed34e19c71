"""Contrastive divergence of a machine of two layers, visible statistics T(x) and binary hidden units h.

Hinton (2002), Tieleman (2008). Given one layer the other is independent units, so the hidden units are summed out of
both phases and only the chains' states are sampled. Chains may be tempered (Desjardins and others, 2010), the gradient
is centred (Montavon and Müller, 2012), and hidden units may be held near a mean activation (Lee, Ekanadham and Ng,
2008). Cost of an update: one matrix product for both phases upwards, one for the gradient, two for each Gibbs step.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from likely.montecarlo.gibbs import run_chains
from likely.objectives.contrastive import (
    Offsets,
    Phase,
    Rates,
    ascending,
    bipartite_gradient,
    followed,
    free_energy_gap,
    shares,
)
from likely.placement import rows_apart, rows_together
from likely.training.batches import Batch

# Of the rows of a batch, one held-out row is looked at for this many: the look costs a quarter of a product upwards.
_ROWS_TO_ONE_HELD_OUT = 4


class TwoLayers(Protocol):
    """What the objective needs of a machine; parameters have `weights`, `visible_bias` and `hidden_bias`."""

    def natural(self, params: Any) -> Any:
        """The plain parameters, from the coordinates that learning works in."""

    def rates(self, machine: Any, variance: Array) -> Rates | None:
        """How far the parameters of each statistic move, in the coordinates of learning; None for all alike."""

    def fill(self, key: Array, machine: Any, batch: Batch) -> Array:
        """T(x) (n, D) of the batch, unobserved cells drawn given the others."""

    def statistics(self, rows: Array) -> Array:
        """T(x) of complete rows."""

    def hidden_logits(self, machine: Any, statistics: Array) -> Array:
        """Logits of P(h = 1 | x) (n, k)."""

    def draw_hidden(self, key: Array, logits: Array) -> Array:
        """h, as floating-point numbers."""

    def draw_visible(self, key: Array, machine: Any, hidden: Array) -> Array:
        """Rows (n, d) given h."""

    def gibbs(self, key: Array, machine: Any, hidden: Array) -> Array:
        """h → x → h: leaves p(h) unchanged."""

    def tempered(self, key: Array, machine: Any, base: Array, hidden: Array, parity: Array) -> tuple[Array, Array]:
        """One step of replicas (c, r, k), and the rows (c, d) that the machine's own ones were drawn from."""


class ChainState(eqx.Module):
    """What learning carries from step to step: hidden states of the chains, the offsets of centring, the units.

    Steps of a statistic's parameters are divided by its `variance` where that is above 1: counts in the tens move their
    log rates a hundred times as much as a bit moves its logit. Tempered chains have replicas, the machine's own last,
    and a `base` that the hottest follows: natural parameters of independent columns.
    """

    chains: Float[Array, "c k"] | Float[Array, "c r k"]
    visible_offset: Float[Array, " D"]
    hidden_offset: Float[Array, " k"]
    variance: Float[Array, " D"]
    step: Int[Array, ""]
    base: Float[Array, " D"] | None = None


class Sparsity(NamedTuple):
    """The penalty strength × Σ_j (target - mean activation of hidden unit j)², whose gradient moves the biases."""

    target: float
    strength: float


def bipartite_contrast(
    params: Any,
    batch: Batch,
    key: Key[Array, ""],
    state: ChainState,
    *,
    layers: TwoLayers,
    persistent: bool,
    centring: bool,
    n_first: int,
    n_last: int,
    n_updates: int,
    sparsity: Sparsity | None = None,
    held_out: Float[Array, "m d"] | None = None,
) -> tuple[Array, tuple[ChainState, dict[str, Array]]]:
    """The objective: contrastive divergence, persistent or not, as a gradient of mean statistics.

    The gradient is E_data[T hᵀ] - E_model[T hᵀ] with h at its expectation given x, which has less variance than drawn
    states. Nothing is differentiated: the machine is fixed, and the gradient is declared at the end.

    Parameters
    ----------
    params : in learning coordinates, see `TwoLayers.natural`.
    layers : the machine that the parameters are of.
    n_first, n_last : Gibbs steps of the first and of the last of `n_updates`; in between they grow evenly.
    held_out : complete rows of which some are looked at in every update, and nothing is learned.

    Returns
    -------
    The gap between the data's mean free energy and the chains', which is near zero throughout, and the new state. With
    `held_out` also the metric "valid_gap": how much higher their mean free energy is than the batch's, which grows as
    the machine learns rows by heart.
    """
    machine = lax.stop_gradient(layers.natural(params))
    fill, begin, move, end = jax.random.split(key, 4)
    visible = layers.fill(fill, machine, batch)
    n_more = _steps_beyond_one(state.step, n_first, n_last, n_updates)
    if state.base is not None:
        chains, fantasy = _tempered(move, machine, state, layers, 0 if n_more is None else n_more)
    else:
        chains = state.chains
        hidden = chains if persistent else layers.draw_hidden(begin, layers.hidden_logits(machine, visible))
        if n_more is not None:
            hidden = run_chains(move, lambda k, h: layers.gibbs(k, machine, h), hidden, n_more)
        # The last half step down; the steps before it fold in their own numbers, 0, 1, ...
        fantasy = layers.draw_visible(jax.random.fold_in(move, n_updates), machine, hidden)
    data, model, logits = _phases(machine, batch, visible, layers.statistics(fantasy), layers, persistent)
    if state.base is None and persistent:
        # The last half step up: the chains go on from drawn states, while the gradient takes expectations.
        chains = jax.random.bernoulli(end, model.hidden).astype(chains.dtype)
    offsets = Offsets(state.visible_offset, state.hidden_offset)
    gradient = bipartite_gradient(data, model, offsets, layers.rates(machine, state.variance))
    if sparsity is not None:
        gradient = gradient._replace(hidden_bias=gradient.hidden_bias + sparsity_pull(data, sparsity))
    offset = followed(state.hidden_offset, data.weight @ data.hidden, centring)
    on_hidden = rows_apart(jax.nn.softplus(logits).sum(axis=-1), len(data.visible))
    gap = free_energy_gap(machine.visible_bias, data, model, on_hidden)
    metrics = {"free_energy_gap": gap}
    if held_out is not None:
        metrics["valid_gap"] = _valid_gap(jax.random.fold_in(end, n_updates), machine, data, held_out, layers)
    new = ChainState(chains, state.visible_offset, offset, state.variance, state.step + 1, state.base)
    return ascending(gap, params, gradient), (new, metrics)


def sparsity_pull(data: Phase, sparsity: Sparsity) -> Float[Array, " k"]:
    """Minus the gradient of the penalty with respect to the hidden biases."""
    mean = data.weight @ data.hidden
    return 2 * sparsity.strength * (sparsity.target - mean) * (data.weight @ (data.hidden * (1 - data.hidden)))


def _steps_beyond_one(step: Array, n_first: int, n_last: int, n_updates: int) -> Array | None:
    """Gibbs steps of this update but the last, whose half steps are the phases' own; None where there are none."""
    if n_first == n_last == 1:
        return None
    return n_first - 1 + (n_last - n_first) * step // n_updates


def _phases(
    machine: Any, batch: Batch, visible: Array, statistics: Array, layers: TwoLayers, persistent: bool
) -> tuple[Phase, Phase, Float[Array, "both k"]]:
    """Data and chains with the hidden units' expectations, and the logits of both, as `rows_together` has them.

    Chains that started at the data carry their rows' weights.
    """
    share = shares(batch)
    model_share = jnp.full(len(statistics), 1 / len(statistics), share.dtype) if persistent else share
    # One matrix product for both phases: it is the larger ones that run at full speed.
    logits = layers.hidden_logits(machine, rows_together(visible, statistics))
    up = rows_apart(jax.nn.sigmoid(logits), len(visible))
    return Phase(visible, up[0], share), Phase(statistics, up[1], model_share), logits


def _tempered(
    key: Array, machine: Any, state: ChainState, layers: TwoLayers, n_more: Array | int
) -> tuple[Float[Array, "c r k"], Float[Array, "c d"]]:
    """Replicas after one more step than `n_more`, and the rows of the machine's own that they were drawn from."""

    def step(i: Array, hidden: Array) -> tuple[Array, Array]:
        # Even and odd pairs swap in turn, from update to update and from step to step of one.
        key_i, parity = jax.random.fold_in(key, i), (state.step + i) % 2
        return layers.tempered(key_i, machine, jnp.asarray(state.base), hidden, parity)

    n = jnp.asarray(n_more, state.step.dtype)
    return step(n, lax.fori_loop(0, n, lambda i, h: step(i, h)[0], state.chains))


def _valid_gap(key: Array, machine: Any, data: Phase, held_out: Array, layers: TwoLayers) -> Array:
    """Mean free energy of some held-out rows minus that of the batch, base measures apart."""
    n = max(1, len(data.visible) // _ROWS_TO_ONE_HELD_OUT)
    rows = layers.statistics(held_out[jax.random.randint(key, (n,), 0, len(held_out))])
    both = jnp.concatenate([rows, data.visible])
    minus = both @ machine.visible_bias + jax.nn.softplus(layers.hidden_logits(machine, both)).sum(axis=-1)
    return data.weight @ minus[n:] - jnp.mean(minus[:n])

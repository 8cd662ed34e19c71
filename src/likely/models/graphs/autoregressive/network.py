"""Conditionals by one masked network: every cell's law from the cells before it, in a single pass over the row.

MADE (Germain, Gregor, Murray and Larochelle, 2015) with residual blocks (Durkan and Nash, 2019). A hidden unit has a
*degree*, the last place in the order that it may know of; weights that would carry a later cell to an earlier place are
masked out. Places, not cells, have degrees, so that several orders share all weights as in NADE (Larochelle and Murray,
2011). Real cells are mixtures of Gaussians. Cost of an epoch: 6 × rows × weights operations; cells are drawn in turn,
each with a pass of its own.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from likely.columns import Columns
from likely.contract.estimator import FitRun
from likely.models.graphs.autoregressive.cell_laws import CellLaws, ParametricChains, location_cells, log_prob_of_cells
from likely.models.graphs.autoregressive.window import Near, Window
from likely.models.latent.variational.column_means import starting_point
from likely.nets.column_interface import encoder_features, n_locations
from likely.nets.masked import Block, Masks, residual
from likely.nets.mlp import ACTIVATIONS
from likely.objectives.chain_likelihood import mixture_loss, negative_log_likelihood
from likely.runtime import float_dtype, on_device
from likely.training import TrainingConfig, train

_OUTPUT_GAIN = 0.1  # of the last layer's first weights: training starts near independent columns


class NetworkParams(eqx.Module):
    """The orders, and the weights that they share.

    read : features to hidden units. skip : features to outputs. give : hidden units to outputs.
    bias : of outputs: locations, then log weights, means and log scales of the Gaussians of real cells.
    centre : mean features, subtracted from what is read; not trained.
    """

    orders: Int[Array, "m d"]
    read: Float[Array, "h L"]
    read_bias: Float[Array, " h"]
    blocks: tuple[Block, ...]
    give: Float[Array, "o h"]
    skip: Float[Array, "o L"]
    bias: Float[Array, " o"]
    centre: Float[Array, " L"]
    window: Window | None
    columns: Columns = eqx.field(static=True)
    activation: str = eqx.field(static=True)
    n_gaussians: int = eqx.field(static=True)

    @property
    def n_chains(self) -> int:
        """Orders."""
        return len(self.orders)

    def laws(
        self,
        chain: Int[Array, ""],
        x: Float[Array, "n d"],
        observed: Bool[Array, "n d"] | None = None,
        key: Key[Array, ""] | None = None,
        dropout: float = 0.0,
    ) -> CellLaws:
        """The laws of all cells along an order; with a key, that share of the hidden units is dropped."""
        features = encoder_features(self.columns, x, observed, jax.lax.stop_gradient(self.centre))
        return self.laws_of(chain, features, key, dropout)

    def laws_of(
        self, chain: Any, features: Float[Array, "n L"], key: Key[Array, ""] | None = None, dropout: float = 0.0
    ) -> CellLaws:
        """The laws of all cells from what is read of them."""
        # The place of each cell: 0 for the first of the order.
        place = jnp.argsort(self.orders[chain])
        inputs, outputs = place[location_cells(self.columns)], place[output_cells(self.columns, self.n_gaussians)]
        masks = Masks.of(len(self.read_bias), self.columns.n_columns, inputs, outputs)
        hidden = features @ (self.read * masks.seen).T + self.read_bias[None]
        for number, block in enumerate(self.blocks):
            inner = residual(hidden, block, masks.within, self.activation)
            if key is not None:
                inner = _dropped(jax.random.fold_in(key, number), inner, dropout)
            hidden = hidden + inner @ (block.second * masks.within).T + block.second_bias[None]
        last = ACTIVATIONS[self.activation](hidden)
        if key is not None:
            last = _dropped(jax.random.fold_in(key, len(self.blocks)), last, dropout)
        direct = inputs[None, :] < outputs[:, None]
        output = last @ (self.give * masks.told).T + features @ (self.skip * direct).T + self.bias[None]
        if self.window is not None:
            output = output + self.window.outputs(features, output_cells(self.columns, self.n_gaussians))
        return self._split(output)

    def log_prob(self, chain, x, observed, key=None, dropout=0.0):
        """log p (n,) of the observed cells along an order, inputs that are unobserved read as usual."""
        return log_prob_of_cells(self.columns, self.laws(chain, x, observed, key, dropout), x, observed)

    def _split(self, output: Float[Array, "n o"]) -> CellLaws:
        n, r, k = n_locations(self.columns), len(self.columns.real_places), self.n_gaussians
        shape = (len(output), r, k)
        parts = [output[:, n + i * r * k : n + (i + 1) * r * k].reshape(shape) for i in range(3)]
        return CellLaws(output[:, :n], *parts)


def output_cells(columns: Columns, n_gaussians: int) -> np.ndarray:
    """(o,) the cell that each output belongs to."""
    return np.concatenate([location_cells(columns), *[np.repeat(columns.real_places, n_gaussians)] * 3]).astype(int)


def first_params(
    key: Key[Array, ""],
    columns: Columns,
    n_chains: int,
    n_hidden: int,
    n_blocks: int,
    activation: str,
    n_gaussians: int,
    near: Near | None = None,
) -> NetworkParams:
    """The network before training."""
    n, r, dtype = n_locations(columns), len(columns.real_places), float_dtype()
    n_out = n + 3 * r * n_gaussians
    keys = iter(jax.random.split(key, 2 + n_blocks))

    def weights(shape: tuple[int, int], gain: float = 1.0) -> Array:
        # Masks leave about half of a unit's inputs.
        return gain * math.sqrt(2 / max(1, shape[1])) * jax.random.normal(next(keys), shape, dtype)

    square = (n_hidden, n_hidden)
    blocks = [
        Block(weights(square), jnp.zeros(n_hidden, dtype), jnp.zeros(square, dtype), jnp.zeros(n_hidden, dtype))
        for _ in range(n_blocks)
    ]
    spread = jnp.linspace(-1.0, 1.0, n_gaussians) if n_gaussians > 1 else jnp.zeros(1)
    scale = jnp.full(n_gaussians, -0.5 if n_gaussians > 1 else 0.0)
    gaussians = [jnp.tile(part, r) for part in (jnp.zeros(n_gaussians), spread, scale)]
    return NetworkParams(
        orders=jnp.zeros((n_chains, columns.n_columns), jnp.int32),
        read=weights((n_hidden, n)),
        read_bias=jnp.zeros(n_hidden, dtype),
        blocks=tuple(blocks),
        give=weights((n_out, n_hidden), _OUTPUT_GAIN),
        skip=jnp.zeros((n_out, n), dtype),
        bias=jnp.concatenate([jnp.zeros(n, dtype), *[part.astype(dtype) for part in gaussians]]),
        centre=jnp.zeros(n, dtype),
        window=None
        if near is None
        else Window.first(jax.random.fold_in(key, 2 + n_blocks), columns, near, n_out, activation),
        columns=columns,
        activation=activation,
        n_gaussians=n_gaussians,
    )


def fit_network(
    first: NetworkParams,
    rows: np.ndarray,
    orders: np.ndarray,
    dropout: float,
    config: TrainingConfig,
    key: Key[Array, ""],
    run: FitRun,
) -> Any:
    """The trained network and its learning curves, from a first one that is put at the columns' own means."""
    start = starting_point(rows, first.columns)
    bias = first.bias.at[: len(start.location)].set(start.location)
    module = eqx.tree_at(
        lambda p: (p.orders, p.centre, p.bias), first, (jnp.asarray(orders, jnp.int32), start.offset, bias)
    )
    return train(
        module,
        partial(negative_log_likelihood, dropout=dropout),
        rows,
        config=config,
        key=key,
        validate=None if run.valid is None else mixture_loss,
        valid_rows=run.valid,
        checkpoint=run.checkpoint,
        resume=run.resume,
        label="Autoregressive",
    )


def _dropped(key: Array, units: Array, share: float) -> Array:
    return units * jax.random.bernoulli(key, 1 - share, units.shape) / (1 - share)


@eqx.filter_jit
def _laws(params: NetworkParams, chain: Array, x: Array, known: Array | None) -> CellLaws:
    return params.laws(chain, x, known)


@eqx.filter_jit
def _log_terms(params: NetworkParams, chain: Array, x: Array, known: Array | None, asked: Array | None) -> Array:
    return log_prob_of_cells(params.columns, params.laws(chain, x, known), x, asked)


class NetworkChains(ParametricChains):
    """Chains of a masked network, as `answers` asks them."""

    def laws(self, chain, x, known):
        return _laws(self.params, on_device(chain), x, known)

    def log_terms_of(self, chain, x, known, asked):
        return _log_terms(self.params, on_device(chain), x, known, asked)

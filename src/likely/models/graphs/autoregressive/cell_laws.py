"""The law of every cell of a row given the cells before it, as a network or a linear map says them all at once.

Discrete cells and counts have *locations*, as decoders have (`nets.column_interface`): logits, log rates. Real cells
are mixtures of k Gaussians. `ParametricChains` asks a compiled function for these laws block by block, and draws cells
in turn: one pass for each cell that is unobserved.
"""

from __future__ import annotations

import abc
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from likely.columns import Columns
from likely.models.graphs.autoregressive.answers import LearnedChains
from likely.nets.column_interface import MIN_SCALE, n_locations, softplus
from likely.runtime import by_blocks, float_dtype, on_device

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
MAX_LOG_RATE = 15.0  # of a count: three million
_ROWS_DRAWN = 1024  # rows that cells are drawn for together, in one shape: a row's draws do not depend on the others


class CellLaws(eqx.Module):
    """Laws of all cells of rows.

    location : of every cell, as a decoder's; those of real cells are not used.
    log_weights, means, log_scales : of the k Gaussians of each of r real cells; weights are normalised here.
    """

    location: Float[Array, "n L"]
    log_weights: Float[Array, "n r k"]
    means: Float[Array, "n r k"]
    log_scales: Float[Array, "n r k"]


def log_prob_of_cells(
    columns: Columns, laws: CellLaws, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None
) -> Float[Array, " n"]:
    """Σ log p(x_j | the cells before) over the observed cells."""
    total, stop = jnp.zeros(len(x), x.dtype), 0
    for block in columns.blocks:
        start, stop = stop, stop + len(block.places) * (1 if block.kind == "real" else block.n_statistics)
        cells, own = block.columns_of(x), laws.location[:, start:stop]
        if block.kind == "binary":
            terms = cells * own - softplus(own)
        elif block.kind == "real":
            terms = log_mixture(cells, laws.log_weights, laws.means, laws.log_scales)
        else:
            # A rate is limited here and where it is drawn, so that the law is normalised wherever a map leads.
            own = jnp.minimum(own, MAX_LOG_RATE) if block.kind == "count" else own
            eta, family = block.by_column(own), block.family
            linear = (family.statistics(cells, block.n_statistics) * eta).sum(axis=-1)
            terms = linear - family.log_partition(eta) + family.log_base(cells)
        if observed is not None:
            terms = jnp.where(block.columns_of(observed), terms, 0)
        total = total + terms.sum(axis=-1)
    return total


def log_mixture(x: Float[Array, "n r"], log_weights: Array, means: Array, log_scales: Array) -> Float[Array, "n r"]:
    """log Σ_k w_k N(x; mean_k, scale_k²), with scales kept above `MIN_SCALE`."""
    scale = MIN_SCALE + jnp.exp(log_scales)
    parts = -0.5 * ((x[..., None] - means) / scale) ** 2 - jnp.log(scale) - _HALF_LOG_TWO_PI
    return jax.nn.logsumexp(jax.nn.log_softmax(log_weights, axis=-1) + parts, axis=-1)


class ParametricChains(LearnedChains, abc.ABC):
    """Chains whose laws are a function of the whole row; a cell's own law does not depend on it or on later cells."""

    @abc.abstractmethod
    def laws(self, chain: int, x: Array, known: Array | None) -> CellLaws:
        """The laws of all cells of rows (n, d), of which some are known, compiled."""

    @abc.abstractmethod
    def log_terms_of(self, chain: int, x: Array, known: Array | None, asked: Array | None) -> Array:
        """`log_prob_of_cells` of these laws, for the cells that are asked for, compiled."""

    def log_terms(self, chain: int, rows: np.ndarray) -> np.ndarray:
        """(n,) the sum of log p(x_j | the cells before) over the observed cells of rows (n, d)."""
        return by_blocks(lambda x, known: self.log_terms_of(chain, x, known, known), rows).astype(np.float64)

    def complete(
        self, chain: int, rows: np.ndarray, uniforms: np.ndarray, normals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with unobserved cells drawn along a chain, and log p of the observed ones on the way."""
        filled, logs = np.array(rows, np.float64), np.zeros(len(rows))
        for start in range(0, len(rows), _ROWS_DRAWN):
            part = slice(start, min(len(rows), start + _ROWS_DRAWN))
            filled[part], logs[part] = self._complete(chain, rows[part], uniforms[part], normals[part])
        return filled, logs

    def _complete(self, chain: int, rows: np.ndarray, uniforms: np.ndarray, normals: np.ndarray) -> Any:
        n, d = rows.shape
        padded, asked = np.zeros((_ROWS_DRAWN, d), float_dtype()), np.zeros((_ROWS_DRAWN, d), bool)
        padded[:n], asked[:n] = np.nan_to_num(rows), ~np.isnan(rows)
        known = asked.copy()
        for j in self.orders[chain]:
            absent = self.switches[j] >= 0 and padded[:n, self.switches[j]] > 0
            own = np.flatnonzero(~known[:n, j] & ~absent)
            if len(own):
                found = self.laws(chain, on_device(padded), on_device(known))
                laws = jax.tree.map(lambda a, own=own: np.asarray(a)[own], found)
                padded[own, j] = draw_cell(self.columns, laws, int(j), uniforms[own, j], normals[own, j])
                known[own, j] = True
        logs = self.log_terms_of(chain, on_device(padded), on_device(known), on_device(asked))
        return np.where(asked[:n], rows, np.where(known[:n], padded[:n], np.nan)), np.asarray(logs)[:n]


def draw_cell(
    columns: Columns, laws: CellLaws, j: int, uniforms: Float[np.ndarray, "n 2"], normals: Float[np.ndarray, " n"]
) -> np.ndarray:
    """(n,) values of cell j by its law, in NumPy; normals go with the second uniform."""
    if columns.kinds[j] == "real":
        r = int(np.flatnonzero(columns.real_places == j)[0])
        total = np.cumsum(_softmax(laws.log_weights[:, r]), axis=1)
        k = np.minimum((uniforms[:, :1] > total).sum(axis=1), total.shape[1] - 1)
        at = np.arange(len(k)), r, k
        return laws.means[at] + (MIN_SCALE + np.exp(laws.log_scales[at])) * normals
    own = laws.location[:, location_places(columns, j)]
    if columns.kinds[j] == "binary":
        return (uniforms[:, 1] < 1 / (1 + np.exp(-np.asarray(own[:, 0], np.float64)))).astype(np.float64)
    if columns.kinds[j] == "count":
        return poisson_quantile(uniforms[:, 1], own[:, 0])
    total = np.cumsum(_softmax(own), axis=1)
    return np.minimum((uniforms[:, 1:] > total).sum(axis=1), total.shape[1] - 1).astype(np.float64)


def poisson_quantile(u: Float[np.ndarray, " n"], log_rate: Any) -> Float[np.ndarray, " n"]:
    """The counts that Poisson variates of these rates stay at or below with probability u."""
    from scipy.stats import poisson

    return poisson.ppf(u, np.exp(np.minimum(np.asarray(log_rate, np.float64), MAX_LOG_RATE)))


def location_places(columns: Columns, j: int) -> np.ndarray:
    """Where the locations of cell j stand among all."""
    return np.flatnonzero(columns.column_of[~columns.is_quadratic] == j)


def location_cells(columns: Columns) -> np.ndarray:
    """(L,) the cell that each location, or feature, belongs to."""
    cells = columns.column_of[~columns.is_quadratic]
    assert len(cells) == n_locations(columns)
    return cells


def _softmax(logits: Any) -> np.ndarray:
    logits = np.asarray(logits, np.float64)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)

"""Between networks and tables: what an encoder reads of a row, and what a decoder's output means for its columns.

A decoder speaks in *locations*: one number a column that has a say over its value, K for a categorical one. They are
the logit of a binary column, the logits of a categorical one, the log rate of a count and the mean of a real column,
laid out as the statistics vector without its x² parts. A real column's scale does not depend on the row: it is one
`log_scale` a column, floored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from likely.columns import Columns
from likely.columns.columns import Block

# In standard units. A density that shrinks around repeated values would grow without limit.
MIN_SCALE = 1e-3
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def n_locations(columns: Columns) -> int:
    """Length L of a location vector."""
    return columns.n_statistics - len(columns.real_places)


def encoder_features(
    columns: Columns,
    x: Float[Array, "*n d"],
    observed: Bool[Array, "*n d"] | None,
    offset: Float[Array, " L"] | None = None,
) -> Float[Array, "*n L"]:
    """What an encoder reads: x, one-hot categories, log(1 + count), less `offset`; 0 where unobserved."""
    x = x if observed is None else jnp.where(observed, x, 0)
    features = _join([_features_of(block, block.columns_of(x)) for block in columns.blocks])
    if offset is not None:
        features = features - jnp.expand_dims(offset, tuple(range(x.ndim - 1)))
    return features if observed is None else jnp.where(spread_locations(columns, observed), features, 0)


def spread_locations(columns: Columns, per_column: Array) -> Array:
    """A value per column (..., d) repeated over the column's locations (..., L)."""
    if n_locations(columns) == columns.n_columns and len(columns.blocks) == 1:
        return per_column
    return per_column[..., columns.column_of[~columns.is_quadratic]]


def scale_of(log_scale: Float[Array, " r"]) -> Float[Array, " r"]:
    """Scales of the real columns, kept above `MIN_SCALE` smoothly enough for a gradient."""
    return MIN_SCALE + jnp.exp(log_scale)


def location_natural(
    columns: Columns, location: Float[Array, "*n L"], log_scale: Float[Array, " r"]
) -> Float[Array, "*n D"]:
    """Natural parameters of every column."""
    parts = []
    for block, own in _parts(columns, location):
        if block.kind == "real":
            precision = jnp.broadcast_to(scale_of(log_scale) ** -2, own.shape)
            own = jnp.concatenate([own * precision, -0.5 * precision], axis=-1)
        parts.append(own)
    return _join(parts)


def location_mean(
    columns: Columns, location: Float[Array, "*n L"], log_scale: Float[Array, " r"]
) -> Float[Array, "*n D"]:
    """E[T(x)] of every column."""
    parts = []
    for block, own in _parts(columns, location):
        if block.kind == "real":
            square = own**2 + jnp.broadcast_to(scale_of(log_scale) ** 2, own.shape)
            parts.append(jnp.concatenate([own, square], axis=-1))
        else:
            parts.append(block.flat(block.family.mean(block.by_column(own))))
    return _join(parts)


def log_density_at(
    columns: Columns,
    x: Float[Array, "*#n d"],
    observed: Bool[Array, "*#n d"] | None,
    location: Float[Array, "*#n L"],
    log_scale: Float[Array, " r"],
) -> Float[Array, "*n"]:
    """log p(x | location) summed over the observed columns.

    Equal to `Columns.log_density` at `location_natural`, but a Gaussian is computed from x - mean, since
    its natural parameters lose all digits of float32 when the scale is small.
    """
    total = jnp.zeros((), location.dtype)
    for block, own in _parts(columns, location):
        cells = block.columns_of(x)
        terms = _log_density_of(block, cells, own, log_scale)
        if observed is not None:
            terms = jnp.where(block.columns_of(observed), terms, 0)
        total = total + terms.sum(axis=-1)
    return total


@jax.custom_jvp
def softplus(a: Array) -> Array:
    """log(1 + e^a), at half the cost of `jax.nn.softplus`, which also cares for infinite a."""
    return jnp.maximum(a, 0) + jnp.log1p(jnp.exp(-jnp.abs(a)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    return softplus(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


def _log_density_of(block: Block, cells: Array, location: Array, log_scale: Array) -> Array:
    """log p of each cell (..., m) of a block."""
    if block.kind == "binary":
        return cells * location - softplus(location)
    if block.kind == "real":
        scale = jnp.expand_dims(scale_of(log_scale), tuple(range(location.ndim - 1)))
        return -0.5 * ((cells - location) / scale) ** 2 - jnp.log(scale) - _HALF_LOG_TWO_PI
    eta, family = block.by_column(location), block.family
    linear = (family.statistics(cells, block.n_statistics) * eta).sum(axis=-1)
    return linear - family.log_partition(eta) + family.log_base(cells)


def _features_of(block: Block, cells: Array) -> Array:
    if block.kind == "real":
        return cells
    if block.kind == "count":
        return jnp.log1p(cells)
    return block.flat(block.family.statistics(cells, block.n_statistics))


def _parts(columns: Columns, location: Array) -> Iterator[tuple[Block, Array]]:
    """Each block with its part of (..., L)."""
    stop = 0
    for block in columns.blocks:
        start, stop = stop, stop + len(block.places) * (1 if block.kind == "real" else block.n_statistics)
        yield block, location[..., start:stop]


def _join(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)

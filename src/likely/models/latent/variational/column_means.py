"""Where networks of a table's columns start: at the columns' own means, in what they read and in what they give."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from likely.columns import Columns, natural_of
from likely.nets import encoder_features
from likely.nets.column_interface import spread_locations
from likely.runtime import float_dtype, on_device, sum_blocks


class StartingPoint(NamedTuple):
    """Of the observed cells of some rows.

    location : (L,) a decoder's output that gives each column its own mean.
    offset : (L,) the mean of what an encoder reads, to be subtracted from it.
    extremes : (2, d) least and greatest value of each column.
    """

    location: Float[Array, " L"]
    offset: Float[Array, " L"]
    extremes: Float[Array, "2 d"]


def starting_point(rows: np.ndarray, columns: Columns) -> StartingPoint:
    """The starting point that rows in standard units give."""
    statistics, features, seen = sum_blocks(partial(_totals, columns=columns), rows)
    # Half a row of each outcome keeps what was never seen possible.
    mean = on_device((statistics + 0.5) / (np.asarray(columns.spread(seen)) + 1.0), float_dtype())
    is_real = np.isin(columns.column_of, columns.real_places)
    # In standard units the mean of a real column is 0.
    location = np.where(is_real, 0, natural_of(mean, columns, 1e-6))[~columns.is_quadratic]
    offset = features / np.maximum(spread_locations(columns, seen), 1)
    extremes = np.stack([np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)])
    return StartingPoint(*(on_device(a, float_dtype()) for a in (location, offset, extremes)))


@eqx.filter_jit
def _totals(x, observed, weight, columns):
    """Sums of statistics and features over rows, and the weight behind each column."""
    seen = jnp.ones_like(x) if observed is None else observed.astype(x.dtype)
    features = encoder_features(columns, x, observed)
    return weight @ columns.statistics(x, observed), weight @ features, weight @ seen

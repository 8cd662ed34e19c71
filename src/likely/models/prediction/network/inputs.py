"""What a network reads of features: categories as vectors, numbers as they are, along pieces, or as waves.

Gorishniy, Rubachev and Babenko (2022): a number x becomes how far it has come through each of B bins of its column, or
cos and sin of 2π c x with learned frequencies c; a linear map of the column's own follows. A category has a vector.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.models.prediction.conditional.features import groups
from likely.runtime import float_dtype

Embedding = Literal["none", "piecewise", "periodic"]
_FREQUENCY_SCALE = 0.3  # of the first frequencies, in waves a standard deviation
_MAX_CATEGORY_SIZE = 16  # numbers that stand for a category, at most


class Layout(eqx.Module):
    """Where features of each kind stand; static."""

    numbers: tuple[int, ...] = eqx.field(static=True)  # real features, which may be embedded
    others: tuple[int, ...] = eqx.field(static=True)  # binary and count ones
    categories: tuple[tuple[int, int], ...] = eqx.field(static=True)  # start and size of each one-hot group

    @property
    def column_of(self) -> np.ndarray:
        """(p,) the number of the group that each feature is of: the features of a category are there together."""
        sizes = [(place, 1) for place in (*self.numbers, *self.others)] + list(self.categories)
        return np.repeat(np.arange(len(sizes)), [size for _, size in sorted(sizes)])

    @classmethod
    def of(cls, columns: Columns) -> Layout:
        """Of the features of these columns."""
        numbers: list[int] = []
        others: list[int] = []
        categories, start = [], 0
        for kind, size in groups(columns):
            if kind == "categorical":
                categories.append((start, size))
            else:
                (numbers if kind == "real" else others).append(start)
            start += size
        return cls(tuple(numbers), tuple(others), tuple(categories))


class Inputs(eqx.Module):
    """The first, fixed and learned, reading of features (n, p)."""

    layout: Layout
    centre: Float[Array, " p"]
    scale: Float[Array, " p"]
    vectors: tuple[Float[Array, "_size _v"], ...]  # of the categories of each column
    edges: Float[Array, " ends"] | None  # of the bins, column after column: one axis, which weight decay leaves alone
    frequencies: Float[Array, " waves"] | None
    maps: Float[Array, "numbers parts e"] | None
    offsets: Float[Array, "numbers e"] | None
    masked: bool = eqx.field(static=True)  # reads also which features are there
    kind: str = eqx.field(static=True)

    @property
    def n_out(self) -> int:
        """How many numbers the body of the network gets."""
        layout = self.layout
        numbers = len(layout.numbers) if self.maps is None else self.maps.shape[0] * self.maps.shape[2]
        named = sum(vectors.shape[1] for vectors in self.vectors)
        return numbers + len(layout.others) + named + (len(self.centre) if self.masked else 0)

    def __call__(self, x: Float[Array, "n p"], observed: Array | None = None) -> Float[Array, "n m"]:
        """What the body reads; features that are not observed are at their mean, 0."""
        x = (x - jax.lax.stop_gradient(self.centre)[None]) / jax.lax.stop_gradient(self.scale)[None]
        if observed is not None:
            x = jnp.where(observed, x, 0)
        parts = []
        if self.layout.numbers:
            numbers = x[:, np.array(self.layout.numbers)]
            parts.append(numbers if self.maps is None else self._embedded(numbers))
        if self.layout.others:
            parts.append(x[:, np.array(self.layout.others)])
        for (start, size), vectors in zip(self.layout.categories, self.vectors, strict=True):
            parts.append(x[:, start : start + size] @ vectors)
        if self.masked:
            parts.append(jnp.ones_like(x) if observed is None else observed.astype(x.dtype))
        return jnp.concatenate(parts, axis=1)

    def _embedded(self, x: Float[Array, "n k"]) -> Float[Array, "n m"]:
        assert self.maps is not None  # for the type checker: it is asked for
        assert self.offsets is not None
        if self.edges is not None:
            ends = jax.lax.stop_gradient(self.edges).reshape(x.shape[1], -1)
            low, high = ends[None, :, :-1], ends[None, :, 1:]
            parts = jnp.clip((x[:, :, None] - low) / (high - low), 0, 1)
        else:
            assert self.frequencies is not None
            angles = 2 * jnp.pi * self.frequencies.reshape(x.shape[1], -1)[None] * x[:, :, None]
            parts = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)
        found = jnp.einsum("nkb,kbe->nke", parts, self.maps) + self.offsets[None]
        return jax.nn.relu(found).reshape(len(x), -1)


def first_inputs(
    key: Key[Array, ""],
    columns: Columns,
    x: np.ndarray | None,
    *,
    kind: Embedding,
    n_parts: int,
    size: int,
    masked: bool,
) -> Inputs:
    """Inputs before training, by the features (n, p) of the rows, NaN where unobserved; None gives shapes alone."""
    layout, dtype = Layout.of(columns), float_dtype()
    p = sum(own for _, own in groups(columns))
    x = np.zeros((2, p)) if x is None else x
    plain = np.zeros(p, dtype=bool)
    plain[[place for start, own in layout.categories for place in range(start, start + own)]] = True
    centre = np.where(plain, 0.0, np.nanmean(x, axis=0))
    spread = np.nanstd(x, axis=0)
    scale = np.where(plain | (spread < 1e-9), 1.0, spread)
    keys = jax.random.split(key, len(layout.categories) + 2)
    vectors = tuple(
        jax.random.normal(k, (own, min(_MAX_CATEGORY_SIZE, own)), dtype) / np.sqrt(min(_MAX_CATEGORY_SIZE, own))
        for k, (_, own) in zip(keys[2:], layout.categories, strict=True)
    )
    n_numbers = len(layout.numbers)
    embedded: dict[str, Any] = dict.fromkeys(("edges", "frequencies", "maps", "offsets"))
    if kind != "none" and n_numbers:
        width = n_parts if kind == "piecewise" else 2 * n_parts
        embedded["maps"] = jax.random.normal(keys[0], (n_numbers, width, size), dtype) / np.sqrt(width)
        embedded["offsets"] = jnp.zeros((n_numbers, size), dtype)
        if kind == "piecewise":
            numbers = np.array(layout.numbers)
            ends = np.stack([_edges((x[:, j] - centre[j]) / scale[j], n_parts) for j in numbers])
            embedded["edges"] = jnp.asarray(ends.ravel(), dtype)
        else:
            waves = jax.random.normal(keys[1], (n_numbers * n_parts,), dtype)
            embedded["frequencies"] = _FREQUENCY_SCALE * waves
    units = jnp.asarray(centre, dtype), jnp.asarray(scale, dtype)
    return Inputs(layout, *units, vectors, **embedded, masked=masked, kind=kind)


def _edges(x: np.ndarray, n_bins: int) -> np.ndarray:
    """(n_bins + 1,) ends of bins with about equally many values; repeated values leave bins of no width a little."""
    ends = np.quantile(x[~np.isnan(x)], np.linspace(0, 1, n_bins + 1)) if (~np.isnan(x)).any() else np.zeros(n_bins + 1)
    return ends + 1e-3 * np.arange(n_bins + 1)

"""A table's columns as one exponential family: p(x | eta) = h(x) exp(eta · T(x) - A(eta)), eta and T(x) of length D.

Columns of one kind form a block, and the blocks stand one after the other in the statistics vector, so that log p is a
matrix product however mixed the table. Within a block the first statistic of every column comes first, then the second:
real columns have all x, then all x². The one rule for missing cells: an unobserved cell contributes nothing, neither
eta · T nor A nor h; since columns are independent given eta, that is the marginal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns.exponential import FAMILIES, Family
from likely.schema import Schema, SchemaError


@dataclass(frozen=True)
class Block:
    """Columns of one kind (categorical ones with equally many categories) and their slice of the statistics."""

    kind: str
    places: tuple[int, ...]
    start: int
    n_statistics: int  # per column

    @property
    def family(self) -> type[Family]:
        return FAMILIES[self.kind]

    @property
    def stop(self) -> int:
        return self.start + len(self.places) * self.n_statistics

    def take(self, statistics: Any) -> Any:
        """The block's part of (..., D), an array of JAX or NumPy, as (..., m, s)."""
        return self.by_column(statistics[..., self.start : self.stop])

    def by_column(self, flat: Any) -> Any:
        """Statistics of the block alone (..., s m) as (..., m, s)."""
        return flat.reshape(*flat.shape[:-1], self.n_statistics, len(self.places)).swapaxes(-1, -2)

    def flat(self, by_column: Any) -> Any:
        """The inverse of `by_column`."""
        return by_column.swapaxes(-1, -2).reshape(*by_column.shape[:-2], -1)

    def columns_of(self, x: Array) -> Array:
        """The block's columns of (..., d); the array itself when they are all of them."""
        if self.places == tuple(range(x.shape[-1])):
            return x
        return x[..., np.array(self.places)]


@dataclass(frozen=True)
class Columns:
    """The exponential family of a table. Static and hashable: it can be closed over or passed to `jit` as static.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> columns = Columns(("binary", "real"), (1, 1))
    >>> columns.statistics(jnp.array([1.0, 3.0]))
    Array([1., 3., 9.], dtype=float32)
    >>> eta = columns.natural(jnp.array([0.5, 0.0, 1.0]))        # P(x0 = 1) = 1/2, x1 ~ N(0, 1)
    >>> float(columns.log_density(jnp.array([1.0, 0.0]), None, eta))  # log(1/2) - log(2 pi)/2
    -1.612...
    """

    kinds: tuple[str, ...]
    n_categories: tuple[int, ...]
    ordered: tuple[bool, ...] = ()  # of each column, whether its codes have an order; empty where none has

    @classmethod
    def of(cls, schema: Schema) -> Columns:
        """The columns of a schema each of which is one cell."""
        odd = [column for column in schema.columns if column.kind in ("grid", "datetime")]
        if odd:
            raise SchemaError(f"column {odd[0].name!r} is {odd[0].kind}: its cells are known only once rows are.")
        kinds = tuple("categorical" if kind == "ordinal" else kind for kind in schema.kinds)
        ordered = tuple(kind == "ordinal" for kind in schema.kinds)
        sizes = tuple(column.n_categories for column in schema.columns)
        return cls(kinds, sizes, ordered if any(ordered) else ())

    @property
    def n_columns(self) -> int:
        return len(self.kinds)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        # By kind first, in the order of FAMILIES, so that real columns are last and the statistics of a table do not
        # depend on where its columns stand; then by the number of statistics, which categorical columns differ in.
        groups: dict[tuple[str, int], list[int]] = {}
        for kind in FAMILIES:
            for place, (own, n_categories) in enumerate(zip(self.kinds, self.n_categories, strict=True)):
                if own == kind:
                    s = FAMILIES[kind].n_statistics(n_categories)
                    groups.setdefault((kind, s), []).append(place)
        blocks, start = [], 0
        for (kind, s), places in groups.items():
            blocks.append(Block(kind, tuple(places), start, s))
            start = blocks[-1].stop
        return tuple(blocks)

    @cached_property
    def n_statistics(self) -> int:
        """D, the length of T(x) and of eta."""
        return self.blocks[-1].stop

    @cached_property
    def column_of(self) -> np.ndarray:
        """(D,) the column that each statistic belongs to."""
        return np.concatenate([np.tile(block.places, block.n_statistics) for block in self.blocks])

    @cached_property
    def is_quadratic(self) -> np.ndarray:
        """(D,) True for the x² statistics of real columns."""
        out = np.zeros(self.n_statistics, dtype=bool)
        for block in self.blocks:
            if block.kind == "real":
                out[block.start + len(block.places) : block.stop] = True
        return out

    @cached_property
    def is_location(self) -> np.ndarray:
        """(D,) True for the x statistics of real columns, which stand in the order of the x² ones."""
        return np.isin(self.column_of, self.real_places) & ~self.is_quadratic

    @cached_property
    def real_places(self) -> np.ndarray:
        """Positions of the real columns."""
        return np.flatnonzero([kind == "real" for kind in self.kinds])

    @cached_property
    def ignorance(self) -> np.ndarray:
        """(D,) mean statistics of a column nothing is known of.

        1/2 for binary, 1/K for categorical, rate 1 for count, and in standard units N(0, 1) for real columns.
        """
        cells = {"binary": 0.5, "count": 1.0, "real": 1.0}
        out = [np.full(b.stop - b.start, cells.get(b.kind, 1 / b.n_statistics)) for b in self.blocks]
        mean = np.concatenate(out)
        mean[self.is_location] = 0.0
        return mean

    def statistics(self, x: Float[Array, "*n d"], observed: Bool[Array, "*n d"] | None = None) -> Float[Array, "*n D"]:
        """T(x), zero where unobserved."""
        parts = self._by_block(_zero_unobserved(x, observed))
        full = self._join(lambda b: b.family.statistics(parts[b], b.n_statistics))
        return full if observed is None else jnp.where(self.spread(observed), full, 0)

    def spread(self, per_column: Array) -> Array:
        """A value per column (..., d) repeated over the column's statistics (..., D)."""
        # One block with one statistic a column is already in place: no gather, which is slow on a processor.
        if self.n_statistics == self.n_columns and len(self.blocks) == 1:
            return per_column
        return per_column[..., self.column_of]

    def collect(self, per_statistic: Array) -> Array:
        """Values per statistic (..., D) summed over each column (..., d)."""
        return self._scatter(lambda b: b.take(per_statistic).sum(axis=-1))

    def log_partition(self, eta: Float[Array, "*n D"]) -> Float[Array, "*n d"]:
        """A(eta) of each column."""
        return self._scatter(lambda b: b.family.log_partition(b.take(eta)))

    def log_base(self, x: Float[Array, "*n d"], observed: Bool[Array, "*n d"] | None = None) -> Float[Array, "*n"]:
        """Log h(x), summed over the observed columns."""
        own = tuple(block for block in self.blocks if block.kind in ("count", "real"))
        if not own:  # That of binary and categorical columns is 0.
            return jnp.zeros(x.shape[:-1], x.dtype)
        parts = self._by_block(_zero_unobserved(x, observed), own)
        terms = _side_by_side([block.family.log_base(parts[block]) for block in own])
        seen = None if observed is None else _side_by_side([*self._by_block(observed, own).values()])
        return _sum_observed(terms, seen)

    def log_density(
        self, x: Float[Array, "*#n d"], observed: Bool[Array, "*#n d"] | None, eta: Float[Array, "*#n D"]
    ) -> Float[Array, "*n"]:
        """Log p(x | eta), summed over the observed columns."""
        linear = jnp.sum(eta * self.statistics(x, observed), axis=-1)
        return linear - _sum_observed(self.log_partition(eta), observed) + self.log_base(x, observed)

    def log_density_table(
        self,
        x: Float[Array, "n d"],
        observed: Bool[Array, "n d"] | None,
        eta: Float[Array, "k D"],
        statistics: Float[Array, "n D"] | None = None,
    ) -> Float[Array, "n k"]:
        """Log p(x_i | eta_j) of every row under every parameter vector, by matrix products.

        The rows' statistics may be given where they are known already.
        """
        # All but eta · T is a number a row, or a number a parameter vector. Only where cells are unobserved does the
        # normaliser depend on both, and then it is a product with the mask.
        linear = (self.statistics(x, observed) if statistics is None else statistics) @ eta.T
        normaliser = self.log_partition(eta)
        constant = normaliser.sum(-1)[None, :] if observed is None else observed.astype(x.dtype) @ normaliser.T
        return linear - constant + self.log_base(x, observed)[:, None]

    def mean(self, eta: Float[Array, "*n D"]) -> Float[Array, "*n D"]:
        """E[T(x) | eta]."""
        return self._join(lambda b: b.family.mean(b.take(eta)))

    def natural(self, mean: Float[Array, "*n D"], floor: float = 1e-6) -> Float[Array, "*n D"]:
        """Eta with E[T(x)] = mean; `floor` keeps probabilities, rates and variances away from zero."""
        return self._join(lambda b: b.family.natural(b.take(mean), floor))

    def sample(self, key: Key[Array, ""], eta: Float[Array, "*n D"]) -> Float[Array, "*n d"]:
        """X ~ p(x | eta)."""
        # Each block has a key of its own, split once, so that what one block draws does not move the others.
        keys = dict(zip(self.blocks, jax.random.split(key, len(self.blocks)), strict=True))
        return self._scatter(lambda b: b.family.sample(keys[b], b.take(eta)))

    def expected_rows(self, mean: Float[Array, "*n D"]) -> Float[Array, "*n d"]:
        """Mean statistics as cells: probability of 1, rate, mean; the most probable code of a categorical column."""
        return self._scatter(lambda b: _expected(b, b.take(mean)))

    def typical_rows(self, mean: Float[Array, "*n D"]) -> Float[Array, "*n d"]:
        """Mean statistics as cells that the columns admit: as `expected_rows`, but binary and counts rounded."""
        return self._scatter(lambda b: _typical(b, b.take(mean)))

    def _by_block(self, x: Array, blocks: tuple[Block, ...] | None = None) -> dict[Block, Array]:
        """The columns of (..., d) that each block has: all gathered at once, then cut, which costs little."""
        blocks = self.blocks if blocks is None else blocks
        order = np.concatenate([block.places for block in blocks])
        if not np.array_equal(order, np.arange(x.shape[-1])):
            x = jnp.take(x, order, axis=-1)
        if len(blocks) == 1:
            return {blocks[0]: x}
        cuts = np.cumsum([0, *(len(block.places) for block in blocks)]).tolist()
        ends = zip(blocks, cuts[:-1], cuts[1:], strict=True)
        return {block: lax.slice_in_dim(x, start, stop, axis=-1) for block, start, stop in ends}

    def _join(self, part: Callable[[Block], Array]) -> Array:
        """Blocks' (..., m, s) flattened and laid side by side: (..., D)."""
        return _side_by_side([block.flat(part(block)) for block in self.blocks])

    def _scatter(self, part: Callable[[Block], Array]) -> Array:
        """Blocks' (..., m) put back into the order of the columns: (..., d)."""
        parts = [part(block) for block in self.blocks]
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate([block.places for block in self.blocks]))
        module = _module_of(parts[0])
        return module.take(module.concatenate(parts, axis=-1), order, axis=-1)


def _side_by_side(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)


def _zero_unobserved(x: Array, observed: Array | None) -> Array:
    # A NaN that is masked after a function of it still poisons the function's gradient: it is taken out before.
    return x if observed is None else jnp.where(observed, x, 0)


def _sum_observed(terms: Array, observed: Array | None) -> Array:
    return (terms if observed is None else jnp.where(observed, terms, 0)).sum(axis=-1)


def _module_of(array: Any) -> Any:
    """NumPy for its own arrays, which need no program compiled for every shape of them; JAX for others."""
    return np if isinstance(array, np.ndarray) else jnp


@partial(jax.jit, static_argnames=("columns", "floor"))
def natural_of(mean: Array, columns: Columns, floor: float) -> Array:
    """`columns.natural(mean, floor)` as one program, for models that begin at a table's means.

    One operation after the other, outside a compiled function, is some fifty programs for a table of ten sizes of
    categories, and half a second of each fit.
    """
    return columns.natural(mean, floor)


def _expected(block: Block, mean: Any) -> Any:
    if block.kind != "categorical":
        return mean[..., 0]
    return _module_of(mean).argmax(mean, axis=-1).astype(mean.dtype)


def _typical(block: Block, mean: Any) -> Any:
    cells = _expected(block, mean)
    return _module_of(cells).round(cells) if block.kind in ("binary", "count") else cells

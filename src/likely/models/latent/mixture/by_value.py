"""A start of EM in which every component belongs to one value of a column: mixtures of each value's rows, put together.

Hastie and Tibshirani (1996) classify by such mixtures. EM goes on from there with all rows, those without the value
among them. Cost: that of the runs on each value's rows.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from likely.memory import taken
from likely.models.latent.mixture.components import Layout, MixtureParams
from likely.models.latent.mixture.gaussian_block import GaussianBlock
from likely.schema import Schema, SchemaError

# How the mixture of some rows is learned: rows, weights, key, number of components.
Fit = Callable[[np.ndarray, np.ndarray, jax.Array, int], MixtureParams]


def check_values(schema: Schema, name: str, n_components: int | None) -> None:
    """Refuse a column that is not there, one of numbers, and more values than components."""
    column = next((own for own in schema.columns if own.name == name), None)
    if column is None or column.kind not in ("binary", "categorical"):
        fit = [own.name for own in schema.columns if own.kind in ("binary", "categorical")]
        found = "no column is called so" if column is None else f"which is {column.kind}"
        raise SchemaError(
            f"`start_by` must name a binary or categorical column, got {name!r}, {found}: "
            + (f"there are {', '.join(map(repr, fit[:10]))}." if fit else "there is none, so leave it None.")
        )
    n_values = 2 if column.categories is None else len(column.categories)
    if n_components is not None and n_components < n_values:
        raise ValueError(
            f"`n_components` must be at least the number of values of {name!r} ({n_values}), which components start "
            f"by, got {n_components}: raise it, or leave `start_by` out."
        )


def started(
    fit: Fit, rows: np.ndarray, weight: np.ndarray | None, codes: np.ndarray, key: jax.Array, k: int, layout: Layout
) -> MixtureParams:
    """K components from fits to the rows of each code; `codes` (n,) are NaN where the value is unobserved."""
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)
    values = np.unique(codes[(weight > 0) & ~np.isnan(codes)])
    places = [np.flatnonzero((codes == value) & (weight > 0)) for value in values]
    totals = np.array([weight[own].sum() for own in places])
    sizes = components_of(totals, max(k, len(values)))
    # All are filled up to one length by rows that count for nothing, so that they share compiled programs.
    length = max(len(own) for own in places)
    found = []
    for own, size, one in zip(places, sizes.tolist(), jax.random.split(key, len(places)), strict=True):
        filled, counts = np.resize(own, length), np.zeros(length)
        counts[: len(own)] = weight[own]
        found.append(fit(taken(rows, filled), counts, one, min(size, len(own))))
    return together(found, totals / totals.sum(), layout)


def components_of(totals: np.ndarray, k: int) -> np.ndarray:
    """How many of k components each value gets: one, and of the rest as many as its share of the rows says.

    >>> components_of(np.array([60.0, 30.0, 10.0]), 10)
    array([5, 3, 2])
    """
    share = totals / totals.sum() * (k - len(totals))
    sizes = np.floor(share).astype(int)
    sizes[np.argsort(sizes - share, kind="stable")[: k - len(totals) - sizes.sum()]] += 1
    return sizes + 1


def together(found: list[MixtureParams], shares: np.ndarray, layout: Layout) -> MixtureParams:
    """One mixture of several; a covariance that all components share is the mean of theirs."""
    log_weights = [one.log_weights + np.log(share) for one, share in zip(found, shares.tolist(), strict=True)]
    etas = [one.eta for one in found if one.eta is not None]
    blocks = [one.gaussian for one in found if one.gaussian is not None]
    gaussian = None
    if blocks:
        tril = jnp.concatenate([block.scale_tril for block in blocks])
        if layout.tied:
            pooled = jnp.einsum("k,kij,klj->il", jnp.asarray(shares, tril.dtype), tril, tril)
            tril = jnp.linalg.cholesky(pooled)[None]
        gaussian = GaussianBlock(jnp.concatenate([block.means for block in blocks]), tril)
    return MixtureParams(jnp.concatenate(log_weights), jnp.concatenate(etas) if etas else None, gaussian)

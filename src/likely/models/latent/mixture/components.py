"""The components of a mixture: p(x) = Σ_k w_k p(x | k), as pure functions of the parameters.

Given the component, columns are independent members of their exponential families; or the real ones are jointly
Gaussian, and the others independent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from likely.columns import Columns
from likely.models.latent.mixture import gaussian_block
from likely.models.latent.mixture.gaussian_block import GaussianBlock


class Layout(NamedTuple):
    """Which columns are independent given the component, and which are jointly Gaussian. Static."""

    columns: Columns  # all
    factored: Any  # Columns, or None when every column is joint
    factored_places: tuple[int, ...]
    joint_places: tuple[int, ...]
    tied: bool
    spherical: bool

    @classmethod
    def of(cls, columns: Columns, covariance: str) -> Layout:
        joint = tuple(int(p) for p in columns.real_places) if covariance in ("full", "tied", "scores") else ()
        places = tuple(p for p in range(columns.n_columns) if p not in joint)
        kinds, sizes = tuple(columns.kinds[p] for p in places), tuple(columns.n_categories[p] for p in places)
        return cls(
            columns,
            Columns(kinds, sizes) if places else None,
            places,
            joint,
            covariance == "tied",
            covariance == "spherical",
        )


class MixtureParams(eqx.Module):
    """Component weights, natural parameters of the factored columns, joint Gaussians of the others."""

    log_weights: Float[Array, " k"]
    eta: Float[Array, "k F"] | None
    gaussian: GaussianBlock | None


def log_joint(
    params: MixtureParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    layout: Layout,
    statistics: Float[Array, "n F"] | None = None,
) -> Float[Array, "n k"]:
    """Log w_k p(x | k) of the observed cells; statistics of the factored columns may be given if they are known."""
    table = params.log_weights[None, :]
    if params.eta is not None and layout.factored is not None:
        cells = part(x, observed, layout.factored_places)
        table = table + layout.factored.log_density_table(*cells, params.eta, statistics)
    if params.gaussian is not None:
        table = table + gaussian_block.log_density_table(params.gaussian, *part(x, observed, layout.joint_places))
    return table


def log_prob(
    params: MixtureParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, layout: Layout
) -> Float[Array, " n"]:
    """Log p(x) of the observed cells."""
    return jax.nn.logsumexp(log_joint(params, x, observed, layout), axis=-1)


def responsibilities(
    params: MixtureParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, layout: Layout
) -> Float[Array, "n k"]:
    """P(k | observed cells)."""
    return jax.nn.softmax(log_joint(params, x, observed, layout), axis=-1)


def component_means(params: MixtureParams, layout: Layout) -> Float[Array, "k D"]:
    """E[T(x) | k] over all columns."""
    gaussian = params.gaussian
    factored: Any = None if params.eta is None else layout.factored.mean(params.eta)
    if gaussian is None:
        return factored
    variances = jnp.sum(gaussian.factors() ** 2, axis=-1)
    joint = jnp.concatenate([gaussian.means, gaussian.means**2 + variances], axis=-1)
    return _join(factored, joint, layout)


def expected_statistics(
    params: MixtureParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, layout: Layout
) -> Float[Array, "n D"]:
    """E[T(x) | observed cells] of all columns; unobserved joint cells follow the observed ones."""
    weights = responsibilities(params, x, observed, layout)
    if params.gaussian is None or observed is None:
        return weights @ component_means(params, layout)
    gaussian = params.gaussian.after(weights)
    cells, spread = gaussian_block.expected_cells(gaussian, *part(x, observed, layout.joint_places))
    second = cells**2 + jnp.diagonal(spread, axis1=-2, axis2=-1)
    joint = jnp.einsum("nk,nkr->nr", weights, jnp.concatenate([cells, second], axis=-1))
    factored = None if params.eta is None else weights @ layout.factored.mean(params.eta)
    return _join(factored, joint, layout)


def sample(key: Key[Array, ""], params: MixtureParams, n: int, layout: Layout) -> Float[Array, "n d"]:
    """Draw n rows."""
    component_key, *keys = jax.random.split(key, 3)
    weights = jnp.broadcast_to(params.log_weights, (n, len(params.log_weights)))
    component = jax.random.categorical(component_key, weights, axis=-1)
    nothing = jnp.zeros((n, layout.columns.n_columns), params.log_weights.dtype)
    return _sample_cells(keys, params, component, nothing, jnp.zeros_like(nothing, dtype=bool), layout)


def sample_given(
    key: Key[Array, ""],
    params: MixtureParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    layout: Layout,
) -> Float[Array, "n d"]:
    """A draw of the unobserved cells of each row given the observed ones."""
    component_key, *keys = jax.random.split(key, 3)
    component = jax.random.categorical(component_key, log_joint(params, x, observed, layout), axis=-1)
    return _sample_cells(keys, params, component, x, observed, layout)


def _sample_cells(
    keys: list[Key[Array, ""]],
    params: MixtureParams,
    component: Int[Array, " n"],
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    layout: Layout,
) -> Float[Array, "n d"]:
    """A draw of the unobserved cells of each row, given its component."""
    (column_key, joint_key), out = keys, x
    if params.eta is not None:
        cells = layout.factored.sample(column_key, params.eta[component])
        out = out.at[:, np.array(layout.factored_places)].set(cells)
    if params.gaussian is not None:
        row_keys, gaussian = jax.random.split(joint_key, len(x)), params.gaussian
        seen = jnp.ones_like(x, dtype=bool) if observed is None else observed
        cells = jax.vmap(gaussian_block.sample_given)(
            row_keys, gaussian.means[component], gaussian.factors()[component], *part(x, seen, layout.joint_places)
        )
        out = out.at[:, np.array(layout.joint_places)].set(cells)
    return out if observed is None else jnp.where(observed, x, out)


def part(x: Array, observed: Array | None, places: tuple[int, ...]) -> tuple[Array, Any]:
    """Some columns of the rows; the rows themselves when they are all of them."""
    if places == tuple(range(x.shape[-1])):
        return x, observed
    index = np.array(places)
    return x[..., index], None if observed is None else observed[..., index]


def _join(factored: Array | None, joint: Array, layout: Layout) -> Array:
    """Statistics of the factored columns (..., F) and of the joint ones (..., 2r) in the order of all columns.

    The real columns, here all joint, are the last block of the statistics.
    """
    return joint if factored is None else jnp.concatenate([factored, joint], axis=-1)

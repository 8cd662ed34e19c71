"""Any network as an energy: p(x) ∝ ρ(x) exp(g(x)), ρ independent columns as in the data, g the tilt that is learned.

With the base ρ the energy is E(x) = -log ρ(x) + network(x), so g = -network. Real columns are then normalisable for
every network that grows at most linearly (all built-in ones do), since ρ falls as a Gaussian; counts because a network
sees log(1 + count). Without the base E(x) = network(x), and g = -network - log ρ; that it has a normaliser is then up
to the network. Either way ρ is what chains, annealing and holes start from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.nets import MLP, encoder_features, n_locations
from likely.runtime import by_blocks, float_dtype


class Kind(NamedTuple):
    """What is fixed before anything is learned; static."""

    columns: Columns
    with_base: bool


class Perceptron(eqx.Module):
    """The built-in energy: a multilayer perceptron of the row's features, less their means."""

    layers: MLP
    offset: Float[Array, " L"]

    def rows(self, features: Float[Array, "n L"]) -> Float[Array, " n"]:
        """Energies of many rows by one matrix product a layer."""
        return self.layers(features - lax.stop_gradient(self.offset)[None, :])[:, 0]


class Given(eqx.Module):
    """A user's network or function of one row: its arrays, and all else, which is static."""

    arrays: Any
    rest: Any = eqx.field(static=True)

    @classmethod
    def of(cls, network: Callable[[Array], Array]) -> Given:
        return cls(*eqx.partition(network, eqx.is_array))

    def rows(self, features: Float[Array, "n L"]) -> Float[Array, " n"]:
        """Energies of many rows, the network mapped over them."""
        network = eqx.combine(self.arrays, self.rest)
        return jax.vmap(lambda row: jnp.reshape(network(row), ()))(features)


class EnergyParams(eqx.Module):
    """The network, ρ's natural parameters, and NCE's constant c, 0 if none was learned.

    The log step sizes of chains are no parameters: what is stored suits ρ, and they are tuned where chains are run.
    """

    network: Perceptron | Given
    reference: Float[Array, " D"]
    constant: Float[Array, ""]
    log_steps: Float[Array, " 2"]  # of Langevin moves, and of parallel flips


def first_params(network: Any, columns: Columns) -> EnergyParams:
    """Parameters before anything is learned."""
    dtype = float_dtype()
    zero = jnp.zeros((), dtype)
    return EnergyParams(network, jnp.zeros(columns.n_statistics, dtype), zero, jnp.zeros(2, dtype))


def first_perceptron(key: Key[Array, ""], columns: Columns, hidden: tuple[int, ...], activation: str) -> Perceptron:
    """The built-in network, nearly flat: learning starts at ρ."""
    n_in = n_locations(columns)
    layers = MLP(key, n_in, 1, hidden=hidden, activation=activation, output_gain=0.1)
    return Perceptron(layers, jnp.zeros(n_in, float_dtype()))


def log_reference(
    params: EnergyParams, x: Float[Array, "n d"], kind: Kind, observed: Bool[Array, "n d"] | None = None
) -> Float[Array, " n"]:
    """Log ρ of the observed cells."""
    return kind.columns.log_density_table(x, observed, lax.stop_gradient(params.reference)[None])[:, 0]


def tilt(params: EnergyParams, x: Float[Array, "n d"], kind: Kind) -> Float[Array, " n"]:
    """g(x), the log of the unnormalised density over ρ's."""
    own = -params.network.rows(encoder_features(kind.columns, x, None))
    return own if kind.with_base else own - log_reference(params, x, kind)


def energy(params: EnergyParams, x: Float[Array, "n d"], kind: Kind) -> Float[Array, " n"]:
    """E(x) = -log p(x) - log Z."""
    own = params.network.rows(encoder_features(kind.columns, x, None))
    return own - log_reference(params, x, kind) if kind.with_base else own


def draw_reference(key: Key[Array, ""], params: EnergyParams, n: int, kind: Kind) -> Float[Array, "n d"]:
    """Rows of ρ."""
    return kind.columns.sample(key, jnp.broadcast_to(params.reference, (n, len(params.reference))))


energies = eqx.filter_jit(energy)


def check_network(network: Any, columns: Columns) -> None:
    """Raise unless a user's network turns one row into one real number; traced, not run."""
    n_in = n_locations(columns)
    row = jax.ShapeDtypeStruct((n_in,), float_dtype())
    try:
        found = eqx.filter_eval_shape(network, row)
    except Exception as error:
        raise ValueError(
            f"`network` must take one row, an array of shape ({n_in},), and return its energy; called with such a row "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    shape, dtype = getattr(found, "shape", None), getattr(found, "dtype", None)
    if shape not in ((), (1,)) or dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(
            f"`network` must return one real number for a row of shape ({n_in},), got {found}: end it with a single "
            "output, or sum."
        )


def check_finite(params: EnergyParams, rows: np.ndarray, kind: Kind) -> None:
    """Raise if the energy of a row is not finite, with that row; rows with NaN are passed over."""
    whole = np.flatnonzero(~np.isnan(rows).any(axis=1))
    if not len(whole):
        return
    values = by_blocks(lambda x, _: energies(params, x, kind), rows[whole])
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"the energy of row {whole[bad[0]]} is {values[bad[0]]:g}: an energy must be finite for every row. "
            "Look for logarithms, roots and quotients in the network, or for extreme cells in that row."
        )

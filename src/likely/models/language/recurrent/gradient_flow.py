"""How gradients fare through time: norms of ∂s_T/∂s_t of a recurrent cell against the distance T - t.

Hochreiter (1991); Bengio, Simard and Frasconi (1994); Pascanu, Mikolov and Bengio (2013). The Jacobian of many steps is
the product of those of each: it vanishes where their largest singular values stay below 1, and can explode where they
are above. Cost: a product of two state-sized matrices a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from sklearn.utils.validation import check_is_fitted

from likely.datasets.text.vocabulary import BEGIN_ID
from likely.nets.recurrent import Cell


@dataclass(frozen=True)
class GradientFlow:
    """What is left of a gradient after each number of steps back.

    norms : (T,) largest singular value of ∂s_T/∂s_{T-d} for d = 1 ... T. radius : (T,) spectral radius of each step's
    own Jacobian, the last one first.
    """

    norms: np.ndarray
    radius: np.ndarray

    @property
    def rate(self) -> float:
        """Mean factor of a step back: below 1 gradients vanish, above they explode."""
        return float(np.exp(np.log(np.maximum(self.norms[-1], 1e-300)) / len(self.norms)))

    def __repr__(self) -> str:
        return (
            f"GradientFlow({len(self.norms)} steps back leave {self.norms[-1]:.2g}, a factor of {self.rate:.3f} a "
            f"step; spectral radius {np.median(self.radius):.3f})"
        )


def gradient_flow(model: Any, text: Any, layer: int = 0) -> GradientFlow:
    """The flow through one layer of a `RecurrentLM` while it reads a sentence.

    Parameters
    ----------
    model : fitted. text : one sentence, a text or a list of tokens. layer : 0 is the lowest.
    """
    check_is_fitted(model)
    module = model.params_
    cells = module.stack.cells
    if not 0 <= layer < len(cells):
        raise ValueError(f"`layer` must lie in 0..{len(cells) - 1}, got {layer}.")
    tokens = np.asarray(model.encode([text]).tokens)[:-1]
    if len(tokens) < 2 or (tokens < 0).any():
        raise ValueError("`text` must be a sentence of at least two tokens without gaps.")
    x = module.embedding[jnp.asarray([BEGIN_ID, *tokens])][None]
    for cell in cells[:layer]:
        x, _ = cell.unroll(x, cell.first(1))
    return flow_of(cells[layer], x[0])


def flow_of(cell: Cell, x: Float[Array, "t i"]) -> GradientFlow:
    """The flow through a cell along inputs.

    Examples
    --------
    >>> cell = Cell(jax.random.key(0), 1, 4, kind="rnn")      # its recurrent weights are orthogonal ...
    >>> flow = flow_of(cell, jnp.zeros((10, 1)))                # ... and at 0 so is every step: nothing is lost
    >>> flow.norms.round(3).tolist() == [1.0] * 10
    True
    """
    norms, jacobians = _flow(cell, jnp.asarray(x))
    radius = np.abs(np.linalg.eigvals(np.asarray(jacobians, np.float64))).max(axis=-1)
    return GradientFlow(np.asarray(norms, np.float64), radius[::-1])


@eqx.filter_jit
def _flow(cell: Cell, x: Array) -> tuple[Array, Array]:
    given, first = cell.gates(x), cell.first(1)
    flat, rebuild = ravel_pytree(first)

    def step(state: Array, gates: Array) -> Array:
        return ravel_pytree(cell.step(rebuild(state), gates[None]))[0]

    def advance(state: Array, gates: Array) -> tuple[Array, Array]:
        return step(state, gates), jax.jacfwd(step)(state, gates)

    jacobians = lax.scan(advance, flat, given)[1]

    def back(product: Array, jacobian: Array) -> tuple[Array, Array]:
        product = product @ jacobian
        return product, jnp.linalg.norm(product, ord=2)

    return lax.scan(back, jnp.eye(len(flat), dtype=flat.dtype), jacobians, reverse=True)[1][::-1], jacobians

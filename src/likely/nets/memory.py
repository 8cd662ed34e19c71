"""A memory that is read and written by weights over its slots, found by content and moved by location.

Graves, Wayne and Danihelka (2014). With an address α, a distribution over the slots, r = Σ α_i M_i is read; with
weights β in [0, 1], M_i ← (1 − β_i) M_i + β_i w is written. An address is made in four steps: slots whose content is
like a key (cosine, times a strength, softmax); a gate between those and the address before; a shift round the memory;
a power that makes it sharp again. Cost of an address: about 5 × slots × width operations a row.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

SHIFTS = (-1, 0, 1)  # slots that one step can move by
# Added to squared lengths and weights before a root or a logarithm, whose gradients at 0 are infinite.
_ABOVE_ZERO = 1e-8


class Heads(eqx.Module):
    """What a controller says of where to look, for n rows and h heads.

    key : (n, h, m) content to look for. strength : (n, h) at least 0. gate : (n, h) 1 for content, 0 to stay where it
    was. shift : (n, h, 3) distribution over the moves -1, 0, 1. sharpness : (n, h) at least 1.
    """

    key: Float[Array, "n h m"]
    strength: Float[Array, "n h"]
    gate: Float[Array, "n h"]
    shift: Float[Array, "n h 3"]
    sharpness: Float[Array, "n h"]

    @staticmethod
    def size(width: int) -> int:
        """Numbers that a head is made of."""
        return width + 3 + len(SHIFTS)

    @classmethod
    def of(cls, raw: Float[Array, "n h k"]) -> Heads:
        """Heads from any real numbers, `size` for each."""
        m = raw.shape[2] - cls.size(0)
        return cls(
            key=jnp.tanh(raw[..., :m]),
            strength=jax.nn.softplus(raw[..., m]),
            gate=jax.nn.sigmoid(raw[..., m + 1]),
            shift=jax.nn.softmax(raw[..., m + 2 : m + 5]),
            sharpness=1 + jax.nn.softplus(raw[..., m + 5]),
        )


def address(memory: Float[Array, "n s m"], before: Float[Array, "n h s"], heads: Heads) -> Float[Array, "n h s"]:
    """Each head's weights over the slots, a distribution.

    Examples
    --------
    A head that goes by location takes one step to the right:

    >>> one = np.ones((1, 1))
    >>> head = Heads(np.ones((1, 1, 2)), one, 0 * one, np.array([[[0.0, 0.0, 1.0]]]), one)
    >>> np.round(jax.jit(address)(np.ones((1, 4, 2)), np.array([[[0.0, 1.0, 0.0, 0.0]]]), head), 3).tolist()
    [[[0.0, 0.0, 1.0, 0.0]]]
    """
    gate = heads.gate[..., None]
    kept = gate * by_content(memory, heads.key, heads.strength) + (1 - gate) * before
    return sharpened(shifted(kept, heads.shift), heads.sharpness)


def by_content(
    memory: Float[Array, "n s m"], key: Float[Array, "n h m"], strength: Float[Array, "n h"]
) -> Float[Array, "n h s"]:
    """Softmax of strength × cosine between the key and each slot."""
    slots = memory / jnp.sqrt((memory**2).sum(axis=2, keepdims=True) + _ABOVE_ZERO)
    wanted = key * (strength / jnp.sqrt((key**2).sum(axis=2) + _ABOVE_ZERO))[..., None]
    return jax.nn.softmax(jnp.einsum("nhm,nsm->nhs", wanted, slots))


def shifted(weights: Float[Array, "n h s"], shift: Float[Array, "n h 3"]) -> Float[Array, "n h s"]:
    """Weights moved round the memory: a circular convolution with the distribution over moves."""
    n_slots = weights.shape[2]
    come_from = (np.arange(n_slots)[None, :] - np.array(SHIFTS)[:, None]) % n_slots
    return jnp.einsum("nhk,nhks->nhs", shift, weights[..., come_from])


def sharpened(weights: Float[Array, "n h s"], sharpness: Float[Array, "n h"]) -> Float[Array, "n h s"]:
    """w_i^γ / Σ_j w_j^γ, in logs, so that a weight of 0 has a gradient."""
    return jax.nn.softmax(sharpness[..., None] * jnp.log(weights + _ABOVE_ZERO))


def read(memory: Float[Array, "n s m"], weights: Float[Array, "n s"]) -> Float[Array, "n m"]:
    """r = Σ α_i M_i."""
    return jnp.einsum("ns,nsm->nm", weights, memory)


def write(
    memory: Float[Array, "n s m"], weights: Float[Array, "n s"], content: Float[Array, "n m"]
) -> Float[Array, "n s m"]:
    """M_i ← (1 − β_i) M_i + β_i w."""
    return memory + weights[:, :, None] * (content[:, None, :] - memory)

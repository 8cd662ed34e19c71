"""The network of a neural Turing machine: a controller with a head that reads and one that writes.

At each step the controller sees the input and what was read before, and sets both heads; the memory is read, then
written. Sequences are padded: where there is no input, nothing of the state changes.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from likely.nets.memory import Heads, address, read, write
from likely.nets.mlp import MLP
from likely.nets.recurrent import Cell, output_of
from likely.runtime import float_dtype

CONTROLLERS = ("lstm", "feedforward")
# A memory that is constant at first is learned best (Collier and Beel, 2018); not 0, where a cosine has no direction.
_FIRST_CONTENT = 1e-6


class TuringState(eqx.Module):
    """What goes from step to step, for n rows: memory, addresses, what was read, the controller's own state."""

    memory: Float[Array, "n s m"]
    addresses: Float[Array, "n 2 s"]  # of the head that reads, and of the one that writes
    was_read: Float[Array, "n m"]
    controller: Any


class TuringNetwork(eqx.Module):
    """Parameters; none depends on the number of slots.

    controller : an LSTM cell, or a layer tanh(W [x, r] + b). heads : to both heads, the gate of writing and its
    content. output : to the bits, from the controller's output and what is read. first_read : (m,).
    """

    controller: Cell | MLP
    heads: MLP
    output: MLP
    first_read: Float[Array, " m"]
    n_inputs: int = eqx.field(static=True)
    n_outputs: int = eqx.field(static=True)
    n_slots: int = eqx.field(static=True)

    @classmethod
    def build(
        cls,
        key: Key[Array, ""],
        n_inputs: int,
        n_outputs: int,
        *,
        n_slots: int,
        width: int,
        n_hidden: int,
        controller: str,
    ) -> TuringNetwork:
        """Before training; inputs are bits and a flag that asks for output."""
        controller_key, head_key, output_key, read_key = jax.random.split(key, 4)
        n_in = n_inputs + 1 + width
        return cls(
            Cell(controller_key, n_in, n_hidden) if controller == "lstm" else MLP(controller_key, n_in, n_hidden),
            MLP(head_key, n_hidden, 2 * Heads.size(width) + 1 + width, output_gain=0.5),
            MLP(output_key, n_hidden + width, n_outputs),
            0.1 * jax.random.normal(read_key, (width,), float_dtype()),
            n_inputs,
            n_outputs,
            n_slots,
        )

    def first(self, n: int) -> TuringState:
        """Before a sequence: an empty memory, both heads on the first slot."""
        m, dtype = self.first_read.shape[0], self.first_read.dtype
        at_first = jnp.zeros((n, 2, self.n_slots), dtype).at[:, :, 0].set(1)
        own = self.controller.first(n) if isinstance(self.controller, Cell) else None
        memory = jnp.full((n, self.n_slots, m), _FIRST_CONTENT, dtype)
        return TuringState(memory, at_first, jnp.broadcast_to(self.first_read[None], (n, m)), own)

    def step(self, state: TuringState, x: Float[Array, "n i"]) -> tuple[TuringState, Float[Array, "n o"]]:
        """The next state, and the logits of the output's bits."""
        seen = jnp.concatenate([x, state.was_read], axis=1)
        if isinstance(self.controller, Cell):
            own = self.controller.step(state.controller, self.controller.gates(seen))
            hidden = output_of(own)
        else:
            own, hidden = None, jnp.tanh(self.controller(seen))
        m, raw = self.first_read.shape[0], self.heads(hidden)
        heads, gate, content = jnp.split(raw, (2 * Heads.size(m), 2 * Heads.size(m) + 1), axis=1)
        addresses = address(state.memory, state.addresses, Heads.of(heads.reshape(len(x), 2, -1)))
        was_read = read(state.memory, addresses[:, 0])
        memory = write(state.memory, jax.nn.sigmoid(gate) * addresses[:, 1], jnp.tanh(content))
        logits = self.output(jnp.concatenate([hidden, was_read], axis=1))
        return TuringState(memory, addresses, was_read, own), logits

    def run(
        self, inputs: Float[Array, "n t i"], there: Bool[Array, "n t"], *, trace: bool = False
    ) -> tuple[Float[Array, "n t o"], TuringState | None]:
        """Logits at every step, and every state if `trace`, the steps first."""

        def advance(state: TuringState, now: tuple[Array, Array]) -> tuple[TuringState, Any]:
            x, here = now
            new, logits = self.step(state, x)
            keep = lambda a, b: jnp.where(here.reshape(-1, *[1] * (a.ndim - 1)), a, b)  # noqa: E731
            new = jax.tree.map(keep, new, state)
            return new, (logits, new if trace else None)

        steps = (jnp.swapaxes(inputs, 0, 1), there.T)
        _, (logits, states) = lax.scan(advance, self.first(len(inputs)), steps)
        return jnp.swapaxes(logits, 0, 1), states


def script(network: TuringNetwork, inputs: Float[Array, "n a"], n_asked: Int[Array, " n"], n_steps: int) -> Any:
    """Inputs with the flag that ends them and `n_steps` empty steps to answer in: (n, t, i), and which are there.

    inputs : flat rows of vectors of bits, padded by -1. n_asked : answers that each row is asked for.
    """
    bits = inputs.reshape(len(inputs), -1, network.n_inputs)
    given = bits[..., 0] >= 0
    n, t = given.shape
    x = jnp.zeros((n, t + 1 + n_steps, network.n_inputs + 1), inputs.dtype)
    x = x.at[:, :t, :-1].set(jnp.where(given[..., None], bits, 0)).at[:, t, -1].set(1)
    answering = jnp.arange(n_steps)[None, :] < n_asked[:, None]
    return x, jnp.concatenate([given, jnp.ones((n, 1), bool), answering], axis=1)


def turing_losses(network: TuringNetwork, inputs: Array, targets: Array) -> tuple[Array, Array]:
    """Minus log p(targets | inputs) of each row, and its number of bits."""
    wanted = targets.reshape(len(targets), -1, network.n_outputs)
    there = wanted[..., 0] >= 0
    x, steps = script(network, inputs, there.sum(axis=1), there.shape[1])
    logits = network.run(x, steps)[0][:, -there.shape[1] :]
    losses = jax.nn.softplus(logits) - wanted * logits
    losses = jnp.where(there[..., None], losses, 0)
    return losses.sum(axis=(1, 2)), there.sum(axis=1).astype(losses.dtype) * network.n_outputs

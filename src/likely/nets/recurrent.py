"""Recurrent cells, and stacks of them run along sequences: h_t = f(h_{t-1}, x_t).

Elman (1990); Hochreiter and Schmidhuber (1997) with the forget gate of Gers, Schmidhuber and Cummins (2000); peepholes
of Gers and Schmidhuber (2000); Cho et al. (2014). The input's part of all steps is one matrix product before the loop;
in it stays the recurrent product alone. Cost of a step and row: 2 G h (n + h) floating-point operations, with G = 1, 4,
4 and 3 gates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.nets.dropout import drop
from likely.runtime import float_dtype

GATES = {"rnn": 1, "lstm": 4, "peephole": 4, "gru": 3}
CELLS = tuple(GATES)
SQUASHINGS = ("tanh", "sigmoid")  # of an LSTM's input: tanh is usual, the logistic function the older form


class Cell(eqx.Module):
    """One layer: its state is (n, h), or a pair of them, output and memory, for "lstm" and "peephole".

    Parameters
    ----------
    kind : "rnn" tanh(Wh + Ux + b); "lstm"; "peephole", an LSTM whose gates also see the memory; "gru".
    squashing : of an LSTM's input, "tanh" or "sigmoid".

    Examples
    --------
    >>> cell = Cell(jax.random.key(0), 3, 5, kind="lstm")
    >>> outputs, (hidden, memory) = cell.unroll(jnp.ones((2, 7, 3)), cell.first(2))
    >>> outputs.shape, bool((outputs[:, -1] == hidden).all())
    ((2, 7, 5), True)
    """

    into: Float[Array, "G n"]
    across: Float[Array, "G h"]
    bias: Float[Array, " G"]
    peephole: Float[Array, "3 h"] | None
    kind: str = eqx.field(static=True)
    squashing: str = eqx.field(static=True)

    def __init__(self, key: Key[Array, ""], n_in: int, n_hidden: int, *, kind: str = "lstm", squashing: str = "tanh"):
        if kind not in GATES:
            raise ValueError(f"`kind` must be one of {', '.join(CELLS)}, got {kind!r}.")
        if squashing not in SQUASHINGS:
            raise ValueError(f"`squashing` must be one of {', '.join(SQUASHINGS)}, got {squashing!r}.")
        into_key, across_key = jax.random.split(key)
        n_gates, dtype = GATES[kind], float_dtype()
        self.into = jax.random.normal(into_key, (n_gates * n_hidden, n_in), dtype) / math.sqrt(max(1, n_in))
        # Weights are orthogonal for each gate, so that gradients neither vanish nor explode at the start.
        square = jax.random.normal(across_key, (n_gates, n_hidden, n_hidden), dtype)
        self.across = jnp.linalg.qr(square)[0].reshape(n_gates * n_hidden, n_hidden)
        bias = jnp.zeros(n_gates * n_hidden, dtype)
        # Forget gates start open (Jozefowicz, Zaremba and Sutskever, 2015).
        self.bias = bias.at[n_hidden : 2 * n_hidden].set(1.0) if n_gates == 4 else bias
        self.peephole = jnp.zeros((3, n_hidden), dtype) if kind == "peephole" else None
        self.kind, self.squashing = kind, squashing

    @property
    def n_hidden(self) -> int:
        """Size h of the output."""
        return self.across.shape[1]

    def first(self, n: int) -> Any:
        """The state before a sequence: zeros."""
        zeros = jnp.zeros((n, self.n_hidden), self.across.dtype)
        return (zeros, zeros) if GATES[self.kind] == 4 else zeros

    def gates(self, x: Float[Array, "*n i"]) -> Float[Array, "*n G"]:
        """The input's part of the gates, for any number of steps at once."""
        return (x.reshape(-1, x.shape[-1]) @ self.into.T + self.bias[None, :]).reshape(*x.shape[:-1], -1)

    def step(self, state: Any, given: Float[Array, "n G"]) -> Any:
        """The next state, from the input's part of the gates."""
        if self.kind == "rnn":
            return jnp.tanh(given + state @ self.across.T)
        if self.kind == "gru":
            return self._gru(state, given)
        hidden, memory = state
        write, forget, read, new = jnp.split(given + hidden @ self.across.T, 4, axis=-1)
        if self.peephole is not None:
            write, forget = write + self.peephole[:1] * memory, forget + self.peephole[1:2] * memory
        squash = jnp.tanh if self.squashing == "tanh" else jax.nn.sigmoid
        memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(write) * squash(new)
        if self.peephole is not None:
            read = read + self.peephole[2:] * memory
        return jax.nn.sigmoid(read) * jnp.tanh(memory), memory

    def _gru(self, state: Array, given: Array) -> Array:
        h = self.n_hidden
        gates = jax.nn.sigmoid(given[:, : 2 * h] + state @ self.across[: 2 * h].T)
        keep, reset = gates[:, :h], gates[:, h:]
        return keep * state + (1 - keep) * jnp.tanh(given[:, 2 * h :] + (reset * state) @ self.across[2 * h :].T)

    def unroll(
        self, x: Float[Array, "n t i"], state: Any, fresh: Bool[Array, "n t"] | None = None
    ) -> tuple[Float[Array, "n t h"], Any]:
        """Outputs of every step, and the last state; where `fresh`, the state is forgotten before the step."""
        given = jnp.swapaxes(self.gates(x), 0, 1)
        starts = None if fresh is None else fresh.T

        def advance(state: Any, now: tuple[Array, Array | None]) -> tuple[Any, Array]:
            gates, start = now
            if start is not None:
                state = jax.tree.map(lambda a: jnp.where(start[:, None], 0, a), state)
            state = self.step(state, gates)
            return state, output_of(state)

        state, outputs = lax.scan(advance, state, (given, starts))
        return jnp.swapaxes(outputs, 0, 1), state


class Stack(eqx.Module):
    """Cells on top of each other, with dropout between them (Zaremba, Sutskever and Vinyals, 2014)."""

    cells: tuple[Cell, ...]

    @classmethod
    def build(
        cls, key: Key[Array, ""], n_in: int, sizes: Sequence[int], *, kind: str = "lstm", squashing: str = "tanh"
    ) -> Stack:
        """Cells of these sizes, the lowest first."""
        keys, widths = jax.random.split(key, len(sizes)), (n_in, *sizes)
        return cls(
            tuple(
                Cell(k, a, b, kind=kind, squashing=squashing)
                for k, a, b in zip(keys, widths[:-1], widths[1:], strict=True)
            )
        )

    @property
    def n_hidden(self) -> int:
        """Size of the top's output."""
        return self.cells[-1].n_hidden

    def first(self, n: int) -> tuple[Any, ...]:
        """States before a sequence."""
        return tuple(cell.first(n) for cell in self.cells)

    def unroll(
        self,
        x: Float[Array, "n t i"],
        states: tuple[Any, ...],
        fresh: Bool[Array, "n t"] | None = None,
        *,
        key: Key[Array, ""] | None = None,
        dropout: float = 0.0,
    ) -> tuple[Float[Array, "n t h"], tuple[Any, ...]]:
        """Outputs of the top, and the last states. `key` is for dropout, which is off without it."""
        lasts = []
        for number, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            x = drop(None if key is None else jax.random.fold_in(key, number), x, dropout)
            x, last = cell.unroll(x, state, fresh)
            lasts.append(last)
        return drop(None if key is None else jax.random.fold_in(key, len(self.cells)), x, dropout), tuple(lasts)

    def step(self, states: tuple[Any, ...], x: Float[Array, "n i"]) -> tuple[tuple[Any, ...], Float[Array, "n h"]]:
        """One step of all layers: the new states, and the top's output."""
        lasts = []
        for cell, state in zip(self.cells, states, strict=True):
            state = cell.step(state, cell.gates(x))
            x = output_of(state)
            lasts.append(state)
        return tuple(lasts), x


def output_of(state: Any) -> Array:
    """What a state shows: all of it, or its first part where the rest is memory."""
    return state[0] if isinstance(state, tuple) else state

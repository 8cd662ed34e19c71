"""Recurrent networks written once more, plainly, in NumPy: steps of every cell, and gradients through time by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from likely.nets.recurrent import Cell


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def plain_step(cell, state, x):
    """One row's next state, gate by gate."""
    into, across, bias = (np.asarray(a) for a in (cell.into, cell.across, cell.bias))
    h = across.shape[1]

    def part(g, hidden):
        gate = slice(g * h, (g + 1) * h)
        return into[gate] @ x + across[gate] @ hidden + bias[gate]

    if cell.kind == "rnn":
        return np.tanh(part(0, state))
    if cell.kind == "gru":
        keep, reset = sigmoid(part(0, state)), sigmoid(part(1, state))
        return keep * state + (1 - keep) * np.tanh(part(2, reset * state))
    hidden, memory = state
    see = np.zeros((3, h)) if cell.peephole is None else np.asarray(cell.peephole)
    write, forget = sigmoid(part(0, hidden) + see[0] * memory), sigmoid(part(1, hidden) + see[1] * memory)
    new = (np.tanh if cell.squashing == "tanh" else sigmoid)(part(3, hidden))
    memory = forget * memory + write * new
    return sigmoid(part(2, hidden) + see[2] * memory) * np.tanh(memory), memory


def rnn_case(seed, t=5, i=3, h=4, o=3):
    """A simple network h_t = tanh(b + W h_{t-1} + U x_t), o_t = c + V h_t, inputs, and labels."""
    random = np.random.RandomState(seed)
    weights = {
        "U": random.normal(size=(h, i)),
        "W": random.normal(size=(h, h)) / 2,
        "b": random.normal(size=h),
        "V": random.normal(size=(o, h)),
        "c": random.normal(size=o),
    }
    return weights, random.normal(size=(t, i)), random.randint(o, size=t)


def loss(weights, x, y):
    """Minus the log-probability of the labels, by the cell that the library has."""
    cell = jax.eval_shape(lambda: Cell(jax.random.key(0), x.shape[1], len(weights["b"]), kind="rnn"))
    cell = jax.tree.unflatten(jax.tree.structure(cell), [weights["U"], weights["W"], weights["b"]])
    hidden, _ = cell.unroll(x[None], cell.first(1))
    scores = hidden[0] @ weights["V"].T + weights["c"][None, :]
    return -jax.nn.log_softmax(scores)[jnp.arange(len(y)), y].sum()


def closed_form(weights, x, y, *, diagonal=True):
    """The gradients of 000, Eq. 10.18 to 10.28, with the diagonal between Wᵀ and the gradient as the errata have it."""
    U, W, b, V, c = (weights[name] for name in "UWbVc")
    hidden = [np.zeros(len(b))]
    for now in x:
        hidden.append(np.tanh(b + W @ hidden[-1] + U @ now))
    scores = np.array(hidden[1:]) @ V.T + c
    output = np.exp(scores - scores.max(axis=1, keepdims=True))
    output /= output.sum(axis=1, keepdims=True)
    output[np.arange(len(y)), y] -= 1  # the gradient with respect to o_t
    out = {name: np.zeros_like(value) for name, value in weights.items()}
    later = np.zeros(len(b))
    for t in range(len(y), 0, -1):
        slope = V.T @ output[t - 1] + later  # with respect to h_t
        before = (1 - hidden[t] ** 2) * slope
        out["c"] += output[t - 1]
        out["V"] += np.outer(output[t - 1], hidden[t])
        out["b"] += before
        out["W"] += np.outer(before, hidden[t - 1])
        out["U"] += np.outer(before, x[t - 1])
        later = W.T @ (before if diagonal else slope)
    return out


def check_gradients(closed, seed):
    """Backpropagation through time is the closed form."""
    weights, x, y = rnn_case(seed)
    found = jax.grad(loss)({name: jnp.asarray(value) for name, value in weights.items()}, jnp.asarray(x), y)
    for name, value in closed(weights, x, y).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-8, atol=1e-10)

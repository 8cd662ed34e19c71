"""Layered machines by brute force, and checks that tests and their negative controls share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import likely
from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.layered.machine import LayeredParams, even_inputs
from tests.models.energy.harmonium.brute_force import all_rows, hidden_states, row_number
from tests.models.energy.harmonium.learning_checks import check_frequencies

TINY = Columns(("binary",) * 3, (1,) * 3)
CODED = Columns(("categorical", "binary", "binary"), (3, 1, 1))
SHAPES = [(3,), (3, 2), (2, 2, 3)]
Z_SCORE = stats.norm.isf(1e-6)


def layered(columns: Columns, layers: Sequence[int], seed: int, scale: float = 1.0) -> LayeredParams:
    """A machine whose layers matter."""
    rng = np.random.default_rng(seed)
    sizes, quadratic = (columns.n_statistics, *layers), columns.is_quadratic
    weights = [scale * rng.normal(size=pair) for pair in pairwise(sizes)]
    weights[0] = np.where(quadratic[:, None], 0.0, weights[0])
    bias = 0.5 * rng.normal(size=sizes[0])
    return LayeredParams(
        tuple(jnp.asarray(w) for w in weights),
        jnp.asarray(np.where(quadratic, -0.5 * np.exp(bias), bias)),
        tuple(jnp.asarray(0.5 * rng.normal(size=k)) for k in layers),
        tuple(jnp.asarray(rng.random((50, k)) < 0.5) for k in layers[::2]),
    )


def dressed(model: likely.Model, like: likely.Model, params: Any) -> likely.Model:
    """A model with these parameters, fitted to the rows that another was."""
    for name in ("columns_", "schema_", "cells_", "seed_", "n_features_in_"):
        setattr(model, name, getattr(like, name))
    model.params_ = params
    return model


def joint_states(columns: Columns, layers: Sequence[int]) -> list[np.ndarray]:
    """Every joint configuration of a discrete machine, as rows x and a table for each layer."""
    parts = [all_rows(columns), *(hidden_states(k) for k in layers)]
    index = np.indices([len(part) for part in parts]).reshape(len(parts), -1)
    return [part[i] for part, i in zip(parts, index, strict=True)]


# One program, as those below: one operation after the other would be a program each, for every machine.
@partial(jax.jit, static_argnames="columns")
def log_joint(params: LayeredParams, states: Sequence[np.ndarray], columns: Columns) -> jax.Array:
    """-E of joint configurations; differentiable."""
    layers = [columns.statistics(jnp.asarray(states[0])), *(jnp.asarray(s) for s in states[1:])]
    value = layers[0] @ params.visible_bias + columns.log_base(jnp.asarray(states[0]))
    for below, above, weights, bias in zip(layers[:-1], layers[1:], params.weights, params.hidden_biases, strict=True):
        value = value + jnp.einsum("na,ab,nb->n", below, weights, above) + above @ bias
    return value


def log_rows(params: LayeredParams, columns: Columns) -> tuple[np.ndarray, jax.Array, jax.Array]:
    """Every row, its log Σ_h exp(-E), and log Z."""
    states = joint_states(columns, [len(c) for c in params.hidden_biases])
    rows = all_rows(columns)
    return rows, *_log_sums(log_joint(params, states, columns).reshape(len(rows), -1))


@jax.jit
def _log_sums(logs: jax.Array) -> tuple[jax.Array, jax.Array]:
    of_rows = jax.nn.logsumexp(logs, axis=1)
    return of_rows, jax.nn.logsumexp(of_rows)


def marginal(rows: np.ndarray, logs: np.ndarray, row: np.ndarray) -> float:
    """log of the sum over the rows that agree with the observed cells of one."""
    seen = ~np.isnan(row)
    agree = (rows[:, seen] == row[seen]).all(axis=1)
    return float(np.logaddexp.reduce(np.asarray(logs)[agree]))


def holed(columns: Columns) -> np.ndarray:
    """Rows with every pattern of holes but the one without."""
    row = all_rows(columns)[-1]
    patterns = hidden_states(len(row)).astype(bool)[1:]
    return np.where(patterns, np.nan, row[None])


def check_variational_bound(
    values: np.ndarray, logits: Sequence[jax.Array], params: LayeredParams, given: np.ndarray, columns: Columns
) -> None:
    """Each row's bound is E_q[-E - log q], by enumeration of q over all that the row does not say.

    q is a product: odd layers with these logits, even ones and unobserved cells at their best given the odd means.
    That the sum over q is at most log Σ exp(-E) is Jensen's inequality; it is checked all the same.
    """
    states = joint_states(columns, [len(c) for c in params.hidden_biases])
    joint = np.asarray(log_joint(params, states, columns))
    means_of_even = jax.jit(lambda p, a: even_inputs(p, [jax.nn.sigmoid(logit) for logit in a]))
    natural, *even = (np.asarray(a) for a in means_of_even(params, tuple(logits)))
    hidden = [np.asarray(logits[i // 2] if i % 2 == 0 else even[i // 2]) for i in range(params.n_layers)]
    log_density, values = jax.jit(columns.log_density), np.asarray(values)
    for i, row in enumerate(given):
        seen = ~np.isnan(row)
        agree = (states[0][:, seen] == row[seen]).all(axis=1)
        # Of all configurations, so that it is the same program for every pattern of holes.
        unseen = np.broadcast_to(~seen, states[0].shape)
        log_q = np.asarray(log_density(states[0], unseen, np.broadcast_to(natural[i], (len(agree), natural.shape[1]))))
        log_q = log_q[agree]
        for layer, own in zip(states[1:], hidden, strict=True):
            log_q = log_q + (layer[agree] * own[i] - np.logaddexp(0, own[i])).sum(axis=1)
        q = np.exp(log_q)
        np.testing.assert_allclose(q.sum(), 1, rtol=1e-10)
        np.testing.assert_allclose(values[i], q @ (joint[agree] - log_q), rtol=1e-9, atol=1e-9)
        assert values[i] < np.logaddexp.reduce(joint[agree]) + 1e-9


def check_mean_weight(log_mean: np.ndarray, replicates: np.ndarray, exact: np.ndarray) -> None:
    """Importance weights average to the exact value, within their error."""
    error = replicates.std(axis=1, ddof=1) / np.sqrt(replicates.shape[1])
    # replicates are few: the tail is Student's
    limit = stats.t.isf(1e-6, replicates.shape[1] - 1)
    assert (np.abs(log_mean - exact) < limit * error + 1e-9).all()


def check_odd_layers_unchanged(step: Callable, params: LayeredParams, columns: Columns, seed: int) -> None:
    """A step (key, odd layers) -> odd layers from exact samples must give samples of the machine."""
    layers = [len(c) for c in params.hidden_biases]
    states = joint_states(columns, layers)
    p = np.exp(np.asarray(log_joint(params, states, columns)))
    drawn = np.random.default_rng(seed).choice(len(p), size=50_000, p=p / p.sum())
    odd = tuple(jnp.asarray(s[drawn]) for s in states[1::2])
    after = np.hstack([np.asarray(a) for a in step(jax.random.key(seed), odd)])
    table = hidden_states(sum(layers[::2]))
    exact = np.bincount(row_number(np.hstack(states[1::2]), table), weights=p, minlength=len(table))
    check_frequencies(np.bincount(row_number(after, table), minlength=len(table)), exact / exact.sum())


def check_gradient(found: LayeredParams, exact: LayeredParams, params: LayeredParams, offsets: Sequence) -> None:
    """A gradient from centred statistics against the derivative `exact` of the objective in the plain parameters.

    The centred parameters are W, and b_l + W_lᵀm_{l-1} + W_{l+1} m_{l+1}; a step along the gradient in them, seen in
    the plain ones, is what must come out.
    """

    def plain(centred):
        biases = [centred.visible_bias, *centred.hidden_biases]
        for i, w in enumerate(centred.weights):
            biases[i] = biases[i] - w @ offsets[i + 1]
            biases[i + 1] = biases[i + 1] - offsets[i] @ w
        return LayeredParams(centred.weights, biases[0], tuple(biases[1:]), ())

    # the map is linear, so that it may be differentiated anywhere
    step = jax.vjp(plain, params)[1](exact)[0]
    expected = jax.jvp(plain, (params,), (step,))[1]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8), found, expected)


def check_composition(machine: LayeredParams, levels: Sequence[RBMParams], columns: Columns) -> None:
    """log p of the inner layers is half the sum of what the RBMs with copies give them, but for a constant.

    The lowest RBM has two copies of x, the highest two of its hidden layer; those between are plain.
    """
    inner = [len(level.hidden_bias) for level in levels[:-1]]
    index = np.indices([2**k for k in inner]).reshape(len(inner), -1)
    states = [hidden_states(k)[i] for k, i in zip(inner, index, strict=True)]
    lowest, highest = levels[0], levels[-1]
    summed = columns.log_partition(jnp.asarray(states[0]) @ lowest.weights.T + lowest.visible_bias[None]).sum(axis=1)
    logs = states[0] @ lowest.hidden_bias + 2 * summed
    for level, below, above in zip(levels[1:-1], states[:-1], states[1:], strict=True):
        logs = logs + below @ level.visible_bias + above @ level.hidden_bias
        logs = logs + jnp.einsum("na,ab,nb->n", below, level.weights, above)
    top = jax.nn.softplus(states[-1] @ highest.weights + highest.hidden_bias[None]).sum(axis=1)
    logs = logs + states[-1] @ highest.visible_bias + 2 * top
    every = joint_states(columns, [len(c) for c in machine.hidden_biases])
    joint = np.asarray(log_joint(machine, every, columns))
    table = np.hstack(states)
    place = row_number(np.hstack(every[1:-1]), table)
    found = np.array([np.logaddexp.reduce(joint[place == i]) for i in range(len(table))])
    gap = found - 0.5 * np.asarray(logs)
    np.testing.assert_allclose(gap, gap[0], rtol=1e-9, atol=1e-12)


def check_level_gradient(gradient: Callable, params: RBMParams, columns: Columns, copies: tuple[int, int], seed: int):
    """The gradient of one level against that of log p of copies of the data, by enumeration.

    gradient(params, rows, chains) -> (weights, visible bias, hidden bias), chains summed over copies.
    """
    rows, n = all_rows(columns)[[1, 3, 6]], 20_000
    cells = [all_rows(columns)] * copies[0]
    index = np.indices([len(c) for c in cells]).reshape(len(cells), -1)
    every = sum(c[i] for c, i in zip(cells, index, strict=True))  # summed over copies, with repetitions

    def log_sums(p, summed):
        hidden = jax.nn.softplus(summed @ p.weights + p.hidden_bias[None])
        return summed @ p.visible_bias + copies[1] * hidden.sum(axis=1)

    def log_p(p):
        return log_sums(p, copies[0] * rows).mean() - jax.nn.logsumexp(log_sums(p, every))

    rng = np.random.default_rng(seed)
    shares = np.exp(np.asarray(log_sums(params, every)))
    visible = every[rng.choice(len(every), n, p=shares / shares.sum())]
    up = np.asarray(jax.nn.sigmoid(visible @ params.weights + params.hidden_bias[None]))
    chains = sum((rng.random(up.shape) < up).astype(float) for _ in range(copies[1]))
    exact = jax.jit(jax.grad(log_p, allow_int=True))(params)
    # products of the sums of copies lie in [0, copies]: their deviation is at most half of that, less its mean
    error = Z_SCORE * copies[0] * copies[1] / np.sqrt(n)
    found = gradient(params, jnp.asarray(rows), jnp.asarray(chains))
    for a, b in zip(found, (exact.weights, exact.visible_bias, exact.hidden_bias), strict=True):
        assert np.abs(np.asarray(a - b)).max() < error

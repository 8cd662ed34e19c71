"""Layered machine: p(x, h1, ..., hL) ∝ exp(b·T(x) + T(x)ᵀW1 h1 + h1ᵀW2 h2 + ... + Σ c_l·h_l), every h_l binary.

Salakhutdinov and Hinton (2009), with visible units of any columns. Layers touch their neighbours only, so the even ones
(x, h2, h4, ...) are independent given the odd ones (h1, h3, ...) and the other way round: a sweep draws one half, then
the other. `bipartite` writes the machine as a harmonium between the halves, and what is known of a harmonium (exact
sums, annealing with one half summed out, clamped chains) then holds for it. With one hidden layer it is a harmonium.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams, along_last, sample_hidden
from likely.montecarlo.importance import Weighted, weigh

Layers = tuple[Array, ...]  # one array (n, units) for each layer of a half


class LayeredParams(eqx.Module):
    """Weights between neighbouring layers, biases, and states of chains that have long followed the machine.

    The chains hold the odd hidden layers h1, h3, ...; they are no parameters.
    """

    weights: tuple[Float[Array, "_below _above"], ...]
    visible_bias: Float[Array, " D"]
    hidden_biases: tuple[Float[Array, " _k"], ...]
    chains: tuple[Bool[Array, "c _k"], ...]

    @property
    def n_layers(self) -> int:
        """Hidden layers, L."""
        return len(self.weights)


# ------------------------------------------------------------------------ one half given the other
def even_inputs(params: LayeredParams, odd: Sequence[Array], visible: bool = True) -> Layers:
    """Natural parameters of x, unless `visible` is false, and logits of h2, h4, ... given h1, h3, ..."""
    biases = (params.visible_bias, *params.hidden_biases)
    out = []
    for i in range(0 if visible else 1, params.n_layers // 2 + 1):
        terms = [odd[i - 1] @ params.weights[2 * i - 1]] if i > 0 else []
        terms += [odd[i] @ params.weights[2 * i].T] if i < len(odd) else []
        out.append(sum(terms[1:], terms[0]) + along_last(biases[2 * i], terms[0]))
    return tuple(out)


def odd_inputs(params: LayeredParams, even: Sequence[Array], drive: Array | None = None) -> Layers:
    """Logits of h1, h3, ... given T(x), h2, h4, ...; `drive` is T(x) W1 where that is known already."""
    out = []
    for i in range((params.n_layers + 1) // 2):
        total = drive if i == 0 and drive is not None else even[i] @ params.weights[2 * i]
        if i + 1 < len(even):
            total = total + even[i + 1] @ params.weights[2 * i + 1].T
        out.append(total + along_last(params.hidden_biases[2 * i], total))
    return tuple(out)


def draw_even(key: Key[Array, ""], params: LayeredParams, odd: Sequence[Array], columns: Columns) -> Layers:
    """Cells x, and states of h2, h4, ..., given the odd layers."""
    visible, *hidden = even_inputs(params, odd)
    keys = jax.random.split(key, 1 + len(hidden))
    return (columns.sample(keys[0], visible), *(sample_hidden(k, a) for k, a in zip(keys[1:], hidden, strict=True)))


def draw_odd(key: Key[Array, ""], logits: Sequence[Array]) -> Layers:
    """States of h1, h3, ... with these logits."""
    return tuple(sample_hidden(k, a) for k, a in zip(jax.random.split(key, len(logits)), logits, strict=True))


def gibbs(
    key: Key[Array, ""],
    params: LayeredParams,
    odd: Sequence[Array],
    columns: Columns,
    clamp: tuple[Float[Array, "n d"], Bool[Array, "n d"]] | None = None,
) -> Layers:
    """Odd → even → odd layers: leaves the machine unchanged, or the machine given observed cells clamp = (x, seen)."""
    down, up = jax.random.split(key)
    cells, *hidden = draw_even(down, params, odd, columns)
    cells = cells if clamp is None else jnp.where(clamp[1], clamp[0], cells)
    return draw_odd(up, odd_inputs(params, (columns.statistics(cells), *hidden)))


# --------------------------------------------------------------------------------------- mean field
def mean_field(
    params: LayeredParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, columns: Columns, n_steps: int
) -> tuple[Layers, Layers]:
    """Means of T(x), h2, ... and logits of h1, h3, ... given the observed cells, all unobserved units independent.

    Starts from a pass upwards in which each layer's input from below stands for that from above, too, and goes to and
    fro between the halves. The even means are the best ones for the odd logits.
    """
    known = columns.statistics(x, observed)
    mask = None if observed is None else columns.spread(observed)
    drive = known @ params.weights[0] if mask is None else None

    def even_means(odd: Layers) -> Layers:
        if mask is None:
            return (known, *(jax.nn.sigmoid(a) for a in even_inputs(params, odd, visible=False)))
        visible, *hidden = even_inputs(params, odd)
        return (jnp.where(mask, known, columns.mean(visible)), *(jax.nn.sigmoid(a) for a in hidden))

    def step(_: Any, logits: Layers) -> Layers:
        return odd_inputs(params, even_means(tuple(jax.nn.sigmoid(a) for a in logits)), drive)

    # T(x) W1 does not change while x is complete, so `drive` spares the largest product in every step.
    start = _upwards(params, known, mask, columns)
    logits = lax.fori_loop(0, n_steps, step, start)
    return even_means(tuple(jax.nn.sigmoid(a) for a in logits)), logits


def from_top(params: LayeredParams, top: Float[Array, "n k"], columns: Columns, n_steps: int) -> Float[Array, "n D"]:
    """Means of T(x) given the top layer, all others by mean field from a pass downwards."""
    state, layers = top, [top]
    for i in range(params.n_layers - 1, 0, -1):
        state = jax.nn.sigmoid(2 * (state @ params.weights[i].T) + params.hidden_biases[i - 1][None, :])
        layers.insert(0, state)
    top_is_odd = params.n_layers % 2 == 1

    def even_means(odd: Layers) -> Layers:
        visible, *hidden = even_inputs(params, odd)
        means = [columns.mean(visible), *(jax.nn.sigmoid(a) for a in hidden)]
        return tuple(means if top_is_odd else [*means[:-1], top])

    def step(_: Any, odd: Layers) -> Layers:
        means = [jax.nn.sigmoid(a) for a in odd_inputs(params, even_means(odd))]
        return tuple([*means[:-1], top] if top_is_odd else means)

    return even_means(lax.fori_loop(0, n_steps, step, tuple(layers[::2])))[0]


def bound(
    params: LayeredParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    columns: Columns,
    logits: Layers,
) -> Float[Array, " n"]:
    """Lower bound of log Σ exp(-E) given the observed cells: E_q[-E] + H(q), for any logits of q(h1), q(h3), ...

    Even layers and unobserved cells are at their best given the odd means m, where they add their log partition
    functions at the inputs that m gives them.
    """
    means = tuple(jax.nn.sigmoid(a) for a in logits)
    value = _summed_out(params, x, observed, columns, means)
    for mean, logit in zip(means, logits, strict=True):
        # The entropy of Bernoulli(σ(a)) is softplus(a) - a σ(a).
        value = value + (jax.nn.softplus(logit) - logit * mean).sum(axis=-1)
    return value


def importance_bound(
    key: Key[Array, ""],
    params: LayeredParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    columns: Columns,
    logits: Layers,
    n_samples: int,
) -> Weighted:
    """log (1/S) Σ_s p*(x, h_s) / q(h_s), h_s drawn from the mean field of the odd layers, the even ones summed out.

    In expectation a lower bound on log Σ exp(-E) that rises with S; rows share the noise of their samples.
    """
    sizes = np.cumsum([a.shape[-1] for a in logits])
    wide = None if observed is None else observed[:, None, :]

    def sampler(noise: Float[Array, "c k"]) -> tuple[Float[Array, "n c"], None]:
        uniform = jnp.split(jax.scipy.special.ndtr(noise), sizes[:-1], axis=1)
        value: Any = 0.0
        states = []
        for logit, u in zip(logits, uniform, strict=True):
            h = (u[None] < jax.nn.sigmoid(logit)[:, None, :]).astype(x.dtype)
            states.append(h)
            value = value - (h * logit[:, None, :] - jax.nn.softplus(logit)[:, None, :]).sum(axis=-1)
        return value + _summed_out(params, x[:, None, :], wide, columns, tuple(states)), None

    return weigh(key, sampler, n_samples=n_samples, n_latent=int(sizes[-1]), dtype=x.dtype)


# ------------------------------------------------------------------------------- as a harmonium
def bipartite(params: LayeredParams, columns: Columns) -> tuple[RBMParams, Columns]:
    """The harmonium whose visible columns are x, then the bits of h2, h4, ..., and whose hidden units are h1, h3, ...

    With more than two hidden layers its weights hold blocks of zeros, which cost as if they were none.
    """
    even = [len(bias) for bias in params.hidden_biases[1::2]]
    extended = Columns(columns.kinds + ("binary",) * sum(even), columns.n_categories + (1,) * sum(even))
    own, added = places(columns, extended)
    dtype = params.visible_bias.dtype
    blocks = []
    # Row i of blocks is the even layer 2i, column j the odd layer 2j + 1; only neighbours have weights.
    for i, n in enumerate([len(params.visible_bias), *even]):
        line = [jnp.zeros((n, len(c)), dtype) for c in params.hidden_biases[::2]]
        if i > 0:
            line[i - 1] = params.weights[2 * i - 1].T
        if 2 * i < params.n_layers:
            line[i] = params.weights[2 * i]
        blocks.append(line)
    # Columns sorts statistics by kind, so that the bits of x stand beside the added ones.
    order = np.argsort(np.concatenate([own, added]))
    bias = jnp.concatenate([params.visible_bias, *params.hidden_biases[1::2]])
    return (
        RBMParams(
            jnp.concatenate([jnp.concatenate(line, axis=1) for line in blocks])[order],
            bias[order],
            jnp.concatenate(params.hidden_biases[::2]),
            jnp.concatenate(params.chains, axis=1),
        ),
        extended,
    )


def places(columns: Columns, extended: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Where the statistics of x, and those of the added bits, stand among the statistics of `bipartite`'s columns."""
    mine = extended.column_of < columns.n_columns
    return np.flatnonzero(mine), np.flatnonzero(~mine)


def _summed_out(
    params: LayeredParams, x: Array, observed: Array | None, columns: Columns, odd: Sequence[Array]
) -> Float[Array, "*n"]:
    """log Σ exp(-E) over the even layers and the unobserved cells, given the observed cells and the odd layers."""
    known = columns.statistics(x, observed)
    value = columns.log_base(x, observed) + known @ params.visible_bias
    value = value + jnp.sum((known @ params.weights[0]) * odd[0], axis=-1)
    for state, bias in zip(odd, params.hidden_biases[::2], strict=True):
        value = value + state @ bias
    if observed is not None:
        natural = odd[0] @ params.weights[0].T
        natural = natural + along_last(params.visible_bias, natural)
        value = value + jnp.where(observed, 0, columns.log_partition(natural)).sum(axis=-1)
    for logits in even_inputs(params, odd, visible=False):
        value = value + jax.nn.softplus(logits).sum(axis=-1)
    return value


def _upwards(params: LayeredParams, known: Array, mask: Array | None, columns: Columns) -> Layers:
    """Odd logits of a pass upwards, inputs from below doubled but for the top layer; see `mean_field`."""
    state = known
    if mask is not None:
        natural = params.visible_bias + 0.5 * params.weights[0].sum(axis=1)
        state = jnp.where(mask, known, columns.mean(natural)[None, :])
    out = []
    for i, (weights, bias) in enumerate(zip(params.weights, params.hidden_biases, strict=True)):
        copies = 1 if i == params.n_layers - 1 else 2
        logits = copies * (state @ weights) + bias[None, :]
        state = jax.nn.sigmoid(logits)
        out.append(logits)
    return tuple(out[::2])

"""Small energies with known answers, and the checks of their chains and sums; the controls hand in broken parts."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.columns import Columns
from likely.models.energy.network.function import (
    EnergyParams,
    Kind,
    draw_reference,
    energy,
    first_params,
    first_perceptron,
    tilt,
)
from likely.models.energy.network.moves import Target, look, step_sizes
from likely.montecarlo import run_chains
from tests.models.energy.harmonium.learning_checks import ALPHA

BINARY = Kind(Columns(("binary",) * 4, (1,) * 4), with_base=True)
MIXED = Kind(Columns(("real", "binary", "categorical", "count"), (1, 1, 3, 1)), with_base=True)
_POOL, _CHAINS, _STEPS = 100_000, 10_000, 12


def random_energy(kind: Kind, seed: int, scale: float = 2.0) -> EnergyParams:
    """A perceptron with strong weights over unequal columns; its tilt is between about ±3."""
    key, other = jax.random.split(jax.random.key(seed))
    network = first_perceptron(key, kind.columns, (8,), "tanh")
    network = eqx.tree_at(lambda n: n.layers.layers[-1].weight, network, replace_fn=lambda w: 10 * scale * w)
    network = eqx.tree_at(lambda n: n.layers.layers[0].weight, network, replace_fn=lambda w: 2 * w)
    mean = kind.columns.ignorance + 0.2 * jax.random.uniform(other, (kind.columns.n_statistics,))
    params = first_params(network, kind.columns)
    steps = jnp.asarray(step_sizes(kind.columns.kinds), params.reference.dtype)
    natural = kind.columns.natural(mean.astype(params.reference.dtype))
    return eqx.tree_at(lambda p: (p.reference, p.log_steps), params, (natural, steps))


def target_of(params: EnergyParams, kind: Kind, free=None) -> Target:
    return Target(params, kind, free, jnp.ones(()), params.log_steps)


def check_leaves_unchanged(kernel, kind: Kind, seed: int) -> None:
    """Chains that start distributed as the model still are after some steps.

    They start by importance resampling of many draws of ρ; the truth is the weighted mean over those draws. Compared
    are means of all statistics and their products, in units of both sides' standard errors.
    """
    params = random_energy(kind, seed)
    pool_key, pick_key, go = jax.random.split(jax.random.key(seed + 1), 3)

    @jax.jit
    def run():
        pool = draw_reference(pool_key, params, _POOL, kind)
        weights = jax.nn.softmax(tilt(params, pool, kind))
        start = pool[jax.random.choice(pick_key, _POOL, (_CHAINS,), p=weights)]
        target = target_of(params, kind)
        end = run_chains(go, lambda k, c: kernel(k, c, target), look(params, start, kind), _STEPS).x
        one = features(pool)
        mean = weights @ one
        spread = weights @ (one - mean[None]) ** 2
        error = jnp.sqrt(spread / _CHAINS + spread * (weights**2).sum())
        moved = (end != start).any(axis=1).mean()
        return mean, error, features(end).mean(axis=0), moved

    def features(x):
        own = kind.columns.statistics(x)
        return jnp.concatenate([own, (own[:, :, None] * own[:, None, :])[:, *np.triu_indices(own.shape[1], 1)]], axis=1)

    mean, error, found, moved = run()
    assert float(moved) > 0.3
    # the start shares the pool's errors, so this is generous; a statistic without spread must agree to rounding
    assert (np.abs(found - mean) < 4.5 * error + 1e-9).all(), ((found - mean) / error).round(1)


def exact_log_partition(params: EnergyParams, kind: Kind) -> float:
    """Log Z of four bits."""
    states = jnp.asarray(np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T, params.reference.dtype)
    return float(jax.nn.logsumexp(-energy(params, states, kind)))


def check_log_sum(found, exact: float) -> None:
    """Both estimates of a log sum are within their error of the truth, and that is a small one.

    The error comes from a few replicates, so that the tail is Student's. The controls are half a nat off.
    """
    n = found.replicates.shape[1]
    error = stats.t.isf(ALPHA / 2, n - 1) * found.replicates[0].std(ddof=1) / np.sqrt(n)
    assert error < 0.5
    assert abs(found.low[0] - exact) < error, (found.low[0], exact, error)
    assert abs(found.high[0] - exact) < error, (found.high[0], exact, error)

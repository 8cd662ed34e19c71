"""What a step of parallel tempering must leave unchanged, checked by enumeration of a tiny machine."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.learning_checks import check_frequencies

COLUMNS = Columns(("binary",) * 3, (1,) * 3)
N_REPLICAS, N_HIDDEN = 3, 2


def at_temperature(params: RBMParams, base: np.ndarray, t: float) -> RBMParams:
    """The machine that a replica follows, as a machine."""
    bias = (1 - t) * jnp.asarray(base) + t * params.visible_bias
    return RBMParams(t * params.weights, bias, t * params.hidden_bias, params.chains)


def hidden_probabilities(params: RBMParams) -> np.ndarray:
    logs = logsumexp(brute_force.log_joint(params, brute_force.all_rows(COLUMNS), COLUMNS), axis=0)
    return np.exp(logs - logsumexp(logs))


def check_replicas_stay(step: Callable, seed: int, n: int = 60_000) -> None:
    """A step from exact samples, replicas independent, must give exact samples, replicas independent.

    `step` has the arguments of `tempered_step`.
    """
    rng = np.random.default_rng(seed)
    params = brute_force.machine(COLUMNS, N_HIDDEN, seed, scale=2.0)
    base = 0.5 * rng.normal(size=3)
    states = brute_force.hidden_states(N_HIDDEN)
    machines = [at_temperature(params, base, t) for t in np.linspace(0, 1, N_REPLICAS)]
    tables = [hidden_probabilities(machine) for machine in machines]
    drawn = np.stack([rng.choice(len(states), size=n, p=p) for p in tables], axis=1)
    together = tables[0][:, None, None] * tables[1][None, :, None] * tables[2][None, None, :]
    rows, p_rows = brute_force.row_probabilities(params, COLUMNS)
    for parity in (0, 1):
        key = jax.random.key(2 * seed + parity)
        hidden, x = step(key, params, jnp.asarray(base), jnp.asarray(states[drawn]), COLUMNS, jnp.array(parity))
        numbers = np.asarray(hidden).astype(int) @ [2, 1]  # as `hidden_states` orders them
        counts = np.bincount(numbers @ [16, 4, 1], minlength=64)
        check_frequencies(counts, together.ravel())
        check_frequencies(np.bincount(brute_force.row_number(x, rows), minlength=len(rows)), p_rows)

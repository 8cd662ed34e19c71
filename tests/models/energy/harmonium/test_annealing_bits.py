"""The loop over changed bits: its weights against direct sums, its estimates against enumeration, threads, clamping."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.columns import Columns
from likely.models.energy.harmonium import annealing as annealed
from likely.models.energy.harmonium import enumeration
from likely.models.energy.harmonium.annealing import Path
from likely.models.energy.harmonium.annealing_bits import log_weights
from likely.models.energy.normaliser.schedule import temperatures
from likely.montecarlo import log_mean_weight, replicate_log_mean
from tests.models.energy.harmonium.annealing_bits_checks import arrays, check_estimates, check_one_step
from tests.models.energy.harmonium.brute_force import machine

D, K = 11, 9
COLUMNS = Columns(("binary",) * D, (1,) * D)


@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
def test_a_single_step_is_the_density_ratio(scale, global_random_seed):
    """Small steps by the series, large ones by logarithms, logits beyond what single precision can exponentiate."""
    check_one_step(log_weights, scale, global_random_seed)


@pytest.mark.parametrize("n_temperatures", [3, 300])
def test_both_ways_against_enumeration(n_temperatures, global_random_seed):
    check_estimates(log_weights, n_temperatures, global_random_seed)


def test_threads_change_nothing(global_random_seed):
    parts = arrays(global_random_seed, 0.5)
    cells = np.random.default_rng(global_random_seed).random((7, D)) < 0.5
    one, three = (log_weights(9, cells, temperatures(70), **parts, threads=t) for t in (1, 3))
    np.testing.assert_array_equal(one, three)
    np.testing.assert_array_equal(log_weights(9, cells[:2], temperatures(70), **parts), one[:2])
    assert (log_weights(10, cells, temperatures(70), **parts) != one).all()


@pytest.mark.parametrize("n_holes", [4, D])
def test_the_path_uses_it(n_holes, global_random_seed, monkeypatch):
    """Forward and reverse sums of a machine in single precision, clamped and not."""
    params = jax.tree.map(lambda a: a.astype(jnp.float32) if a.dtype == jnp.float64 else a,
                          machine(COLUMNS, K, global_random_seed, scale=0.7))  # fmt: skip
    x = jnp.asarray(np.random.default_rng(global_random_seed).random(D) < 0.5, jnp.float32)
    observed = jnp.arange(D) >= n_holes
    x = jnp.where(observed, x, 0)
    path = Path(params, params.visible_bias * 0.5, x, None if n_holes == D else observed, COLUMNS)
    exact = float(enumeration.clamped_sum(params, x[None], observed[None], COLUMNS, "hidden")[0][0])
    rows = enumeration.clamped_draws(jax.random.key(1)[None], params, 320, x[None], observed[None], COLUMNS, "hidden")[
        :, 0
    ]
    assert not annealed._is_for_bits(path, 1)
    monkeypatch.setattr(annealed, "_WORTH_LOADING", 0)
    assert annealed._is_for_bits(path, 1)

    @jax.jit
    def both(key, rows):
        return annealed.forward_log_sums(key, path, 320, 100), annealed.reverse_log_sums(key, path, rows, 100)

    forward, reverse = both(jax.random.key(global_random_seed), path.clamp(rows))
    for logs, sign in ((forward, 1), (reverse, -1)):
        error = replicate_log_mean(np.asarray(logs), 16).std(ddof=1) / 4
        assert abs(sign * log_mean_weight(logs) - exact) < 7 * error + 1e-4  # Student's t with 15 degrees; rounding

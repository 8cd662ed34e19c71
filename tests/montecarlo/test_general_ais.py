"""AIS and reverse AIS between any two densities: enumeration, quadrature, adaptive stops, several devices."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.montecarlo import (
    adaptive_stops,
    ais,
    dense_pairwise,
    geometric,
    langevin_kernel,
    log_unnormalised,
    reverse_ais,
    single_site_gibbs,
    sum_states,
)
from tests.conftest import ROOT, environment_of
from tests.montecarlo.ais_checks import check_both_ways
from tests.montecarlo.run_alone import log_weights

N_UNITS = 8


def machine_of(seed):
    rng = np.random.default_rng(seed)
    couplings = np.triu(rng.normal(size=(N_UNITS, N_UNITS)), 1)
    return dense_pairwise(rng.normal(size=N_UNITS), couplings + couplings.T)


def test_bits_against_enumeration(x64, global_random_seed):
    machine = machine_of(global_random_seed)
    target = lambda x: log_unnormalised(machine, x)  # noqa: E731
    # units in random order: reversible, as the reverse run needs it
    kernel = lambda key, x, at: single_site_gibbs(machine, beta=at)(key, x)  # noqa: E731
    exact = float(sum_states(target, N_UNITS)[0]) - N_UNITS * np.log(2)
    coins = lambda key, n: jax.random.bernoulli(key, 0.5, (n, N_UNITS)).astype(float)  # noqa: E731
    logs = np.asarray(target(jnp.asarray(_states())))
    draws = np.random.default_rng(global_random_seed).choice(2**N_UNITS, 400, p=np.exp(logs) / np.exp(logs).sum())
    check_both_ways(lambda x: jnp.zeros(len(x)), target, coins, jnp.asarray(_states()[draws]), kernel, exact,
                    global_random_seed, stops=100)  # fmt: skip


def _states():
    return ((np.arange(2**N_UNITS)[:, None] >> np.arange(N_UNITS)[None, :]) & 1).astype(float)


def two_wells(x):
    return -4 * (x[:, 0] ** 2 - 1) ** 2 + x[:, 0]


def normal(x):
    return -0.5 * jnp.sum(x**2, axis=1)


def langevin(key, x, at):
    path = geometric(normal, two_wells)
    return langevin_kernel(lambda p: path(p[None], at)[0], step_size=0.03)(key, x)


def normal_draws(key, n):
    return jax.random.normal(key, (n, 1))


def test_reals_against_quadrature(x64, global_random_seed):
    grid = np.linspace(-4, 4, 200_001)
    density = np.exp(np.asarray(two_wells(jnp.asarray(grid)[:, None])))
    mass = density.sum() * (grid[1] - grid[0])
    exact = np.log(mass) - 0.5 * np.log(2 * np.pi)
    rng = np.random.default_rng(global_random_seed)
    draws = jnp.asarray(rng.choice(grid, 400, p=density / density.sum()))[:, None]
    check_both_ways(normal, two_wells, normal_draws, draws, langevin, exact, global_random_seed, stops=200)


def narrow(x):
    return -0.5e4 * x[:, 0] ** 2


def exact_move(key, x, at):
    scale = 1 / jnp.sqrt(1 + (1e4 - 1) * at)
    return 0.6 * x + 0.8 * scale * jax.random.normal(key, x.shape, x.dtype)


def test_adaptive_stops_need_fewer(x64, global_random_seed):
    """To a density a hundred times narrower all the change is near 0, where even stops are far apart."""
    pilot, run = jax.random.split(jax.random.key(global_random_seed))
    stops = adaptive_stops(pilot, normal, narrow, normal_draws, exact_move, 100)
    assert stops.shape == (101,)
    assert (np.diff(stops) > 0).all()
    adapted = ais(run, normal, narrow, normal_draws, exact_move, n_chains=400, stops=stops)
    even = ais(run, normal, narrow, normal_draws, exact_move, n_chains=400, stops=100)
    assert adapted.log_weights.std() < 0.2 * even.log_weights.std()
    assert abs(adapted.log_ratio + np.log(100)) < 5 * adapted.stderr
    assert adapted.n_effective > 60  # of 400


def test_two_devices_agree_with_one():
    """Chains are shared out, and each follows the same path as on one device."""
    command = [sys.executable, "-W", "error", "-m", "tests.montecarlo.run_alone"]
    done = subprocess.run(command, cwd=ROOT, env=environment_of(2), check=True, capture_output=True, text=True)
    n_devices, *two = (float(number) for number in done.stdout.split())
    one = log_weights()
    assert (len(one.sharding.device_set), n_devices) == (1, 2)
    np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stops", [0, [0.0, 0.5], [0.5, 1.0], [0.0, 0.7, 0.3, 1.0]])
def test_bad_stops_are_refused(stops):
    with pytest.raises(ValueError, match="`stops`"):
        reverse_ais(jax.random.key(0), normal, narrow, jnp.zeros((4, 1)), exact_move, stops=stops)


def test_densities_that_are_no_numbers_are_refused():
    broken = lambda x: jnp.full(len(x), jnp.nan)  # noqa: E731
    with pytest.raises(ValueError, match="NaN"):
        ais(jax.random.key(0), normal, broken, normal_draws, exact_move, n_chains=4, stops=3)
    with pytest.raises(ValueError, match="at least 2"):
        ais(jax.random.key(0), normal, narrow, normal_draws, exact_move, n_chains=1, stops=3)

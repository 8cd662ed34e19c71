"""Kernels for real vectors: Geweke's test of each, adaptation on a known Gaussian, and diagnostics of its draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.montecarlo import adapt, hmc_kernel, langevin_kernel, nuts_kernel, r_hat, sample_hmc, summary
from tests.montecarlo.chain_checks import check_joint_of_reals

STEP, MASS = 0.3, jnp.ones(2)
KERNELS = {
    "hmc": lambda f: hmc_kernel(f, step_size=STEP, inverse_mass=MASS, n_leapfrog=4),
    "nuts": lambda f: nuts_kernel(f, step_size=STEP, inverse_mass=MASS, max_doublings=3),
    "langevin": lambda f: langevin_kernel(f, step_size=0.1),
}
SCALES = np.array([0.1, 1.0, 10.0])


def stretched(x):
    return -0.5 * jnp.sum((x / jnp.asarray(SCALES, x.dtype)) ** 2)


@pytest.mark.parametrize("name", KERNELS)
def test_geweke(name, global_random_seed):
    check_joint_of_reals(lambda key, f, theta: KERNELS[name](f)(key, theta[None])[0], global_random_seed)


@pytest.fixture(scope="module")
def drawn():
    starts = jax.random.normal(jax.random.key(5), (4, 3))
    return sample_hmc(jax.random.key(0), stretched, starts, 400, n_warmup=300)


def test_adaptation_finds_the_scales(drawn):
    """Variances from the last window of 4 chains, some 100 draws each: within a factor of two."""
    ratio = np.asarray(drawn.tuned.inverse_mass) / SCALES**2
    assert ((ratio > 0.5) & (ratio < 2)).all()
    assert 0.6 < drawn.acceptance.mean() <= 1
    assert drawn.n_divergent == 0


def test_draws_have_the_moments(drawn):
    found = summary(drawn.draws)
    assert (np.abs(found.mean) < 5 * found.stderr).all()
    assert (found.r_hat < 1.03).all()
    squares = summary((drawn.draws / SCALES) ** 2)
    assert (np.abs(squares.mean - 1) < 5 * squares.stderr).all()


def test_fixed_trajectories_adapt_too():
    tuned = adapt(jax.random.key(1), stretched, jnp.ones((2, 3)), 60, algorithm="hmc", n_leapfrog=3)
    assert tuned.chains.shape == (2, 3)
    assert float(tuned.step_size) > 0


def test_chains_that_never_met_are_seen(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    draws = rng.normal(size=(4, 200, 2)) + np.array([0.0, 0.0, 0.0, 2.0])[:, None, None] * np.array([1.0, 0.0])
    apart, met = r_hat(draws)
    assert apart > 1.2
    assert met < 1.05


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: adapt(jax.random.key(0), stretched, jnp.ones(3)), r"\(n_chains, d\)"),
        (lambda: adapt(jax.random.key(0), lambda x: jnp.log(x[0]), -jnp.ones((2, 1))), "start elsewhere"),
        (lambda: adapt(jax.random.key(0), stretched, jnp.ones((2, 3)), 5), "at least 20"),
        (lambda: adapt(jax.random.key(0), stretched, jnp.ones((2, 3)), algorithm="walk"), "nuts"),
        (lambda: r_hat(np.zeros(5)), "n_chains"),
        (lambda: r_hat(np.zeros((1, 50))), "at least 2"),
        (lambda: r_hat(np.zeros((2, 3))), "at least 4"),
        (lambda: r_hat(np.full((2, 30), np.inf)), "finite"),
    ],
)
def test_bad_input_is_refused(run, said):
    with pytest.raises(ValueError, match=said):
        run()

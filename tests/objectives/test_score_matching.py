"""Score matching against maximum likelihood, the Hessian, and quadrature."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from likely.objectives.score_matching import (
    denoising_score_matching,
    denoising_terms,
    exact_terms,
    score,
    score_matching,
    sliced_score_matching,
    sliced_terms,
)
from likely.training import Batch
from tests.objectives.energy_checks import (
    check_denoising_is_exact_on_noisy_data,
    check_equals_maximum_likelihood,
    check_gradient,
    wavy_energy,
)


def setting(seed, n=5, d=3):
    rng = np.random.default_rng(seed)
    theta, rows = jnp.asarray(rng.normal(size=(d, 4))), jnp.asarray(rng.normal(size=(n, d)))
    return theta, rows, Batch(rows, None, jnp.asarray(np.arange(n) > 0, float))


def test_it_is_maximum_likelihood_for_gaussians(x64, global_random_seed):
    check_equals_maximum_likelihood(score_matching, global_random_seed)


def test_trace_is_that_of_the_hessian(x64, global_random_seed):
    theta, rows, batch = setting(global_random_seed)
    alone = lambda row: wavy_energy(theta, row[None])[0]  # noqa: E731
    hessian, slope = jax.jit(jax.vmap(lambda row: (jax.hessian(alone)(row), jax.grad(alone)(row))))(rows)
    terms = -jnp.trace(hessian, axis1=1, axis2=2) + 0.5 * (slope**2).sum(axis=1)
    psi = lambda x: score(wavy_energy, theta, x)  # noqa: E731
    np.testing.assert_allclose(exact_terms(psi, rows), terms, rtol=1e-10)
    loss = score_matching(theta, batch, jax.random.key(0), None, energy=wavy_energy)[0]
    np.testing.assert_allclose(loss, terms[1:].mean(), rtol=1e-10)  # the first row has no weight


def test_all_slices_together_are_exact(x64, global_random_seed):
    theta, rows, _ = setting(global_random_seed)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    directions = jnp.broadcast_to(jnp.asarray(signs)[:, None, :], (8, *rows.shape))
    psi = lambda x: score(wavy_energy, theta, x)  # noqa: E731
    np.testing.assert_allclose(sliced_terms(psi, rows, directions), exact_terms(psi, rows), rtol=1e-10)


def test_random_slices_have_that_expectation(x64, global_random_seed):
    theta, _, batch = setting(global_random_seed)
    keys = jax.random.split(jax.random.key(global_random_seed), 500)
    one = lambda key: sliced_score_matching(theta, batch, key, None, energy=wavy_energy, n_slices=2)[0]  # noqa: E731
    losses = np.asarray(jax.jit(jax.vmap(one))(keys))
    exact = float(score_matching(theta, batch, keys[0], None, energy=wavy_energy)[0])
    assert abs(losses.mean() - exact) < 4.5 * losses.std() / np.sqrt(len(losses))


def test_denoising_is_exact_score_matching_on_noisy_data(x64):
    theta = jnp.asarray([[0.7, -1.1]])
    psi = lambda x: score(wavy_energy, theta, x)  # noqa: E731
    check_denoising_is_exact_on_noisy_data(denoising_terms, psi, exact_terms, 0.4)


def test_denoising_objective_draws_its_noise(x64, global_random_seed):
    """For a standard normal ψ = -x the loss of rows at 0 is ½|(1 - σ²)ε|²."""
    batch, sigma = Batch(jnp.zeros((2000, 2)), None, jnp.ones(2000)), 0.5
    normal = lambda module, rows: 0.5 * (rows**2).sum(axis=1)  # noqa: E731
    key = jax.random.key(global_random_seed)
    loss = denoising_score_matching(jnp.zeros(1), batch, key, None, energy=normal, noise_scale=sigma)[0]
    expected = (1 - sigma**2) ** 2  # of two cells; a chi-square of 4000 has relative error √(2/4000)
    assert abs(float(loss) / expected - 1) < 4.5 * np.sqrt(2 / 4000)


def test_gradients_against_finite_differences(x64, global_random_seed):
    theta, _, batch = setting(global_random_seed)
    for objective in (score_matching, sliced_score_matching, denoising_score_matching):
        loss = lambda t, o=objective: o(t, batch, jax.random.key(1), None, energy=wavy_energy)[0]  # noqa: E731
        check_gradient(loss, theta, global_random_seed)

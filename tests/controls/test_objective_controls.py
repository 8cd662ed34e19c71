"""Planted bugs in the objectives for energies, caught by the checks that the library passes."""

import jax
import jax.numpy as jnp
import pytest

from likely.objectives.nce import nce_loss, noise_contrastive
from likely.objectives.pseudo_likelihood import flip_terms
from likely.objectives.score_matching import exact_terms, score, score_matching
from tests.objectives.energy_checks import (
    check_asymptotics,
    check_consistent,
    check_denoising_is_exact_on_noisy_data,
    check_equals_maximum_likelihood,
    check_gradient,
    check_machine_is_recovered,
    machine,
    machine_energy,
    population,
    wavy_energy,
)


def without_log_k(module, batch, key, noise, *, energy, n_noise):
    """G lacks its log k: the classes are taken as equally frequent."""
    drawn = noise.sample(key, noise.params, n_noise * len(batch.x))
    ratio = lambda rows: module.constant - energy(module.model, rows) - noise.log_prob(noise.params, rows)  # noqa: E731
    even = jnp.full(len(drawn), 1 / len(drawn))
    share = batch.weight / batch.weight.sum()
    shift = jnp.log(n_noise)
    return nce_loss(ratio(batch.x) + shift, ratio(drawn) + shift, share, even, n_noise), (noise, {})


def without_noise_density(module, batch, key, noise, *, energy, n_noise):
    """Log q is left out of G."""
    silent = type(noise)(noise.params, noise.sample, lambda params, rows: jnp.zeros(len(rows)))
    return noise_contrastive(module, batch, key, silent, energy=energy, n_noise=n_noise)


@pytest.mark.parametrize("bug", [without_log_k, without_noise_density])
def test_wrong_odds_are_caught(bug, x64, global_random_seed):
    with pytest.raises(AssertionError):
        check_machine_is_recovered(bug, global_random_seed, 3)


def test_noise_that_is_not_drawn_from_its_density_is_caught(x64, global_random_seed):
    """Noise rows that are drawn a fifth wider than their density says."""

    def wide(module, batch, key, noise, *, energy, n_noise):
        wider = type(noise)(noise.params, lambda k, p, n: 1.2 * noise.sample(k, p, n), noise.log_prob)
        return noise_contrastive(module, batch, key, wider, energy=energy, n_noise=n_noise)

    with pytest.raises(AssertionError):
        check_asymptotics(wide, global_random_seed, 500, 1)


def test_a_fit_with_fewer_noise_rows_than_it_says_is_caught(x64, global_random_seed):
    """The estimate is right, its error is not: only the variance over many fits tells."""

    def thrifty(module, batch, key, noise, *, energy, n_noise):
        return noise_contrastive(module, batch, key, noise, energy=energy, n_noise=1)

    with pytest.raises(AssertionError):
        check_asymptotics(thrifty, global_random_seed, 500, 8)


def test_the_errata_s_score_matching_without_one_half_is_caught(x64, global_random_seed):
    """Erratum 20: E[Σ ∂_i ψ_i + ½ψ_i²]; with ψ² in its place the precision comes out halved."""

    def doubled(module, batch, key, state, *, energy):
        psi = score(energy, module, batch.x)
        loss = score_matching(module, batch, key, state, energy=energy)[0]
        return loss + 0.5 * (psi**2).sum(axis=1).mean(), (state, {})

    with pytest.raises(AssertionError):
        check_equals_maximum_likelihood(doubled, global_random_seed)


def test_denoising_towards_the_wrong_side_is_caught(x64):
    psi = lambda x: score(wavy_energy, jnp.asarray([[0.7, -1.1]]), x)  # noqa: E731

    def backwards(psi, x, noise, sigma):
        return 0.5 * ((sigma * psi(x + sigma * noise) - noise) ** 2).sum(axis=1)

    with pytest.raises(AssertionError):
        check_denoising_is_exact_on_noisy_data(backwards, psi, exact_terms, 0.4)


@pytest.mark.parametrize("function", [jax.nn.sigmoid, lambda d: jax.nn.softplus(0.9 * d)], ids=["unsquared", "scaled"])
def test_wrong_functions_of_the_flips_are_caught(function, x64, global_random_seed):
    def wrong(module, batch, key, state, *, energy):
        terms = flip_terms(key, lambda rows: energy(module, rows), batch.x, function, None)
        return batch.weight @ terms, (state, {})

    with pytest.raises(AssertionError):
        check_consistent(wrong, global_random_seed)


def test_a_gradient_off_by_a_thousandth_is_caught(x64, global_random_seed):
    batch = population(machine(global_random_seed + 1))

    @jax.custom_vjp
    def loss(theta):
        return batch.weight @ machine_energy(theta, batch.x)

    slope = lambda theta: batch.weight @ jax.jacobian(machine_energy)(theta, batch.x)  # noqa: E731
    loss.defvjp(lambda theta: (loss(theta), theta), lambda theta, g: (1.001 * g * slope(theta),))
    with pytest.raises(AssertionError):
        check_gradient(loss, machine(global_random_seed), global_random_seed)


def test_the_checks_pass_what_is_right(x64, global_random_seed):
    check_machine_is_recovered(noise_contrastive, global_random_seed, 2)

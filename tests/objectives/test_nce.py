"""Noise-contrastive estimation against enumeration, a Gaussian, and the theory of its error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.objectives.nce import (
    Noise,
    WithConstant,
    check_support,
    conditional_logits,
    conditional_nce_loss,
    noise_contrastive,
)
from likely.training import Batch
from tests.objectives.energy_checks import (
    asymptotic_variance,
    check_asymptotics,
    check_gradient,
    check_machine_is_recovered,
    gaussian_energy,
    gaussian_noise,
    likelihood_variance,
)


@pytest.mark.parametrize("n_noise", [1, 3])
def test_weights_and_log_z_of_an_enumerated_machine(n_noise, x64, global_random_seed):
    check_machine_is_recovered(noise_contrastive, global_random_seed, n_noise)


@pytest.mark.parametrize(("n_rows", "n_noise"), [(500, 1), (2000, 1), (500, 8)])
def test_error_is_what_theory_says(n_rows, n_noise, x64, global_random_seed):
    """A Gaussian's parameters and log Z; the same law at four times the rows is the fall as 1/√n."""
    check_asymptotics(noise_contrastive, global_random_seed, n_rows, n_noise)


def test_more_noise_comes_near_maximum_likelihood():
    """The law that the fits above obey tends to that of maximum likelihood."""
    best = likelihood_variance()
    ratios = [asymptotic_variance(k)[:2] / best for k in (1, 4, 16, 1000)]
    assert (np.diff(ratios, axis=0) < 0).all()
    assert (ratios[0] > 1.4).all()
    np.testing.assert_allclose(ratios[-1], 1, rtol=0.01)


def test_gradient_against_finite_differences(x64, global_random_seed):
    rows, noise = jnp.asarray(np.random.default_rng(global_random_seed).normal(size=(12, 1))), gaussian_noise()

    def loss(flat):
        module, batch = WithConstant(flat[:2], flat[2]), Batch(rows, None, jnp.ones(12))
        return noise_contrastive(module, batch, jax.random.key(0), noise, energy=gaussian_energy, n_noise=2)[0]

    check_gradient(loss, jnp.array([0.2, 1.1, -0.4]), global_random_seed)


def test_rows_without_weight_do_not_matter(x64):
    weight, noise = jnp.asarray([1.0, 1.0, 0.0]), gaussian_noise()
    loss = lambda last: noise_contrastive(  # noqa: E731
        WithConstant(jnp.array([0.2, 1.1]), jnp.array(-0.4)),
        Batch(jnp.array([[0.1], [0.2], [last]]), None, weight),
        jax.random.key(0),
        noise,
        energy=gaussian_energy,
    )
    assert float(loss(5.0)[0]) == float(loss(-3.0)[0])
    assert float(loss(5.0)[1][1]["log_partition"]) == pytest.approx(0.4)


# ------------------------------------------------------------------ the conditional form
def test_conditional_scores_become_log_probabilities(x64, global_random_seed):
    """Two contexts, three outcomes, q = (1/4, 1/2, 1/4) as four noise outcomes in exact proportion: no sampling."""
    table = np.random.default_rng(global_random_seed).dirichlet(np.ones(3) * 3, size=2)
    noise, log_q = np.array([0, 1, 1, 2]), np.log([0.25, 0.5, 0.25])

    def loss(flat):
        scores, total = flat.reshape(2, 3), 0.0
        for context in range(2):
            own = scores[context]
            each = conditional_nce_loss(
                own,
                jnp.broadcast_to(own[noise], (3, 4)),
                jnp.asarray(log_q),
                jnp.broadcast_to(jnp.asarray(log_q[noise]), (3, 4)),
            )
            total = total + jnp.asarray(table[context]) @ each
        return total

    truth = jnp.log(jnp.asarray(table)).reshape(-1)
    slope, curvature = jax.jit(lambda at: (jax.grad(loss)(at), jax.hessian(loss)(at)))(truth)
    np.testing.assert_allclose(slope, 0, atol=1e-12)
    assert np.linalg.eigvalsh(curvature)[0] > 1e-6  # convex in the scores: the one minimum


def test_negative_sampling_is_the_case_of_k_q_equal_to_one():
    scores = jnp.array([0.3, -1.0])
    uniform = jnp.full(2, -jnp.log(5.0))
    np.testing.assert_allclose(conditional_logits(scores, uniform, 5), scores, rtol=1e-6)


# ------------------------------------------------------------------ support
def uniform_noise() -> Noise:
    inside = lambda rows: jnp.where((rows >= 0) & (rows <= 1), 0.0, -jnp.inf).sum(axis=1)  # noqa: E731
    return Noise.of(lambda key, n: jax.random.uniform(key, (n, 2)), inside)


def test_noise_without_full_support_names_the_row():
    rows = np.array([[0.1, 0.2], [np.nan, 7.0], [0.5, 0.5], [0.5, 1.01]])
    with pytest.raises(ValueError, match=r"no full support: its log density at row 3 is -inf\. .*widen it"):
        check_support(uniform_noise(), rows)
    check_support(uniform_noise(), rows[:3])

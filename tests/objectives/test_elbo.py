import itertools
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.objectives.elbo import (
    elbo,
    elbo_loss,
    elbo_of,
    kl_to_standard_normal,
    log_importance_weights,
    negative_elbo,
    refine_answer,
)
from tests.models.latent.variational.vae_oracles import binary_case, factor_log_prob, factor_rows, linear_case
from tests.objectives.elbo_checks import check_kl, check_weights_are_exact

# As one program each: one operation after the other, each would be a program.
compiled_elbo, compiled_elbo_of, compiled_weights = map(eqx.filter_jit, (elbo, elbo_of, log_importance_weights))


def signs(k):
    """Every vector of ±1: averages over them are the expectations of quadratics of standard normal noise."""
    return np.array(list(itertools.product((-1.0, 1.0), repeat=k)))


def test_kl_against_quadrature(x64):
    check_kl(kl_to_standard_normal)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-3, 2)), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_kl_is_a_divergence_and_adds_up(pairs):
    mean, log_std = (np.array(part, np.float32) for part in zip(*pairs, strict=True))
    kl = jax.jit(kl_to_standard_normal)
    total = float(kl(mean, log_std))
    parts = sum(float(kl(mean[i : i + 1], log_std[i : i + 1])) for i in range(len(pairs)))
    assert total >= -1e-6
    assert total == pytest.approx(parts, rel=1e-5, abs=1e-5)
    assert float(kl(0 * mean, 0 * log_std)) == 0


def test_bound_is_tight_at_the_exact_posterior(x64, global_random_seed):
    module, *law = linear_case(global_random_seed)
    rows = factor_rows(global_random_seed, *law, 20)
    exact = factor_log_prob(rows, *law)
    noise = np.broadcast_to(signs(2), (20, 4, 2))
    value, fit, divergence = map(np.asarray, compiled_elbo(module, rows, None, noise))
    np.testing.assert_allclose(value, exact, rtol=1e-8)
    np.testing.assert_allclose(fit - divergence, value, rtol=1e-12)


def test_weights_are_constant_at_the_exact_posterior(x64):
    check_weights_are_exact(log_importance_weights)


def test_bound_at_any_q_is_evidence_less_divergence(x64, global_random_seed):
    module, *law = linear_case(global_random_seed, spoil=0.3)
    loadings, offset, psi = law
    rows = factor_rows(global_random_seed, *law, 10)
    noise = np.broadcast_to(signs(2), (10, 4, 2))
    mean, log_std = np.split(np.asarray(module.recognise(jnp.asarray(rows), None)), 2, axis=1)
    precision = 1 + np.diag(loadings.T @ (loadings / psi[:, None]))
    best = (rows - offset) @ (loadings / psi[:, None]) / precision
    ratio = np.exp(2 * log_std) * precision
    gap = 0.5 * (ratio + (mean - best) ** 2 * precision - 1 - np.log(ratio)).sum(axis=1)
    value = compiled_elbo(module, rows, None, noise)[0]
    np.testing.assert_allclose(value, factor_log_prob(rows, *law) - gap, rtol=1e-8)


def test_gradient_against_finite_differences(x64, global_random_seed):
    module = binary_case(global_random_seed)
    random = np.random.RandomState(global_random_seed)
    x, observed = jnp.asarray(random.randint(0, 2, (6, 5)).astype(float)), jnp.asarray(random.rand(6, 5) < 0.7)
    batch = SimpleNamespace(x=x, observed=observed, weight=jnp.array([1.0, 1, 1, 1, 1, 0]))
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    key = jax.random.key(global_random_seed)

    @jax.jit
    def loss(vector):
        whole = eqx.combine(unravel(vector), rest)
        return negative_elbo(whole, batch, key, None, n_samples=3, beta=0.7)[0]

    slope = np.asarray(jax.jit(jax.grad(loss))(flat))
    flat = np.asarray(flat)
    # the offset of the encoder's features is held still on purpose
    still = eqx.tree_at(lambda m: m.offset, jax.tree.map(np.ones_like, params), np.zeros(5))
    moving = np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(still)])
    for _ in range(5):
        direction = random.normal(size=flat.shape) * moving
        step = 1e-5
        change = (loss(flat + step * direction) - loss(flat - step * direction)) / (2 * step)
        assert float(slope @ direction) == pytest.approx(float(change), rel=1e-6, abs=1e-8)
    np.testing.assert_array_equal(slope * (1 - moving), 0)


def test_only_rows_with_weight_and_observed_cells_count():
    module, key = binary_case(0), jax.random.key(0)
    x = np.array([[1, 0, 1, 0, 1], [0, 0, 1, 1, 0]], np.float32)
    observed = np.array([[True, True, False, True, True], [True] * 5])
    whole = jax.jit(lambda x, w: negative_elbo(module, SimpleNamespace(x=x, observed=observed, weight=w), key, None)[0])
    changed = x.copy()
    changed[0, 2], changed[1] = 0, 1
    first, both = np.array([1, 0], np.float32), np.array([1, 1], np.float32)
    assert float(whole(x, first)) == float(whole(changed, first))
    assert float(whole(x, both)) != float(whole(changed, both))


def test_weight_of_the_kl_warms_up():
    module, key = binary_case(0), jax.random.key(0)
    batch = SimpleNamespace(x=jnp.ones((2, 5)), observed=None, weight=jnp.ones(2))
    state, losses = jnp.array(0, jnp.int32), []
    for _ in range(6):
        loss, (state, metrics) = negative_elbo(module, batch, key, state, beta=2.0, warmup_steps=4)
        losses.append(float(loss))
    kl, bound = float(metrics["kl"]), float(metrics["elbo"])
    expected = [-(bound + kl) + beta * kl for beta in (0.5, 1.0, 1.5, 2.0, 2.0, 2.0)]
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert int(state) == 6


def test_validation_loss_is_the_bound():
    module, key = binary_case(0), jax.random.key(0)
    batch = SimpleNamespace(x=jnp.ones((3, 5)), observed=None, weight=jnp.ones(3))
    noise = jax.random.normal(key, (3, 2, 1))
    expected = -elbo(module, batch.x, None, noise)[0]
    np.testing.assert_array_equal(elbo_loss(module, batch, key, n_samples=2), expected)


def test_ladder_of_bounds(x64, global_random_seed):
    """ELBO <= IWAE-5 <= IWAE-50 <= exact in expectation, seen beyond the standard errors; then convergence."""
    module, *law = linear_case(global_random_seed, spoil=0.4)
    rows = factor_rows(global_random_seed, *law, 20)
    exact = factor_log_prob(rows, *law)
    answer = module.recognise(jnp.asarray(rows), None)
    noise = jax.random.normal(jax.random.key(global_random_seed), (20_000, 2))
    log_weights = np.asarray(compiled_weights(module, rows, None, answer, noise)[0])
    bounds = [_grouped(log_weights, size) for size in (1, 5, 50)]
    for looser, tighter in itertools.pairwise(bounds):
        # 400 independent groups of 50 samples, the same in both
        steps = tighter.reshape(400, -1).mean(axis=1) - looser.reshape(400, -1).mean(axis=1)
        assert steps.mean() > 4 * _stderr(steps)
    gap = exact.mean() - bounds[-1]
    assert gap.mean() > -4 * _stderr(gap)
    ratio = np.exp(log_weights - exact[:, None]).mean(axis=0)  # the rows' mean of w / p(x), of mean 1
    assert abs(ratio.mean() - 1) < 5 * _stderr(ratio)
    # less the part of the gap that has mean 0 if the weights are right, its noise is small enough to see its sign
    gap = gap + ratio.reshape(400, -1).mean(axis=1) - 1
    assert gap.mean() > 4 * _stderr(gap)
    whole = np.logaddexp.reduce(log_weights, axis=1) - np.log(20_000)
    assert abs((whole - exact).mean()) < 5 * _stderr(ratio)


def _stderr(values):
    return values.std(ddof=1) / np.sqrt(len(values))


def _grouped(log_weights, size):
    """(n_groups,) mean over the rows of the bound from each group of `size` samples."""
    groups = log_weights.reshape(len(log_weights), -1, size)
    return (np.logaddexp.reduce(groups, axis=2) - np.log(size)).mean(axis=0)


def test_refining_finds_the_exact_posterior_of_a_linear_model(x64, global_random_seed):
    """From wherever the encoder starts, whatever is unobserved; with noise of ±1 the bound is exact there."""
    module, *law = linear_case(global_random_seed, k=1, spoil=1.0)
    rows = factor_rows(global_random_seed, *law, 8)
    observed = np.random.RandomState(global_random_seed).rand(8, 6) < 0.6
    observed[0] = False
    exact = factor_log_prob(np.where(observed, rows, np.nan), *law)
    args = (module, rows, observed)
    answer = eqx.filter_jit(refine_answer)(signs(1), *args, n_steps=500)
    noise = np.broadcast_to(signs(1), (8, 2, 1))
    np.testing.assert_allclose(compiled_elbo_of(*args, answer, noise)[0], exact, rtol=1e-5, atol=1e-5)


def test_refining_never_lowers_the_bound_it_sees(x64, global_random_seed):
    module = binary_case(global_random_seed)
    random = np.random.RandomState(global_random_seed)
    args = (module, jnp.asarray(random.randint(0, 2, (16, 5)).astype(float)), jnp.asarray(random.rand(16, 5) < 0.5))
    noise = jnp.asarray(random.normal(size=(6, 1)))
    every_row = jnp.broadcast_to(noise[None], (16, 6, 1))
    encoded = elbo(*args, every_row)[0]
    for n_steps in (1, 10, 50):
        refined = elbo_of(*args, refine_answer(noise, *args, n_steps=n_steps), every_row)[0]
        assert (refined >= encoded).all()

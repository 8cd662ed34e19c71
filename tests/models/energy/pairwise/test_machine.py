"""The pairwise machine against brute force: conventions, sums, kernels, annealing, every graph."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from likely.models.energy.normaliser.schedule import Settings
from likely.models.energy.pairwise import annealing as pairwise_annealed
from likely.models.energy.pairwise import answers as pairwise_inference
from likely.models.energy.pairwise import enumeration
from likely.models.energy.pairwise import machine as pairwise
from likely.montecarlo import log_mean_weight
from tests.models.energy.harmonium.learning_checks import check_frequencies, check_mean
from tests.models.energy.pairwise.pairwise_checks import (
    all_states,
    check_leaves_unchanged,
    check_sums,
    check_weights_are_unbiased,
    expectation,
    graph_of,
    log_marginal,
    log_weights,
    machine,
    number,
    probabilities,
)

N_VISIBLE, N_HIDDEN = 4, 2
KINDS = ("complete", "restricted", "ring")
HOLES = np.array(
    [[1, 0, np.nan, 1], [np.nan, 1, 1, np.nan], [0, 1, 0, 0], [np.nan] * 4],
)


def with_hidden(rows):
    return np.hstack([rows, np.full((len(rows), N_HIDDEN), np.nan)])


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_signed_and_binary_units_have_the_same_probabilities(x64, beta, global_random_seed):
    """W = 4βJ and so on: equal log weights of all states, the constant included, and the way back."""
    signed, _, _ = machine("complete", 6, 0, global_random_seed)
    binary, constant = pairwise.to_binary(signed, "pm1", beta)
    states = all_states(6)
    of_signed = beta * log_weights(signed, 2 * states - 1)
    np.testing.assert_allclose(log_weights(binary, states) + float(constant), of_signed, rtol=0, atol=1e-12)
    again = pairwise.from_binary(binary, "pm1", beta)
    np.testing.assert_allclose(again.weights, signed.weights, atol=1e-14)
    np.testing.assert_allclose(again.bias, signed.bias, atol=1e-14)
    plain, nothing = pairwise.to_binary(signed, "01", beta)
    np.testing.assert_allclose(log_weights(plain, states), beta * log_weights(signed, states), atol=1e-12)
    assert float(nothing) == 0


def test_signed_units_follow_the_logistic_of_twice_their_activity(x64):
    """Erratum 25: P(x_i = +1 | others) = 1 / (1 + exp(-2 β a_i))."""
    signed, _, _ = machine("complete", 5, 0, 0)
    binary, _ = pairwise.to_binary(signed, "pm1", 0.7)
    states = all_states(5)
    activity = (2 * states - 1) @ np.asarray(signed.weights) + np.asarray(signed.bias)
    np.testing.assert_allclose(
        jax.nn.sigmoid(pairwise.logits(binary, jnp.asarray(states))), expit(2 * 0.7 * activity), rtol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS[:2])
def test_enumeration_is_brute_force(x64, kind, global_random_seed):
    params, layout, _ = machine(kind, N_VISIBLE, N_HIDDEN, global_random_seed)
    check_sums(lambda x, known: enumeration.clamped_sum(params, layout, x, known), params, with_hidden(HOLES))
    complete = all_states(N_VISIBLE)
    value, hidden = enumeration.hidden_sum(params, layout, jnp.asarray(complete))
    np.testing.assert_allclose(value, [log_marginal(params, row) for row in complete], rtol=1e-10)
    np.testing.assert_allclose(hidden, [expectation(params, row)[N_VISIBLE:] for row in complete], rtol=1e-8)
    states, p = probabilities(params)
    log_z, first, second = enumeration.moments(params)
    np.testing.assert_allclose(log_z, logsumexp(log_weights(params, states)), rtol=1e-12)
    np.testing.assert_allclose(first, p @ states, rtol=1e-10)
    np.testing.assert_allclose(second, (states * p[:, None]).T @ states, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_leaves_the_machine_unchanged(x64, kind, global_random_seed):
    params, layout, _ = machine(kind, 3, N_HIDDEN, global_random_seed)
    kernel = jax.jit(lambda key, s: pairwise.sweep(key, params, s, layout))
    check_leaves_unchanged(kernel, params, global_random_seed)


def test_exact_draws_have_the_exact_frequencies(x64, global_random_seed):
    params, layout, _ = machine("complete", N_VISIBLE, N_HIDDEN, global_random_seed)
    row = np.array([np.nan, 1, np.nan, np.nan, np.nan, np.nan])
    x, known = jnp.asarray(np.nan_to_num(row))[None], jnp.asarray(~np.isnan(row))[None]
    drawn = enumeration.clamped_draws(jax.random.key(global_random_seed)[None], params, layout, 50_000, x, known)[0]
    states, p = probabilities(params)
    check_frequencies(np.bincount(number(drawn), minlength=len(p)), np.where(states[:, 1] == 1, p, 0))


def test_mean_field_is_a_bound_and_settles(x64, global_random_seed):
    """E_q[-E] + H(q) ≤ log Σ exp(-E), and no group of units can be improved any more."""
    params, layout, _ = machine("complete", N_VISIBLE, N_HIDDEN, global_random_seed)
    rows = with_hidden(HOLES)
    x, known = jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))
    q = np.asarray(pairwise.mean_field(params, x, known, layout, n_sweeps=300))
    entropy = -np.where(known, 0, q * np.log(np.clip(q, 1e-300, 1)) + (1 - q) * np.log(np.clip(1 - q, 1e-300, 1)))
    bound = np.asarray(pairwise.unnormalized_log_prob(params, jnp.asarray(q))) + entropy.sum(axis=1)
    assert (bound <= [log_marginal(params, row) + 1e-9 for row in rows]).all()
    best = np.asarray(jax.nn.sigmoid(pairwise.logits(params, jnp.asarray(q))))
    np.testing.assert_allclose(np.where(known, 0, q - best), 0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_annealing_both_ways_is_unbiased(x64, kind, global_random_seed):
    """The mean weight is Z, and of the reverse 1/Z, up to five standard errors; the reverse from long chains."""
    params, layout, _ = machine(kind, N_VISIBLE, N_HIDDEN, global_random_seed, scale=1.0)
    settings = Settings(n_chains=2000, n_temperatures=20, n_sweeps=100)
    exact = log_marginal(params, np.full(N_VISIBLE, np.nan))
    for logs, truth in zip(
        pairwise_annealed.whole_machine(jax.random.key(global_random_seed), params, layout, settings),
        (exact, -exact),
        strict=True,
    ):
        check_weights_are_unbiased(logs, truth)


def test_annealing_with_clamped_cells(x64, global_random_seed):
    """More temperatures than six units need: each row within six standard errors, and those are small."""
    params, layout, _ = machine("complete", N_VISIBLE, N_HIDDEN, global_random_seed)
    rows = with_hidden(HOLES)
    x, known = jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))
    settings = Settings(n_chains=16, n_temperatures=500, n_sweeps=50)
    forward, reverse = pairwise_annealed.clamped_rows(jax.random.key(0), params, layout, x, known, settings)
    exact = np.array([log_marginal(params, row) for row in rows])
    for logs, truth in ((forward, exact), (reverse, -exact)):
        error = np.asarray(logs).std(axis=1) / 4
        assert (np.abs(log_mean_weight(np.asarray(logs).T) - truth) < 6 * error + 1e-6).all()
        assert (error < 0.05).all()


def test_sampled_answers_agree_with_exact_ones(x64, global_random_seed):
    """The same machine asked both ways: sums of rows with few holes are exact, means of chains within their error."""
    params, layout, _ = machine("complete", N_VISIBLE, N_HIDDEN, global_random_seed)
    exact = pairwise_inference.Exact(params, layout)
    sampled = pairwise_inference.Sampled(params, layout, Settings(16, 10, 300))
    key = jax.random.key(global_random_seed)
    np.testing.assert_allclose(sampled.log_sum(key, HOLES).low, exact.log_sum(key, HOLES).low, rtol=1e-10)
    np.testing.assert_allclose(sampled.condition(key, HOLES).mean, exact.condition(key, HOLES).mean, rtol=1e-8)
    np.testing.assert_allclose(sampled.hidden(HOLES), exact.hidden(HOLES), rtol=1e-8)
    states, known = pairwise_inference._clamp(jnp.nan_to_num(HOLES), jnp.asarray(~np.isnan(HOLES)), layout)
    means = lambda k: pairwise_annealed.clamped_means(k, params, layout, states, known, 300).mean[:, :N_VISIBLE]  # noqa: E731
    check_mean(np.stack([means(k) for k in jax.random.split(key, 16)]), exact.condition(key, HOLES).mean)


def test_few_and_many_holes_are_drawn_together(monkeypatch):
    """With hidden units: both ways give visible cells alone, and observed ones as they are."""
    params, layout, _ = machine("complete", N_VISIBLE, N_HIDDEN, 0)
    monkeypatch.setattr(pairwise_inference, "MAX_HOLES", 1)
    rows = np.array([[1.0, 0.0, np.nan, 1.0], [np.nan, np.nan, np.nan, 0.0]])
    drawn = pairwise_inference.Sampled(params, layout, Settings(4, 5, 5)).condition(jax.random.key(0), rows)
    assert drawn.mean.shape == (2, N_VISIBLE)
    states = drawn.sample(jax.random.key(1), 3)
    assert states.shape == (3, 2, N_VISIBLE)
    np.testing.assert_array_equal(states[:, ~np.isnan(rows)], np.tile(rows[~np.isnan(rows)], (3, 1)))


def test_draws_of_few_holes_are_exact(x64, global_random_seed):
    params, layout, _ = machine("complete", N_VISIBLE, N_HIDDEN, global_random_seed)
    sampled = pairwise_inference.Sampled(params, layout, Settings(16, 10, 30))
    drawn = sampled.condition(jax.random.key(0), HOLES).sample(jax.random.key(global_random_seed), 20_000)[:, 1]
    logs = np.array([log_marginal(params, row) for row in all_states(N_VISIBLE)])
    p = np.exp(logs - logsumexp(logs))
    agree = (all_states(N_VISIBLE)[:, 1:3] == 1).all(axis=1)
    check_frequencies(np.bincount(number(drawn), minlength=16), np.where(agree, p, 0))


def test_chains_from_clamped_cells_and_free_ones_settle(x64, global_random_seed):
    params, layout, _ = machine("complete", N_VISIBLE, N_HIDDEN, global_random_seed)
    key, rows = jax.random.key(global_random_seed), with_hidden(HOLES[1:2])
    x, known = jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))
    states, p = probabilities(params)
    clamped = pairwise_annealed.clamped_chain_draws(key[None], params, layout, 10_000, x, known, 50)[0]
    agree = (states[:, 1:3] == 1).all(axis=1)
    check_frequencies(np.bincount(number(clamped), minlength=64), np.where(agree, p, 0))
    free = pairwise_annealed.free_draws(key, params, layout, 10_000, 50)
    check_frequencies(np.bincount(number(free), minlength=64), p)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.floats(0, 1))
def test_layouts_are_sound(seed, n, density):
    """No edge inside a group, every unit in one group, summed units first."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, 1)
    graph = upper | upper.T
    layout = pairwise.make_layout(graph, n)
    groups = [[int(u) for u in group if u < n] for group in np.asarray(layout.groups)]
    assert sorted(unit for group in groups for unit in group) == list(range(n))
    assert groups[0] == np.asarray(layout.summed).tolist()
    assert not any(graph[np.ix_(group, group)].any() for group in groups)


def test_layouts_use_the_graph():
    restricted = pairwise.make_layout(graph_of("restricted", 10, 3), 10)
    assert (len(restricted.summed), restricted.groups.shape) == (10, (2, 10))
    assert not restricted.coupled
    assert len(pairwise.make_layout(graph_of("complete", 8, 0), 8).kept) == 7
    assert len(pairwise.make_layout(graph_of("ring", 8, 0), 8).kept) == 4


@pytest.mark.parametrize(
    ("weights", "bias", "words"),
    [
        (np.zeros((2, 3)), None, "square matrix"),
        ([[0, 1], [2, 0]], None, r"symmetric, got 1 at \(0, 1\) and 2 at \(1, 0\)"),
        ([[0, 1], [1, 3]], None, "zero on the diagonal, got 3"),
        ([[0, np.nan], [np.nan, 0]], None, r"finite, got nan at \(0, 1\)"),
        ([[0, 1], [1, 0]], [1.0], "one number for each of 2 units"),
    ],
)
def test_weights_that_are_no_machine_are_refused(weights, bias, words):
    with pytest.raises(ValueError, match=words):
        pairwise.check_weights(weights, bias)

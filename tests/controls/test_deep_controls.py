"""Planted bugs in deep machines, caught by the checks that the library passes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.layered import machine as layered
from likely.models.energy.layered.dbm import start as dbm_start
from likely.models.energy.layered.dbn import levels as dbn_levels
from tests.models.energy.layered.dbn_checks import check_sums, check_tied, network
from tests.models.energy.layered.layered_checks import (
    TINY,
    check_composition,
    check_level_gradient,
    check_odd_layers_unchanged,
    check_variational_bound,
    log_rows,
)
from tests.models.energy.layered.layered_checks import layered as machine
from tests.models.energy.layered.test_learning import level, level_gradient


def test_a_sweep_with_a_stale_half_is_caught(x64, global_random_seed):
    """h3 is drawn beside h2, not after it: each from the layers before the step."""
    params = machine(TINY, (2, 2, 2), global_random_seed, scale=2.0)

    def stale(key, odd):
        first, second = jax.random.split(key)
        fresh = layered.gibbs(first, params, odd, TINY)
        _, h2 = layered.draw_even(second, params, odd, TINY)
        third = layered.odd_inputs(params, (jnp.zeros((len(h2), 3)), h2))[1]
        return fresh[0], layered.draw_odd(second, (third,))[0]

    with pytest.raises(AssertionError):
        check_odd_layers_unchanged(stale, params, TINY, global_random_seed)


@pytest.mark.parametrize("bug", ["entropy twice", "even layers twice", "no entropy"])
def test_a_bound_that_counts_wrongly_is_caught(bug, x64, global_random_seed):
    """Too high or too low: without its entropy it still is a bound, but not the one that it is said to be."""
    params = machine(TINY, (3, 2), global_random_seed)
    rows = log_rows(params, TINY)[0]
    _, (logits,) = layered.mean_field(params, jnp.asarray(rows), None, TINY, 30)
    value = layered.bound(params, jnp.asarray(rows), None, TINY, (logits,))
    mean = jax.nn.sigmoid(logits)
    entropy = (jax.nn.softplus(logits) - logits * mean).sum(axis=1)
    even = jax.nn.softplus(mean @ params.weights[1] + params.hidden_biases[1][None]).sum(axis=1)
    extra = {"entropy twice": entropy, "even layers twice": even, "no entropy": -entropy}[bug]
    check_variational_bound(value, (logits,), params, rows, TINY)
    with pytest.raises(AssertionError):
        check_variational_bound(value + extra, (logits,), params, rows, TINY)


def test_a_level_whose_data_are_not_doubled_is_caught(x64, global_random_seed):
    with pytest.raises(AssertionError):
        check_level_gradient(
            lambda *given: level_gradient(*given, (1, 1)), level(3, 2, global_random_seed), TINY, (2, 1),
            global_random_seed,
        )  # fmt: skip


@pytest.mark.parametrize("bug", ["whole weights between", "biases added"])
def test_wrong_composition_is_caught(bug, x64, global_random_seed):
    levels = [level(a, b, global_random_seed + a) for a, b in ((3, 2), (2, 2), (2, 3))]
    right = dbm_start.composed(levels, machine(TINY, (2, 2, 3), 0))
    if bug == "whole weights between":
        wrong = eqx.tree_at(lambda p: p.weights[1], right, levels[1].weights)
    else:
        wrong = eqx.tree_at(lambda p: p.hidden_biases[0], right, levels[0].hidden_bias + levels[1].visible_bias)
    with pytest.raises(AssertionError):
        check_composition(wrong, levels, TINY)


def test_tied_weights_without_their_biases_are_caught(x64, global_random_seed):
    def careless(below: RBMParams, start: RBMParams) -> RBMParams:
        right = dbn_levels.tied(below, start)
        return RBMParams(right.weights, start.visible_bias, right.hidden_bias, right.chains)

    with pytest.raises(AssertionError):
        check_tied(careless, TINY, 0, global_random_seed)


def test_a_prior_without_the_normaliser_of_the_way_down_is_caught(x64, global_random_seed):
    """Without it the weights of h1 given h2 sum to more than one, and not to the same for each h2."""
    params = network(TINY, (2, 2, 3), global_random_seed)

    def unnormalised(p, x, observed):
        from likely.models.energy.layered.dbn import network as dbn_network

        with pytest.MonkeyPatch.context() as patch:
            plain = lambda bits, logits: (bits * logits).sum(axis=-1)  # noqa: E731
            patch.setattr(dbn_network, "log_bernoulli", plain)
            return dbn_network.exact_sums.__wrapped__(p, x, observed, TINY)[0]

    with pytest.raises(AssertionError):
        check_sums(unnormalised, params, TINY)


def test_the_checks_pass_what_is_right(x64, global_random_seed):
    """So that none of the above is caught because its check catches everything."""
    check_tied(dbn_levels.tied, TINY, 1, global_random_seed)
    levels = [level(a, b, global_random_seed + a) for a, b in ((3, 2), (2, 2), (2, 3))]
    check_composition(dbm_start.composed(levels, machine(TINY, (2, 2, 3), 0)), levels, TINY)
    assert np.isfinite(log_rows(machine(TINY, (3, 2), global_random_seed), TINY)[2])

"""Planted bugs in the pairwise machine and its learning, caught by the checks that the library passes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.energy.normaliser.schedule import Settings
from likely.models.energy.pairwise import annealing as pairwise_annealed
from likely.models.energy.pairwise import enumeration
from likely.models.energy.pairwise import machine as pairwise
from likely.models.energy.pairwise.machine import PairwiseParams
from tests.models.energy.pairwise.pairwise_checks import (
    check_gradient,
    check_leaves_unchanged,
    check_sums,
    check_weights_are_unbiased,
    log_marginal,
    machine,
)


def test_drawing_all_units_at_once_is_caught(x64, global_random_seed):
    """Synchronous updates: right for a bipartite graph's sides, wrong for joined units."""
    params, _, _ = machine("complete", 3, 2, global_random_seed)

    def synchronous(key, states):
        uniform = jax.random.uniform(key, states.shape, states.dtype)
        return (uniform < jax.nn.sigmoid(pairwise.logits(params, states))).astype(states.dtype)

    with pytest.raises(AssertionError):
        check_leaves_unchanged(synchronous, params, global_random_seed)


def test_a_layout_of_another_graph_is_caught(x64, global_random_seed):
    """Summing out units that an edge joins."""
    params, _, _ = machine("complete", 4, 2, global_random_seed)
    _, wrong, _ = machine("restricted", 4, 2, global_random_seed)
    rows = np.array([[1, 0, np.nan, 1, np.nan, np.nan]])
    with pytest.raises(AssertionError):
        check_sums(lambda x, known: enumeration.clamped_sum(params, wrong, x, known), params, rows)


@pytest.mark.parametrize("bug", ["no base", "summed units kept"])
def test_wrong_annealing_is_caught(bug, x64, global_random_seed):
    params, layout, _ = machine("restricted", 4, 2, global_random_seed, scale=1.0)
    if bug == "no base":  # log Z of the start forgotten
        shift = float(jax.nn.softplus(pairwise_annealed.base_logits(params)).sum())
    else:  # the summed units' biases are counted beside their sums
        shift = float(params.bias[layout.summed].sum())
    settings = Settings(n_chains=2000, n_temperatures=20, n_sweeps=100)
    forward, _ = pairwise_annealed.whole_machine(jax.random.key(global_random_seed), params, layout, settings)
    exact = log_marginal(params, np.full(4, np.nan))
    check_weights_are_unbiased(forward, exact)
    with pytest.raises(AssertionError):
        check_weights_are_unbiased(forward - shift, exact)


@pytest.mark.parametrize("bug", ["whole", "plain bias"])
def test_wrong_gradients_are_caught(bug, x64, global_random_seed):
    """A weight's gradient in both of its places, and a centred machine with the plain one's gradient."""
    params, _, _ = machine("complete", 3, 0, global_random_seed)
    offsets = jnp.full(3, 0.3)
    goal = jnp.asarray([[0.5, 0.2, 0.3], [0.2, 0.6, 0.4], [0.3, 0.4, 0.7]])  # the data's second moments

    def loss(flat):
        centred = PairwiseParams(flat[:9].reshape(3, 3), flat[9:], params.chains)
        plain = PairwiseParams(centred.weights, centred.bias - centred.weights @ offsets, params.chains)
        means = jnp.diag(goal)
        return enumeration.moments(plain)[0] - (plain.weights * goal).sum() / 2 - plain.bias @ means

    at = np.concatenate([np.asarray(params.weights).ravel(), params.bias])
    plain = PairwiseParams(params.weights, params.bias - params.weights @ offsets, params.chains)
    _, first, second = enumeration.moments(plain)
    change, slope = second - goal, first - jnp.diag(goal)
    centred = change - offsets[:, None] * slope[None, :] - slope[:, None] * offsets[None, :]
    right = {"weights": np.where(np.eye(3), 0, centred / 2), "bias": slope}
    wrong = {"whole": {"weights": 2 * right["weights"]}, "plain bias": {"weights": np.where(np.eye(3), 0, change / 2)}}

    def value(flat):
        weights = flat[:9].reshape(3, 3)
        weights = np.where(np.eye(3), 0, (weights + weights.T) / 2)
        return float(loss(jnp.asarray(np.concatenate([weights.ravel(), flat[9:]]))))

    lay = lambda parts: np.concatenate([np.ravel(parts["weights"]), parts["bias"]])  # noqa: E731
    check_gradient(lay(right), value, at)
    with pytest.raises(AssertionError):
        check_gradient(lay(right | wrong[bug]), value, at)

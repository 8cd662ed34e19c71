"""Gradients of layered machines and of their levels against derivatives; composition of levels; fits of stages."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.layered import machine as layered
from likely.models.energy.layered.dbm import start as dbm_start
from likely.models.energy.layered.greedy import LevelState, bits, level_contrast
from likely.models.energy.layered.learning import interleaved, layered_gradient
from likely.training import Batch
from tests.contracts.test_training import CrashAfter, Interrupted
from tests.models.energy.layered.layered_checks import (
    CODED,
    TINY,
    check_composition,
    check_gradient,
    check_level_gradient,
    joint_states,
    log_joint,
    log_rows,
)
from tests.models.energy.layered.layered_checks import layered as machine

ROWS = np.array([[2.0, 1.0, 0.0], [0.0, np.nan, 1.0], [np.nan, 0.0, 0.0]])


def test_the_gradient_is_that_of_the_bound_minus_log_z(x64, global_random_seed):
    """With exact expectations in place of chains, and mean field run to its fixed point; centred or not."""
    layers = (3, 2, 2)
    params = machine(CODED, layers, global_random_seed, scale=0.7)
    params = layered.LayeredParams(params.weights, params.visible_bias, params.hidden_biases, ())
    x, observed, share = jnp.nan_to_num(ROWS), jnp.asarray(~np.isnan(ROWS)), jnp.full(3, 1 / 3)
    states = joint_states(CODED, layers)
    model = [CODED.statistics(jnp.asarray(states[0])), *(jnp.asarray(s) for s in states[1:])]

    def objective(p):
        even, logits = layered.mean_field(p, x, observed, CODED, 300)
        data = interleaved(even, tuple(jax.nn.sigmoid(a) for a in logits))
        return share @ layered.bound(p, x, observed, CODED, logits) - log_rows(p, CODED)[2], data

    exact, data = jax.jit(jax.grad(objective, has_aux=True))(params)
    of_model = jax.nn.softmax(log_joint(params, states, CODED))
    for offset in (0.0, 0.3):
        offsets = [jnp.full(s.shape[1], offset) for s in model]
        check_gradient(layered_gradient(data, share, model, of_model, offsets), exact, params, offsets)


def level_gradient(params, rows, chains, copies=(2, 1)):
    units = bits(rows.shape[1])
    batch = Batch(rows, None, jnp.ones(len(rows)))
    zeros = [jnp.zeros(len(b)) for b in (params.visible_bias, params.hidden_bias)]
    state = LevelState(chains, *zeros, jnp.ones(len(params.visible_bias)))

    def loss(p):
        return level_contrast(
            p, batch, jax.random.key(3), state, encoder=None, columns=units, level_columns=units, copies=copies,
            centring=False, n_gibbs_steps=1,
        )[0]  # fmt: skip

    found = jax.jit(jax.grad(loss, allow_int=True))(params)
    return [-found.weights, -found.visible_bias, -found.hidden_bias]


def level(below, above, seed):
    rng = np.random.default_rng(seed)
    arrays = (rng.normal(size=shape) for shape in ((below, above), below, above))
    return RBMParams(*(jnp.asarray(0.7 * a) for a in arrays), jnp.zeros((50, above), bool))


@pytest.mark.parametrize("copies", [(2, 1), (1, 2)])
def test_the_gradient_of_a_level_is_that_of_its_copies(copies, x64, global_random_seed):
    check_level_gradient(
        lambda *given: level_gradient(*given, copies),
        level(3, 2, global_random_seed),
        TINY,
        copies,
        global_random_seed,
    )


def test_levels_compose_so_that_inner_layers_are_driven_once(x64, global_random_seed):
    for sizes in ((3, 2, 3), (3, 2, 2, 3)):
        levels = [level(a, b, global_random_seed + a) for a, b in pairwise(sizes)]
        composed = dbm_start.composed(levels, machine(TINY, sizes[1:], 0))
        check_composition(composed, levels, TINY)


# ------------------------------------------------------------------------------ fits of several stages
def small(**changes):
    options = {"n_epochs": 6, "n_pretraining_epochs": 4, "batch_size": 20, "n_chains": 10, "random_state": 0}
    return likely.DBM((4, 3), **options | changes)


def rows():
    return (np.random.default_rng(0).random((80, 5)) < 0.4).astype(float)


@pytest.mark.parametrize("n_updates", [4, 9, 18])
def test_a_fit_resumes_in_whichever_stage_it_stopped(n_updates, tmp_path):
    """In the first, at the start of the second, before it saved anything, or in the third."""
    path, X = tmp_path / "run.checkpoint", rows()
    whole = small().fit(X)
    assert whole.history_["stage"] == [1] * 4 + [2] * 4 + [3] * 6
    assert whole.history_["epoch"] == list(range(1, 5)) + list(range(5, 9)) + list(range(9, 15))
    with likely.training.use_reporter(CrashAfter(n_updates)), pytest.raises(Interrupted):
        small().fit(X, checkpoint=likely.Checkpoint(path, every_steps=5))
    resumed = small().fit(X, resume=path)
    jax.tree.map(np.testing.assert_array_equal, resumed.params_, whole.params_)


def test_an_older_fits_stages_are_not_taken_for_a_new_ones(tmp_path):
    path, X = tmp_path / "run.checkpoint", rows()
    small().fit(X, checkpoint=path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.checkpoint", "run.checkpoint.1", "run.checkpoint.2"]
    with likely.training.use_reporter(CrashAfter(1)), pytest.raises(Interrupted):
        small(random_state=1).fit(X, checkpoint=path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.checkpoint"]

"""Recurrent cells against plain NumPy, and gradients through time against the closed form."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.nets.dropout import drop
from likely.nets.recurrent import CELLS, Cell, Stack, output_of
from tests.nets.recurrent_checks import check_gradients, closed_form, plain_step

pytestmark = pytest.mark.usefixtures("x64")


def random_cell(seed, kind, squashing="tanh", n_in=3, h=4):
    cell = Cell(jax.random.key(seed), n_in, h, kind=kind, squashing=squashing)
    keys = jax.random.split(jax.random.key(seed), len(jax.tree.leaves(cell)))
    leaves = [jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, jax.tree.leaves(cell), strict=True)]
    return jax.tree.unflatten(jax.tree.structure(cell), leaves)


@pytest.mark.parametrize(("kind", "squashing"), [*((kind, "tanh") for kind in CELLS), ("lstm", "sigmoid")])
def test_cells_are_what_they_say(kind, squashing, global_random_seed):
    cell = random_cell(global_random_seed, kind, squashing)
    x = np.random.RandomState(global_random_seed).normal(size=(2, 5, 3))
    outputs, last = cell.unroll(jnp.asarray(x), cell.first(2))
    for row in range(2):
        state = jax.tree.map(lambda a: np.asarray(a)[0], cell.first(1))
        for t in range(5):
            state = plain_step(cell, state, x[row, t])
            np.testing.assert_allclose(outputs[row, t], output_of(jax.tree.map(jnp.asarray, state)), rtol=1e-10)
        jax.tree.map(lambda a, b, row=row: np.testing.assert_allclose(a[row], b, rtol=1e-10), last, state)


def test_backpropagation_through_time_is_the_closed_form(global_random_seed):
    check_gradients(closed_form, global_random_seed)


def test_the_diagonal_in_the_wrong_place_is_caught(global_random_seed):
    with pytest.raises(AssertionError):
        check_gradients(partial(closed_form, diagonal=False), global_random_seed)


def test_a_fresh_start_forgets_what_came_before(global_random_seed):
    stack = Stack((random_cell(global_random_seed, "lstm"), random_cell(global_random_seed, "gru", n_in=4)))
    x = jnp.asarray(np.random.RandomState(global_random_seed).normal(size=(1, 6, 3)))
    fresh = jnp.array([[False, False, False, True, False, False]])
    joined, _ = stack.unroll(x, stack.first(1), fresh)
    apart = [stack.unroll(part, stack.first(1))[0] for part in (x[:, :3], x[:, 3:])]
    np.testing.assert_allclose(joined, jnp.concatenate(apart, axis=1), rtol=1e-12)


def test_steps_are_an_unrolling(global_random_seed):
    stack = Stack((random_cell(global_random_seed, "peephole"), random_cell(global_random_seed, "rnn", n_in=4)))
    x = jnp.asarray(np.random.RandomState(global_random_seed).normal(size=(2, 3, 3)))
    outputs, _ = stack.unroll(x, stack.first(2))
    states = stack.first(2)
    for t in range(3):
        states, output = stack.step(states, x[:, t])
        np.testing.assert_allclose(output, outputs[:, t], rtol=1e-12)


def test_cells_start_orthogonal_with_open_forget_gates():
    cell = Cell(jax.random.key(0), 2, 3, kind="lstm")
    for gate in np.asarray(cell.across).reshape(4, 3, 3):
        np.testing.assert_allclose(gate @ gate.T, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(cell.bias, [0] * 3 + [1] * 3 + [0] * 6)


def test_dropout_keeps_the_mean(global_random_seed):
    x = drop(jax.random.key(global_random_seed), jnp.ones(40_000), 0.25)
    assert set(np.unique(x).round(6)) == {0.0, round(4 / 3, 6)}
    assert abs(float(x.mean()) - 1) < 5 * np.sqrt(1 / 3 / 40_000)


@pytest.mark.parametrize("options", [{"kind": "lsdm"}, {"squashing": "relu"}])
def test_unknown_cells_are_refused(options):
    with pytest.raises(ValueError, match="must be one of"):
        Cell(jax.random.key(0), 2, 3, **options)

"""Addressing, reading and writing a memory against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.nets.memory import Heads, address, read, sharpened, write
from tests.nets.memory_checks import check_address, check_read_and_write, some_heads

pytestmark = pytest.mark.usefixtures("x64")


def test_addresses_are_those_of_the_equations(global_random_seed):
    memory, before, raw = some_heads(global_random_seed)
    check_address(jax.jit(address), jax.jit(Heads.of)(jnp.asarray(raw)), memory, before)


def test_extreme_heads_still_give_distributions():
    memory, before, raw = some_heads(0)
    for size in (-200.0, 200.0):
        found = np.asarray(jax.jit(address)(memory, before, jax.jit(Heads.of)(jnp.asarray(size * raw))))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(axis=2), 1, rtol=1e-12)


def test_sharpening_has_a_gradient_at_a_weight_of_zero():
    weights = jnp.array([[[0.0, 0.3, 0.7]]])
    slope = jax.jit(jax.grad(lambda w: sharpened(w, jnp.array([[2.0]]))[0, 0, 1]))(weights)
    assert np.isfinite(np.asarray(slope)).all()


def test_reading_and_writing_are_as_defined(global_random_seed):
    memory, before, raw = some_heads(global_random_seed)
    check_read_and_write(jax.jit(read), jax.jit(write), memory, before[:, 0], raw[:, 0, : memory.shape[2]])

"""Planted bugs in learning from rows with holes, caught by the checks that the library passes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.energy.layered import greedy, learning
from likely.models.energy.layered.dbn import up_down
from likely.models.energy.layered.machine import mean_field
from likely.models.energy.pairwise import associative_memory
from tests.models.energy.layered.layered_checks import TINY
from tests.models.energy.layered.layered_checks import layered as machine
from tests.models.holes_checks import (
    FAST_MACHINES,
    check_as_good_as,
    check_drawn_holes,
    check_loss,
    mean_log_p,
    nats_lost,
)
from tests.models.test_holes import N_DRAWS, ROW, given


def expected_below(key, encoder, x, observed, columns):
    """Means in place of draws, in a level."""
    return greedy.fill(encoder, x, observed, columns)


def expected_together(key, params, x, observed, columns):
    """Means in place of draws, in all layers together: of bits, T(x) is x."""
    return mean_field(params, x, observed, columns, 10)[0][0]


@pytest.fixture
def expected(monkeypatch):
    for module in (greedy, up_down):
        monkeypatch.setattr(module, "draw_holes", expected_below)
    monkeypatch.setattr(learning, "draw_holes", expected_together)
    jax.clear_caches()


def test_expected_values_in_place_of_draws_are_caught(expected, global_random_seed):
    rbm = mean_log_p("RBM", global_random_seed, **FAST_MACHINES)
    for name in ("DBN", "DBM"):
        with pytest.raises(AssertionError):
            check_as_good_as(rbm, {name: mean_log_p(name, global_random_seed, **FAST_MACHINES)})


def test_zeros_in_place_of_completed_patterns_are_caught(monkeypatch, global_random_seed):
    monkeypatch.setattr(associative_memory, "completed", lambda rng, patterns, beta: np.nan_to_num(patterns))
    with pytest.raises(AssertionError):
        check_loss("Hopfield", "bits", nats_lost("Hopfield", global_random_seed))


@pytest.mark.parametrize("bug", ["independent", "of another row"])
def test_holes_that_do_not_go_together_are_caught(bug, x64, monkeypatch, global_random_seed):
    """Each hole has its right marginal, or the row that it goes with is not its own."""
    monkeypatch.setattr(learning, "_FILLING_SWEEPS", 100)
    params = machine(TINY, (3, 2), global_random_seed, scale=2.0)
    drawn = np.array(learning.draw_holes(jax.random.key(0), params, *given(), TINY))
    check_drawn_holes(drawn, params, ROW)
    if bug == "independent":
        drawn[:, 2] = np.random.default_rng(0).permutation(drawn[:, 2])
    else:
        other = jnp.zeros((N_DRAWS, 3))
        drawn[:, 1:] = np.array(learning.draw_holes(jax.random.key(1), params, other, given()[1], TINY))[:, 1:]
    with pytest.raises(AssertionError):
        check_drawn_holes(drawn, params, ROW)

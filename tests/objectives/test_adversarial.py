"""The adversarial game: D* = p/(p + g) on a known pair, penalties of known slopes, the generator's slopes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.objectives.adversarial import critic_loss, generator_loss, score_loss
from tests.objectives.adversarial_checks import check_best_critic, check_learned_critic, check_penalties


def test_best_critic_is_the_ratio_of_densities(x64):
    check_best_critic(score_loss)


def test_critic_that_can_be_best_becomes_it(x64):
    check_learned_critic(critic_loss)


def test_penalties_of_known_slopes(x64):
    check_penalties(critic_loss)


@pytest.mark.parametrize(
    ("loss", "slope"),
    [("saturating", lambda d: -d), ("non_saturating", lambda d: d - 1), ("wasserstein", lambda d: -np.ones_like(d))],
)
def test_slopes_of_the_generators_losses(x64, loss, slope):
    """In the score: -D vanishes where the critic wins (D near 0), D - 1 does not."""
    scores = jnp.linspace(-6, 6, 5)
    share = jnp.full(5, 0.2)
    found = jax.grad(lambda f: generator_loss(f, share, loss))(scores)
    np.testing.assert_allclose(found, 0.2 * slope(1 / (1 + np.exp(-np.asarray(scores)))), rtol=1e-9)

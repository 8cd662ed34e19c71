"""The checks of the adversarial game, two-sample tests and generators fail where they should."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from likely import classifier_test, mmd_test
from likely.information import two_sample
from likely.models.latent.flow import generator
from likely.objectives import adversarial
from tests.information.two_sample_checks import check_level, p_values
from tests.models.latent.flow.generator_checks import check_density
from tests.objectives.adversarial_checks import check_best_critic, check_learned_critic, check_penalties


def game_with_sides_changed(real, fake, real_share, fake_share, loss):
    return adversarial.score_loss(fake, real, fake_share, real_share, loss)


def game_that_weighs_rows_twice(real, fake, real_share, fake_share, loss):
    return adversarial.score_loss(real, fake, 2 * real_share, fake_share, loss)


@pytest.mark.parametrize("wrong", [game_with_sides_changed, game_that_weighs_rows_twice])
def test_wrong_game_is_caught(x64, wrong):
    with pytest.raises(AssertionError):
        check_best_critic(wrong)


def test_critic_of_half_a_logit_is_caught(x64):
    def wrong(critic, *args, **options):
        return adversarial.critic_loss(lambda x: 2 * critic(x), *args, **options)

    with pytest.raises(AssertionError):
        check_learned_critic(wrong)


def test_penalty_on_the_norm_in_place_of_its_square_is_caught(x64):
    def wrong(critic, key, real, fake, share, *, loss, penalty):
        right = adversarial.critic_loss(critic, key, real, fake, share, loss=loss, penalty=0.0)
        return right + penalty * share @ jnp.sqrt(adversarial.squared_slopes(critic, real))

    with pytest.raises(AssertionError):
        check_penalties(wrong)


def test_p_values_that_are_too_small_are_caught():
    """A p-value that counts half of the permutations that exceed the rows as they are."""
    right = p_values(partial(mmd_test, n_permutations=49), 0, 300, 0.0)
    check_level(right)
    with pytest.raises(AssertionError):
        check_level(right / 2)


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_ties_that_all_count_or_none_are_caught(share, monkeypatch):
    """Fisher's p-value, whose rate of alarms is below its level, and one that leaves ties out, whose rate is above."""
    monkeypatch.setattr(two_sample, "_share_of_ties", lambda *_: share)
    with pytest.raises(AssertionError):
        check_level(p_values(partial(classifier_test, classifier=GaussianNB()), 0, 1000, 0.0))


def density_without_slopes(params, x, observed):
    slopes = params.log_slope(x)
    return generator.log_prob(params, x, observed) - (
        slopes if observed is None else jnp.where(observed, slopes, 0)
    ).sum(axis=1)


def density_with_slopes_of_unobserved_cells(params, x, observed):
    right = generator.log_prob(params, x, observed)
    return right if observed is None else right + jnp.where(observed, 0, params.log_slope(x)).sum(axis=1)


@pytest.mark.parametrize("wrong", [density_without_slopes, density_with_slopes_of_unobserved_cells])
def test_wrong_density_is_caught(x64, wrong):
    with np.errstate(over="ignore"), pytest.raises(AssertionError):
        check_density(wrong)

"""The checks of the adversarial game, two-sample tests and generators fail where they should."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from likely import classifier_test, mmd_test
from likely.information import two_sample
from likely.models.latent.flow import bijection, spline
from likely.models.latent.flow.layers import Layers
from likely.objectives import adversarial
from tests.information.two_sample_checks import check_level, p_values
from tests.models.latent.flow.flow_checks import check_integral, check_log_det
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
    return bijection.log_prob(params, x, observed) - (
        slopes if observed is None else jnp.where(observed, slopes, 0)
    ).sum(axis=1)


def density_with_slopes_of_unobserved_cells(params, x, observed):
    right = bijection.log_prob(params, x, observed)
    return right if observed is None else right + jnp.where(observed, 0, params.log_slope(x)).sum(axis=1)


@pytest.mark.parametrize("wrong", [density_without_slopes, density_with_slopes_of_unobserved_cells])
def test_wrong_density_is_caught(x64, wrong):
    with np.errstate(over="ignore"), pytest.raises(AssertionError):
        check_density(wrong)


def volume_without_linear_maps(layers, x):
    u, log_det = layers.forward(x)
    return u, log_det - layers.log_diagonal.sum()


def layers_that_know_their_own_column(layers, x):
    """Splines made of the very cell that they bend: the Jacobian's diagonal is no longer their slope."""
    earlier = eqx.tree_at(lambda own: own.place, layers, jnp.zeros_like(layers.place).at[:, 1:].set(1))
    u, _ = earlier.forward(x)
    return u, layers.forward(x)[1]


@pytest.mark.parametrize("wrong", [volume_without_linear_maps, layers_that_know_their_own_column])
def test_wrong_volume_is_caught(x64, wrong):
    check_log_det(Layers.forward)
    with pytest.raises(AssertionError):
        check_log_det(wrong)


def test_spline_whose_slope_is_its_secant_is_caught(x64, monkeypatch):
    def wrong(x, raw):
        own = spline._bin_of(x, raw, by_height=False)
        return spline_forward(x, raw)[0], jnp.where(own.inside, jnp.log(own.height / own.width), 0)

    spline_forward = spline.forward
    monkeypatch.setattr(spline, "forward", wrong)
    with pytest.raises(AssertionError):
        check_integral(bijection.log_prob)

"""Planted bugs in gradient estimators: the test of unbiasedness must catch each."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from likely.gradients import Bernoulli, GaussianIdentities, ScoreFunction
from likely.gradients.estimator import box
from tests.gradients.gradient_checks import bits, check_perturbed_given, check_unbiased, normal

pytestmark = pytest.mark.usefixtures("x64")


class OwnDrawInBaseline(ScoreFunction):
    """The mean of all draws, the draw itself among them, as its baseline."""

    def _baseline(self, signal, state, context):
        return jnp.broadcast_to(signal.mean(axis=0, keepdims=True), signal.shape), state


class WholeHessian(GaussianIdentities):
    """Without the half of ½ E ∇²f."""

    def surrogate(self, key, family, theta, f, n, state, context=None):
        right, state = super().surrogate(key, family, theta, f, n, state)
        z = lax.stop_gradient(family.sample(key, theta, n))
        curvature = jax.vmap(jax.hessian(lambda row: f(row[None])[0]))(z).mean(axis=0)
        return right + 0.5 * box(jnp.sum(theta[1] * lax.stop_gradient(curvature))), state


class Reflected(Bernoulli):
    """A new draw of logits plus noise, its sign made to fit: it hardens to z, but has another law."""

    def perturb_given(self, theta, z, noise):
        return (2 * z - 1) * jnp.abs(theta + noise)


def test_a_baseline_with_the_own_draw_is_caught(global_random_seed):
    with pytest.raises(AssertionError):
        check_unbiased(OwnDrawInBaseline("leave_one_out"), bits(), global_random_seed)


def test_a_whole_hessian_is_caught(global_random_seed):
    with pytest.raises(AssertionError):
        check_unbiased(WholeHessian(), normal(), global_random_seed)


def test_a_draw_of_another_law_given_the_hard_one_is_caught(global_random_seed):
    with pytest.raises(AssertionError):
        check_perturbed_given(Reflected(), global_random_seed)

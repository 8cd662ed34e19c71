"""The checks of posteriors, layers, labels and gradients fail where they should: each gets a wrong part."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.latent.variational.posteriors import FAMILIES
from likely.objectives.importance_weighted import importance_bound_of
from tests.models.latent.variational.deep_latent_checks import check_deep_weights, check_unlabelled_bound, deep_case
from tests.models.latent.variational.vae_family_checks import K, answers, check_density, check_gradient, check_weights
from tests.models.latent.variational.vae_oracles import factor_log_prob, factor_rows


def planar_without_determinant(answer, noise):
    q = FAMILIES["planar"].of(answer, K)
    return q.sample(noise)[0], q.base.sample(noise)[1]


def low_rank_with_the_wrong_root(answer, noise):
    """1 - √e in place of e / (1 + √e)."""
    q = FAMILIES["low_rank"].of(answer, K)
    v, e = q._scaled()
    mixed = noise - jnp.einsum("nk,nsk->ns", v, noise)[..., None] * ((1 - jnp.sqrt(e))[:, None] * v)[:, None]
    return q.mean[:, None] + jnp.exp(q.log_std)[:, None] * mixed, q.sample(noise)[1]


@pytest.mark.parametrize(
    ("name", "sample"), [("planar", planar_without_determinant), ("low_rank", low_rank_with_the_wrong_root)]
)
def test_wrong_log_q_is_caught(x64, name, sample):
    noise = jnp.asarray(np.random.RandomState(0).normal(size=(4, 1, K)))
    with pytest.raises(AssertionError):
        check_density(sample, answers(name, 0), noise)


def test_weights_that_are_too_large_are_caught():
    exact = np.zeros(4)
    log_weights = 0.3 * np.random.RandomState(0).normal(size=(4, 10_000)) - 0.045  # of mean weight 1
    check_weights(log_weights, exact)
    with pytest.raises(AssertionError):
        check_weights(log_weights + 0.02, exact)


def test_a_wrong_weight_between_layers_is_caught(x64):
    module, *law = deep_case(0, "full")
    rows = factor_rows(0, *law, 8)
    where = lambda m: m.decoder.between[0].layers[0].weight  # noqa: E731
    wrong = eqx.tree_at(where, module, -2 * where(module))
    with pytest.raises(AssertionError):
        check_deep_weights(wrong, rows, factor_log_prob(rows, *law), 0)


def test_wrong_bounds_over_labels_are_caught(x64):
    def without_entropy(joint, logits):
        return (jax.nn.softmax(logits) * joint).sum(axis=1)

    with pytest.raises(AssertionError):
        check_unlabelled_bound(without_entropy)


def test_a_gradient_that_is_off_by_a_thousandth_is_caught(x64):
    total = lambda at: jnp.sin(at).sum()  # noqa: E731
    at, direction = jnp.array([0.3, 1.0]), jnp.array([1.0, -0.5])
    check_gradient(jnp.cos(at), total, at, direction)
    with pytest.raises(AssertionError):
        check_gradient(1.001 * jnp.cos(at), total, at, direction)


def test_shares_that_are_not_squared_are_caught(x64):
    """The gradient through the samples alone, each weighed by its share and not its square, is not the bound's."""
    from tests.models.latent.variational.vae_oracles import binary_case

    module = binary_case(3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    noise = jnp.asarray(np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2, 1))
    weight = jnp.asarray(np.outer(weights, weights).ravel() / weights.sum() ** 2)
    x = jnp.broadcast_to(jnp.array([[1.0, 0, 0, 1, 1]]), (3600, 5))
    answer = module.recognise(x, None)[0]

    def bound(answer, fixed):
        spread = jnp.broadcast_to(answer[None], (3600, 2))
        if not fixed:
            return weight @ importance_bound_of(module, x, None, spread, noise)
        z, _ = module.posterior(spread).sample(noise)
        log_q = jax.lax.stop_gradient(module.posterior(spread)).log_prob(z)
        log_weights = module.log_likelihood(x, None, z) + module.prior().log_prob(z) - log_q
        return weight @ jax.nn.logsumexp(log_weights, axis=1)

    total = jax.jit(lambda at: bound(at, False))
    direction = jnp.array([1.0, 0.5])
    check_gradient(jax.jit(jax.grad(total))(answer), total, answer, direction)
    with pytest.raises(AssertionError):
        check_gradient(jax.jit(jax.grad(lambda at: bound(at, True)))(answer), total, answer, direction)

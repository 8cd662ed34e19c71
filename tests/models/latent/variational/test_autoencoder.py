"""Autoencoder: its terms against closed forms, denoising on digits, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.columns import Columns
from likely.models.latent.variational.autoencoder import first_params, with_unit_readers
from likely.objectives.reconstruction import (
    Terms,
    contraction,
    contraction_estimate,
    erase,
    reconstruction_loss,
    salt_and_pepper,
)
from likely.training import Batch
from tests.models.latent.variational.autoencoder_checks import check_contraction, check_shares, gain_in_decibels

MIXED = Columns(("binary", "real", "real"), (1, 1, 1))
FIRST = eqx.filter_jit(first_params)


@eqx.filter_jit
def _through(module, x, observed):
    codes = module.encode(module.features(x, observed))
    return codes, module.decoder(codes)


def test_contraction_is_the_jacobians_norm(x64, global_random_seed):
    check_contraction(contraction_estimate, global_random_seed)
    check_contraction(lambda key, net, x: contraction(net, x), global_random_seed)


def test_salt_and_pepper_keep_their_shares(global_random_seed):
    check_shares(salt_and_pepper, global_random_seed)


def test_erased_cells_are_a_share_of_the_observed_ones(global_random_seed):
    observed = jnp.arange(30_000).reshape(10_000, 3) % 2 == 0
    kept = np.asarray(erase(jax.random.key(global_random_seed), jnp.zeros((10_000, 3)), observed, 0.2))
    assert not kept[~observed].any()
    assert abs(kept[np.asarray(observed)].mean() - 0.8) < 4.5 * np.sqrt(0.16 / 15_000)
    assert erase(jax.random.key(0), jnp.zeros((2, 3)), None, 0.0) is None


def test_terms_add_up_and_unobserved_cells_do_not_count(x64, global_random_seed):
    """Cross-entropy and half squared error by hand, plus the penalties; a different hidden cell changes nothing."""
    key, rng = jax.random.key(global_random_seed), np.random.default_rng(global_random_seed)
    module = FIRST(key, MIXED, 2, (5,), (), "tanh", None)
    x, observed = rng.normal(size=(4, 3)), np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 0]], bool)
    x[:, 0] = [0, 1, 1, 0]
    weight = np.array([1.0, 1, 1, 0])

    @jax.jit
    def loss(x):
        batch = Batch(x, jnp.asarray(observed), jnp.asarray(weight))
        terms = Terms(sparsity=0.3, contraction=0.0)
        return reconstruction_loss(module, batch, key, None, terms=terms, extremes=jnp.zeros((2, 3)))[0]

    codes, output = (np.asarray(a) for a in _through(module, jnp.asarray(x), jnp.asarray(observed)))
    cells = 0.5 * ((x - output) / 1.001) ** 2 + np.log(1.001) + 0.5 * np.log(2 * np.pi)
    cells[:, 0] = np.logaddexp(0, output[:, 0]) - x[:, 0] * output[:, 0]
    by_hand = np.where(observed, cells, 0).sum(axis=1) + 0.3 * np.abs(codes).sum(axis=1)
    np.testing.assert_allclose(loss(jnp.asarray(x)), by_hand[:3].mean(), rtol=1e-9)
    other = np.where(observed, x, 1.0)
    np.testing.assert_allclose(loss(jnp.asarray(other)), loss(jnp.asarray(x)), rtol=1e-12)


def test_readers_of_codes_have_norm_one_at_most(x64):
    module = FIRST(jax.random.key(0), MIXED, 2, (5,), (), "tanh", None)
    wide = eqx.tree_at(lambda m: m.decoder.layers[0].weight, module, jnp.arange(10.0).reshape(5, 2) / 10)
    norms = np.linalg.norm(np.arange(10.0).reshape(5, 2) / 10, axis=0)
    found = np.linalg.norm(with_unit_readers(wide).decoder.layers[0].weight, axis=0)
    np.testing.assert_allclose(found, np.minimum(norms, 1))
    assert norms.min() > 1


@pytest.mark.parametrize("network", [{"hidden": (48,)}, {"hidden": (), "channels": (8,)}])
def test_denoising_digits_gains_decibels(network):
    """Bits that are flipped to 0 or 1 come back closer to what they were; perceptron and convolutions alike."""
    digits = likely.datasets.load("digits")
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(digits.test.shape) < 0.2, rng.random(digits.test.shape) < 0.5, digits.test)
    model = likely.Autoencoder(
        16, **network, salt_and_pepper=0.2, n_epochs=30, learning_rate=0.01, schema=digits.schema, random_state=0
    ).fit(digits.train)
    assert gain_in_decibels(digits.test, noisy, model.denoise(noisy)) > 0.5
    assert np.isfinite(model.denoise(np.full((1, 64), np.nan))).all()


def test_convolutions_need_a_picture():
    rows = np.random.default_rng(0).normal(size=(20, 6))
    with pytest.raises(likely.SchemaError, match=r"`channels` is for pictures, and .* 6 columns has no image_shape"):
        likely.Autoencoder(channels=(4,)).fit(rows)
    schema = likely.Schema.infer(np.round(rows), kinds={0: "categorical"}, image_shape=(2, 3))
    with pytest.raises(likely.SchemaError, match="needs pixels of one kind"):
        likely.Autoencoder(channels=(4,), schema=schema).fit(np.round(rows))
    with pytest.raises(ValueError, match="`hidden` must hold sizes of layers"):
        likely.Autoencoder(hidden=(0,)).fit(rows)

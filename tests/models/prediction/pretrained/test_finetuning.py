"""What the layers and the classifier minimise: values against NumPy, gradients against finite differences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from likely.columns import Columns
from likely.models.prediction.pretrained.denoising import Autoencoder, denoising_loss, first_autoencoder
from likely.models.prediction.pretrained.finetuning import cross_entropy, validation_loss, with_labels
from likely.models.prediction.pretrained.inputs import features
from likely.models.prediction.pretrained.network import Dropout
from likely.training import Batch
from tests.models.prediction.pretrained.pretraining_checks import (
    MIXED,
    check_cross_entropy,
    check_gradient,
    check_keeps_the_mean,
    mixed_rows,
    network,
)

whole = partial(cross_entropy, dropout=0.0, input_dropout=0.0)


def labelled_batch(seed):
    rows, observed = mixed_rows(seed)
    codes = np.random.default_rng(seed).integers(0, 3, len(rows))
    seen = np.column_stack([observed, np.ones(len(rows), bool)])
    return Batch(np.where(seen, with_labels(rows, codes), 0.0), seen, np.ones(len(rows)))


def test_cross_entropy_is_that_of_the_labels(x64, global_random_seed):
    check_cross_entropy(whole, global_random_seed)


def test_gradient_of_the_cross_entropy(x64, global_random_seed):
    key, batch = jax.random.key(global_random_seed), labelled_batch(global_random_seed)
    loss = partial(cross_entropy, dropout=0.5, input_dropout=0.2)
    check_gradient(lambda net: loss(net, batch, key, None)[0], network(global_random_seed), global_random_seed)


def test_validation_loss_has_every_unit_in_place(x64, global_random_seed):
    net, batch, key = network(global_random_seed), labelled_batch(global_random_seed), jax.random.key(0)
    losses = validation_loss(net, batch, key)
    np.testing.assert_allclose(losses.mean(), whole(net, batch, key, None)[0], rtol=1e-12)


def test_dropout_keeps_the_mean(x64, global_random_seed):
    check_keeps_the_mean(lambda key, values: Dropout(key, 0.0, 0.4)(values, 1), 0.4, global_random_seed)


def test_an_unobserved_cell_reads_as_the_mean(x64, global_random_seed):
    rows, observed = mixed_rows(global_random_seed)
    offset = jnp.asarray(np.random.default_rng(global_random_seed).random(7))
    read = features(MIXED, jnp.asarray(rows), jnp.asarray(observed), offset)
    complete = features(MIXED, jnp.asarray(rows), None, offset)
    mask = np.repeat(observed, [1, 3, 1, 1, 1], axis=1)
    np.testing.assert_array_equal(read, np.where(mask, complete, 0))
    one_hot = rows[:, [1]] == np.arange(3)
    cells = np.column_stack([rows[:, 0], one_hot, rows[:, 2:]])
    np.testing.assert_allclose(complete, cells - np.asarray(offset), rtol=1e-12)


def autoencoder(seed, columns=MIXED) -> Autoencoder:
    keys = iter(jax.random.split(jax.random.key(seed), 100))
    mean = jnp.asarray(columns.ignorance)
    module = first_autoencoder(next(keys), columns, 4, mean, jnp.ones_like(mean))
    return jax.tree.map(lambda a: a + 0.3 * jax.random.normal(next(keys), a.shape, a.dtype), module)


def test_gradient_of_the_denoising_loss(x64, global_random_seed):
    rows, observed = mixed_rows(global_random_seed)
    batch = Batch(np.where(observed, rows, 0.0), observed, np.ones(len(rows)))
    loss = partial(denoising_loss, columns=MIXED, corruption=0.4)
    key, module = jax.random.key(global_random_seed), autoencoder(global_random_seed)
    check_gradient(lambda m: loss(m, batch, key, None)[0], module, global_random_seed)


def test_denoising_loss_of_bits_by_numpy(x64, global_random_seed):
    """Cells are erased on the way up, and all of them are asked for on the way down."""
    bits, key = Columns(("binary",) * 6, (1,) * 6), jax.random.key(global_random_seed)
    x = np.random.default_rng(global_random_seed).random((9, 6))  # probabilities, as upper layers are given
    module = autoencoder(global_random_seed, bits)
    kept = np.asarray(jax.random.bernoulli(key, 0.75, x.shape))
    weights, offset = np.asarray(module.weights), np.asarray(module.offset)
    hidden = 1 / (1 + np.exp(-(np.where(kept, x - offset, 0) @ weights + np.asarray(module.hidden_bias))))
    p = 1 / (1 + np.exp(-(hidden @ weights.T + np.asarray(module.visible_bias))))
    expected = -(x * np.log(p) + (1 - x) * np.log(1 - p)).sum(axis=1).mean()
    loss, _ = denoising_loss(module, Batch(x, None, np.ones(9)), key, None, columns=bits, corruption=0.25)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)

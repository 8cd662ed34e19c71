"""Planted bugs in the classifier's objective, its dropout and its pretraining, caught by the checks of its tests."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely import PretrainedClassifier
from likely.models.prediction.pretrained import finetuning, pretraining
from likely.models.prediction.pretrained.finetuning import cross_entropy
from likely.models.prediction.pretrained.network import Layer
from likely.training import Batch
from tests.models.prediction.pretrained.pretraining_checks import (
    check_cross_entropy,
    check_gradient,
    check_keeps_the_mean,
    check_pretraining_helps,
    mixed_rows,
    network,
    prototypes,
)

whole = partial(cross_entropy, dropout=0.0, input_dropout=0.0)


def unweighted(net, batch, key, state):
    """Rows that only fill up the batch count like the others."""
    return whole(net, Batch(batch.x, batch.observed, jnp.ones_like(jnp.asarray(batch.weight))), key, state)


def all_observed(net, batch, key, state):
    """Unobserved cells are read as the zeros that stand in their place."""
    return whole(net, Batch(batch.x, None, batch.weight), key, state)


def next_label(net, batch, key, state):
    """Each row has the label of the row before."""
    x = jnp.asarray(batch.x)
    return whole(net, Batch(x.at[:, -1].set(jnp.roll(x[:, -1], 1)), batch.observed, batch.weight), key, state)


@pytest.mark.parametrize("bug", [unweighted, all_observed, next_label])
def test_a_wrong_cross_entropy_is_caught(bug, x64, global_random_seed):
    with pytest.raises(AssertionError):
        check_cross_entropy(bug, global_random_seed)


def test_a_gradient_that_leaves_out_the_lowest_layer_is_caught(x64, global_random_seed):
    rows, _ = mixed_rows(global_random_seed)
    batch = Batch(finetuning.with_labels(rows, np.arange(len(rows)) % 3), None, np.ones(len(rows)))

    def frozen(net):
        lowest = jax.lax.stop_gradient(net.encoder.layers[0])
        layers = (Layer(lowest.weights, lowest.bias), *net.encoder.layers[1:])
        encoder = type(net.encoder)(net.encoder.offset, layers, net.encoder.columns)
        return whole(type(net)(encoder, net.top), batch, jax.random.key(0), None)[0]

    with pytest.raises(AssertionError):
        check_gradient(frozen, network(global_random_seed), global_random_seed)


@pytest.mark.parametrize(
    "bug",
    [
        lambda key, v: jnp.where(jax.random.bernoulli(key, 0.6, v.shape), v, 0),  # kept values are not made larger
        lambda key, v: jnp.where(jax.random.bernoulli(key, 0.4, v.shape), v / 0.6, 0),  # the wrong share is kept
        lambda key, v: jnp.where(jax.random.bernoulli(key, 0.6), v / 0.6, 0),  # all or nothing
    ],
    ids=["scale", "share", "together"],
)
def test_wrong_dropout_is_caught(bug, x64, global_random_seed):
    with pytest.raises(AssertionError):
        check_keeps_the_mean(bug, 0.4, global_random_seed)


def test_pretraining_on_scrambled_rows_is_caught(monkeypatch, global_random_seed):
    """Layers that learn from columns shuffled one by one learn nothing of how columns go together."""
    right = pretraining._learn_machine

    def scrambled(rows, *rest):
        return right(np.random.default_rng(0).permuted(rows, axis=0), *rest)

    def score(problem, pretrain):
        X, y, X_test, y_test = prototypes(problem)
        settings = {"n_pretraining_epochs": 20, "n_epochs": 100, "learning_rate": 1e-2, "random_state": problem}
        return PretrainedClassifier((8,), pretrain=pretrain, **settings).fit(X, y).score(X_test, y_test)

    monkeypatch.setattr(pretraining, "_learn_machine", scrambled)
    with pytest.raises(AssertionError, match="gains of"):
        check_pretraining_helps(score, 100 * global_random_seed)

"""The module of an autoencoder with labels, p(y) p(z) p(x | y, z), and what is asked of it: each label in turn.

A label moves the first layers of both networks, so that given one it is an autoencoder like any other: `given`.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.latent.variational.importance import answer_of, weighed
from likely.models.latent.variational.network import Design, VAEParams, first_module
from likely.montecarlo.importance import resample
from likely.nets import MLP, encoder_features, n_locations
from likely.runtime import float_dtype


class LabelledParams(eqx.Module):
    """An autoencoder, what each of K labels adds to it, and a classifier.

    encoder_shift, decoder_shift : (n_first, K) what a label adds to each network's first layer.
    classifier : features (L,) -> logits of q(y | x). holes : as the autoencoder's own, for the classifier.
    log_prior : (K,) log p(y), up to a constant.
    """

    autoencoder: VAEParams
    encoder_shift: Float[Array, "h K"]
    decoder_shift: Float[Array, "h K"]
    classifier: MLP
    holes: Float[Array, "h d"] | None
    log_prior: Float[Array, " K"]

    @property
    def n_latent(self) -> int:
        """Number of latents."""
        return self.autoencoder.n_latent

    def given(self, label: Any) -> VAEParams:
        """The autoencoder of rows with that label."""
        first = lambda m: (m.encoder.layers[0].bias, m.decoder.layers[0].bias)  # noqa: E731
        of_encoder, of_decoder = first(self.autoencoder)
        moved = (of_encoder + self.encoder_shift[:, label], of_decoder + self.decoder_shift[:, label])
        return eqx.tree_at(first, self.autoencoder, moved)

    def label_logits(self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None) -> Float[Array, "n K"]:
        """log q(y | x), up to a constant."""
        offset = jax.lax.stop_gradient(self.autoencoder.offset)
        features = encoder_features(self.autoencoder.columns, x, observed, offset)
        shift = None
        if observed is not None and self.holes is not None:
            shift = (~observed).astype(x.dtype) @ self.holes.T
        return self.classifier(features, shift)


def first_labelled(key: Key[Array, ""], columns: Columns, design: Design, n_labels: int) -> LabelledParams:
    """The module before training; labels do not matter yet, but differ."""
    own_key, classifier_key, encoder_key, decoder_key = jax.random.split(key, 4)
    dtype = float_dtype()
    autoencoder = first_module(own_key, columns, design)
    options: dict[str, Any] = {"hidden": design.hidden, "activation": design.activation}
    classifier = MLP(classifier_key, n_locations(columns), n_labels, output_gain=0.1, **options)
    shift = lambda k, net: 0.1 * jax.random.normal(k, (net.n_first, n_labels), dtype)  # noqa: E731
    return LabelledParams(
        autoencoder=autoencoder,
        encoder_shift=shift(encoder_key, autoencoder.encoder),
        decoder_shift=shift(decoder_key, autoencoder.decoder),
        classifier=classifier,
        holes=jnp.zeros((classifier.n_first, columns.n_columns), dtype) if design.reads_holes else None,
        log_prior=jnp.zeros(n_labels, dtype),
    )


@eqx.filter_jit
def label_probabilities(module: LabelledParams, x: Array, observed: Array | None) -> Float[Array, "n K"]:
    """q(y | x)."""
    return jax.nn.softmax(module.label_logits(x, observed), axis=1)


@eqx.filter_jit
def weigh_labels(key: Array, module: LabelledParams, x: Array, observed: Array | None, **options: Any) -> Any:
    """As `variational.importance.weighed`, summed over labels, and the parts for draws.

    Returns
    -------
    log p(x) (n,), its replicates (n, R), the average of the mean statistics and its error; log p(x, y) (n, K), the log
    weights (n, K, S) and the answers (n, K, a).
    """
    log_prior = jax.nn.log_softmax(module.log_prior)
    labels = jnp.arange(len(log_prior))
    weighted, answers = lax.map(lambda label: weighed(key, module.given(label), x, observed, **options), labels)
    joint = log_prior[:, None] + weighted.log_mean
    share = jax.nn.softmax(joint, axis=0)
    total = jax.nn.logsumexp(joint, axis=0)
    # A replicate of the sum is the sum of the labels' own, to first order in the weights, as these are themselves.
    around = weighted.replicates - weighted.log_mean[..., None]
    replicates = total[:, None] + jnp.einsum("yn,ynr->nr", share, around)
    average = jax.tree.map(lambda a: jnp.einsum("yn,ynd->nd", share, a), weighted.average)
    rows_first = jax.tree.map(lambda a: jnp.swapaxes(a, 0, 1), (joint, weighted.log_weights, answers))
    return total, replicates, average, _error(share, average, weighted), rows_first


def _error(share: Array, average: Any, weighted: Any) -> Any:
    """The error of an average over labels: of each label's own, and of its share, whose noise is the same for all.

    The labels' errors are added up as if they all went one way, which is the worst that shared noise can do.
    """
    if weighted.stderr is None:
        return None
    weights = jnp.exp(weighted.log_weights - weighted.log_weights.max(axis=2, keepdims=True))
    relative = jnp.sqrt((weights**2).sum(axis=2)) / weights.sum(axis=2)
    own = weighted.stderr + relative[..., None] * jnp.abs(weighted.average - average[None])
    return jnp.einsum("yn,ynd->nd", share, own)


@eqx.filter_jit
def draw_labelled(
    key: Array, noise_key: Array, module: LabelledParams, joint: Array, log_weights: Array, answers: Array
) -> Float[Array, "n d"]:
    """A row for each set of weights: a label, a latent resampled by weight, then the columns."""
    label_key, latent_key, column_key = jax.random.split(key, 3)
    label = jax.random.categorical(label_key, joint, axis=1)
    row = jnp.arange(len(label))
    noise = resample(latent_key, jax.random.split(noise_key)[0], log_weights[row, label], module.n_latent)
    z, _ = module.autoencoder.posterior(answers[row, label]).sample(noise[:, None])
    return _rows_at(column_key, module, label, z[:, 0])


@eqx.filter_jit
def draw_new_labelled(key: Array, module: LabelledParams, n: int, label: Array | None) -> Float[Array, "n d"]:
    """Rows of the model, of one label or of any."""
    label_key, latent_key, column_key = jax.random.split(key, 3)
    if label is None:
        labels = jax.random.categorical(label_key, module.log_prior, shape=(n,))
    else:
        labels = jnp.broadcast_to(label, (n,))
    z = jax.random.normal(latent_key, (n, module.n_latent), module.log_prior.dtype)
    return _rows_at(column_key, module, labels, z)


@eqx.filter_jit
def codes_and_means(key: Array, module: LabelledParams, x: Array, observed: Array | None, n_refine: int) -> Any:
    """E[z | x, y] for the label that is most probable for the row, and the mean statistics there."""
    label = jnp.argmax(module.label_logits(x, observed), axis=1)
    labels = jnp.arange(len(module.log_prior))
    answers = lax.map(lambda one: answer_of(key, module.given(one), x, observed, n_refine), labels)
    z = module.autoencoder.posterior(answers[label, jnp.arange(len(x))]).mean
    return z, jax.vmap(lambda one, code: module.given(one).mean(code))(label, z)


def _rows_at(key: Array, module: LabelledParams, label: Array, z: Array) -> Array:
    keys = jax.random.split(key, len(z))
    return jax.vmap(lambda own, one, code: module.given(one).sample(own, code[None])[0])(keys, label, z)

"""Autoencoders whose evidence is known: linear Gaussian ones by factor analysis, one-latent ones by quadrature."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely import VAE
from likely.columns import Columns
from likely.models.latent.variational.network import VAEParams
from likely.nets import MLP
from likely.nets.column_interface import MIN_SCALE


def linear_case(seed, d=6, k=2, *, spoil=0.0):
    """A linear autoencoder on real columns, its loadings (d, k), offset and noise variances (d,).

    The columns of the loadings are orthogonal after division by the noise, so that the posterior is diagonal, and the
    encoder is exactly that posterior. `spoil` moves its mean away and widens it by e^spoil: wider, since the weights
    of a narrower one can have infinite variance, and then no standard error means anything.
    """
    random = np.random.RandomState(seed)
    noise = 0.3 + random.rand(d)
    loadings = np.sqrt(noise)[:, None] * np.linalg.qr(random.normal(size=(d, k)))[0] * (1 + random.rand(k))
    offset = random.normal(size=d)
    precision = 1 + np.diag(loadings.T @ (loadings / noise[:, None]))
    projection = (loadings / noise[:, None]).T / precision[:, None]
    moved = projection + spoil * random.normal(size=(k, d)) / np.sqrt(d * precision)[:, None]
    weight = np.concatenate([moved, np.zeros((k, d))])
    bias = np.concatenate([-projection @ offset, spoil - 0.5 * np.log(precision)])
    module = linear_module(weight, bias, loadings, offset, noise)
    return module, loadings, offset, noise


def linear_module(weight, bias, loadings, offset, noise):
    d, k = loadings.shape
    columns = Columns(("real",) * d, (1,) * d)
    encoder, decoder = MLP(jax.random.key(0), d, 2 * k), MLP(jax.random.key(0), k, d)
    put = lambda net, w, b: eqx.tree_at(  # noqa: E731
        lambda n: (n.layers[0].weight, n.layers[0].bias), net, (jnp.asarray(w), jnp.asarray(b))
    )
    log_scale = jnp.log(jnp.asarray(np.sqrt(noise) - MIN_SCALE))
    encoder, decoder = put(encoder, weight, bias), put(decoder, loadings, offset)
    return VAEParams(encoder, decoder, None, log_scale, jnp.zeros(d), columns, k)


def factor_log_prob(rows, loadings, offset, noise):
    """log N(x; offset, loadings loadingsᵀ + diag noise) of the observed cells of each row."""
    covariance = loadings @ loadings.T + np.diag(noise)
    out = []
    for row in rows:
        seen = ~np.isnan(row)
        law = stats.multivariate_normal(offset[seen], covariance[np.ix_(seen, seen)]) if seen.any() else None
        out.append(law.logpdf(row[seen]) if law else 0.0)
    return np.array(out)


def factor_rows(seed, loadings, offset, noise, n):
    random = np.random.RandomState(seed + 1)
    latents = random.normal(size=(n, loadings.shape[1]))
    return latents @ loadings.T + offset + np.sqrt(noise) * random.normal(size=(n, len(offset)))


def fitted(seed, rows, module, **hyper):
    """A VAE on the given rows' columns that holds the given module, in the rows' own units."""
    width = tuple(layer.weight.shape[0] for layer in module.encoder.layers[:-1])
    model = VAE(
        module.n_latent, hidden=width, activation=module.encoder.activation, n_epochs=1, random_state=seed, **hyper
    ).fit(rows)
    model.cells_ = type(model.cells_).plain(model.columns_)
    model.params_ = module
    return model


def binary_case(seed, d=5, width=4, strength=2.0):
    """A one-latent autoencoder on binary columns with a crooked decoder, and an encoder that is only roughly right."""
    encoder_key, decoder_key, slope_key = jax.random.split(jax.random.key(seed), 3)
    encoder = MLP(encoder_key, d, 2, hidden=(width,), activation="tanh", output_gain=0.5)
    decoder = MLP(decoder_key, 1, d, hidden=(width,), activation="tanh", output_gain=strength)
    first = decoder.layers[0]
    decoder = eqx.tree_at(lambda n: n.layers[0].bias, decoder, jax.random.normal(slope_key, first.bias.shape))
    columns = Columns(("binary",) * d, (1,) * d)
    return VAEParams(encoder, decoder, None, jnp.zeros(0), jnp.full(d, 0.5), columns, 1)


def quadrature(module, rows):
    """log p of the observed cells (n,) and E[x | observed cells] (n, d), by the trapezoid rule on a fine grid of z."""
    z = np.linspace(-12, 12, 24001)
    logits = np.asarray(module.decoder(jnp.asarray(z)[:, None]))
    log_weight = stats.norm.logpdf(z) + np.log(z[1] - z[0])
    evidence, mean = [], []
    for row in rows:
        seen = ~np.isnan(row)
        joint = log_weight + (row[seen] * logits[:, seen] - np.logaddexp(logits[:, seen], 0)).sum(axis=1)
        evidence.append(np.logaddexp.reduce(joint))
        mean.append(np.exp(joint - evidence[-1]) @ (1 / (1 + np.exp(-logits))))
    return np.array(evidence), np.array(mean)


def all_rows(d):
    """Every row of d cells that are 0, 1 or unobserved."""
    return np.stack(np.meshgrid(*[[0.0, 1.0, np.nan]] * d, indexing="ij"), axis=-1).reshape(-1, d)

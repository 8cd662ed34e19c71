"""Deep and labelled autoencoders whose evidence is known, and checks of it, shared by tests and controls."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.columns import Columns
from likely.models.latent.variational.deep_latent_gaussian import first_module
from likely.models.latent.variational.semi_supervised.network import LabelledParams
from likely.nets import MLP
from likely.nets.column_interface import MIN_SCALE
from likely.objectives.elbo import log_importance_weights
from tests.models.latent.variational.vae_family_checks import check_weights
from tests.models.latent.variational.vae_oracles import linear_case


def deep_case(seed, posterior, d=5, sizes=(2, 1)):
    """Two linear layers, x = V h_1 + b + noise, h_1 = F z_2 + z_1: factor analysis with loadings (d, 3)."""
    random = np.random.RandomState(seed)
    columns, key = Columns(("real",) * d, (1,) * d), jax.random.key(seed)
    module = first_module(key, columns, sizes, (), "tanh", posterior, reads_holes=False)
    upper, output = 0.7 * random.normal(size=sizes), random.normal(size=(d, sizes[0])) / 2
    offset, noise = random.normal(size=d), 0.5 + random.rand(d)
    loadings = np.concatenate([output, output @ upper], axis=1)
    # q: the exact posterior's mean, and no narrower than the prior
    precision = np.eye(3) + loadings.T @ (loadings / noise[:, None])
    projection = np.linalg.solve(precision, (loadings / noise[:, None]).T)
    answer_size = module.encoder.layers[-1].weight.shape[0]
    places = np.array([0, 1, 6]) if posterior == "low_rank" else np.arange(3)  # of the means, layer by layer
    weight, bias = np.zeros((answer_size, d)), np.zeros(answer_size)
    weight[places], bias[places] = projection, -projection @ offset
    parts = (jnp.asarray(upper), jnp.asarray(output), jnp.asarray(offset))
    where = lambda m: (  # noqa: E731
        m.decoder.between[0].layers[0].weight,
        m.decoder.output.layers[0].weight,
        m.decoder.output.layers[0].bias,
        m.encoder.layers[0].weight,
        m.encoder.layers[0].bias,
        m.log_scale,
    )
    log_scale = jnp.log(jnp.asarray(np.sqrt(noise) - MIN_SCALE))
    module = eqx.tree_at(where, module, (*parts, jnp.asarray(weight), jnp.asarray(bias), log_scale))
    return module, loadings, offset, noise


def check_deep_weights(module, rows, exact, seed):
    """Importance weights of a deep module average to its exact evidence."""
    x, noise = jnp.asarray(rows), jax.random.normal(jax.random.key(seed), (10_000, module.n_latent))
    weigh = eqx.filter_jit(lambda m: log_importance_weights(m, x, None, m.recognise(x, None), noise)[0])
    check_weights(np.asarray(weigh(module)), exact)


def labelled_case(seed, n_labels=3, d=4, k=2):
    """A linear autoencoder whose labels move x: p(x) is a mixture of Gaussians; returned with log p(x, y) of rows."""
    random = np.random.RandomState(seed)
    base, loadings, offset, noise = linear_case(seed, d, k, spoil=0.2)
    shift = 1.5 * random.normal(size=(d, n_labels))
    projection = np.asarray(base.encoder.layers[0].weight)
    module = LabelledParams(
        autoencoder=base,
        encoder_shift=jnp.asarray(-projection @ shift),
        decoder_shift=jnp.asarray(shift),
        classifier=MLP(jax.random.key(seed), d, n_labels),
        holes=None,
        log_prior=jnp.asarray(random.normal(size=n_labels)),
    )
    covariance = loadings @ loadings.T + np.diag(noise)
    log_prior = np.asarray(jax.nn.log_softmax(module.log_prior))

    def log_joint(rows):
        laws = [stats.multivariate_normal(offset + shift[:, y], covariance) for y in range(n_labels)]
        return np.stack([log_prior[y] + law.logpdf(rows) for y, law in enumerate(laws)], axis=1)

    rows = random.multivariate_normal(offset, covariance + shift @ shift.T / n_labels, size=12)
    return module, rows, log_joint


def check_unlabelled_bound(bound):
    """At q(y | x) = p(y | x) it is log Σ_y p(x, y); at any other it is lower by KL(q(y | x) || p(y | x))."""
    random = np.random.RandomState(0)
    joint, logits = random.normal(size=(6, 4)) * 3, random.normal(size=(6, 4)) * 2
    exact = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(bound(jnp.asarray(joint), jnp.asarray(joint)), exact, rtol=1e-9)
    log_q = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    gap = (np.exp(log_q) * (log_q - joint + exact[:, None])).sum(axis=1)
    np.testing.assert_allclose(bound(jnp.asarray(joint), jnp.asarray(logits)), exact - gap, rtol=1e-9)

"""Checks of posteriors, priors and weights against exact values, shared by tests and controls."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.models.latent.variational.network import VAEParams
from likely.models.latent.variational.posteriors import FAMILIES, Diagonal
from likely.models.latent.variational.priors import MixtureOf
from likely.nets import MLP
from tests.models.latent.variational.vae_oracles import linear_case

K = 3


def answers(name, seed, n=4):
    size = FAMILIES[name].n_answers(K)
    return jnp.asarray(np.random.RandomState(seed).normal(size=(n, size)) * 0.7)


def check_density(sample, answer, noise):
    """log q of a sample is that of its noise less the log determinant of ∂z/∂noise; returns z and ∂z/∂noise."""

    @jax.jit
    def both(answer, noise):
        one = lambda a, e: jax.jacfwd(lambda e: sample(a[None], e[None, None])[0][0, 0])(e)  # noqa: E731
        return *sample(answer, noise), jax.vmap(one)(answer, noise[:, 0])

    z, log_q, jacobian = both(answer, noise)
    expected = stats.norm.logpdf(noise[:, 0]).sum(axis=1) - np.linalg.slogdet(np.asarray(jacobian))[1]
    np.testing.assert_allclose(log_q[:, 0], expected, rtol=1e-9)
    return np.asarray(z), np.asarray(jacobian)


def linear_family_case(seed, name, prior="normal", d=5, k=2):
    """A linear Gaussian decoder with a q of the given family that is near the posterior but wider, and its law.

    The law is a list of (weight, mean, covariance) of the Gaussians whose mixture p(x) is.
    """
    base, loadings, offset, noise = linear_case(seed, d, k, spoil=0.2)
    random, family = np.random.RandomState(seed + 7), FAMILIES[name]
    more = family.n_answers(k) - 2 * k
    old = base.encoder.layers[0]
    weight = np.concatenate([np.asarray(old.weight), np.zeros((more, d))])
    bias = np.concatenate([np.asarray(old.bias), 0.15 * random.normal(size=more)])
    encoder = eqx.tree_at(
        lambda net: (net.layers[0].weight, net.layers[0].bias),
        MLP(jax.random.key(0), d, len(bias)),
        (jnp.asarray(weight), jnp.asarray(bias)),
    )
    module = VAEParams(encoder, base.decoder, None, base.log_scale, base.offset, base.columns, k, family)
    module = eqx.tree_at(
        lambda m: m.latent_prior, module, _prior(prior, random, k, d), is_leaf=lambda leaf: leaf is None
    )
    return module, _law(module, loadings, offset, noise, k)


def exact_log_prob(rows, law):
    parts = [np.log(w) + stats.multivariate_normal(mean, cov).logpdf(rows) for w, mean, cov in law]
    return np.logaddexp.reduce(parts, axis=0)


def rows_of(seed, law, n):
    random = np.random.RandomState(seed)
    chosen = random.choice(len(law), n, p=[w for w, _, _ in law])
    return np.stack([random.multivariate_normal(law[c][1], law[c][2]) for c in chosen])


def check_weights(log_weights, exact):
    """Weights (n, S) average to p(x), and the bounds that they make rise to it and stay below."""
    ratio = np.exp(np.asarray(log_weights) - exact[:, None]).mean(axis=0)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1) < 5 * error
    assert error < 0.05  # a check that any weights pass is none
    by_five = np.logaddexp.reduce(log_weights.reshape(len(exact), -1, 5), axis=2) - np.log(5)
    for bound in (log_weights, by_five):
        gap = (exact[:, None] - np.asarray(bound)).mean(axis=0)
        assert gap.mean() > -4 * gap.std(ddof=1) / np.sqrt(len(gap))
    assert by_five.mean() > log_weights.mean()


def check_gradient(gradient, total, flat, direction):
    """The slope along a direction is that of central differences of the expected bound."""
    step = 1e-4
    change = (total(flat + step * direction) - total(flat - step * direction)) / (2 * step)
    np.testing.assert_allclose(gradient @ direction, change, rtol=2e-4)  # the rule itself is right to 1e-4


def _prior(kind, random, k, d):
    if kind == "normal":
        return None
    if kind == "vamp":
        return jnp.asarray(random.normal(size=(3, d)))
    means = jnp.asarray(random.normal(size=(3, k)))
    return MixtureOf(jnp.asarray(random.normal(size=3)), Diagonal(means, jnp.full_like(means, -0.3)))


def _law(module, loadings, offset, noise, k):
    """Each Gaussian member of the prior, sent through the decoder."""
    prior = module.prior()
    if not hasattr(prior, "q"):
        members = [(1.0, np.zeros(k), np.eye(k))]
    else:
        weights = np.asarray(jax.nn.softmax(prior.log_weight))
        covariances = [np.asarray(_covariance(prior.q, c, k)) for c in range(len(weights))]
        members = list(zip(weights, np.asarray(prior.q.mean), covariances, strict=True))
    return [(w, loadings @ m + offset, loadings @ c @ loadings.T + np.diag(noise)) for w, m, c in members]


def _covariance(q, c, k):
    moved = q.sample(jnp.broadcast_to(jnp.eye(k)[None], (len(q.mean), k, k)))[0][c] - q.mean[c][None]
    return moved.T @ moved  # rows of `moved` are the columns of a square root of the covariance

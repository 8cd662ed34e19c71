"""Checks of the bound's parts, as functions of the part: tests give the real one, controls a wrong one."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, stats

from tests.models.latent.variational.vae_oracles import factor_log_prob, factor_rows, linear_case


def check_kl(kl):
    """KL(N(m, s²) || N(0, 1)) against numerical integration."""
    for mean, std in ((0.0, 0.3), (1.5, 1.0), (-2.0, 2.5), (0.7, 0.05)):
        law = stats.norm(mean, std)
        span = (mean - 12 * std, mean + 12 * std)
        value, _ = integrate.quad(lambda z, law=law: law.pdf(z) * (law.logpdf(z) - stats.norm.logpdf(z)), *span)
        np.testing.assert_allclose(kl(jnp.array([mean]), jnp.log(jnp.array([std]))), value, rtol=1e-8)


def check_weights_are_exact(log_weights_of):
    """With q the exact posterior of a linear Gaussian model every weight is p(x)."""
    module, *law = linear_case(5)
    rows = factor_rows(5, *law, 12)
    answer = module.recognise(jnp.asarray(rows), None)
    noise = jax.random.normal(jax.random.key(0), (9, 2))
    log_weights, _ = eqx.filter_jit(log_weights_of)(module, rows, None, answer, noise)
    exact = factor_log_prob(rows, *law)
    np.testing.assert_allclose(log_weights, np.broadcast_to(exact[:, None], (12, 9)), rtol=1e-8)

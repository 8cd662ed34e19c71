"""Checks of a start by the values of a column, given the functions, so that bugs can be planted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import multivariate_normal

from likely.columns import Columns
from likely.models.latent.mixture import components
from likely.models.latent.mixture.components import Layout, MixtureParams
from likely.models.latent.mixture.gaussian_block import GaussianBlock


def one_gaussian(rows, weight, key, k):
    """The rows' own moments, by their weights."""
    mean = np.average(rows, axis=0, weights=weight)
    tril = np.linalg.cholesky(np.cov(rows.T, aweights=weight, bias=True))
    return MixtureParams(jnp.zeros(k), None, GaussianBlock(jnp.asarray(mean[None]), jnp.asarray(tril[None])))


def check_start(started, covariance: str) -> None:
    """Each value's Gaussian, weighed by its share of the rows, against SciPy."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0.0, 1.0, 2.0, np.nan], [8, 20, 32, 5])
    rows = np.nan_to_num(codes)[:, None] + rng.normal(size=(65, 2)) @ np.array([[1.0, 0.5], [0.0, 0.3]])
    weight = rng.integers(0, 3, 65).astype(float)
    layout = Layout.of(Columns(("real", "real"), (1, 1)), covariance)
    params = started(one_gaussian, rows, weight, codes, jax.random.key(0), 3, layout)
    total, own = 0.0, [codes == value for value in range(3)]
    shares = np.array([weight[which].sum() for which in own]) / weight[~np.isnan(codes)].sum()
    spreads = [np.cov(rows[which].T, aweights=weight[which], bias=True) for which in own]
    if covariance == "tied":
        spreads = [np.einsum("k,kij->ij", shares, spreads)] * 3
    for which, share, spread in zip(own, shares, spreads, strict=True):
        mean = np.average(rows[which], axis=0, weights=weight[which])
        total = total + share * multivariate_normal(mean, spread).pdf(rows)
    found = components.log_prob(params, jnp.asarray(rows), None, layout)
    np.testing.assert_allclose(found, np.log(total), rtol=1e-8)
